#include "plan/intents.h"

#include <utility>

#include "base/fault.h"
#include "base/status.h"
#include "job/key_template.h"
#include "plan/misfire.h"
#include "plan/spread.h"

namespace matins {

absl::Status RunWithToday(const Fires& fires, Intent& intent) {
  const Job& job = fires.current().job;
  intent.priority = job.priority;
  ASSIGN_OR_RETURN(intent.lock_key, LockKeyOf(job, intent.key.period, intent.biz_date));
  intent.tenant = job.tenant;
  if (job.limit_key.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(
      intent.limit_key,
      ExpandKey(job.limit_key, {job.name, job.tenant, intent.key.period, intent.biz_date}));
  return absl::OkStatus();
}

absl::StatusOr<Intent> InsertOf(const Fires& fires, absl::string_view job,
                                const NewPeriod& period) {
  ASSIGN_OR_RETURN(Period slice, PeriodAt(fires, period.fire, period.version, period.previous));
  const ResolvedJob& version = fires.job(period.version);
  Intent intent{.kind = Intent::Kind::kInsert,
                .key = {std::string(job), std::move(slice.key)},
                .biz_date = slice.biz_date,
                .window_start = slice.start,
                .window_end = slice.end,
                .due = period.fire.at,
                .nominal = period.fire.nominal,
                .not_before = period.fire.at + SpreadDelay(version, period.fire.at),
                .version = fires.version(period.version).number};
  intent.start_by = StartBy(version.job, intent.due, intent.not_before);
  RETURN_IF_ERROR(RunWithToday(fires, intent));
  return intent;
}

absl::StatusOr<Intent> ChangeOf(const Fires& fires, Intent::Kind kind, const PeriodRow& row) {
  Intent intent{.kind = kind,
                .key = row.key,
                .biz_date = row.biz_date,
                .window_start = row.window_start,
                .window_end = row.window_end,
                .due = row.due,
                .nominal = row.nominal,
                .not_before = row.not_before,
                .start_by = row.start_by,
                .version = row.version,
                .backfill = row.backfill,
                .manual = row.manual,
                .params = row.params};
  RETURN_IF_ERROR(RunWithToday(fires, intent));
  return intent;
}

absl::Status Collector::Skip(const NewPeriod& period, absl::string_view reason,
                             absl::string_view by) {
  if (period.apart || reason != reason_ || by != by_) RETURN_IF_ERROR(Flush());
  reason_ = std::string(reason);
  by_ = std::string(by);
  if (count_++ <= kMostSkippedRows) skipped_.push_back(period);
  last_ = period;
  return absl::OkStatus();
}

absl::Status Collector::Add(Intent intent) {
  RETURN_IF_ERROR(Flush());
  write_.intents.push_back(std::move(intent));
  return absl::OkStatus();
}

absl::Status Collector::Flush() {
  const int64_t count = std::exchange(count_, 0);
  const std::vector<NewPeriod> skipped = std::exchange(skipped_, {});
  if (IsMutant(Mutant::kSilentSkip)) return absl::OkStatus();
  if (count > kMostSkippedRows) {
    const NewPeriod& first = skipped.front();
    ASSIGN_OR_RETURN(Period from, PeriodAt(fires_, first.fire, first.version, first.previous));
    ASSIGN_OR_RETURN(Period to, PeriodAt(fires_, last_.fire, last_.version, last_.previous));
    write_.spans.push_back({.from = first.fire.at,
                            .to = last_.fire.at,
                            .first_period = std::move(from.key),
                            .last_period = std::move(to.key),
                            .count = count,
                            .reason = reason_,
                            .by = by_});
    return absl::OkStatus();
  }
  for (const NewPeriod& period : skipped) {
    ASSIGN_OR_RETURN(Intent intent, InsertOf(fires_, write_.job, period));
    intent.start_by = absl::InfiniteFuture();
    intent.skip_reason = reason_;
    intent.by = by_;
    write_.intents.push_back(std::move(intent));
  }
  return absl::OkStatus();
}

}  // namespace matins
