// What a node has counted since it started; `matins status` and the metrics show it.
#ifndef MATINS_ENGINE_COUNTERS_H_
#define MATINS_ENGINE_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace matins {

struct Counters {
  using Count = std::atomic<int64_t>;
  Count plans{0};           // written
  Count plans_stale{0};     // another planner was first, or the job moved
  Count plans_failed{0};    // could not be planned
  Count held{0};            // rows held before their instant
  Count claims{0};          // STARTs accepted
  Count starts_refused{0};  // rows that START refused, whatever the reason
  Count starts_in_doubt{0};
  Count beats{0};         // accepted
  Count beats_failed{0};  // not answered
  Count checkpoints{0};   // accepted
  Count finished{0};      // results accepted
  Count finishes_in_doubt{0};
  Count resolved_yes{0};
  Count resolved_no{0};
  Count zombies_refused{0};  // checkpoints, beats and results refused because another owns the run
  Count self_stops{0};       // runs stopped because their lease could not be proved
  Count reaped{0};           // lost runs taken by this node
  Count replaced{0};
  Count purged{0};  // rows of history removed
  Count store_errors{0};
};

}  // namespace matins

#endif  // MATINS_ENGINE_COUNTERS_H_
