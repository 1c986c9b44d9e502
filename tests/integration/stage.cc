#include "tests/integration/stage.h"

#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "backends/backends.h"
#include "base/fault.h"

namespace matins::testing {

PeriodKey KeyOf(absl::string_view job, int n) {
  return {std::string(job), absl::StrFormat("p%06d", n)};
}

absl::StatusOr<Stage> Stage::Open(const std::string& url, absl::Duration deadline) {
  Stage stage;
  DatabaseOptions options;
  options.call_deadline = deadline;
  ASSIGN_OR_RETURN(stage.database, DatabaseFromUrl(url, options));
  RETURN_IF_ERROR(stage.database->Migrate());
  ASSIGN_OR_RETURN(stage.store, stage.database->Open());
  ASSIGN_OR_RETURN(stage.acts, stage.database->OpenActs());
  return stage;
}

absl::Status Stage::Apply(absl::string_view name, absl::Duration lease) {
  Definition definition;
  Job& job = definition.job;
  job.name = std::string(name);
  job.schedule = "0 * * * *";
  job.misfire = Misfire::kEach;
  job.overlap = Overlap::kAllow;
  job.lock.scope = LockScope::kPeriod;
  job.lock.ttl = lease;
  job.backfill.max_parallel = std::nullopt;
  definition.json = absl::StrCat("{\"name\":\"", name, "\"}");
  ApplyRequest request;
  request.jobs = {definition};
  request.source = "test";
  request.act = {"cli:test", "the case"};
  return acts->Apply(request).status();
}

absl::Status Stage::Plan(absl::string_view job, int from, int to, absl::Duration in) {
  ReadDueRequest read;
  read.jobs = {std::string(job)};
  ASSIGN_OR_RETURN(const DueJobs due, store->ReadDue(read));
  if (due.jobs.size() != 1) return absl::NotFoundError(job);
  PlanWrite write;
  write.job = std::string(job);
  write.expected_revision = due.jobs[0].revision;
  write.cursor = due.now;
  write.next_look = absl::InfiniteFuture();
  for (int n = from; n < to; ++n) {
    Intent intent;
    intent.key = KeyOf(job, n);
    intent.due = due.now + in + absl::Milliseconds(n);
    intent.biz_date = absl::ToCivilDay(intent.due, absl::UTCTimeZone());
    intent.window_start = intent.window_end = intent.not_before = intent.due;
    write.intents.push_back(std::move(intent));
  }
  PlanRequest request;
  request.writes = {std::move(write)};
  ASSIGN_OR_RETURN(const PlanAnswers answers, store->Plan(request));
  if (!answers.jobs[0].written) return absl::AbortedError("the plan was not written");
  return absl::OkStatus();
}

absl::StatusOr<Claim> Stage::Claimed(const PeriodKey& key, absl::string_view node) {
  static std::atomic<int64_t> nonce{1};
  StartRequest request;
  request.node.name = std::string(node);
  request.nonce = ++nonce;
  request.keys = {key};
  ASSIGN_OR_RETURN(const StartAnswers answers, store->Start(request));
  if (answers.rows[0].claim) return *answers.rows[0].claim;
  return absl::FailedPreconditionError(
      absl::StrCat(key.period, " was not started: ", static_cast<int>(answers.rows[0].result)));
}

absl::StatusOr<PeriodRow> Stage::Row(const PeriodKey& key) {
  RowFilter filter;
  filter.job = key.job;
  filter.period = key.period;
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, acts->ReadRows(filter));
  if (rows.size() != 1) return absl::NotFoundError(key.period);
  return rows[0];
}

FinishRequest DoneOf(const Claim& claim) { return {TicketOf(claim), Outcome{}, "n1"}; }

#if MATINS_LAB
absl::StatusOr<bool> SuspendOvertakesStart(const std::string& url,
                                           const std::function<bool()>& blocked) {
  ASSIGN_OR_RETURN(Stage node, Stage::Open(url));
  ASSIGN_OR_RETURN(const Stage person, Stage::Open(url));
  RETURN_IF_ERROR(node.Apply("a"));
  RETURN_IF_ERROR(node.Plan("a", 0, 1));
  std::atomic<bool> through{false};
  bool overtook = false;
  absl::Status suspended;
  std::thread act;
  SetFaultHook([&](absl::string_view point) {
    if (point != "start.before_commit" || act.joinable()) return absl::OkStatus();
    act = std::thread([&] {
      suspended = person.acts->Suspend("a", {"cli:alice", "not today"});
      through = true;
    });
    while (!through && !blocked()) {
    }
    overtook = through;
    return absl::OkStatus();
  });
  StartRequest start;
  start.node.name = "n1";
  start.nonce = 7;
  start.also_due = 1;
  const absl::StatusOr<StartAnswers> answers = node.store->Start(start);
  SetFaultHook(nullptr);
  if (act.joinable()) act.join();
  RETURN_IF_ERROR(answers.status());
  RETURN_IF_ERROR(suspended);
  if (answers->rows.empty() || !answers->rows[0].claim) return absl::NotFoundError("no start");
  return overtook;
}
#endif

}  // namespace matins::testing
