// Nodes in processes of their own, each a program that embeds Matins by its public header, with
// its default settings.
#ifndef MATINS_BENCH_DRIVE_NODE_PROCESS_H_
#define MATINS_BENCH_DRIVE_NODE_PROCESS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/time/time.h"
#include "bench/drive/line.h"

namespace matins::bench {

// Counters that all processes of a measurement share.
struct Shared {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::atomic<int64_t> entered{0};
  std::atomic<int64_t> first_entered_us{0};  // wall clock
  std::atomic<int64_t> finished{0};          // their ends are committed
  std::atomic<int64_t> failed{0};            // ended otherwise than DONE
  std::atomic<int64_t> last_finished_us{0};  // wall clock, when the last of them was known
  std::atomic<int64_t> cpu_us{0};            // of all nodes, from `go` to `stop`
  std::atomic<int64_t> alarms{0};
  std::atomic<int64_t> latenesses{0};  // how many of NodeProcesses::lateness_us are written
};

class NodeProcesses {
 public:
  // Forks `count` nodes, which open the store and wait. No thread may have been started before.
  // `latenesses`: room for so many, 0: none are kept.
  // `slots`: runs of each node at a time; 0: the default.
  NodeProcesses(const Options& options, int count, int64_t latenesses = 0, int slots = 0);
  ~NodeProcesses();  // kills what still lives

  Shared& shared() { return *shared_; }
  // How long after its due instant a handler's first instruction came, in microseconds of the
  // host's wall clock.
  int64_t lateness_us(int64_t i) const { return lateness_us_[i]; }
  const std::vector<pid_t>& pids() const { return pids_; }
  // Waits until each has opened the store, then lets them go on to Start.
  void Go();
  // Waits until `shared` says so; ends the program after `patience` with what was seen.
  void Await(const std::function<bool(const Shared&)>& done, absl::Duration patience);
  // SIGKILL, to the first of them; the rest goes on. Answers when, by the host's wall clock.
  absl::Time KillOne();
  // Drains and ends them.
  void Stop();

 private:
  void Child();
  const Options& options_;
  const int64_t room_;
  const int slots_;
  size_t bytes_;
  Shared* shared_;
  std::atomic<int64_t>* lateness_us_;  // `room_` of them, behind *shared_
  std::vector<pid_t> pids_;
};

}  // namespace matins::bench

#endif  // MATINS_BENCH_DRIVE_NODE_PROCESS_H_
