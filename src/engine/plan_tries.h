// A plan is written by compare-and-set, and made again where another planner came between or has
// the job locked at that moment. The store gives no turn to wait for.
#ifndef MATINS_ENGINE_PLAN_TRIES_H_
#define MATINS_ENGINE_PLAN_TRIES_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/random.h"

namespace matins {

// How often one plan is tried: the first two times at once, then after pauses that grow at random,
// for about ten seconds. A planner whose commit is slow keeps a job for longer than many quick
// tries take. Not thread-safe; `random` outlives it.
class PlanTries {
 public:
  explicit PlanTries(Random& random) : random_(random) {}

  // Sleeps where a pause is due. False: it was tried often enough.
  bool Next();
  // A part of it was written, and the next one begins.
  void NextPart() { tries_ = 0; }
  // Aborted, for people.
  absl::Status GaveUp(absl::string_view job) const;

 private:
  Random& random_;
  int tries_ = 0;
};

}  // namespace matins

#endif  // MATINS_ENGINE_PLAN_TRIES_H_
