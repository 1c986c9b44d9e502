// START in the model: which rows are asked for, whether one may start, and its claim.
#ifndef MATINS_STORE_MODEL_MODEL_START_H_
#define MATINS_STORE_MODEL_MODEL_START_H_

#include <optional>
#include <string>
#include <vector>

#include "store/model/state.h"

namespace matins::model {

// Under the state's lock.
class Starts {
 public:
  explicit Starts(State& state) : s_(state) {}

  // PLANNED, to be looked at by `until`, held by nobody, of a job that may run on `node`; the most
  // urgent first.
  std::vector<ModelRow*> Waiting(const NodeId& node, absl::Time until);
  // Those that a START takes beside the keys that it names, in the order in which they are judged.
  std::vector<PeriodKey> AlsoDue(const StartRequest& request);
  StartAnswer StartOne(const StartRequest& request, const PeriodKey& key);

 private:
  // Tells it by itself, row by row.
  StartResult JudgeBackfill(const BackfillRow& backfill, const ModelRow& row, std::string* blocker,
                            absl::Time* look_at);
  StartResult Judge(const StartRequest& request, const ModelRow* row, std::string* blocker,
                    std::string* waits_for, absl::Time* look_at);
  // The rule for this name itself, else the one whose pattern says most of it.
  std::optional<int> MostOf(LimitKind kind, const std::string& name) const;
  Claim Grant(const StartRequest& request, ModelRow& row);

  State& s_;
};

}  // namespace matins::model

#endif  // MATINS_STORE_MODEL_MODEL_START_H_
