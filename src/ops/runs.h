// Runs: by hand, waiting for one, cancelling, skipping, trying again.
#ifndef MATINS_OPS_RUNS_H_
#define MATINS_OPS_RUNS_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "ops/session.h"

namespace matins {

struct RunByHandRequest {
  std::string job;
  std::string date;  // a date or a period's key; empty: the newest period that is due
  std::vector<std::pair<std::string, std::string>> params;
  bool again = false;  // a DONE period, or one settled below the floor, is opened once more
  std::string reason;
};
struct RunByHandAnswer {
  std::string period;
  std::string what;  // "planned", "opened again", "given new attempts", "waits already"
  // For WaitForPeriod: the row's `change` that this call found FAILED; what it says then is not the
  // answer to this call. 0: any row is.
  int64_t failed_change = 0;
};
// InvalidArgument: a parameter that cannot be a run's MATINS_PARAM_name.
// FailedPrecondition: RUNNING (names the runner), DONE or settled below the floor without `again`
// and a reason, suspended, or parameters for a period that is PLANNED or FAILED: it goes on with
// its own.
absl::StatusOr<RunByHandAnswer> RunByHand(Session& session, const RunByHandRequest& request);

// Waits until the period has ended (DONE, SKIPPED or FAILED without an attempt to come), asking the
// store every now and then. `progress` is called with the row, when it changed. DeadlineExceeded
// after `timeout`. A row that has not changed since `failed_change` has not ended.
absl::StatusOr<PeriodRow> WaitForPeriod(Session& session, const PeriodKey& key,
                                        absl::Duration timeout,
                                        const std::function<void(const PeriodRow&)>& progress,
                                        int64_t failed_change = 0);

absl::Status CancelRun(Session& session, int64_t run, absl::string_view reason);

// DATE's period of the job becomes SKIPPED by a person; a period that has no row yet gets one.
// FailedPrecondition: it runs, is DONE, or was settled below the floor.
absl::StatusOr<std::string> SkipPeriod(Session& session, absl::string_view job,
                                       absl::string_view date, absl::string_view reason);

// A FAILED period gets new attempts now, in the same generation and with its checkpoint, without a
// wait for the job's next trigger; answers its key. FailedPrecondition: it has not failed, is held
// (ReleaseHold), or the job is suspended.
absl::StatusOr<std::string> RetryPeriod(Session& session, absl::string_view job,
                                        absl::string_view date, absl::string_view reason);

// FAILED(held): final until a person says what became of it. Oldest first; `job` empty: of all.
absl::StatusOr<std::vector<PeriodRow>> HeldPeriods(Session& session, absl::string_view job);
// It is run again, in a new generation; answers its key. FailedPrecondition: it is not held.
absl::StatusOr<std::string> ReleaseHold(Session& session, absl::string_view job,
                                        absl::string_view date, absl::string_view reason);

}  // namespace matins

#endif  // MATINS_OPS_RUNS_H_
