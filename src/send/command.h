// Messages given to a program of the user's.
#ifndef MATINS_SEND_COMMAND_H_
#define MATINS_SEND_COMMAND_H_

#include <atomic>

#include "absl/status/status.h"
#include "alert/message.h"
#include "job/alerts.h"

namespace matins {

// Runs the channel's command with the message as JSON on its standard input, in a session of its
// own, with a bare environment and the channel's `env`; what it prints is thrown away. OK where it
// ends with 0 within the time-out; otherwise its whole session is killed. `stop` ends it early.
absl::Status RunCommand(const Channel& channel, const AlertMessage& message,
                        const std::atomic<bool>& stop);

}  // namespace matins

#endif  // MATINS_SEND_COMMAND_H_
