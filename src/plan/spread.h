// spread: jobs that are due together start apart, each always at its own distance.
#ifndef MATINS_PLAN_SPREAD_H_
#define MATINS_PLAN_SPREAD_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/job.h"

namespace matins {

// A hash of bytes that is the same on every machine, in every version and for ever: delays of
// thousands of jobs depend on it.
uint64_t StableHash(absl::string_view bytes);

// How long after `fire` the job's run may start: in [0, job.spread), by the hash of the job's name,
// the same each time. Always before the next fire: where that is nearer than `spread`, the delay
// shrinks in proportion.
absl::Duration SpreadDelay(const ResolvedJob& job, absl::Time fire);

}  // namespace matins

#endif  // MATINS_PLAN_SPREAD_H_
