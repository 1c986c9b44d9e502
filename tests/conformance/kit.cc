#include "conformance/kit.h"

#include <atomic>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"

namespace matins::conformance {

absl::CivilDay DayOf(int n) { return absl::CivilDay(2026, 10, 1) + n; }
PeriodKey KeyOf(absl::string_view job, int n) { return {std::string(job), FormatDay(DayOf(n))}; }
absl::Time DueOf(int n) { return T0() + absl::Hours(n); }

Job PlainJob(absl::string_view name) {
  Job job;
  job.name = std::string(name);
  job.schedule = "0 * * * *";
  job.period = PeriodKind::kDay;
  job.misfire = Misfire::kEach;
  job.run.kind = RunKind::kHandler;
  job.run.handler = "work";
  return job;
}

Job StrictJob(absl::string_view name) {
  Job job = PlainJob(name);
  job.backfill.order = Order::kStrict;
  return job;
}

absl::Status ApplyJobs(ActStore& acts, const std::vector<Job>& jobs) {
  static std::atomic<int> counter{0};
  ApplyRequest request;
  for (const Job& job : jobs) {
    request.jobs.push_back(
        {job, absl::StrCat("{\"name\":\"", job.name, "\",\"priority\":", job.priority,
                           ",\"timeout\":\"", DurationText(job.timeout), "\"}")});
  }
  request.source = "test";
  request.digest = absl::StrCat("digest-", ++counter);
  request.act = {"cli:test", "the case"};
  return acts.Apply(request).status();
}

Intent DayIntent(const Job& job, int n) {
  Intent intent;
  intent.key = KeyOf(job.name, n);
  intent.biz_date = DayOf(n);
  intent.due = DueOf(n);
  intent.window_start = DueOf(n) - absl::Hours(1);
  intent.window_end = DueOf(n);
  intent.nominal = absl::ToCivilSecond(DueOf(n), absl::UTCTimeZone());
  intent.not_before = DueOf(n);
  intent.version = 1;
  intent.priority = job.priority;
  intent.tenant = job.tenant;
  intent.limit_key = job.limit_key;
  if (job.lock.scope == LockScope::kJob) intent.lock_key = absl::StrCat("job/", job.name);
  if (job.lock.scope == LockScope::kKey) intent.lock_key = job.lock.key;
  return intent;
}

absl::StatusOr<JobState> ReadState(Store& store, absl::string_view job) {
  ReadDueRequest request;
  request.jobs = {std::string(job)};
  ASSIGN_OR_RETURN(DueJobs due, store.ReadDue(request));
  if (due.jobs.size() != 1) return absl::NotFoundError(absl::StrCat("no job ", job));
  return due.jobs[0];
}

absl::StatusOr<bool> PlanIntents(Store& store, const std::string& job,
                                 std::vector<Intent> intents) {
  ASSIGN_OR_RETURN(const JobState state, ReadState(store, job));
  PlanWrite write;
  write.job = job;
  write.expected_revision = state.revision;
  write.cursor = state.cursor;
  for (const Intent& intent : intents) write.cursor = std::max(write.cursor, intent.due);
  write.next_look = absl::InfiniteFuture();
  write.gaps_filled = state.gap_from.has_value();
  write.triggered = true;
  write.intents = std::move(intents);
  PlanRequest request;
  request.writes.push_back(std::move(write));
  ASSIGN_OR_RETURN(const PlanAnswers answers, store.Plan(request));
  if (answers.jobs.size() != 1) return absl::InternalError("one answer a write");
  return answers.jobs[0].written;
}

absl::StatusOr<bool> PlanDays(Store& store, const Job& job, const std::vector<int>& days) {
  std::vector<Intent> intents;
  for (int n : days) intents.push_back(DayIntent(job, n));
  return PlanIntents(store, job.name, std::move(intents));
}

absl::StatusOr<StartAnswer> StartOne(Store& store, const PeriodKey& key, absl::string_view node) {
  static std::atomic<int64_t> nonce{1000};
  StartRequest request;
  request.node.name = std::string(node);
  request.nonce = ++nonce;
  request.keys = {key};
  ASSIGN_OR_RETURN(StartAnswers answers, store.Start(request));
  if (answers.rows.size() != 1) return absl::InternalError("one answer a key");
  return answers.rows[0];
}

absl::StatusOr<Claim> Claimed(Store& store, const PeriodKey& key, absl::string_view node) {
  ASSIGN_OR_RETURN(StartAnswer answer, StartOne(store, key, node));
  if (!answer.claim) {
    return absl::FailedPreconditionError(
        absl::StrCat("START of ", key.period, " was refused: ", static_cast<int>(answer.result),
                     " ", answer.blocker));
  }
  return *answer.claim;
}

absl::StatusOr<std::string> FinishOne(Store& store, const Ticket& ticket, Outcome outcome,
                                      absl::string_view node) {
  const FinishRequest request{ticket, std::move(outcome), std::string(node)};
  ASSIGN_OR_RETURN(std::vector<Refusal> answers, store.Finish({&request, 1}));
  if (answers.size() != 1) return absl::InternalError("one answer a request");
  return answers[0].why;
}

absl::StatusOr<std::string> Done(Store& store, const Ticket& ticket) {
  return FinishOne(store, ticket, Outcome{});
}

absl::StatusOr<ExtendAnswer> ExtendOne(Store& store, const Ticket& ticket, absl::Duration ttl) {
  const ExtendRequest request{ticket, ttl};
  ASSIGN_OR_RETURN(std::vector<ExtendAnswer> answers, store.Extend({&request, 1}));
  if (answers.size() != 1) return absl::InternalError("one answer a request");
  return answers[0];
}

absl::StatusOr<bool> ReapOne(Store& store, const Ticket& ticket, Outcome::Kind to,
                             absl::string_view reason) {
  const ReapRequest request{ticket, to, std::string(reason), "reaper"};
  ASSIGN_OR_RETURN(std::vector<bool> answers, store.Reap({&request, 1}));
  if (answers.size() != 1) return absl::InternalError("one answer a request");
  return answers[0];
}

absl::StatusOr<PeriodRow> RowOf(ActStore& acts, const PeriodKey& key) {
  RowFilter filter;
  filter.job = key.job;
  filter.period = key.period;
  ASSIGN_OR_RETURN(std::vector<PeriodRow> rows, acts.ReadRows(filter));
  if (rows.empty()) return absl::NotFoundError(absl::StrCat("no row ", key.job, " ", key.period));
  return rows[0];
}

std::string StateText(const PeriodRow& row) {
  static constexpr const char* kNames[] = {"PLANNED", "RUNNING", "DONE", "FAILED", "SKIPPED"};
  std::string text = kNames[static_cast<int>(row.status)];
  if (!row.reason.empty()) absl::StrAppend(&text, "(", row.reason, ")");
  if (row.held) absl::StrAppend(&text, " held");
  return text;
}

}  // namespace matins::conformance
