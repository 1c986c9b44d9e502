// The demo's nodes and scripts: real processes of this same program.
#ifndef MATINS_DEMO_PROCESSES_H_
#define MATINS_DEMO_PROCESSES_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace matins::demo {

// A child process; killed with its object. Not thread-safe.
class Process {
 public:
  // Standard output and error go to the end of `log`. `env` is put on top of this process's own
  // environment.
  static absl::StatusOr<Process> Start(
      const std::vector<std::string>& argv, const std::string& log,
      const std::vector<std::pair<std::string, std::string>>& env = {});
  Process() = default;
  Process(Process&& other) noexcept { *this = std::move(other); }
  Process& operator=(Process&& other) noexcept;
  ~Process() { Kill(); }

  pid_t pid() const { return pid_; }
  void Signal(int signal) const;
  // Waits for its end; answers the exit code, or 128 + signal.
  int Wait();
  bool Running();
  // SIGTERM and Wait.
  int Stop();
  void Kill();

 private:
  pid_t pid_ = 0;
  int code_ = 0;
};

}  // namespace matins::demo

#endif  // MATINS_DEMO_PROCESSES_H_
