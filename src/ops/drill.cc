#include "ops/drill.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "ops/drill_node.h"
#include "ops/jobs.h"
#include "plan/plan.h"

namespace matins {
namespace {

using nlohmann::json;

constexpr absl::Duration kLease = absl::Seconds(30);
constexpr absl::Duration kBeat = absl::Seconds(5);
constexpr absl::Duration kLook = absl::Milliseconds(300);
// How long a run of this process's own has to end once the drill is asked to.
constexpr absl::Duration kPatience = absl::Minutes(1);

// ---- may it be drilled
// --------------------------------------------------------------------------

absl::Status Refused(absl::string_view job, absl::string_view why, absl::string_view mend) {
  return absl::FailedPreconditionError(
      absl::StrCat("job '", job, "' ", why, "; nothing was deleted. ", mend));
}

absl::Status CheckDefinition(const Job& job, const DrillRequest& request) {
  if (job.misfire != Misfire::kEach) {
    return Refused(job.name,
                   absl::StrCat("is misfire: ", Word(job.misfire),
                                ", by which a missed period is not made good"),
                   "Drills are for misfire: each");
  }
  if (!job.check) {
    return Refused(job.name, "has no check, so nothing would say whether the results are the same",
                   "Give it one: check: { command: [\"./count\", \"{{biz_date}}\"] } "
                   "(docs/jobs.md), and let it run as often as is to be drilled");
  }
  const bool given = !request.program.command.empty();
  if (job.run.kind == RunKind::kExec && !given) {
    return Refused(job.name, "is run by calls of `matins exec`, each with a command of its own",
                   absl::StrCat("Say that command: matins drill ", job.name, " --here -- COMMAND"));
  }
  if (job.run.kind != RunKind::kExec && given) {
    return Refused(job.name, "is run by what its own `run` says",
                   "Leave the command out; only jobs that `matins exec` runs need it");
  }
  if (request.here && job.run.kind == RunKind::kHandler) {
    return Refused(job.name, "runs a handler of the program that embeds Matins",
                   "Leave --here out while that program serves");
  }
  return absl::OkStatus();
}

absl::Status CheckServed(Session& session, const DrillRequest& request) {
  if (request.here) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<JobSummary> jobs, ListJobs(session, request.job));
  ASSIGN_OR_RETURN(const std::vector<NodeRow> nodes, session.acts().ReadNodes());
  const bool alive = std::any_of(nodes.begin(), nodes.end(), [&](const NodeRow& node) {
    return !jobs.empty() && IsAlive(node, jobs[0].now);
  });
  if (!alive) {
    return Refused(request.job, "has no living node to fill what is deleted",
                   "Start `matins serve`, or say --here to fill it by this very call");
  }
  if (!jobs[0].unserved.empty()) {
    return Refused(request.job,
                   absl::StrCat("has no living node with ", absl::StrJoin(jobs[0].unserved, ", ")),
                   "Start one with these labels, or say --here --label LABEL");
  }
  return absl::OkStatus();
}

absl::Status CheckNothingFailed(Session& session, const DrillRequest& request) {
  RowFilter filter;
  filter.job = request.job;
  filter.status = PeriodStatus::kFailed;
  filter.limit = 1;
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> failed, session.acts().ReadRows(filter));
  if (failed.empty()) return absl::OkStatus();
  return Refused(
      request.job, absl::StrCat(failed[0].key.period, " is FAILED", failed[0].held ? "(held)" : ""),
      "Make that good first (`matins why` says what is in its way): it may block the others");
}

// The newest figures of the period up to the attempt that had done it: a row that was put back by
// an earlier drill has the fence of an attempt that failed.
DrillFigures FiguresUpTo(const std::vector<FigureRow>& all, int64_t fence) {
  int64_t newest = 0;
  for (const FigureRow& figure : all) {
    if (figure.fence <= fence) newest = std::max(newest, figure.fence);
  }
  DrillFigures figures;
  for (const FigureRow& figure : all) {
    if (figure.fence == newest) figures.emplace_back(figure.name, figure.value);
  }
  return figures;
}

struct Target {
  PeriodRow row;
  DrillFigures figures;
};

absl::StatusOr<std::vector<Target>> FindTargets(Session& session, const DrillRequest& request) {
  RowFilter filter;
  filter.job = request.job;
  filter.status = PeriodStatus::kDone;
  filter.limit = request.days;
  filter.newest_first = true;
  ASSIGN_OR_RETURN(std::vector<PeriodRow> rows, session.acts().ReadRows(filter));
  if (static_cast<int>(rows.size()) < request.days) {
    return Refused(request.job,
                   absl::StrCat("has ", rows.size(), " DONE period(s), ", request.days, " are to ",
                                "be drilled"),
                   "Let it run first, or say --days");
  }
  std::sort(rows.begin(), rows.end(),
            [](const PeriodRow& a, const PeriodRow& b) { return a.due < b.due; });
  std::vector<Target> targets;
  for (PeriodRow& row : rows) {
    ASSIGN_OR_RETURN(const std::vector<FigureRow> all, session.acts().ReadFigures(row.key));
    Target target{row, FiguresUpTo(all, row.fence)};
    if (target.figures.empty()) {
      return Refused(request.job,
                     absl::StrCat(row.key.period,
                                  " has no figure of its check, with which a drill's could be "
                                  "compared"),
                     absl::StrCat("`matins run ", request.job, " --date ", row.key.period,
                                  " --again --reason \"for its figure\"`, or let newer ones run"));
    }
    targets.push_back(std::move(target));
  }
  return targets;
}

bool IsTarget(const std::vector<Target>& targets, absl::string_view period) {
  return std::any_of(targets.begin(), targets.end(),
                     [&](const Target& target) { return target.row.key.period == period; });
}

// The job as it would stand without the targets' rows, as planning would read it.
absl::StatusOr<Planned> WithoutTargets(Session& session, const std::vector<Target>& targets) {
  const std::string& job = targets[0].row.key.job;
  ReadDueRequest request;
  request.jobs = {job};
  ASSIGN_OR_RETURN(DueJobs due, session.store().ReadDue(request));
  if (due.jobs.empty()) return absl::NotFoundError(absl::StrCat("no job '", job, "'"));
  JobState& state = due.jobs[0];
  const absl::Time gap = targets[0].row.due;
  RowFilter filter;
  filter.job = job;
  filter.newest_first = true;
  filter.limit = 100'000;
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, session.acts().ReadRows(filter));
  state.rows.clear();
  for (const PeriodRow& row : rows) {
    const bool open = row.status != PeriodStatus::kDone && row.status != PeriodStatus::kSkipped;
    if ((row.due >= gap || open) && !IsTarget(targets, row.key.period)) state.rows.push_back(row);
  }
  std::sort(state.rows.begin(), state.rows.end(),
            [](const PeriodRow& a, const PeriodRow& b) { return a.due < b.due; });
  ASSIGN_OR_RETURN(const AuditFacts facts, session.acts().ReadAuditFacts(job));
  state.gap_from = std::min(state.gap_from.value_or(gap), gap);
  state.versions = VersionsSince(facts.versions.at(job), *state.gap_from, state.rows);
  std::map<std::string, absl::StatusOr<Planned>> planned = Planned::Resolve(std::move(due));
  return std::move(planned.begin()->second);
}

// Whether planning would fill what is deleted: asked of planning itself, before anything is.
absl::Status CheckPlan(Session& session, const std::vector<Target>& targets) {
  ASSIGN_OR_RETURN(const Planned planned, WithoutTargets(session, targets));
  ASSIGN_OR_RETURN(const PlanWrite write, PlanJob(planned.Input()));
  for (const Target& target : targets) {
    const PeriodKey& key = target.row.key;
    std::string why = "planning would not see it any more: it is from before first sight, " +
                      std::string("backfill.start or the floor");
    for (const Intent& intent : write.intents) {
      if (intent.key != key) continue;
      why = intent.skip_reason.empty() ? ""
                                       : absl::StrCat("it would be SKIPPED(", intent.skip_reason,
                                                      "): backfill's max_periods, max_age or "
                                                      "source_window leaves it out");
    }
    if (why.empty()) continue;
    return Refused(key.job, absl::StrCat(key.period, " would not be filled: ", why),
                   "Drill fewer --days, or apply what back-fill is to reach");
  }
  return absl::OkStatus();
}

absl::Status RestoreBefore(Session& session, const DrillRequest& request, ExecHost& host) {
  RETURN_IF_ERROR(ReapRunsOf(session, request.job));
  ASSIGN_OR_RETURN(
      const std::vector<RestoredDrill> restored,
      RestoreDrills(session.acts(), request.job, session.MakeAct("a drill had died here")));
  for (const RestoredDrill& old : restored) {
    if (old.under_way) return RefuseSecondDrill(request.job, old.drill);
    host.Tell(RestoredText(old), false);
    if (!old.answer.ended) {
      return Refused(
          request.job,
          absl::StrCat(absl::StrJoin(old.answer.running, ", "), " of that drill still runs"),
          "Wait for it, or `matins cancel` it");
    }
  }
  return absl::OkStatus();
}

// ---- what came out
// ------------------------------------------------------------------------------

bool SaysNothing(const json& value) {
  if (value.is_number()) return value.get<double>() == 0;
  if (value.is_boolean()) return !value.get<bool>();
  if (value.is_string()) return value.get<std::string>().empty();
  if (!value.is_structured()) return true;
  // Words beside noughts ("did": "nothing") are no work; words alone are taken at their word.
  bool any = false, numbers = false;
  for (const json& part : value) {
    numbers = numbers || part.is_number();
    any = any || (!part.is_string() && !SaysNothing(part));
  }
  if (any) return false;
  return numbers || std::all_of(value.begin(), value.end(), SaysNothing);
}

std::string FigureText(double value) { return json(value).dump(); }

std::string Compared(const DrillFigures& before, const DrillFigures& after) {
  const std::map<std::string, double> old(before.begin(), before.end());
  const std::map<std::string, double> now(after.begin(), after.end());
  for (const auto& [name, value] : old) {
    const auto it = now.find(name);
    if (it == now.end())
      return absl::StrCat("figure ", name, " is missing, it was ", FigureText(value));
    if (it->second == value || (std::isnan(it->second) && std::isnan(value))) continue;
    return absl::StrCat("figure ", name, " is ", FigureText(it->second), ", it was ",
                        FigureText(value),
                        ": run again the job does not do the same; its results of this period "
                        "are what the drill made them");
  }
  for (const auto& [name, value] : now) {
    if (!old.contains(name)) return absl::StrCat("figure ", name, " is new");
  }
  return "";
}

class DrillCall {
 public:
  DrillCall(Session& session, const DrillRequest& request, ExecHost& host)
      : session_(session), request_(request), host_(host) {}

  absl::StatusOr<DrillReport> Run(std::vector<Target> targets, absl::Duration lease);

 private:
  absl::Status Begin();
  absl::Status Await();
  // Looks at the periods; whether there is something to wait for.
  absl::StatusOr<bool> Look();
  absl::Status Wait(absl::Duration until);
  void StopOwnRun(int signal);
  absl::Status Judge();
  absl::Status JudgePeriod(const Target& target, DrilledPeriod& period);
  absl::Status End();

  Session& session_;
  const DrillRequest& request_;
  ExecHost& host_;
  std::vector<Target> targets_;
  std::vector<PeriodRow> rows_;  // of targets_, as they stand; no key: none
  DrillReport report_;
  std::unique_ptr<DrillNode> node_;
  absl::Duration next_beat_ = absl::ZeroDuration();
  bool stopped_ = false;
};

absl::StatusOr<DrillReport> DrillCall::Run(std::vector<Target> targets, absl::Duration lease) {
  targets_ = std::move(targets);
  const absl::Duration began = SystemClock().BootNow();
  if (request_.here) {
    ASSIGN_OR_RETURN(node_, DrillNode::Open(request_, lease, host_));
  }
  RETURN_IF_ERROR(Begin());
  const absl::Status waited = Await();
  if (!waited.ok()) report_.problem = std::string(waited.message());
  RETURN_IF_ERROR(Judge());
  report_.took = SystemClock().BootNow() - began;
  RETURN_IF_ERROR(End());
  return report_;
}

absl::Status DrillCall::Begin() {
  BeginDrillRequest begin;
  begin.job = report_.job = request_.job;
  begin.lease = kLease;
  begin.act = session_.MakeAct(request_.reason);
  for (const Target& target : targets_) {
    begin.periods.push_back({target.row.key.period, target.row.generation, target.row.fence});
  }
  ASSIGN_OR_RETURN(report_.id, session_.acts().BeginDrill(begin));
  next_beat_ = SystemClock().BootNow() + kBeat;
  std::vector<std::string> periods;
  for (const DrillPeriod& period : begin.periods) periods.push_back(period.period);
  host_.Tell(absl::StrCat("drill ", report_.id, ": deleted ", request_.job, " ",
                          absl::StrJoin(periods, ", "), "; waiting for them to be filled"),
             true);
  return absl::OkStatus();
}

// An error of the store is no verdict: it is asked again until the lease is gone.
absl::Status DrillCall::Await() {
  const absl::Duration until = SystemClock().BootNow() + request_.timeout;
  std::set<std::string> periods;
  for (const Target& target : targets_) periods.insert(target.row.key.period);
  for (;;) {
    absl::Duration next = SystemClock().BootNow() + kLook;
    if (node_ != nullptr) next = std::min(next, node_->Step(periods));
    if (const absl::StatusOr<bool> more = Look(); more.ok() && !*more) return absl::OkStatus();
    if (SystemClock().BootNow() >= until) {
      return absl::DeadlineExceededError(absl::StrCat(
          "not all were filled within ", DurationText(request_.timeout),
          " (--timeout); `matins why ", request_.job, " DATE` says what was in the way"));
    }
    RETURN_IF_ERROR(Wait(next));
    if (stopped_) return absl::CancelledError("it was asked to end");
  }
}

absl::Status DrillCall::Wait(absl::Duration until) {
  const int signal = host_.Wait(until);
  if (signal != 0) StopOwnRun(signal);
  if (SystemClock().BootNow() < next_beat_) return absl::OkStatus();
  next_beat_ = SystemClock().BootNow() + kBeat;
  const absl::Status beat = session_.acts().ExtendDrill(report_.id, kLease);
  return absl::IsFailedPrecondition(beat) ? beat : absl::OkStatus();
}

void DrillCall::StopOwnRun(int signal) {
  stopped_ = true;
  if (node_ == nullptr || !node_->running()) return;
  node_->Stop(signal);
  const absl::Duration until = SystemClock().BootNow() + kPatience;
  while (node_->running() && SystemClock().BootNow() < until) host_.Wait(node_->Step({}));
}

absl::StatusOr<bool> DrillCall::Look() {
  std::vector<PeriodRow> rows;
  bool waits = false, failed = false;
  for (const Target& target : targets_) {
    absl::StatusOr<PeriodRow> row = ReadRow(session_, target.row.key);
    if (!row.ok() && !absl::IsNotFound(row.status())) return row.status();
    rows.push_back(row.ok() ? *std::move(row) : PeriodRow());
    const bool there = !rows.back().key.job.empty();
    waits = waits || !there || rows.back().status == PeriodStatus::kPlanned ||
            rows.back().status == PeriodStatus::kRunning;
    failed = failed || (there && rows.back().status == PeriodStatus::kFailed);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool done = rows[i].status == PeriodStatus::kDone && !rows[i].key.job.empty();
    const bool was =
        i < rows_.size() && rows_[i].status == PeriodStatus::kDone && !rows_[i].key.job.empty();
    if (done && !was) {
      host_.Tell(absl::StrCat(request_.job, " ", rows[i].key.period, " is DONE again (run ",
                              rows[i].fence, ")"),
                 true);
    }
  }
  rows_ = std::move(rows);
  // One that failed is the verdict; what runs beside it is let end.
  const bool runs = std::any_of(rows_.begin(), rows_.end(), [](const PeriodRow& row) {
    return row.status == PeriodStatus::kRunning;
  });
  return failed ? runs : waits;
}

absl::Status DrillCall::Judge() {
  if (const absl::StatusOr<bool> looked = Look(); !looked.ok()) return looked.status();
  report_.passed = report_.problem.empty();
  for (size_t i = 0; i < targets_.size(); ++i) {
    DrilledPeriod period;
    period.period = targets_[i].row.key.period;
    period.old_run = targets_[i].row.fence;
    period.old_figures = targets_[i].figures;
    const PeriodRow& row = rows_[i];
    if (row.key.job.empty()) {
      period.status = "gone";
      period.problem = "was not filled again";
    } else {
      period.status = std::string(Word(row.status));
      period.run = row.fence;
      RETURN_IF_ERROR(JudgePeriod(targets_[i], period));
    }
    report_.passed = report_.passed && period.problem.empty();
    report_.periods.push_back(std::move(period));
  }
  return absl::OkStatus();
}

absl::Status DrillCall::JudgePeriod(const Target& target, DrilledPeriod& period) {
  const PeriodRow& row = rows_[report_.periods.size()];
  if (row.status != PeriodStatus::kDone || row.generation <= target.row.generation) {
    period.problem =
        absl::StrCat("is ", Word(row.status),
                     row.reason.empty() ? "" : absl::StrCat("(", row.reason, ")"), " and not DONE");
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<FigureRow> all, session_.acts().ReadFigures(row.key));
  for (const FigureRow& figure : all) {
    if (figure.fence == row.fence && figure.generation == row.generation) {
      period.figures.emplace_back(figure.name, figure.value);
    }
  }
  RunFilter filter;
  filter.job = row.key.job;
  filter.period = row.key.period;
  filter.fence = row.fence;
  ASSIGN_OR_RETURN(const std::vector<RunRow> runs, session_.acts().ReadRuns(filter));
  const bool ran =
      row.fence > target.row.fence && !runs.empty() && runs[0].started_at != absl::InfinitePast();
  if (ran && row.checkpoint > 0) {
    period.evidence = absl::StrCat("checkpoint ", row.checkpoint);
  } else if (ran && !runs[0].result.empty()) {
    const json result = json::parse(runs[0].result, nullptr, false);
    if (!result.is_discarded() && !SaysNothing(result)) {
      period.evidence = absl::StrCat("result ", runs[0].result);
    }
  }
  if (!ran) {
    period.problem = "is DONE, and no attempt of the drill ran";
  } else if (period.evidence.empty()) {
    period.problem = absl::StrCat(
        "is DONE, and nothing says that it did any work: ",
        runs[0].result.empty() ? "it reported nothing"
                               : absl::StrCat("it reported ", runs[0].result),
        ". Have it say what it did (`matins result '{\"rows\": 1200}'`) or keep checkpoints; where "
        "it stops because the results are there already, it makes nothing good");
  } else {
    period.problem = Compared(period.old_figures, period.figures);
  }
  return absl::OkStatus();
}

absl::Status DrillCall::End() {
  EndDrillRequest end;
  end.id = report_.id;
  end.result = report_.passed ? drill_result::kPassed : drill_result::kFailed;
  end.detail = DrillReportJson(report_);
  end.act = session_.MakeAct("the drill has not filled it");
  absl::StatusOr<EndDrillAnswer> answer = session_.acts().EndDrill(end);
  if (absl::IsFailedPrecondition(answer.status())) {
    // Its lease is gone: a paused process, or a store that was away. No verdict then.
    report_.passed = false;
    if (report_.problem.empty()) report_.problem = std::string(answer.status().message());
    end.owner = false;
    end.result = drill_result::kAbandoned;
    end.detail = DrillReportJson(report_);
    answer = session_.acts().EndDrill(end);
    if (absl::IsFailedPrecondition(answer.status())) return absl::OkStatus();
  }
  RETURN_IF_ERROR(answer.status());
  report_.put_back = answer->put_back;
  report_.running = answer->running;
  report_.left = answer->left;
  return absl::OkStatus();
}

}  // namespace

std::string DrillReportJson(const DrillReport& report) {
  json periods = json::array();
  for (const DrilledPeriod& period : report.periods) {
    json figures = json::object(), old_figures = json::object();
    for (const auto& [name, value] : period.figures) figures[name] = value;
    for (const auto& [name, value] : period.old_figures) old_figures[name] = value;
    periods.push_back({{"period", period.period},
                       {"status", period.status},
                       {"run", absl::StrCat(period.run)},
                       {"old_run", absl::StrCat(period.old_run)},
                       {"figures", figures},
                       {"old_figures", old_figures},
                       {"evidence", period.evidence},
                       {"problem", period.problem}});
  }
  return json({{"drill", report.id},
               {"job", report.job},
               {"passed", report.passed},
               {"problem", report.problem},
               {"periods", periods},
               {"put_back", report.put_back},
               {"running", report.running},
               {"left", report.left},
               {"took", absl::ToDoubleSeconds(report.took)}})
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

absl::StatusOr<DrillReport> Drill(Session& session, const DrillRequest& request, ExecHost& host) {
  if (request.days < 1) return BadInput("--days", "is less than 1", "3 is usual");
  RETURN_IF_ERROR(ReadJob(session, request.job).status());
  RETURN_IF_ERROR(RestoreBefore(session, request, host));
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, request.job));
  RETURN_IF_ERROR(CheckDefinition(planned.current().job, request));
  if (planned.state().suspended) {
    return Refused(request.job, "is suspended, so that nothing would fill it",
                   "`matins job resume` it first");
  }
  RETURN_IF_ERROR(CheckServed(session, request));
  RETURN_IF_ERROR(CheckNothingFailed(session, request));
  ASSIGN_OR_RETURN(std::vector<Target> targets, FindTargets(session, request));
  RETURN_IF_ERROR(CheckPlan(session, targets));
  return DrillCall(session, request, host).Run(std::move(targets), planned.current().job.lock.ttl);
}

absl::StatusOr<std::vector<RestoredDrill>> RestoreDrills(ActStore& acts, absl::string_view job,
                                                         const Act& act) {
  constexpr int kMost = 1000;
  ASSIGN_OR_RETURN(const std::vector<DrillRow> drills, acts.ReadDrills(job, kMost));
  std::vector<RestoredDrill> restored;
  for (const DrillRow& drill : drills) {
    if (drill.over()) continue;
    RestoredDrill one{drill, {}, false};
    EndDrillRequest end;
    end.id = drill.id;
    end.owner = false;
    end.result = drill_result::kAbandoned;
    end.act = act;
    const absl::StatusOr<EndDrillAnswer> answer = acts.EndDrill(end);
    if (answer.ok()) {
      one.answer = *answer;
    } else if (absl::IsFailedPrecondition(answer.status())) {
      one.under_way = true;
    } else {
      return answer.status();
    }
    restored.push_back(std::move(one));
  }
  return restored;
}

absl::Status ReapRunsOf(Session& session, absl::string_view job) {
  constexpr int kMost = 1000;
  ASSIGN_OR_RETURN(const std::vector<StaleRun> stale, session.store().ReadStale(kMost));
  std::vector<ReapRequest> reaps;
  for (const StaleRun& run : stale) {
    if (run.row.key.job != job || run.without_lease) continue;
    ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, job));
    const LossVerdict verdict = AfterLoss(planned.current().job, run.row);
    reaps.push_back({{run.row.key, run.row.generation, run.row.fence, run.row.nonce},
                     verdict.to,
                     verdict.reason,
                     session.who()});
  }
  return reaps.empty() ? absl::OkStatus() : session.store().Reap(reaps).status();
}

std::string RestoredText(const RestoredDrill& restored) {
  const DrillRow& drill = restored.drill;
  const std::string what = absl::StrCat("drill ", drill.id, " of ", drill.job);
  if (restored.under_way) {
    return absl::StrCat(what, " by ", drill.by, " is under way until ", FormatInstant(drill.until),
                        " at least");
  }
  const EndDrillAnswer& answer = restored.answer;
  std::string text = absl::StrCat(
      what, " had died; ",
      answer.put_back.empty() ? "nothing had to be put back"
                              : absl::StrCat("put back: ", absl::StrJoin(answer.put_back, ", ")));
  if (!answer.running.empty()) {
    absl::StrAppend(&text, "; still running: ", absl::StrJoin(answer.running, ", "));
  }
  return text;
}

}  // namespace matins
