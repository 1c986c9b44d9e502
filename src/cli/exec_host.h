// How `matins exec` and its like wait: for time, for signals, for what other threads wake.
#ifndef MATINS_CLI_EXEC_HOST_H_
#define MATINS_CLI_EXEC_HOST_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/event_fd.h"
#include "ops/exec.h"

namespace matins {

// Takes SIGTERM, SIGINT, SIGHUP and SIGQUIT, those that were ignored when the program began aside,
// and SIGUSR1 and SIGUSR2, for this thread and all that it starts from then on; one at a time is
// enough for a process. Lines go to standard error, each in one write.
class TerminalHost final : public ExecHost {
 public:
  static absl::StatusOr<std::unique_ptr<TerminalHost>> Open(bool quiet);
  ~TerminalHost() override;

  void Tell(absl::string_view line, bool news) override;
  int Wait(absl::Duration until) override;
  void WakeUp() override;

 private:
  TerminalHost(int signals, bool quiet) : signals_(signals), quiet_(quiet) {}
  const int signals_;
  EventFd wake_;
  const bool quiet_;
};

}  // namespace matins

#endif  // MATINS_CLI_EXEC_HOST_H_
