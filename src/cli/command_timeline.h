// matins timeline, which stands beside `why`.
#ifndef MATINS_CLI_COMMAND_TIMELINE_H_
#define MATINS_CLI_COMMAND_TIMELINE_H_

#include "cli/shell.h"

namespace matins {

void AddTimelineCommand(CLI::App& app, Shell& shell);

}  // namespace matins

#endif  // MATINS_CLI_COMMAND_TIMELINE_H_
