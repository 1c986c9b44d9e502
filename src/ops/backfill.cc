#include "ops/backfill.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/plan_tries.h"
#include "job/json.h"
#include "job/local_window.h"
#include "job/words.h"
#include "plan/cascade.h"

namespace matins {
namespace {

constexpr int kMostAtATime = 10'000;
constexpr size_t kMostPeriods = 10'000;

absl::Status Check(const BackfillRequest& request) {
  if (request.to < request.from) {
    return BadInput(
        "--to", absl::StrCat(FormatDay(request.to), " is before --from ", FormatDay(request.from)),
        "both dates are included; give the older one first");
  }
  if (request.max_parallel && (*request.max_parallel < 1 || *request.max_parallel > kMostAtATime)) {
    return BadInput("--max-parallel", absl::StrCat(*request.max_parallel, " is out of range"),
                    absl::StrCat("write a number from 1 to ", kMostAtATime));
  }
  if (!request.reason.empty()) return absl::OkStatus();
  if (request.reprocess == Reprocess::kAll) {
    return BadInput("--reason", "is missing",
                    "what is DONE is opened again; say why: --reason \"...\"");
  }
  if (request.cascade) {
    return BadInput("--reason", "is missing",
                    "--cascade opens what is DONE; say why: --reason \"...\"");
  }
  return absl::OkStatus();
}

std::string WordOf(Reprocess reprocess) {
  switch (reprocess) {
    case Reprocess::kMissing:
      return "missing";
    case Reprocess::kFailed:
      return "failed";
    case Reprocess::kAll:
      return "all";
  }
  return "";
}

absl::StatusOr<std::vector<PeriodRow>> RowsFrom(Session& session, absl::string_view job,
                                                absl::CivilDay from,
                                                std::optional<absl::CivilDay> to = std::nullopt) {
  RowFilter filter;
  filter.job = std::string(job);
  filter.from = from;
  filter.to = to;
  filter.limit = 1'000'000;
  return session.acts().ReadRows(filter);
}

absl::StatusOr<std::vector<CascadeJob>> ReadCascadeJobs(Session& session) {
  ASSIGN_OR_RETURN(const std::vector<JobRow> rows, session.acts().ReadJobs(""));
  std::vector<CascadeJob> jobs;
  for (const JobRow& row : rows) {
    ASSIGN_OR_RETURN(const Job job, JobFromJson(row.definition));
    CascadeJob& one = jobs.emplace_back();
    one.name = row.name;
    one.source_window = job.backfill.source_window;
    for (const After& after : job.after) one.after.push_back(after.job);
  }
  return jobs;
}

// The first of what will run: when it was due, and its day.
struct First {
  absl::Time due = absl::InfiniteFuture();
  absl::CivilDay day = absl::CivilDay::max();
  void Add(absl::Time at, absl::CivilDay biz_date) {
    due = std::min(due, at);
    day = std::min(day, biz_date);
  }
};

// What limits how many go at once, the narrowest of it.
void TellAtATime(const Job& job, const BackfillRequest& request, BackfillAnswer& answer) {
  const auto narrow = [&](std::optional<int> most, absl::string_view why) {
    if (!most || (answer.at_a_time && *answer.at_a_time <= *most)) return;
    answer.at_a_time = most;
    answer.why_at_a_time = std::string(why);
  };
  if (job.backfill.order == Order::kStrict) narrow(1, "order: strict");
  if (job.overlap != Overlap::kAllow) {
    narrow(1, absl::StrCat("overlap: ", Word(job.overlap)));
  }
  if (request.cascade) narrow(1, "--cascade goes in order");
  narrow(job.limit, "limits.job");
  if (request.max_parallel) {
    narrow(request.max_parallel, "--max-parallel");
  } else {
    narrow(job.backfill.max_parallel, "backfill.max_parallel");
  }
}

// One plan of a request: what is asked of the store, and what is told.
class Backfilling {
 public:
  Backfilling(Session& session, const BackfillRequest& request)
      : session_(session), request_(request) {}

  absl::Status Plan() {
    ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session_, request_.job));
    const ResolvedJob& job = planned.current();
    now_ = planned.now();
    answer_ = {};
    RETURN_IF_ERROR(TakeWindow(planned));
    ASSIGN_OR_RETURN(const std::vector<PeriodRow> existing,
                     RowsFrom(session_, request_.job, request_.from, request_.to));
    ASSIGN_OR_RETURN(BackfillPlan plan, PlanBackfill(planned.Input(), existing, request_.from,
                                                     request_.to, request_.reprocess));
    TakePlan(plan, existing);
    open_.write = std::move(plan.write);
    open_.reopen = std::move(plan.reopen);
    if (request_.cascade && !answer_.run.empty()) RETURN_IF_ERROR(TakeCascade());
    open_.terms = {
        request_.job,          request_.from,   request_.to,      WordOf(request_.reprocess),
        request_.max_parallel, request_.window, job.job.timezone, request_.cascade};
    open_.act = session_.MakeAct(request_.reason.empty() ? "backfill" : request_.reason);
    answer_.source_window = job.job.backfill.source_window;
    TellAtATime(job.job, request_, answer_);
    return absl::OkStatus();
  }

  // Once it is open: a period that others started between the look and the opening has read what is
  // computed again. It is opened as well, by an act of its own, or told where it still runs.
  absl::Status TakeOvertakers() {
    if (!request_.cascade) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, ReadLater());
    std::map<PeriodKey, const PeriodRow*> by_key;
    for (const PeriodRow& row : rows) by_key[row.key] = &row;
    Cascade found = PlanCascade(request_.job, first_.due, first_.day, jobs_, rows, now_);
    for (const PeriodKey& key : found.reopen) {
      const PeriodRow& row = *by_key.at(key);
      if (row.backfill_id == answer_.id) continue;
      const absl::Status opened = session_.acts().Reopen(key, row.params, open_.act);
      if (absl::IsFailedPrecondition(opened)) {
        answer_.stale.push_back(row);
        continue;
      }
      RETURN_IF_ERROR(opened);
      TellCascaded(key);
    }
    for (PeriodRow& row : found.running) {
      if (row.backfill_id != answer_.id) answer_.stale.push_back(std::move(row));
    }
    return absl::OkStatus();
  }

  const OpenBackfillRequest& open() const { return open_; }
  BackfillAnswer& answer() { return answer_; }

 private:
  absl::Status TakeWindow(const Planned& planned) {
    if (request_.window.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const absl::TimeZone zone, LoadZone(planned.current().job.timezone));
    const auto window = LocalWindow::Parse(request_.window, zone);
    if (!window.ok()) return Annotate(window.status(), "--window");
    answer_.opens = window->NextOpening(planned.now());
    return absl::OkStatus();
  }

  void TakePlan(const BackfillPlan& plan, const std::vector<PeriodRow>& existing) {
    first_ = {};
    std::map<PeriodKey, const PeriodRow*> rows;
    for (const PeriodRow& row : existing) rows[row.key] = &row;
    std::vector<std::pair<absl::Time, std::string>> run;
    for (const Intent& intent : plan.write.intents) {
      if (intent.reopens) answer_.reopen.push_back(intent.key.period);
      if (!intent.skip_reason.empty()) continue;
      run.emplace_back(intent.due, intent.key.period);
      first_.Add(intent.due, intent.biz_date);
    }
    for (const PeriodKey& key : plan.reopen) {
      const auto row = rows.find(key);
      const absl::Time due = row == rows.end() ? absl::InfinitePast() : row->second->due;
      answer_.reopen.push_back(key.period);
      run.emplace_back(due, key.period);
      if (row != rows.end()) first_.Add(due, row->second->biz_date);
    }
    std::sort(run.begin(), run.end());
    for (auto& [due, period] : run) answer_.run.push_back(std::move(period));
    std::sort(answer_.reopen.begin(), answer_.reopen.end());
    for (const PeriodKey& key : plan.left) answer_.left.push_back(key.period);
    for (const PeriodKey& key : plan.unfillable) answer_.unfillable.push_back(key.period);
  }

  // The job's own rows and those of all that come after it, from the first day on.
  absl::StatusOr<std::vector<PeriodRow>> ReadLater() {
    ASSIGN_OR_RETURN(std::vector<PeriodRow> rows, RowsFrom(session_, request_.job, first_.day));
    for (const std::string& name : JobsAfter(request_.job, jobs_)) {
      ASSIGN_OR_RETURN(std::vector<PeriodRow> more, RowsFrom(session_, name, first_.day));
      rows.insert(rows.end(), more.begin(), more.end());
    }
    return rows;
  }

  // One that is opened because of what comes before it.
  void TellCascaded(const PeriodKey& key) {
    if (key.job != request_.job) {
      answer_.cascade.push_back(key);
      return;
    }
    answer_.later.push_back(key.period);
    answer_.run.push_back(key.period);
    answer_.reopen.push_back(key.period);
  }

  absl::Status TakeCascade() {
    ASSIGN_OR_RETURN(jobs_, ReadCascadeJobs(session_));
    ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, ReadLater());
    const Cascade cascade = PlanCascade(request_.job, first_.due, first_.day, jobs_, rows, now_);
    if (!cascade.running.empty()) {
      const PeriodRow& row = cascade.running.front();
      return absl::FailedPreconditionError(
          absl::StrCat("job '", row.key.job, "' ", row.key.period, " is RUNNING as run ", row.fence,
                       " on ", row.node,
                       " on what is to be computed again; wait for it (`matins wait`), or stop it: "
                       "matins cancel ",
                       row.fence));
    }
    const std::set<std::string> mine(answer_.run.begin(), answer_.run.end());
    const std::set<std::string> left(answer_.left.begin(), answer_.left.end());
    for (const PeriodKey& key : cascade.reopen) {
      if (key.job == request_.job && mine.contains(key.period)) continue;
      open_.reopen.push_back(key);
      TellCascaded(key);
      // Within the range it was to stay as it is; what came before it changes that.
      if (key.job == request_.job && left.contains(key.period)) {
        std::erase(answer_.left, key.period);
      }
    }
    for (const PeriodKey& key : cascade.unfillable) {
      answer_.unfillable.push_back(
          key.job == request_.job ? key.period : absl::StrCat(key.job, " ", key.period));
    }
    if (open_.reopen.size() + open_.write.intents.size() > kMostPeriods) {
      return BadInput("--cascade", absl::StrCat("would open more than ", kMostPeriods, " periods"),
                      "begin later, or leave --cascade out and back-fill each job by itself");
    }
    return absl::OkStatus();
  }

  Session& session_;
  const BackfillRequest& request_;
  OpenBackfillRequest open_;
  BackfillAnswer answer_;
  First first_;
  absl::Time now_;                // the store's, at the look
  std::vector<CascadeJob> jobs_;  // of a cascade, as they were then
};

}  // namespace

absl::StatusOr<BackfillAnswer> BackfillJob(Session& session, const BackfillRequest& request) {
  RETURN_IF_ERROR(Check(request));
  SystemRandom random;
  PlanTries tries(random);
  while (tries.Next()) {
    Backfilling plan(session, request);
    RETURN_IF_ERROR(plan.Plan());
    const OpenBackfillRequest& open = plan.open();
    if (request.dry_run) return plan.answer();
    // What cannot be filled is recorded, as a plan like any other: there is nothing to follow.
    if (plan.answer().run.empty()) {
      if (open.write.intents.empty()) return plan.answer();
      PlanRequest only;
      only.writes.push_back(open.write);
      only.writes.front().act = open.act;
      ASSIGN_OR_RETURN(const PlanAnswers answers, session.store().Plan(only));
      if (!answers.jobs.empty() && answers.jobs.front().written) return plan.answer();
      continue;
    }
    MATINS_FAULT_POINT("backfill.before_open");
    ASSIGN_OR_RETURN(plan.answer().id, session.acts().OpenBackfill(open));
    if (plan.answer().id == 0) continue;
    RETURN_IF_ERROR(Annotate(plan.TakeOvertakers(),
                             absl::StrCat("back-fill ", plan.answer().id,
                                          " is open; what others started at that moment could not "
                                          "be looked for")));
    return plan.answer();
  }
  return tries.GaveUp(request.job);
}

absl::StatusOr<std::vector<BackfillRow>> Backfills(Session& session, absl::string_view job) {
  if (!job.empty()) RETURN_IF_ERROR(ReadJob(session, job).status());
  return session.acts().ReadBackfills(0, job);
}

absl::StatusOr<BackfillRow> ReadBackfill(Session& session, int64_t id) {
  ASSIGN_OR_RETURN(std::vector<BackfillRow> rows, session.acts().ReadBackfills(id, ""));
  if (id <= 0 || rows.empty()) {
    return absl::NotFoundError(
        absl::StrCat("there is no back-fill ", id, "; `matins backfills` lists them"));
  }
  return std::move(rows.front());
}

std::string ProgressWord(const BackfillRow& row) {
  if (row.state == BackfillState::kCancelled) return "cancelled";
  if (!row.open()) return "ended";
  if (row.state == BackfillState::kPaused) return "paused";
  return row.failed > 0 ? "stopped" : "active";
}

absl::StatusOr<std::vector<PeriodRow>> PeriodsOfBackfill(Session& session, const BackfillRow& row) {
  RowFilter filter;
  if (!row.terms.cascade) {
    filter.job = row.terms.job;
    filter.to = row.terms.to;
  }
  filter.from = row.terms.from;
  filter.limit = 1'000'000;
  ASSIGN_OR_RETURN(std::vector<PeriodRow> rows, session.acts().ReadRows(filter));
  std::erase_if(rows, [&](const PeriodRow& period) { return period.backfill_id != row.id; });
  std::sort(rows.begin(), rows.end(), [&](const PeriodRow& a, const PeriodRow& b) {
    return std::forward_as_tuple(a.key.job != row.terms.job, a.key.job, a.due, a.key.period) <
           std::forward_as_tuple(b.key.job != row.terms.job, b.key.job, b.due, b.key.period);
  });
  return rows;
}

}  // namespace matins
