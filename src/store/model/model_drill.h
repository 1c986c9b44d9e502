// Drills in the model (store/drill.h); the state's mutex is held.
#ifndef MATINS_STORE_MODEL_MODEL_DRILL_H_
#define MATINS_STORE_MODEL_MODEL_DRILL_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/model/state.h"

namespace matins::model {

// As a person deletes a watermark row.
void DeleteRow(State& state, const PeriodKey& key);

absl::StatusOr<int64_t> BeginDrill(State& state, const BeginDrillRequest& request);
absl::Status ExtendDrill(State& state, int64_t id, absl::Duration lease);
absl::StatusOr<EndDrillAnswer> EndDrill(State& state, const EndDrillRequest& request);
std::vector<DrillRow> ReadDrills(const State& state, absl::string_view job, int limit);

}  // namespace matins::model

#endif  // MATINS_STORE_MODEL_MODEL_DRILL_H_
