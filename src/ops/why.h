// Why a period is as it is: how far its newest attempt has come through the six phases, the first
// that is missing, and what stands in its way.
#ifndef MATINS_OPS_WHY_H_
#define MATINS_OPS_WHY_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ops/session.h"

namespace matins {

struct WhyPhase {
  std::string name;  // planned, dispatched, claimed, started, checkpointed, finished
  bool reached = false;
  absl::Time at = absl::InfinitePast();  // InfinitePast: it is not kept
  std::string owner;                     // the node, where the phase has one
};

struct WhyAnswer {
  std::string job, period;
  std::optional<PeriodRow> row;
  std::vector<WhyPhase> phases;
  std::string missing;              // the first phase that is missing; empty: none is
  std::vector<std::string> truths;  // what stands in its way, or what became of it
};

// `date`: as KeyFor takes it. NotFound: no such job. Of what waits, what is in its way now; of what
// has been claimed or settled, what was in its way then, as far as the store has kept it
// (why_then.h).
absl::StatusOr<WhyAnswer> Why(Session& session, absl::string_view job, absl::string_view date);

}  // namespace matins

#endif  // MATINS_OPS_WHY_H_
