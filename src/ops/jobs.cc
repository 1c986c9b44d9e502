#include "ops/jobs.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "job/calendar_fires.h"
#include "job/json.h"
#include "job/names.h"
#include "ops/node.h"
#include "plan/plan.h"
#include "store/exec_label.h"

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

std::vector<std::string> WantedLabels(const Job& job) {
  std::vector<std::string> labels = job.nodes;
  if (job.run.kind == RunKind::kHandler) labels.push_back(HandlerLabel(job.run.handler));
  if (job.run.kind == RunKind::kExec) labels.push_back(kExecLabel);
  return labels;
}

// The labels of the living node that lacks the fewest; nothing where one has them all, or none
// lives.
std::vector<std::string> Unserved(const Job& job, const std::vector<NodeRow>& living) {
  // It waits for no node, but for the next call.
  if (job.run.kind == RunKind::kExec) return {};
  const std::vector<std::string> wanted = WantedLabels(job);
  std::optional<std::vector<std::string>> fewest;
  for (const NodeRow& node : living) {
    std::vector<std::string> lacks;
    for (const std::string& label : wanted) {
      if (std::find(node.labels.begin(), node.labels.end(), label) == node.labels.end())
        lacks.push_back(label);
    }
    if (!fewest || lacks.size() < fewest->size()) fewest = std::move(lacks);
  }
  return std::move(fewest).value_or(std::vector<std::string>());
}

JobSummary Summarise(JobRow row, const absl::StatusOr<Planned>& read,
                     const std::vector<NodeRow>& living) {
  JobSummary summary;
  summary.row = std::move(row);
  if (!read.ok()) {
    summary.unreadable = std::string(read.status().message());
    return summary;
  }
  const Planned& planned = *read;
  summary.now = planned.now();
  summary.job = planned.current().job;
  summary.unserved = Unserved(summary.job, living);
  const std::optional<CalendarFire> next = NextFire(planned.current(), planned.now());
  summary.calendar_ended = next && !next->covered;
  if (!summary.row.suspension && next && next->covered) summary.next_fire = next->fire;
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
  return summary;
}

// One that the store knows may have run: its file is applied again and again.
absl::Status RefusePastOneOffs(const JobFile& file, const std::map<std::string, JobRow>& known) {
  const absl::Time now = SystemClock().WallNow();
  for (const Job& job : file.jobs) {
    if (!job.at || *job.at + job.start_deadline >= now || known.contains(job.name)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", job.name, "': at ", FormatInstant(*job.at), " has passed by more than its ",
        "start_deadline of ", DurationText(job.start_deadline),
        ", so that it would never run; give an instant to come or a longer start_deadline, or "
        "take it out"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<JobSummary>> ListJobs(Session& session, absl::string_view name) {
  std::vector<JobRow> rows;
  if (name.empty()) {
    ASSIGN_OR_RETURN(rows, session.acts().ReadJobs(""));
  } else {
    ASSIGN_OR_RETURN(JobRow row, ReadJob(session, name));
    rows.push_back(std::move(row));
  }
  std::vector<JobSummary> summaries;
  if (rows.empty()) return summaries;
  ReadDueRequest request;
  for (const JobRow& row : rows) request.jobs.push_back(row.name);
  ASSIGN_OR_RETURN(DueJobs due, session.store().ReadDue(request));
  ASSIGN_OR_RETURN(std::vector<NodeRow> nodes, session.acts().ReadNodes());
  std::erase_if(nodes, [&](const NodeRow& node) { return !IsAlive(node, due.now); });
  const std::map<std::string, absl::StatusOr<Planned>> planned = Planned::Resolve(std::move(due));
  for (JobRow& row : rows) {
    const auto it = planned.find(row.name);
    // Deleted between the two reads.
    if (it == planned.end()) continue;
    summaries.push_back(Summarise(std::move(row), it->second, nodes));
  }
  if (summaries.empty() && !name.empty())
    return absl::NotFoundError(absl::StrCat("no job '", name, "': it has just been deleted"));
  return summaries;
}

bool IsAlive(const NodeRow& node, absl::Time now) {
  return !node.left && now - node.seen_at <= absl::Seconds(30);
}

absl::StatusOr<ApplyAnswer> ApplyFile(Session& session, const JobFile& file,
                                      const ApplyFileOptions& options) {
  ASSIGN_OR_RETURN(std::vector<JobRow> rows, session.acts().ReadJobs(""));
  std::map<std::string, JobRow> known;
  for (JobRow& row : rows) known.emplace(row.name, std::move(row));
  if (options.refuse_past) RETURN_IF_ERROR(RefusePastOneOffs(file, known));
  ApplyRequest request;
  request.source = options.source;
  request.digest = file.digest;
  request.force = options.force;
  request.prune = options.prune;
  request.take_over = options.take_over;
  request.act = session.MakeAct(absl::StrCat("applied ", options.source));
  for (const Job& job : file.jobs) {
    request.jobs.push_back({job, JobToJson(job)});
    request.jobs.back().job.nodes = WantedLabels(job);
  }
  ASSIGN_OR_RETURN(ApplyAnswer answer, session.acts().Apply(request));
  if (file.journal_full) RETURN_IF_ERROR(session.acts().SetJournal(*file.journal_full));
  // Limits that the file has set go with its word of them.
  const SetLimitsRequest limits{
      file.limits.value_or(std::vector<LimitRule>()), {}, options.source, request.act};
  RETURN_IF_ERROR(session.acts().SetLimits(limits).status());
  return answer;
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
