// A server that a test started: found, run as a user that may run it, and stopped by its pid.
#ifndef MATINS_TESTS_SUPPORT_CHILD_PROCESS_H_
#define MATINS_TESTS_SUPPORT_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace matins::testing {

// A program running as a child of this one. It gets SIGQUIT when the thread that started it ends,
// so that a killed test leaves no server behind. Not thread-safe.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;  // argv[0] is a path
    std::string output;             // file that its stdout and stderr are appended to
    bool as_server_user = false;    // when root: as root: as ServerUser(); else no change
  };

  static absl::StatusOr<ChildProcess> Start(const Options& options);
  ChildProcess() = default;
  ChildProcess(ChildProcess&& other) noexcept : pid_(other.pid_) { other.pid_ = 0; }
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess() { Kill(); }

  pid_t pid() const { return pid_; }  // 0: none, or ended and waited for
  bool Running();
  void Signal(int signal) const;
  // Sends `signal`, waits for the end, and SIGKILLs after `patience`. Answers the wait status.
  int Stop(int signal, absl::Duration patience = absl::Seconds(20));
  int Wait();
  void Kill();

 private:
  pid_t pid_ = 0;
};

// Runs to its end; a non-zero exit is an error that carries the end of the output.
absl::Status RunProgram(const ChildProcess::Options& options);

// Database servers refuse to run as root: then this is "postgres" where there is such a user, else
// "nobody". Empty when this process is not root.
std::string ServerUser();

// A new folder in TMPDIR (or /tmp) that ServerUser() owns: PREFIX.PID.random. Folders of the same
// prefix whose makers have died are removed first.
absl::StatusOr<std::string> MakeServerDirectory(const std::string& prefix);
void RemoveDirectory(const std::string& path);

// The newest `program` of Debian's PostgreSQL packages, else the one in PATH or the sbin folders.
absl::StatusOr<std::string> FindServerProgram(absl::string_view program);

// A TCP port of 127.0.0.1 that nobody listens on now, and that the kernel gives to no client: who
// asks for a server that is away would now and then be given the very port that it comes back to.
int FreePort();

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_CHILD_PROCESS_H_
