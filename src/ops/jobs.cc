#include "ops/jobs.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "job/json.h"
#include "job/names.h"
#include "plan/calendar_fires.h"
#include "plan/plan.h"

namespace matins {
namespace {

bool IsOpen(const PeriodRow& row) {
  return row.status != PeriodStatus::kDone && row.status != PeriodStatus::kSkipped;
}

struct Owed {
  int64_t count = 0, late = 0;
  absl::Time oldest = absl::InfiniteFuture();
  void Add(const ResolvedJob& job, absl::Time due, absl::Time now) {
    ++count;
    late += now > DoneByInstant(job, due);
    oldest = std::min(oldest, due);
  }
};

// What is owed and has no row yet, as planning would write it now.
absl::StatusOr<Owed> NotYetPlanned(const PlanInput& input, const ResolvedJob& job) {
  Owed owed;
  ASSIGN_OR_RETURN(const PlanWrite write, PlanJob(input));
  for (const Intent& intent : write.intents) {
    const bool becomes_gap = intent.kind == Intent::Kind::kInsert && intent.skip_reason.empty();
    if (becomes_gap && intent.due <= input.now) owed.Add(job, intent.due, input.now);
  }
  return owed;
}

absl::StatusOr<JobSummary> Summarise(Session& session, JobRow row) {
  JobSummary summary;
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, row.name));
  summary.now = planned.now();
  summary.job = planned.current().job;
  const std::optional<CalendarFire> next = NextFire(planned.current(), planned.now());
  summary.calendar_ended = next && !next->covered;
  if (!row.suspension && next && next->covered) summary.next_fire = next->fire;
  // A calendar past its end stops planning, not the list of jobs.
  Owed owed;
  if (auto fresh = NotYetPlanned(planned.Input(), planned.current()); fresh.ok()) owed = *fresh;
  for (const PeriodRow& open : planned.state().rows) {
    summary.running += open.status == PeriodStatus::kRunning;
    if (IsOpen(open) && open.due <= planned.now()) {
      owed.Add(planned.current(), open.due, planned.now());
    }
  }
  summary.gaps = owed.count;
  summary.late = owed.late;
  if (owed.count > 0) summary.lag = planned.now() - owed.oldest;
  summary.row = std::move(row);
  return summary;
}

// One that the store knows may have run: its file is applied again and again.
absl::Status RefusePastOneOffs(Session& session, const JobFile& file) {
  const absl::Time now = SystemClock().WallNow();
  for (const Job& job : file.jobs) {
    if (!job.at || *job.at + job.start_deadline >= now) continue;
    ASSIGN_OR_RETURN(const std::vector<JobRow> known, session.acts().ReadJobs(job.name));
    if (!known.empty()) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", job.name, "': at ", FormatInstant(*job.at), " has passed by more than its ",
        "start_deadline of ", DurationText(job.start_deadline),
        ", so that it would never run; give an instant to come or a longer start_deadline, or "
        "take it out"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Time DoneByInstant(const ResolvedJob& job, absl::Time due) {
  const DoneBy& done_by = job.job.done_by;
  if (done_by.after_due) return due + *done_by.after_due;
  if (!done_by.time_of_day) return due + job.job.start_deadline + job.job.timeout;
  const absl::TimeZone& zone = job.schedule.zone();
  const int64_t seconds = absl::ToInt64Seconds(*done_by.time_of_day);
  for (absl::CivilDay day = absl::ToCivilDay(due, zone);; ++day) {
    const absl::Time at = absl::FromCivil(absl::CivilSecond(day) + seconds, zone);
    if (at > due) return at;
  }
}

absl::StatusOr<std::vector<JobSummary>> ListJobs(Session& session, absl::string_view name) {
  std::vector<JobRow> rows;
  if (name.empty()) {
    ASSIGN_OR_RETURN(rows, session.acts().ReadJobs(""));
  } else {
    ASSIGN_OR_RETURN(JobRow row, ReadJob(session, name));
    rows.push_back(std::move(row));
  }
  std::vector<JobSummary> summaries;
  for (JobRow& row : rows) {
    ASSIGN_OR_RETURN(JobSummary summary, Summarise(session, std::move(row)));
    summaries.push_back(std::move(summary));
  }
  return summaries;
}

absl::StatusOr<ApplyAnswer> ApplyFile(Session& session, const JobFile& file,
                                      const ApplyFileOptions& options) {
  if (options.refuse_past) RETURN_IF_ERROR(RefusePastOneOffs(session, file));
  ApplyRequest request;
  request.source = options.source;
  request.digest = file.digest;
  request.force = options.force;
  request.prune = options.prune;
  request.act = session.MakeAct(absl::StrCat("applied ", options.source));
  for (const Job& job : file.jobs) request.jobs.push_back({job, JobToJson(job)});
  if (file.journal_full) RETURN_IF_ERROR(session.acts().SetJournal(*file.journal_full));
  return session.acts().Apply(request);
}

absl::Status SuspendJob(Session& session, absl::string_view job, absl::string_view reason) {
  if (reason.empty()) {
    return BadInput("--reason", "is missing",
                    "say why, for whoever finds the job suspended: --reason \"...\"");
  }
  ASSIGN_OR_RETURN(const JobRow row, ReadJob(session, job));
  if (row.suspension) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", job, "' is suspended already, since ", FormatInstant(row.suspension->from), " by ",
        row.suspension->by, ": ", row.suspension->why));
  }
  return session.acts().Suspend(job, session.MakeAct(reason));
}

absl::StatusOr<ResumeAnswer> ResumeJob(Session& session, absl::string_view job, Missed missed,
                                       absl::string_view reason) {
  ASSIGN_OR_RETURN(const JobRow row, ReadJob(session, job));
  if (!row.suspension)
    return absl::FailedPreconditionError(absl::StrCat("job '", job, "' is not suspended"));
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, job));
  const PlanInput input = planned.Input(/*as_if_resumed=*/true);
  const Act act = session.MakeAct(reason);
  ASSIGN_OR_RETURN(PlanWrite skip, PlanResumeSkip(input, act));
  ResumeAnswer answer;
  answer.owed = static_cast<int64_t>(skip.intents.size());
  for (const SkipSpan& span : skip.spans) answer.owed += span.count;
  if (answer.owed > 0 && missed == Missed::kNotSaid) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", job, "' owes ", answer.owed, " period(s) that came due while it was suspended; ",
        "say --missed run (by its misfire policy) or --missed skip"));
  }
  std::optional<PlanWrite> write;
  if (answer.owed > 0 && missed == Missed::kSkip) write = std::move(skip);
  RETURN_IF_ERROR(session.acts().Resume(job, write, act));
  return answer;
}

absl::Status RenameJob(Session& session, absl::string_view from, absl::string_view to,
                       absl::string_view reason) {
  RETURN_IF_ERROR(ReadJob(session, from).status());
  RETURN_IF_ERROR(CheckName("job name", to));
  return session.acts().Rename(from, to, session.MakeAct(reason));
}

absl::Status DeleteJob(Session& session, absl::string_view job, bool force,
                       absl::string_view reason) {
  RETURN_IF_ERROR(ReadJob(session, job).status());
  return session.acts().Delete(job, force, session.MakeAct(reason));
}

}  // namespace matins
