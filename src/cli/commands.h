// Every command of `matins`, one file each (command_*.cc); each adds itself to the command line.
#ifndef MATINS_CLI_COMMANDS_H_
#define MATINS_CLI_COMMANDS_H_

#include "cli/shell.h"

namespace matins {

void AddServeCommand(CLI::App& app, Shell& shell);
void AddExecCommand(CLI::App& app, Shell& shell);
void AddLockCommand(CLI::App& app, Shell& shell);
void AddLocksCommands(CLI::App& app, Shell& shell);  // locks, locks release
void AddJobCommands(CLI::App& app, Shell& shell);
void AddRunCommands(CLI::App& app, Shell& shell);      // run, wait, cancel, skip, retry, hold
void AddBackfillCommands(CLI::App& app, Shell& shell);  // backfill, backfills
void AddHistoryCommands(CLI::App& app, Shell& shell);  // runs, logs
void AddWatermarkCommand(CLI::App& app, Shell& shell);
void AddLimitsCommand(CLI::App& app, Shell& shell);  // limits [set|clear]
void AddStatusCommand(CLI::App& app, Shell& shell);
void AddAuditCommand(CLI::App& app, Shell& shell);
void AddAlertsCommand(CLI::App& app, Shell& shell);
void AddWhyCommand(CLI::App& app, Shell& shell);
void AddDrillCommand(CLI::App& app, Shell& shell);
void AddPreflightCommand(CLI::App& app, Shell& shell);
void AddSimulateCommands(CLI::App& app, Shell& shell);  // simulate, diff
void AddNextCommand(CLI::App& app, Shell& shell);
void AddLintCommand(CLI::App& app, Shell& shell);
void AddDatabaseCommands(CLI::App& app, Shell& shell);  // db, clock, epoch
void AddInRunCommands(CLI::App& app, Shell& shell);     // checkpoint, result, fence [sql]
void AddLabCommand(CLI::App& app, Shell& shell);
void AddDemoCommand(CLI::App& app, Shell& shell);
void AddHousekeepingCommands(CLI::App& app,
                             Shell& shell);  // version, completion, guard-return (hidden)

// Runs the command line; answers the exit code (exit_code.h).
int RunCommandLine(int argc, char** argv);

}  // namespace matins

#endif  // MATINS_CLI_COMMANDS_H_
