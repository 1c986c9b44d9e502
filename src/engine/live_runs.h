// The runs that this node owns now, from START's answer until the store has their end.
#ifndef MATINS_ENGINE_LIVE_RUNS_H_
#define MATINS_ENGINE_LIVE_RUNS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/definitions.h"
#include "execute/runner.h"
#include "job/values.h"

namespace matins {

// What does not change while it lives.
struct LiveRun {
  Claim claim;
  DefinitionPtr definition;  // run with; null where it could not be read
  absl::Duration sent;       // boot: before START was sent
  absl::Duration received;   // boot: when its answer had come
  Deadline time_out;

  const Job& job() const { return definition->job; }
};
using LiveRunPtr = std::shared_ptr<const LiveRun>;

// Thread-safe: the start lane adds, the beat lane beats, the finish lane takes away.
class LiveRuns {
 public:
  // Answers whether its first beat comes before the one that NextBeat told last.
  bool Add(LiveRunPtr run);
  // Null where it is not, or no longer, this node's.
  LiveRunPtr Find(int64_t fence) const;
  void Remove(int64_t fence);
  int count() const;
  std::vector<LiveRunPtr> All() const;

  // Runs whose beat is due by `now`, and those that would be due a little later, so that one call
  // carries them all.
  std::vector<LiveRunPtr> DueBeats(absl::Duration now) const;
  // When the last call that proved its lease was sent: START, or the last accepted beat.
  absl::Duration LastProof(int64_t fence) const;
  // The earliest beat; InfiniteDuration: none.
  absl::Duration NextBeat();
  // A beat sent at `sent` was accepted.
  void Beaten(int64_t fence, absl::Duration sent);
  // It was not answered; it is tried again at `again`.
  void BeatAgainAt(int64_t fence, absl::Duration again);
  // No beats from now on: the run's end is being written, or it is no longer ours. Returns whether
  // this call changed it.
  bool WithholdBeats(int64_t fence);
  void AllowBeats(int64_t fence);
  bool BeatsWithheld(int64_t fence) const;  // true also for a run that is not here

 private:
  struct Entry {
    LiveRunPtr run;
    absl::Duration next_beat;
    absl::Duration last_proof;
    bool withheld = false;
  };
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<int64_t, Entry> runs_ ABSL_GUARDED_BY(mutex_);
  absl::Duration told_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
};

}  // namespace matins

#endif  // MATINS_ENGINE_LIVE_RUNS_H_
