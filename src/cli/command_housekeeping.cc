// matins version|completion, and guard-return, which guards call.
#include <unistd.h>

#include <cerrno>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "backends/backends.h"
#include "base/status.h"
#include "cli/commands.h"
#include "cli/completion.h"
#include "nlohmann/json.hpp"
#include "ops/give_back.h"
#include "schedule/schedule.h"

#ifndef MATINS_VERSION
#error "MATINS_VERSION is the project's version, given by the build"
#endif

namespace matins {
namespace {

// A guard's message is small; more than this is not one.
constexpr size_t kMostBytes = 64 * 1024;

absl::StatusOr<std::string> ReadStandardInput() {
  std::string text;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(STDIN_FILENO, buffer, sizeof buffer);
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || text.size() + static_cast<size_t>(got) > kMostBytes) {
      return BadInput("standard input", "is not what a guard writes",
                      "guard-return is not for people");
    }
    text.append(buffer, static_cast<size_t>(got));
  }
}

absl::Status GuardReturn() {
  ASSIGN_OR_RETURN(const std::string message, ReadStandardInput());
  ASSIGN_OR_RETURN(const LeaseToGiveBack lease, ParseGiveBack(message));
  ASSIGN_OR_RETURN(const std::unique_ptr<Database> database,
                   DatabaseFromUrl(lease.store_url, DatabaseOptions{}));
  return GiveLeaseBack(*database, lease);
}

absl::Status Version(const Shell& shell) {
  if (shell.json()) {
    shell.PrintJson({{"version", MATINS_VERSION}, {"tzdata", ZoneDataVersion()}});
  } else {
    shell.Print(absl::StrCat("matins ", MATINS_VERSION, ", zone data ", ZoneDataVersion(), "\n"));
  }
  return absl::OkStatus();
}

}  // namespace

void AddHousekeepingCommands(CLI::App& app, Shell& shell) {
  CLI::App& version =
      *app.add_subcommand("version", "this program's version and the zone data it reads");
  shell.AddOutputOption(version);
  shell.Does(version, [&shell] { return Version(shell); });

  CLI::App& completion =
      *app.add_subcommand("completion", "a completion script for bash, zsh or fish");
  auto name = std::make_shared<std::string>();
  completion.add_option("SHELL", *name, "bash, zsh or fish")->required();
  shell.Does(completion, [&app, &shell, name]() -> absl::Status {
    ASSIGN_OR_RETURN(const std::string script, CompletionScript(app, *name));
    shell.Print(script);
    return absl::OkStatus();
  });

  CLI::App& guard_return =
      *app.add_subcommand("guard-return", "gives a dead run's lease back; called by its guard");
  guard_return.group("");
  shell.Does(guard_return, [] { return GuardReturn(); });
}

}  // namespace matins
