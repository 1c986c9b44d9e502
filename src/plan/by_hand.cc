// What people ask for: back-fill of a range, one period, and leaving out what a suspension missed.
#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "plan/find_fire.h"
#include "plan/fires.h"
#include "plan/intents.h"
#include "plan/judge_rows.h"
#include "plan/owed.h"
#include "plan/plan.h"

namespace matins {
namespace {

constexpr int kMostPeriods = 10'000;

// Neither cursor nor triggers move by a person's request; planning looks again at once.
PlanWrite WriteFor(const PlanInput& input) {
  return {.job = input.state->job,
          .expected_revision = input.state->revision,
          .cursor = input.state->cursor,
          .next_look = input.now};
}

std::optional<absl::Time> FireBefore(const Fires& fires, absl::Time fire) {
  const std::optional<DatedFire> before = fires.Previous(fire);
  return before ? std::optional(before->fire.at) : std::nullopt;
}

class Backfiller {
 public:
  Backfiller(const PlanInput& input, const Fires& fires, absl::Span<const PeriodRow> existing,
             Reprocess reprocess)
      : input_(input), fires_(fires), reprocess_(reprocess) {
    for (const PeriodRow& row : input.state->rows) rows_[row.key.period] = &row;
    for (const PeriodRow& row : existing) rows_[row.key.period] = &row;
    plan_.write = WriteFor(input);
  }

  absl::StatusOr<BackfillPlan> Run(absl::CivilDay from, absl::CivilDay to) {
    ASSIGN_OR_RETURN(std::optional<DatedFire> fire, FirstFireOfDay(fires_, from));
    std::string last;
    int count = 0;
    for (; fire && fire->fire.at <= input_.now; fire = fires_.Next(fire->fire.at)) {
      if (!fire->covered) return CalendarEnded(fires_.job(fire->version), fire->fire);
      const std::optional<absl::Time> before = FireBefore(fires_, fire->fire.at);
      ASSIGN_OR_RETURN(const Period period, PeriodAt(fires_, fire->fire, fire->version, before));
      if (period.biz_date > to) break;
      if (std::exchange(last, period.key) == period.key) continue;
      if (++count > kMostPeriods) {
        return BadInput(absl::StrCat("back-fill of ", input_.state->job),
                        absl::StrCat("more than ", kMostPeriods, " periods from ", FormatDay(from),
                                     " to ", FormatDay(to)),
                        "ask for a shorter range, and for the rest after it");
      }
      RETURN_IF_ERROR(Take({fire->fire, fire->version, before}, period));
    }
    return std::move(plan_);
  }

 private:
  absl::Status Take(const NewPeriod& fresh, const Period& period) {
    const PeriodKey key{input_.state->job, period.key};
    const absl::Duration window = IsMutant(Mutant::kNoSourceWindow)
                                      ? absl::InfiniteDuration()
                                      : fires_.job(fresh.version).job.backfill.source_window;
    const bool fillable = input_.now - fresh.fire.at <= window;
    const auto found = rows_.find(period.key);
    if (found != rows_.end()) return TakeRow(*found->second, key, fillable);
    ASSIGN_OR_RETURN(Intent intent, InsertOf(fires_, key.job, fresh));
    intent.start_by = absl::InfiniteFuture();
    intent.reopens = intent.due <= input_.state->floor;
    const bool all = reprocess_ == Reprocess::kAll;
    if (intent.reopens && !(all && fillable)) {
      (all ? plan_.unfillable : plan_.left).push_back(key);
      return absl::OkStatus();
    }
    if (fillable) {
      intent.manual = intent.backfill = true;
    } else {
      intent.skip_reason = reason::kUnfillable;
      plan_.unfillable.push_back(key);
    }
    plan_.write.intents.push_back(std::move(intent));
    return absl::OkStatus();
  }

  absl::Status TakeRow(const PeriodRow& row, const PeriodKey& key, bool fillable) {
    const bool failed = row.status == PeriodStatus::kFailed && reprocess_ != Reprocess::kMissing;
    const bool reopen = row.status == PeriodStatus::kSkipped || (failed && row.held) ||
                        (row.status == PeriodStatus::kDone && reprocess_ == Reprocess::kAll);
    if (!reopen && !failed) {
      plan_.left.push_back(key);
    } else if (!fillable) {
      plan_.unfillable.push_back(key);
    } else if (reopen) {
      plan_.reopen.push_back(key);
    } else {
      ASSIGN_OR_RETURN(Intent intent, ChangeOf(fires_, Intent::Kind::kReattempt, row));
      intent.start_by = absl::InfiniteFuture();
      intent.backfill = true;
      plan_.write.intents.push_back(std::move(intent));
    }
    return absl::OkStatus();
  }

  const PlanInput& input_;
  const Fires& fires_;
  const Reprocess reprocess_;
  absl::flat_hash_map<std::string, const PeriodRow*> rows_;
  BackfillPlan plan_;
};

// The key of the newest period that was due.
absl::StatusOr<std::string> NewestKey(const PlanInput& input, const Fires& fires) {
  const std::optional<DatedFire> newest = fires.Previous(input.now + absl::Nanoseconds(1));
  if (!newest) {
    return BadInput(absl::StrCat("job ", input.state->job), "has not been due yet",
                    "name the date or period to run");
  }
  ASSIGN_OR_RETURN(Period period, PeriodAt(fires, newest->fire, newest->version, std::nullopt));
  return std::move(period.key);
}

// A row for a period, scheduled or not.
absl::StatusOr<Intent> RowByHand(const PlanInput& input, const Fires& fires, const Period& period) {
  const std::string& job = input.state->job;
  ASSIGN_OR_RETURN(const FoundFire found, FirstFireOf(fires, period));
  if (found.exact) {
    return InsertOf(
        fires, job,
        {found.fire->fire, found.fire->version, FireBefore(fires, found.fire->fire.at)});
  }
  if (fires.current().job.period == PeriodKind::kFire) {
    return BadInput(absl::StrCat("job ", job, " period ", period.key),
                    "the job has no fire at that instant, so there is no window to run for",
                    found.fire
                        ? absl::StrCat("the next one is ", FormatInstant(found.fire->fire.at))
                        : "take one that `next` or `watermark` shows");
  }
  // In the order of its neighbours: after all that was due before the next period.
  const absl::Time due =
      found.fire ? std::min(input.now, found.fire->fire.at - absl::Seconds(1)) : input.now;
  Intent intent{.key = {job, period.key},
                .biz_date = period.biz_date,
                .window_start = period.start,
                .window_end = period.end,
                .due = due,
                .nominal = absl::ToCivilSecond(due, fires.current().schedule.zone()),
                .version = fires.version(fires.InForce(due)).number};
  RETURN_IF_ERROR(RunWithToday(fires, intent));
  return intent;
}

absl::StatusOr<Intent> ExistingByHand(const Fires& fires, const PeriodRow& row) {
  const std::string what = absl::StrCat("job ", row.key.job, " period ", row.key.period);
  if (row.status == PeriodStatus::kRunning) {
    return absl::FailedPreconditionError(absl::StrCat(what, ": is running on ", row.node, " (run ",
                                                      row.fence, "); wait for it or cancel it"));
  }
  if (row.held || !IsGap(row)) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": has ended; run it again with --again and a --reason"));
  }
  return ChangeOf(
      fires, row.status == PeriodStatus::kFailed ? Intent::Kind::kReattempt : Intent::Kind::kJudge,
      row);
}

}  // namespace

absl::StatusOr<BackfillPlan> PlanBackfill(const PlanInput& input,
                                          absl::Span<const PeriodRow> existing, absl::CivilDay from,
                                          absl::CivilDay to, Reprocess reprocess) {
  if (from > to) {
    return BadInput(absl::StrCat("back-fill of ", input.state->job),
                    absl::StrCat("begins on ", FormatDay(from), ", after its end ", FormatDay(to)),
                    "write the earlier day first; both are included");
  }
  const Fires fires(input.versions);
  return Backfiller(input, fires, existing, reprocess).Run(from, to);
}

absl::StatusOr<PlanWrite> PlanByHand(const PlanInput& input, absl::string_view key,
                                     absl::string_view params) {
  const Fires fires(input.versions);
  std::string period_key(key);
  if (key.empty()) {
    ASSIGN_OR_RETURN(period_key, NewestKey(input, fires));
  }
  ASSIGN_OR_RETURN(const Period period, PeriodFromKey(fires.current().period_rule, period_key));
  const PeriodRow* row = Known(*input.state).Row(period.key);
  ASSIGN_OR_RETURN(Intent intent,
                   row ? ExistingByHand(fires, *row) : RowByHand(input, fires, period));
  intent.not_before = std::min(intent.not_before, input.now);
  if (row == nullptr) intent.not_before = input.now;
  intent.reopens = row == nullptr && intent.due <= input.state->floor;
  intent.start_by = absl::InfiniteFuture();
  intent.manual = true;
  intent.params = std::string(params);
  PlanWrite write = WriteFor(input);
  write.intents.push_back(std::move(intent));
  return write;
}

absl::StatusOr<PlanWrite> PlanResumeSkip(const PlanInput& input, const Act& act) {
  PlanInput until_now = input;
  until_now.ahead = absl::ZeroDuration();
  const Fires fires(input.versions);
  const Known known(*input.state);
  PlanWrite write = WriteFor(input);
  write.act = act;
  for (const PeriodRow& row : input.state->rows) {
    const bool waits = row.status == PeriodStatus::kPlanned || row.status == PeriodStatus::kFailed;
    if (!waits || row.held || row.manual || row.due > input.now) continue;
    ASSIGN_OR_RETURN(Intent intent, ChangeOf(fires, Intent::Kind::kSkip, row));
    intent.skip_reason = reason::kSuspended;
    intent.by = act.who;
    write.intents.push_back(std::move(intent));
  }
  Collector collector(fires, write);
  ASSIGN_OR_RETURN(absl::Time after, FirstLook(until_now, fires));
  bool complete = false;
  while (!complete) {
    ASSIGN_OR_RETURN(const Expected expected, Enumerate(until_now, fires, known, after));
    RETURN_IF_ERROR(expected.stopped);
    for (const NewPeriod& period : expected.due) {
      RETURN_IF_ERROR(collector.Skip(period, reason::kSuspended, act.who));
    }
    after = expected.reached;
    complete = expected.complete;
  }
  RETURN_IF_ERROR(collector.Flush());
  std::stable_sort(write.intents.begin(), write.intents.end(),
                   [](const Intent& a, const Intent& b) { return a.due < b.due; });
  SetReached(until_now, after, write);
  return write;
}

}  // namespace matins
