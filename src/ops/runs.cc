#include "ops/runs.h"

#include <algorithm>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "base/variable.h"
#include "job/calendar_fires.h"
#include "job/utf8.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "plan/plan.h"

namespace matins {
namespace {

std::string ParamsJson(const std::vector<std::pair<std::string, std::string>>& params) {
  if (params.empty()) return "";
  nlohmann::json object = nlohmann::json::object();
  for (const auto& [name, value] : params) object[name] = value;
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// The run gets each as MATINS_PARAM_name: what cannot be one would fail long after it was asked
// for.
absl::Status CheckParams(const RunByHandRequest& request) {
  std::set<absl::string_view> names;
  for (const auto& [name, value] : request.params) {
    const std::string where = absl::StrCat("parameter '", absl::Utf8SafeCHexEscape(name), "'");
    if (!IsVariableName(name)) {
      return BadInput(where, "is no variable's name",
                      "use letters, digits and '_', no digit first");
    }
    if (!names.insert(name).second)
      return BadInput(where, "is given twice", "leave one of them out");
    if (FindNotUtf8(value) != absl::string_view::npos || absl::StrContains(value, '\0')) {
      return BadInput(where, "has a value that is no UTF-8 text",
                      "write it in UTF-8, or give the name of a file that holds the bytes");
    }
  }
  return absl::OkStatus();
}

// The newest period that is due, by today's version.
absl::StatusOr<std::string> NewestDueKey(const Planned& planned) {
  const ResolvedJob& job = planned.current();
  const std::optional<Fire> fire = PreviousFire(job, planned.now() + absl::Microseconds(1));
  if (!fire) {
    return absl::FailedPreconditionError(
        absl::StrCat("job '", job.job.name, "' has never been due; give the period: --date DATE"));
  }
  const std::optional<Fire> before = PreviousFire(job, fire->at);
  std::optional<absl::Time> previous;
  if (before) previous = before->at;
  ASSIGN_OR_RETURN(const Period period, PeriodOf(job.period_rule, *fire, previous));
  return period.key;
}

absl::Status RefuseRunning(const PeriodRow& row) {
  return absl::FailedPreconditionError(
      absl::StrCat("job '", row.key.job, "' ", row.key.period, " is RUNNING as run ", row.fence,
                   " on ", row.node, " since ", FormatInstant(row.claimed_at),
                   "; wait for it (`matins wait`), or stop it: matins cancel ", row.fence));
}

// What waits or has failed goes on as it was asked for: its parameters are part of that.
absl::Status RefuseParams(const PeriodRow& row) {
  return absl::FailedPreconditionError(
      absl::StrCat("job '", row.key.job, "' ", row.key.period, " is ", Word(row.status),
                   " and keeps the parameters it has; leave --param out, or `matins skip ",
                   row.key.job, " ", row.key.period, "` first and run it again with --reason"));
}

absl::StatusOr<std::string> RunExisting(Session& session, const RunByHandRequest& request,
                                        const PeriodRow& row, const std::string& params) {
  const bool goes_on =
      row.status == PeriodStatus::kPlanned || (row.status == PeriodStatus::kFailed && !row.held);
  if (goes_on && !params.empty() && params != row.params) return RefuseParams(row);
  switch (row.status) {
    case PeriodStatus::kRunning:
      return RefuseRunning(row);
    case PeriodStatus::kPlanned:
      RETURN_IF_ERROR(session.acts().TriggerNow(row.key.job, session.MakeAct(request.reason)));
      return std::string("waits already");
    case PeriodStatus::kFailed:
      if (!row.held) {
        RETURN_IF_ERROR(session.acts().TriggerNow(row.key.job, session.MakeAct(request.reason)));
        return std::string("given new attempts");
      }
      break;
    case PeriodStatus::kDone:
    case PeriodStatus::kSkipped:
      break;
  }
  if (row.status == PeriodStatus::kDone && !request.again) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", row.key.job, "' ", row.key.period, " is DONE since ",
        FormatInstant(row.finished_at), "; to run it once more say --again --reason \"...\""));
  }
  if (request.reason.empty()) {
    return BadInput("--reason", "is missing",
                    absl::StrCat("the period is ", Word(row.status), row.held ? "(held)" : "",
                                 "; say why it is opened again: --reason \"...\""));
  }
  RETURN_IF_ERROR(session.acts().Reopen(row.key, params, session.MakeAct(request.reason)));
  return std::string("opened again");
}

absl::StatusOr<std::vector<PeriodRow>> RowsBetween(Session& session,
                                                   const BackfillRequest& request) {
  RowFilter filter;
  filter.job = request.job;
  filter.from = request.from;
  filter.to = request.to;
  filter.limit = 1'000'000;
  return session.acts().ReadRows(filter);
}

// What lies below the floor is settled, whether or not its row is still there.
absl::Status RefuseSettled(const PlanWrite& write, absl::Time floor, absl::string_view mend) {
  for (const Intent& intent : write.intents) {
    if (!intent.reopens) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("job '", intent.key.job, "' ", intent.key.period,
                     " was settled long ago: all that was due ", "by ", FormatInstant(floor),
                     " is DONE or SKIPPED, and old rows are removed; ", mend));
  }
  return absl::OkStatus();
}

BackfillAnswer AnswerOf(const BackfillPlan& plan, absl::Duration source_window) {
  BackfillAnswer answer;
  answer.source_window = source_window;
  for (const Intent& intent : plan.write.intents) {
    if (intent.reopens) answer.reopen.push_back(intent.key.period);
    if (intent.skip_reason.empty() && intent.kind != Intent::Kind::kSkip)
      answer.run.push_back(intent.key.period);
  }
  for (const PeriodKey& key : plan.reopen) {
    answer.reopen.push_back(key.period);
    answer.run.push_back(key.period);
  }
  for (const PeriodKey& key : plan.left) answer.left.push_back(key.period);
  for (const PeriodKey& key : plan.unfillable) answer.unfillable.push_back(key.period);
  std::sort(answer.run.begin(), answer.run.end());
  std::sort(answer.reopen.begin(), answer.reopen.end());
  return answer;
}

bool HasEnded(const PeriodRow& row) {
  return row.status == PeriodStatus::kDone || row.status == PeriodStatus::kSkipped ||
         row.status == PeriodStatus::kFailed;
}

}  // namespace

absl::StatusOr<RunByHandAnswer> RunByHand(Session& session, const RunByHandRequest& request) {
  RETURN_IF_ERROR(CheckParams(request));
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, request.job));
  if (planned.state().suspended) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job '", request.job, "' is suspended; `matins job resume ", request.job, "` first"));
  }
  RunByHandAnswer answer;
  if (request.date.empty()) {
    ASSIGN_OR_RETURN(answer.period, NewestDueKey(planned));
  } else {
    ASSIGN_OR_RETURN(answer.period, KeyFor(planned.current(), request.date));
  }
  const std::string params = ParamsJson(request.params);
  const auto row = ReadRow(session, {request.job, answer.period});
  if (row.ok()) {
    ASSIGN_OR_RETURN(answer.what, RunExisting(session, request, *row, params));
    if (row->status == PeriodStatus::kFailed && !row->held) answer.failed_change = row->change;
    return answer;
  }
  if (!absl::IsNotFound(row.status())) return row.status();
  bool reopened = false;
  RETURN_IF_ERROR(
      PlanAndWrite(session, request.job, [&](const Planned& now) -> absl::StatusOr<PlanWrite> {
        ASSIGN_OR_RETURN(PlanWrite write, PlanByHand(now.Input(), answer.period, params));
        if (!request.again || request.reason.empty()) {
          RETURN_IF_ERROR(RefuseSettled(write, now.state().floor,
                                        "to run it once more say --again --reason \"...\""));
        }
        reopened = !write.intents.empty() && write.intents.front().reopens;
        write.act = session.MakeAct(request.reason);
        return write;
      }));
  answer.what = reopened ? "opened again" : "planned";
  return answer;
}

absl::StatusOr<PeriodRow> WaitForPeriod(Session& session, const PeriodKey& key,
                                        absl::Duration timeout,
                                        const std::function<void(const PeriodRow&)>& progress,
                                        int64_t failed_change) {
  const absl::Duration until = SystemClock().BootNow() + timeout;
  int64_t seen = -1;
  for (;;) {
    const auto row = ReadRow(session, key);
    if (!row.ok() && !absl::IsNotFound(row.status()) && !absl::IsUnavailable(row.status()))
      return row.status();
    if (row.ok() && row->change != seen) {
      seen = row->change;
      if (progress) progress(*row);
      if (HasEnded(*row) && row->change != failed_change) return *row;
    }
    const absl::Duration left = until - SystemClock().BootNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat(
          "job '", key.job, "' ", key.period, " has not ended within ", DurationText(timeout)));
    }
    session.store().AwaitChange(std::min(left, absl::Milliseconds(500)));
  }
}

absl::Status CancelRun(Session& session, int64_t run, absl::string_view reason) {
  return session.acts().Cancel(run, session.MakeAct(reason));
}

absl::StatusOr<std::string> SkipPeriod(Session& session, absl::string_view job,
                                       absl::string_view date, absl::string_view reason) {
  if (reason.empty())
    return BadInput("--reason", "is missing", "say why the period is skipped: --reason \"...\"");
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, job));
  ASSIGN_OR_RETURN(const std::string period, KeyFor(planned.current(), date));
  const PeriodKey key{std::string(job), period};
  if (const auto row = ReadRow(session, key); absl::IsNotFound(row.status())) {
    RETURN_IF_ERROR(
        PlanAndWrite(session, job, [&](const Planned& now) -> absl::StatusOr<PlanWrite> {
          ASSIGN_OR_RETURN(PlanWrite write, PlanByHand(now.Input(), period, ""));
          RETURN_IF_ERROR(RefuseSettled(write, now.state().floor, "there is nothing left to skip"));
          for (Intent& intent : write.intents) {
            if (intent.key != key) continue;
            intent.skip_reason = std::string(reason);
            intent.by = session.who();
          }
          write.act = session.MakeAct(reason);
          return write;
        }));
    return period;
  }
  RETURN_IF_ERROR(session.acts().Skip({key}, session.MakeAct(reason)));
  return period;
}

absl::StatusOr<BackfillAnswer> BackfillJob(Session& session, const BackfillRequest& request) {
  if (request.to < request.from) {
    return BadInput(
        "--to", absl::StrCat(FormatDay(request.to), " is before --from ", FormatDay(request.from)),
        "both dates are included; give the older one first");
  }
  if (request.again && request.reason.empty()) {
    return BadInput("--reason", "is missing",
                    "--again opens what is DONE; say why: --reason \"...\"");
  }
  const Act act = session.MakeAct(request.reason.empty() ? "backfill" : request.reason);
  BackfillPlan plan;
  absl::Duration source_window;
  const auto make = [&](const Planned& planned) -> absl::StatusOr<PlanWrite> {
    ASSIGN_OR_RETURN(const std::vector<PeriodRow> existing, RowsBetween(session, request));
    ASSIGN_OR_RETURN(
        plan, PlanBackfill(planned.Input(), existing, request.from, request.to, request.again));
    plan.write.act = act;
    source_window = planned.current().job.backfill.source_window;
    return plan.write;
  };
  if (request.dry_run) {
    ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, request.job));
    RETURN_IF_ERROR(make(planned).status());
    return AnswerOf(plan, source_window);
  }
  RETURN_IF_ERROR(PlanAndWrite(session, request.job, make));
  for (const PeriodKey& key : plan.reopen) RETURN_IF_ERROR(session.acts().Reopen(key, "", act));
  return AnswerOf(plan, source_window);
}

}  // namespace matins
