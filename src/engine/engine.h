// A node that runs: its lanes, a thread each. What the lanes do is in lanes.h.
#ifndef MATINS_ENGINE_ENGINE_H_
#define MATINS_ENGINE_ENGINE_H_

#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/lanes.h"

namespace matins {

// Thread-safe. Create, Start, then Drain; without Drain the destructor stops the lanes at once, as
// a crash would: what runs is killed by its guards, and its leases are given back or end.
class Engine {
 public:
  // Opens a store for each lane, and one more to wait on.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(NodeParts parts);
  ~Engine();

  void Start();

  // Takes nothing new, gives back what is held and not started, waits up to `patience` for runs to
  // end by themselves, then stops the others (SIGTERM, their grace, SIGKILL), whose periods are
  // handed over; returns when the store has the end of each, or `give_up` after the stopping began.
  // OK: the node left in order. DeadlineExceeded: some ends are not written; their leases will end.
  absl::Status Drain(absl::Duration patience, absl::Duration give_up = absl::Minutes(1));

  // Planning looks at what is due now; for acts of the same process.
  void LookNow();

  const Counters& counters() const { return lanes_->node().counters; }
  int running() const { return lanes_->node().live.count(); }
  bool frozen() const { return lanes_->node().frozen; }
  // A newer program has migrated the store: this one starts nothing more, and should be drained
  // when what runs has ended.
  bool outdated() const { return lanes_->node().outdated; }

 private:
  explicit Engine(std::unique_ptr<Lanes> lanes, Clock& clock);

  void RunLane(LaneKind kind);
  // Changes that others make in the store ring the bells of planning and starting.
  void RunWatch();
  bool WaitDrained(absl::Duration until);
  void Halt();
  bool halted() const;
  // Waits for one of the two below, not for long: the store may be away.
  void AwaitFirst(const bool& done);
  void NoteFirst(LaneKind stepped);

  const std::unique_ptr<Lanes> lanes_;
  Clock& clock_;
  std::unique_ptr<Store> watch_store_;
  mutable absl::Mutex mutex_;
  bool halted_ ABSL_GUARDED_BY(mutex_) = false;
  // The first tick knows whether this node comes after a time in which none was there, which
  // planning must know before it looks: what fails now is not to be made good as what failed then
  // is.
  bool ticked_ ABSL_GUARDED_BY(mutex_) = false;
  // Planning has looked, and START has taken what it found; whoever only looks after others waits
  // for that.
  bool looked_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace matins

#endif  // MATINS_ENGINE_ENGINE_H_
