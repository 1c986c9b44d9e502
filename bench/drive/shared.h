// What the processes of a measurement share, in memory: the driver, and the nodes that it started
// (node.cc).
#ifndef MATINS_BENCH_DRIVE_SHARED_H_
#define MATINS_BENCH_DRIVE_SHARED_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace matins::bench {

struct Shared {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::atomic<int64_t> entered{0};
  std::atomic<int64_t> first_entered_us{0};  // wall clock
  std::atomic<int64_t> finished{0};          // their ends are committed
  std::atomic<int64_t> failed{0};            // ended otherwise than DONE
  std::atomic<int64_t> last_finished_us{0};  // wall clock, when the last of them was known
  std::atomic<int64_t> cpu_us{0};            // of all nodes since `go`, as each last told
  std::atomic<int64_t> cpu_told{0};
  std::atomic<int64_t> alarms{0};
  std::atomic<int64_t> plans_stale{0};  // of jobs that another node had planned meanwhile
  std::atomic<int64_t> latenesses{0};   // how many have been written behind this
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

// Room for so many latenesses lies behind it.
inline size_t SharedBytes(int64_t room) {
  return sizeof(Shared) + static_cast<size_t>(room) * sizeof(std::atomic<int64_t>);
}
inline std::atomic<int64_t>* LatenessesOf(Shared* shared) {
  return reinterpret_cast<std::atomic<int64_t>*>(shared + 1);
}

// What a driver writes to a node's standard input; its end is the order to drain and to end.
inline constexpr char kTellCpu = 'c';

}  // namespace matins::bench

#endif  // MATINS_BENCH_DRIVE_SHARED_H_
