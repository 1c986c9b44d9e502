// `why --twice`: whether a period's result was doubled, which of the four guards let it, and the
// evidence for each. Pure.
#ifndef MATINS_OPS_TWICE_H_
#define MATINS_OPS_TWICE_H_

#include <string>
#include <vector>

#include "ops/attempts.h"

namespace matins {

struct Guard {
  std::string name;  // key, lease, fence, commit
  // held: it did what it is for. missing: it let a second effect through, or would have kept it
  // out and was not there. unknown: the store cannot see it.
  enum class State { kHeld, kMissing, kUnknown };
  State state = State::kHeld;
  std::string evidence;
};

struct TwiceAnswer {
  enum class Verdict {
    kSingle,    // at most one attempt can have had an effect
    kPossible,  // one accepted result, and an attempt that may have had effects before it was lost
    kAgain,     // accepted once in each of several generations: somebody opened it again
    kDoubled,   // two accepted results in one generation (I1)
  };
  Verdict verdict = Verdict::kSingle;
  std::string missing;  // the guard that was missing, or would have kept the effect single
  std::string says;     // the verdict, for people
  std::vector<Guard> guards;
};

TwiceAnswer JudgeTwice(const PeriodStory& story);

// "key": what all attempts of a period share, whatever their generation; each step adds its own.
std::string IdempotencyKey(const PeriodKey& key);
absl::string_view Word(Guard::State state);
absl::string_view Word(TwiceAnswer::Verdict verdict);

}  // namespace matins

#endif  // MATINS_OPS_TWICE_H_
