#include "CLI/CLI.hpp"
#include "cli/commands.h"

namespace matins {

int RunCommandLine(int argc, char** argv) {
  CLI::App app("Matins: work that must run once, on time, and never go missing.", "matins");
  app.require_subcommand(1);
  app.footer(
      "Most commands work on the store directly (--store, or MATINS_STORE), whether a node runs or "
      "not.\n"
      "Exit codes: 0 done, 1 the run or check failed, 2 bad input, 3 not found, 4 refused, 5 store "
      "away, 6 no answer came,\n"
      "7 waited too long, 70 a bug.");
  Shell shell;
  AddServeCommand(app, shell);
  AddJobCommands(app, shell);
  AddRunCommands(app, shell);
  AddHistoryCommands(app, shell);
  AddWatermarkCommand(app, shell);
  AddStatusCommand(app, shell);
  AddNextCommand(app, shell);
  AddLintCommand(app, shell);
  AddInRunCommands(app, shell);
  AddDatabaseCommands(app, shell);
  AddDemoCommand(app, shell);
  AddHousekeepingCommands(app, shell);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" with code 0; everything else is bad usage.
    return app.exit(error) == 0 ? kExitOk : kExitUsage;
  }
  return shell.exit_code();
}

}  // namespace matins
