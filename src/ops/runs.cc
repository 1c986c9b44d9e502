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

absl::Status RequireReason(absl::string_view reason, absl::string_view what) {
  if (!reason.empty()) return absl::OkStatus();
  return BadInput("--reason", "is missing", absl::StrCat("say ", what, ": --reason \"...\""));
}

absl::Status RefuseSuspended(absl::string_view job) {
  return absl::FailedPreconditionError(
      absl::StrCat("job '", job, "' is suspended; `matins job resume ", job, "` first"));
}

absl::Status RefuseRetry(const PeriodRow& row) {
  const std::string what = absl::StrCat("job '", row.key.job, "' ", row.key.period);
  if (row.held) {
    return absl::FailedPreconditionError(absl::StrCat(
        what,
        " is held, because nobody knows what its lost run has done; once you do: `matins hold "
        "release ",
        row.key.job, " ", row.key.period, " --reason \"...\"`"));
  }
  if (row.status == PeriodStatus::kRunning) return RefuseRunning(row);
  if (row.status == PeriodStatus::kPlanned) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, " is PLANNED and runs by itself; `matins why ", row.key.job, " ",
                     row.key.period, "` says what it waits for"));
  }
  return absl::FailedPreconditionError(
      absl::StrCat(what, " is ", Word(row.status),
                   " and has not failed; to run it once more: `matins "
                   "run ",
                   row.key.job, " --date ", row.key.period, " --again --reason \"...\"`"));
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
    return RefuseSuspended(request.job);
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

absl::StatusOr<std::string> RetryPeriod(Session& session, absl::string_view job,
                                        absl::string_view date, absl::string_view reason) {
  RETURN_IF_ERROR(RequireReason(reason, "why the period is tried again"));
  std::string period;
  RETURN_IF_ERROR(PlanAndWrite(session, job, [&](const Planned& now) -> absl::StatusOr<PlanWrite> {
    if (now.state().suspended) return RefuseSuspended(job);
    ASSIGN_OR_RETURN(period, KeyFor(now.current(), date));
    ASSIGN_OR_RETURN(const PeriodRow row, ReadRow(session, {std::string(job), period}));
    if (row.status != PeriodStatus::kFailed || row.held) return RefuseRetry(row);
    ASSIGN_OR_RETURN(PlanWrite write, PlanByHand(now.Input(), period, row.params));
    write.intents.front().backfill = row.backfill;
    write.act = session.MakeAct(reason);
    write.act_kind = "retry";
    return write;
  }));
  return period;
}

absl::StatusOr<std::vector<PeriodRow>> HeldPeriods(Session& session, absl::string_view job) {
  RowFilter filter;
  filter.job = std::string(job);
  filter.status = PeriodStatus::kFailed;
  filter.limit = 1'000'000;
  ASSIGN_OR_RETURN(std::vector<PeriodRow> rows, session.acts().ReadRows(filter));
  std::erase_if(rows, [](const PeriodRow& row) { return !row.held; });
  return rows;
}

absl::StatusOr<std::string> ReleaseHold(Session& session, absl::string_view job,
                                        absl::string_view date, absl::string_view reason) {
  RETURN_IF_ERROR(RequireReason(reason, "what became of the lost run, and why it may run again"));
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, job));
  ASSIGN_OR_RETURN(const std::string period, KeyFor(planned.current(), date));
  ASSIGN_OR_RETURN(const PeriodRow row, ReadRow(session, {std::string(job), period}));
  if (!row.held) {
    return absl::FailedPreconditionError(
        absl::StrCat("job '", job, "' ", period, " is ", Word(row.status),
                     ", and not held; `matins hold` lists what is"));
  }
  RETURN_IF_ERROR(session.acts().Reopen(row.key, row.params, session.MakeAct(reason)));
  return period;
}

}  // namespace matins
