#include "plan/judge_rows.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "plan/intents.h"
#include "plan/misfire.h"
#include "plan/spread.h"

namespace matins {
namespace {

// How many fires back are looked at for the newest one of a period; they are of interest only while
// they are within the start deadline.
constexpr int kMostRecent = 5000;

bool WasTried(const PeriodRow& row) { return row.attempts > 0 || row.attempts_total > 0; }

absl::Time FailedAt(const PeriodRow& row) {
  return row.finished_at != absl::InfinitePast() ? row.finished_at : row.changed_at;
}

// How long after a fire a period can be on time at most, by any version: each judges its own.
absl::Duration LongestOnTime(const Fires& fires) {
  absl::Duration longest = absl::ZeroDuration();
  for (int i = 0; i < fires.size(); ++i) {
    const Job& job = fires.job(i).job;
    const absl::Time until = OnTimeUntil(job, absl::UnixEpoch() + job.spread);
    longest = std::max(longest, until - absl::UnixEpoch());
  }
  return longest;
}

}  // namespace

bool IsGap(const PeriodRow& row) {
  return row.status != PeriodStatus::kDone && row.status != PeriodStatus::kSkipped;
}

bool IsOutsideSchedule(const Fires& fires, const PeriodRow& row) {
  if (row.status != PeriodStatus::kPlanned || row.manual || WasTried(row) || row.version == 0) {
    return false;
  }
  const int in_force = fires.InForce(row.due);
  if (fires.version(in_force).number <= row.version) return false;
  const std::optional<DatedFire> fire = fires.Next(row.due - absl::Nanoseconds(1));
  if (!fire) return true;
  if (fire->fire.at == row.due) return false;
  const absl::StatusOr<Period> period = PeriodAt(fires, fire->fire, fire->version, std::nullopt);
  return !period.ok() || period->key != row.key.period;
}

RowJudge::RowJudge(const PlanInput& input, const Fires& fires, bool triggered)
    : now_(input.now), fires_(fires), triggered_(triggered) {
  std::optional<DatedFire> fire = fires.Previous(now_ + absl::Nanoseconds(1));
  if (fire) newest_fire_ = fire->fire.at;
  const absl::Duration reach = LongestOnTime(fires);
  for (int i = 0; fire && i < kMostRecent && now_ <= fire->fire.at + reach; ++i) {
    if (fires.job(fire->version).job.period == PeriodKind::kFire) break;
    const absl::StatusOr<Period> period = PeriodAt(fires, fire->fire, fire->version, std::nullopt);
    if (!period.ok()) break;
    recent_.try_emplace(period->key, fire->fire.at);
    fire = fires.Previous(fire->fire.at);
  }
}

absl::Time RowJudge::LastTrigger(const std::string& period, absl::Time due) const {
  const auto found = recent_.find(period);
  return found == recent_.end() ? due : std::max(due, found->second);
}

absl::StatusOr<absl::Time> RowJudge::LastTrigger(const NewPeriod& period) const {
  if (recent_.empty()) return period.fire.at;
  ASSIGN_OR_RETURN(const Period slice,
                   PeriodAt(fires_, period.fire, period.version, period.previous));
  return LastTrigger(slice.key, period.fire.at);
}

absl::Time RowJudge::OnTime(const PeriodRow& row, const ResolvedJob& job) const {
  const absl::Time last = LastTrigger(row.key.period, row.due);
  const absl::Time not_before = last == row.due ? row.not_before : last + SpreadDelay(job, last);
  return OnTimeUntil(job.job, std::max(row.not_before, not_before));
}

absl::StatusOr<Intent> RowJudge::Skip(const PeriodRow& row, absl::string_view reason) const {
  ASSIGN_OR_RETURN(Intent intent, ChangeOf(fires_, Intent::Kind::kSkip, row));
  intent.skip_reason = std::string(reason);
  return intent;
}

absl::StatusOr<std::optional<Intent>> RowJudge::Judge(const PeriodRow& row, int64_t newer) const {
  if (row.held) return std::nullopt;
  if (row.status == PeriodStatus::kFailed) return JudgeFailed(row, newer);
  if (row.status != PeriodStatus::kPlanned || row.manual || WasTried(row)) return std::nullopt;
  return JudgePlanned(row, newer);
}

absl::StatusOr<std::optional<Intent>> RowJudge::JudgePlanned(const PeriodRow& row,
                                                             int64_t newer) const {
  if (IsOutsideSchedule(fires_, row)) return Skip(row, reason::kChanged);
  const ResolvedJob& job = fires_.job(fires_.IndexOf(row.version, row.due));
  // What was missed already when it was planned is made good, and waits in no queue.
  const bool waits = job.job.overlap == Overlap::kQueue && !row.backfill;
  const Verdict verdict = matins::Judge(
      job.job, {.due = row.due, .on_time_until = OnTime(row, job), .newer = newer, .waits = waits},
      now_);
  if (!verdict.skip.empty()) return Skip(row, verdict.skip);
  const absl::Time start_by = KeepUntil(job.job, row.due);
  if (!verdict.missed || (row.backfill && row.start_by == start_by)) return std::nullopt;
  ASSIGN_OR_RETURN(Intent intent, ChangeOf(fires_, Intent::Kind::kJudge, row));
  intent.start_by = start_by;
  intent.backfill = true;
  return intent;
}

absl::StatusOr<std::optional<Intent>> RowJudge::JudgeFailed(const PeriodRow& row,
                                                            int64_t newer) const {
  if (!triggered_ && newest_fire_ <= FailedAt(row)) return std::nullopt;
  const ResolvedJob& job = fires_.job(fires_.IndexOf(row.version, row.due));
  const absl::Time on_time = OnTime(row, job);
  Verdict verdict;
  if (!row.manual) {
    verdict =
        matins::Judge(job.job, {.due = row.due, .on_time_until = on_time, .newer = newer}, now_);
  }
  if (!verdict.skip.empty()) return Skip(row, verdict.skip);
  ASSIGN_OR_RETURN(Intent intent, ChangeOf(fires_, Intent::Kind::kReattempt, row));
  intent.backfill = row.backfill || verdict.missed;
  intent.start_by = row.manual       ? absl::InfiniteFuture()
                    : verdict.missed ? KeepUntil(job.job, row.due)
                                     : std::max(on_time, StartBy(job.job, row.due, row.not_before));
  return intent;
}

}  // namespace matins
