// The node's end of one guard: starts it, tells it, hears it (guard/wire.h).
#ifndef MATINS_EXECUTE_GUARD_LINK_H_
#define MATINS_EXECUTE_GUARD_LINK_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "execute/guard_image.h"
#include "execute/runner.h"
#include "execute/user.h"

namespace matins {

// What every guard's command line begins with, for ps, and for DeadNodes.
inline constexpr char kGuardName[] = "matins-guard";

// All that a guard has to know, worked out.
struct GuardPlan {
  std::string dir;
  std::vector<std::string> argv;
  std::vector<std::string> env;
  std::optional<UserAccount> become;
  int umask = 022;
  OutputLimits output;
  std::string return_program;
  std::string return_message;
  std::string record;  // the file that the guard holds locked while it lives
  bool pass_streams = false;
};

struct GuardFailure {
  int stage = 0;  // enum guard_stage
  int error = 0;  // errno
  std::string file;
};
struct GuardClosed {};  // its end is closed: it has gone
using GuardMessage = std::variant<RunStarted, RunOutput, RunEnded, GuardFailure, GuardClosed>;

// Not thread-safe, but may be handed from thread to thread. Closing it is, to the guard, the death
// of the node.
class GuardLink {
 public:
  // Starts a guard that waits for its plan. Its name, for ps, ends with `label`. It has this
  // process's standard files with `pass_streams`, and none without.
  static absl::StatusOr<std::unique_ptr<GuardLink>> Spawn(const GuardImage& image,
                                                          const std::string& label,
                                                          bool pass_streams = false);
  ~GuardLink();

  int fd() const { return fd_; }
  pid_t pid() const { return pid_; }

  void SendPlan(const GuardPlan& plan, Deadline lease, Deadline time_out);
  void SendLease(Deadline lease);
  void SendStop(StopReason reason, absl::Duration grace, int signal);
  void SendSignal(int signal);
  // Writes what is still to be written; true when nothing is left.
  bool Flush();
  // What has come, without waiting; GuardClosed last.
  std::vector<GuardMessage> Receive();

 private:
  GuardLink(int fd, pid_t pid) : fd_(fd), pid_(pid) {}
  void Queue(char type, const std::string& payload);

  const int fd_;
  const pid_t pid_;
  std::string in_;
  std::string out_;
};

}  // namespace matins

#endif  // MATINS_EXECUTE_GUARD_LINK_H_
