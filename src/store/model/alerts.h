// Alerts and silences of the store in memory. The caller holds the state's mutex.
#ifndef MATINS_STORE_MODEL_ALERTS_H_
#define MATINS_STORE_MODEL_ALERTS_H_

#include <vector>

#include "store/model/state.h"

namespace matins::model {

AlertFacts ReadAlertFacts(const State& s, const AlertLook& look);
AlertCounts PutAlerts(State& s, const AlertChanges& changes);
AlertClaimed ClaimAlerts(State& s, const AlertClaim& claim);
std::vector<bool> EndAlerts(State& s, absl::string_view by, absl::Span<const AlertSent> sent);
std::vector<AlertRow> ReadAlerts(const State& s, const AlertFilter& filter);
absl::Status AcknowledgeAlert(State& s, int64_t id, const Act& act);
absl::StatusOr<int64_t> Silence(State& s, absl::string_view job, absl::Duration length,
                                const Act& act);
absl::Status Unsilence(State& s, int64_t id, const Act& act);

}  // namespace matins::model

#endif  // MATINS_STORE_MODEL_ALERTS_H_
