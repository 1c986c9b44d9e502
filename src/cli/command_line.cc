#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "view/table.h"

namespace matins {
namespace {

bool IsCommand(const CLI::App& app, const std::string& name) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == name) return true;
  }
  return false;
}

// "matins job show": the command as far as it was understood.
std::string CommandOf(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const std::string& name = app.get_name();
  return chosen.empty() ? name : absl::StrCat(name, " ", CommandOf(*chosen.front()));
}

// What stands behind "--", whatever it looks like: nothing of it is ours to understand.
int TakeRest(int argc, char** argv, Shell& shell) {
  int end = 1;
  while (end < argc && absl::string_view(argv[end]) != "--") ++end;
  if (end < argc) shell.SetRest({argv + end + 1, argv + argc});
  return end;
}

void AddAll(CLI::App& app, Shell& shell) {
  AddServeCommand(app, shell);
  AddExecCommand(app, shell);
  AddLockCommand(app, shell);
  AddLocksCommands(app, shell);
  AddJobCommands(app, shell);
  AddRunCommands(app, shell);
  AddBackfillCommands(app, shell);
  AddHistoryCommands(app, shell);
  AddWatermarkCommand(app, shell);
  AddStatusCommand(app, shell);
  AddAuditCommand(app, shell);
  AddAlertsCommand(app, shell);
  AddWhyCommand(app, shell);
  AddDrillCommand(app, shell);
  AddPreflightCommand(app, shell);
  AddSimulateCommands(app, shell);
  AddLimitsCommand(app, shell);
  AddNextCommand(app, shell);
  AddLintCommand(app, shell);
  AddInRunCommands(app, shell);
  AddDatabaseCommands(app, shell);
  AddLabCommand(app, shell);
  AddDemoCommand(app, shell);
  AddHousekeepingCommands(app, shell);
}

}  // namespace

int RunCommandLine(int argc, char** argv) {
  CLI::App app("Matins: work that must run once, on time, and never go missing.", "matins");
  app.require_subcommand(1);
  app.set_version_flag("--version", "matins " MATINS_VERSION);
  app.footer(
      "Most commands work on the store directly (--store, or MATINS_STORE), whether a node runs or "
      "not.\n"
      "Exit codes: 0 done, 1 the run or check failed, 2 bad input, 3 not found, 4 refused, 5 store "
      "away, 6 no answer came,\n"
      "7 waited too long, 8 a run was taken from it, 70 a bug.");
  app.failure_message([](const CLI::App* at, const CLI::Error& error) {
    const std::string command = CommandOf(*at);
    return absl::StrCat(command, ": ", Harmless(error.what(), false), "; `", command,
                        " --help` says how\n");
  });
  Shell shell;
  const absl::string_view first = argc > 1 ? argv[1] : "";
  const bool is_exec = first == "exec" || first == "lock";
  if (is_exec || first == "drill") argc = TakeRest(argc, argv, shell);
  if (is_exec) {
    // It stands in front of every line of a crontab: its start is all that many runs cost.
    first == "exec" ? AddExecCommand(app, shell) : AddLockCommand(app, shell);
  } else {
    AddAll(app, shell);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && argv[1][0] != '-' && !IsCommand(app, argv[1])) {
      std::fprintf(stderr, "matins: no command '%s'; `matins --help` lists them\n",
                   Harmless(argv[1], false).c_str());
      return kExitUsage;
    }
    // Help and version are "errors" with code 0; everything else is bad usage.
    return app.exit(error) == 0 ? kExitOk : (is_exec ? kExecOwn : 0) + kExitUsage;
  }
  return shell.exit_code();
}

}  // namespace matins
