// What the end of a run means for its period: the last pure step before the store is told.
#ifndef MATINS_ENGINE_OUTCOME_H_
#define MATINS_ENGINE_OUTCOME_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/live_runs.h"
#include "execute/runner.h"
#include "job/values.h"

namespace matins {

// The outcome of a run whose definition is known, without what it said itself (result, figures) and
// with `commit: job` left aside. Nothing: the node has no say any more; its lease was lost or
// burnt, and the store judges the loss.
std::optional<Outcome> OutcomeOf(const LiveRun& run, const RunEnded& ended);

// The same for a run that was claimed and could not be started here. Where the store was away it is
// given back, and no attempt is used up.
Outcome OutcomeOf(const LiveRun& run, const absl::Status& not_started, int exit_code);

// `commit: job`: whatever the end was, DONE counts where the job has written it; a bad end is then
// a note beside it.
Outcome DoneByJob(const RunEnded& ended);
// And where it has not: `otherwise`, or FAILED(no_commit) in place of DONE.
std::optional<Outcome> WithoutCommit(const LiveRun& run, std::optional<Outcome> otherwise);

// The figures that a `check` command printed: a JSON object of numbers, or lines "name=12.5", or a
// number alone, which is called "value". No name stands there twice.
struct Figures {
  std::vector<std::pair<std::string, double>> values;
  // What else it printed, for the run's record: "2 lines are no figures, the first: 'oops'"; empty:
  // nothing, blank lines aside.
  std::string note;
};
Figures FiguresOf(absl::string_view output);

}  // namespace matins

#endif  // MATINS_ENGINE_OUTCOME_H_
