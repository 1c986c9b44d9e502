// The business database of a simulation: what runs do in the world, fenced as docs/fencing.md says.
// A new owner raises the fence before it reads how far the work is; each step carries fence and
// checkpoint beside its effect.
#ifndef MATINS_LAB_LEDGER_H_
#define MATINS_LAB_LEDGER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/time/time.h"
#include "job/values.h"

namespace matins {

class Ledger {
 public:
  struct Effect {
    PeriodKey key;
    int64_t step = 0;
    int64_t fence = 0;
    absl::Time at;
  };

  // Answers the last step done; nothing where a higher fence has been here. A new generation sets
  // the steps back, not their effects.
  std::optional<int64_t> Raise(const PeriodKey& key, int generation, int64_t fence);
  // False where the fence is not the current one or `step` is not the next one: nothing is written.
  bool Step(const PeriodKey& key, int64_t fence, int64_t step, absl::Time at);

  // An effect in the scheduler's own database, in the transaction that wrote DONE: no fence of the
  // ledger's. Never twice, as above.
  void Book(const PeriodKey& key, int64_t fence, int64_t step, absl::Time at);

  const std::vector<Effect>& effects() const { return effects_; }
  bool Has(const PeriodKey& key, int64_t step) const { return done_.contains({key, step}); }
  int64_t refused() const { return refused_; }

 private:
  struct Mark {
    int64_t fence = 0;
    int64_t step = 0;
    int generation = 0;
  };
  std::map<PeriodKey, Mark> marks_;
  std::map<std::pair<PeriodKey, int64_t>, int64_t> done_;
  std::vector<Effect> effects_;
  int64_t refused_ = 0;
};

}  // namespace matins

#endif  // MATINS_LAB_LEDGER_H_
