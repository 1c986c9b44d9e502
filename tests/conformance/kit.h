// What cases are made of: jobs, plans without a planner, and verbs for one row.
#ifndef MATINS_CONFORMANCE_KIT_H_
#define MATINS_CONFORMANCE_KIT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "conformance/fixture.h"
#include "tests/support/assert_ok.h"

namespace matins::conformance {

// "day" n is due at T0 + n hours (so that a case may walk through days quickly), its period is the
// text of 2026-10-01 + n days.
absl::CivilDay DayOf(int n);
PeriodKey KeyOf(absl::string_view job, int n);
absl::Time DueOf(int n);

// misfire each, overlap forbid, lock scope job, ttl 30 s, time-out 2 h, grace 10 s, no order.
Job PlainJob(absl::string_view name);
// The same with order strict.
Job StrictJob(absl::string_view name);

absl::Status ApplyJobs(ActStore& acts, const std::vector<Job>& jobs);

// The intent of day n of `job`, without start deadline; its lock key is what lock.scope says.
Intent DayIntent(const Job& job, int n);
// Reads the job, and plans these days in one write; false where the plan was not written.
absl::StatusOr<bool> PlanDays(Store& store, const Job& job, const std::vector<int>& days);
absl::StatusOr<bool> PlanIntents(Store& store, const std::string& job, std::vector<Intent> intents);
absl::StatusOr<JobState> ReadState(Store& store, absl::string_view job);

// START of one row by `node`; the nonce is fresh for each call.
absl::StatusOr<StartAnswer> StartOne(Store& store, const PeriodKey& key,
                                     absl::string_view node = "n1");
// The same where it must be granted.
absl::StatusOr<Claim> Claimed(Store& store, const PeriodKey& key, absl::string_view node = "n1");
absl::StatusOr<std::string> FinishOne(Store& store, const Ticket& ticket, Outcome outcome,
                                      absl::string_view node = "n1");  // why it was refused
absl::StatusOr<std::string> Done(Store& store, const Ticket& ticket);
absl::StatusOr<ExtendAnswer> ExtendOne(Store& store, const Ticket& ticket, absl::Duration ttl);
absl::StatusOr<bool> ReapOne(Store& store, const Ticket& ticket,
                             Outcome::Kind to = Outcome::Kind::kReturned,
                             absl::string_view reason = reason::kLost);
absl::StatusOr<PeriodRow> RowOf(ActStore& acts, const PeriodKey& key);  // NotFound: none

// "PLANNED", "FAILED(held)" ...: for messages and comparisons.
std::string StateText(const PeriodRow& row);

}  // namespace matins::conformance

#endif  // MATINS_CONFORMANCE_KIT_H_
