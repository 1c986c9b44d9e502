// matins checkpoint|result|fence: what a run says to its node, and the SQL of the business fence.
#include <cstdlib>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/commands.h"
#include "execute/run_client.h"
#include "store/fence_sql.h"
#include "view/table.h"

namespace matins {
namespace {

absl::Status Ask(const Shell& shell, const RunAskArgs& args) {
  const char* socket = std::getenv("MATINS_SOCKET");
  if (socket == nullptr || *socket == '\0') {
    return BadInput("MATINS_SOCKET", "is not set: this is no run of Matins",
                    "call it from a job's command or shell, which Matins starts");
  }
  ASSIGN_OR_RETURN(const std::string answer, AskNode(socket, args));
  if (!answer.empty()) shell.Print(absl::StrCat(answer, "\n"));
  return absl::OkStatus();
}

absl::Status PrintFenceSql(const Shell& shell, const std::string& dialect) {
  ASSIGN_OR_RETURN(const std::string text, FenceSqlText(dialect));
  shell.Print(text);
  return absl::OkStatus();
}

void AddFence(CLI::App& app, Shell& shell) {
  CLI::App& fence = *app.add_subcommand(
      "fence",
      "in a run: asks the node whether the run still owns its period, and prints the fence");
  fence.require_subcommand(0, 1);
  shell.Does(fence, [&fence, &shell]() -> absl::Status {
    if (!fence.get_subcommands().empty()) return absl::OkStatus();
    return Ask(shell, {AskKind::kFence, -1, ""});
  });
  CLI::App& sql =
      *fence.add_subcommand("sql", "the table and statements that fence a business database");
  auto dialect = std::make_shared<std::string>("postgresql");
  sql.add_option("--dialect", *dialect, "postgresql, mariadb or sqlite")->required();
  shell.Does(sql, [&shell, dialect] { return PrintFenceSql(shell, *dialect); });
}

}  // namespace

void AddInRunCommands(CLI::App& app, Shell& shell) {
  CLI::App& checkpoint = *app.add_subcommand(
      "checkpoint", "in a run: how far it has got; returns when the store has it");
  auto args = std::make_shared<RunAskArgs>();
  auto number = std::make_shared<std::string>();
  args->kind = AskKind::kCheckpoint;
  checkpoint.add_option("NUMBER", *number, "from 1; greater than the last one")->required();
  checkpoint.add_option("DATA", args->payload,
                        "what the next attempt needs to go on, up to 64 KiB");
  shell.Does(checkpoint, [&shell, args, number]() -> absl::Status {
    if (!absl::SimpleAtoi(*number, &args->number) || args->number < 1) {
      return BadInput("NUMBER", absl::StrCat("'", Harmless(*number, false), "' is no checkpoint"),
                      "give a whole number from 1 on, greater than the last one");
    }
    return Ask(shell, *args);
  });

  CLI::App& result =
      *app.add_subcommand("result", "in a run: its result, as JSON, kept with the run");
  auto json = std::make_shared<RunAskArgs>();
  json->kind = AskKind::kResult;
  result.add_option("JSON", json->payload)->required();
  shell.Does(result, [&shell, json] { return Ask(shell, *json); });
  AddFence(app, shell);
}

}  // namespace matins
