// Programs that a message is given to: one at a time, on its standard input, bounded in time.
#ifndef MATINS_SEND_CHILD_H_
#define MATINS_SEND_CHILD_H_

#include <atomic>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace matins {

struct ChildCall {
  std::vector<std::string> words;      // argv
  std::vector<std::string> variables;  // NAME=VALUE, all of its environment
  std::string input;
  absl::Duration timeout;
  int program = -1;                         // a descriptor to start; -1: words[0], sought in PATH
  bool output = false;                      // what it prints is wanted; otherwise it is thrown away
  const std::atomic<bool>* stop = nullptr;  // ends it early
};

struct ChildEnd {
  int status = 0;      // as of waitpid
  std::string output;  // at most 64 KiB
};

// Runs it in a session of its own, which is killed whole when the time is over. The exit code is
// kNoProgram where it is not there, or cannot be run. DeadlineExceeded; Cancelled: it was stopped.
inline constexpr int kNoProgram = 127;
absl::StatusOr<ChildEnd> RunChild(const ChildCall& call);

}  // namespace matins

#endif  // MATINS_SEND_CHILD_H_
