// The arithmetic of leases and timers; every instant is of the boot clock. Lease stops count from
// the *sending* of the last call that the store accepted, timers to start from the *receipt* of a
// store time: whatever the network does, a node stops too early and starts too late (I15, I19).
#ifndef MATINS_ENGINE_TIMING_H_
#define MATINS_ENGINE_TIMING_H_

#include <algorithm>

#include "absl/time/time.h"
#include "base/fault.h"
#include "execute/runner.h"

namespace matins {

// A heartbeat is sent so often.
inline absl::Duration BeatEvery(absl::Duration ttl) { return ttl / 4; }
// The client's own deadline of each call about a lease.
inline absl::Duration CallDeadline(absl::Duration ttl) { return ttl / 6; }
// A beat that was not answered is sent again after this.
inline absl::Duration BeatRetry(absl::Duration ttl) { return ttl / 20; }

// What an accepted call about a lease proves: that the lease lives for a ttl from its sending,
// since nobody knows when between that and the answer the store granted it.
inline absl::Duration ProofOf(absl::Duration sent, absl::Duration answered) {
  return IsMutant(Mutant::kLeaseFromAnswer) ? answered : sent;
}

// SIGTERM begins ttl/6 + min(grace, ttl/4) before the lease can end; what is still alive is killed
// ttl/6 before it.
inline Deadline LeaseDeadline(absl::Duration sent, absl::Duration ttl, absl::Duration grace) {
  const absl::Duration kill = sent + ttl - ttl / 6;
  return {.stop = kill - std::min(grace, ttl / 4), .kill = kill};
}

// The store's run_until is its own instant of START + timeout + grace, and START was executed after
// `sent`: the process is dead before the store says so (I21), and by as much as a call may take, so
// that FAILED(timeout) is still accepted. Without that a process that ignores SIGTERM would count
// as lost, and run again.
inline Deadline TimeOutDeadline(absl::Duration sent, absl::Duration timeout, absl::Duration grace,
                                absl::Duration ttl) {
  const absl::Duration kill = sent + timeout + grace - CallDeadline(std::min(ttl, timeout + grace));
  return {.stop = std::min(sent + timeout, kill), .kill = kill};
}

// When the store's clock will have reached `instant`, given that it said `store_now` in an answer
// received at `received`. Never early: the store's clock was read before the answer came.
inline absl::Duration BootAt(absl::Time instant, absl::Time store_now, absl::Duration received) {
  if (instant == absl::InfiniteFuture()) return absl::InfiniteDuration();
  return received + std::max(absl::ZeroDuration(), instant - store_now);
}

// How many jobs a turn of planning takes, and how long it is to take: starts wait for its write
// where a store has one writer, and what comes due waits for the turn.
inline constexpr int kMostJobsATurn = 500;
inline constexpr int kFewestJobsATurn = 50;
inline constexpr absl::Duration kPlanTurn = absl::Milliseconds(20);
// After a turn of at most `jobs` that took so long.
inline int JobsNextTurn(int jobs, absl::Duration took) {
  if (took > 2 * kPlanTurn) return std::max(kFewestJobsATurn, jobs / 2);
  if (took < kPlanTurn / 2) return std::min(kMostJobsATurn, jobs * 2);
  return jobs;
}

}  // namespace matins

#endif  // MATINS_ENGINE_TIMING_H_
