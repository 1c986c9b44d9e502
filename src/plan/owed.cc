#include "plan/owed.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"

namespace matins {
namespace {

constexpr absl::Duration kTick =
    absl::Microseconds(1);  // a store's instants are whole microseconds
// More than this beyond now + ahead, and the cursor was written under a clock that has been set
// back.
constexpr absl::Duration kClockSlack = absl::Seconds(2);

// The largest cap of any version: as far as newer periods have to be counted.
int64_t LargestCap(const Fires& fires) {
  int64_t cap = 1;
  for (int i = 0; i < fires.size(); ++i) {
    cap = std::max<int64_t>(cap, fires.job(i).job.backfill.max_periods.value_or(0));
  }
  return std::min<int64_t>(cap, kMostNew);
}

absl::Time Bound(const PlanInput& input, const Fires& fires, absl::Time limit) {
  const JobState& state = *input.state;
  const ResolvedJob& job = fires.current();
  if (job.job.backfill.start) return BeforeBizDate(job, *job.job.backfill.start);
  if (IsMutant(Mutant::kNoFirstSight)) return state.first_sight - absl::Hours(24 * 30);
  // First seen under a clock that was far ahead: what has been planned since is what bounds it.
  if (state.first_sight > limit + kClockSlack) {
    const bool planned = state.cursor != absl::InfinitePast();
    const absl::Time settled = std::min(state.cursor, state.gap_from.value_or(state.cursor));
    return (planned ? std::min(input.now, settled) : input.now) - kTick;
  }
  // A one-off "now" is a moment old when it is first seen.
  if (job.job.at) return state.first_sight - job.job.start_deadline - kTick;
  return state.first_sight - kTick;
}

bool IsSetBack(const PlanInput& input) {
  return input.state->cursor > input.now + input.ahead + kClockSlack;
}

// Walks the fires and keeps what is new among them.
class Walk {
 public:
  Walk(const PlanInput& input, const Fires& fires, const Known& known)
      : input_(input), fires_(fires), known_(known), limit_(input.now + input.ahead) {}

  absl::StatusOr<Expected> From(absl::Time after, absl::Time bound) {
    Pass(after, bound);
    std::optional<DatedFire> fire = fires_.Next(after);
    for (; fire && fire->fire.at <= limit_; fire = fires_.Next(position_)) {
      if (!fire->covered) {
        Stop(CalendarEnded(fires_.job(fire->version), fire->fire), fire->fire.at);
        return std::move(out_);
      }
      // What a clock that was too far ahead made a span of has not been missed while it is to come.
      const bool to_come = fire->fire.at > input_.now;
      if (const std::optional<absl::Time> end = known_.SpanEnd(fire->fire.at); end && !to_come) {
        Pass(std::min(*end, input_.now), bound);
        apart_ = true;
        continue;
      }
      if (const absl::Status status = Take(*fire); !status.ok()) {
        Stop(status, fire->fire.at);
        return std::move(out_);
      }
      if (out_.beyond >= LargestCap(fires_)) return std::move(out_);
    }
    if (out_.complete) out_.reached = limit_;
    if (fire) out_.next_fire = fire->fire.at;
    return std::move(out_);
  }

 private:
  // Goes on after `t`; the fire before it is what its successor's window begins with.
  void Pass(absl::Time t, absl::Time bound) {
    position_ = t;
    previous_ = fires_.Previous(t + absl::Nanoseconds(1));
    key_.clear();
    if (!previous_ || previous_->fire.at <= bound || !HasKey(previous_->version)) return;
    // A fire that the oldest version given would have had before it was in force began no period.
    if (previous_->fire.at < fires_.version(0).from) return;
    const absl::StatusOr<Period> period =
        PeriodAt(fires_, previous_->fire, previous_->version, std::nullopt);
    if (period.ok()) key_ = period->key;
  }

  bool HasKey(int version) const { return fires_.job(version).job.period != PeriodKind::kFire; }

  void Stop(absl::Status status, absl::Time at) {
    out_.stopped = std::move(status);
    out_.stopped_at = at;
    out_.next_fire = at;
    if (out_.complete) out_.reached = at - kTick;
  }

  absl::Status Take(const DatedFire& dated) {
    const std::optional<absl::Time> before =
        previous_ ? std::optional(previous_->fire.at) : std::nullopt;
    ASSIGN_OR_RETURN(const bool is_new, IsNew(dated, before));
    position_ = dated.fire.at;
    previous_ = dated;
    if (is_new) Add({dated.fire, dated.version, before, std::exchange(apart_, false)});
    if (out_.complete) out_.reached = dated.fire.at;
    return absl::OkStatus();
  }

  // Several fires of one period are triggers of that one period, so only its first counts.
  absl::StatusOr<bool> IsNew(const DatedFire& dated, std::optional<absl::Time> before) {
    const Job& job = fires_.job(dated.version).job;
    const bool key_needed = HasKey(dated.version) || known_.HasRowDue(dated.fire.at);
    const bool day_needed = !started_ && fires_.current().job.backfill.start.has_value();
    if (!key_needed && !day_needed) return true;
    if (SamePeriodAsBefore(dated)) return false;
    ASSIGN_OR_RETURN(Period period, PeriodAt(fires_, dated.fire, dated.version, before));
    const bool repeats = job.period != PeriodKind::kFire && period.key == key_;
    const bool known = known_.Row(period.key) != nullptr;
    key_ = period.key;
    if (day_needed) {
      started_ = period.biz_date >= *fires_.current().job.backfill.start;
      if (!started_) return false;
    }
    if (known) apart_ = true;
    if (repeats || known) return false;
    // After a change of zone or shift a period may come again without being the one just before.
    return fires_.size() == 1 || !HasKey(dated.version) || seen_.insert(period.key).second;
  }

  // The common case of many fires a day, told without making a key.
  bool SamePeriodAsBefore(const DatedFire& dated) const {
    const PeriodKind kind = fires_.job(dated.version).job.period;
    return !key_.empty() && previous_ && previous_->version == dated.version &&
           kind != PeriodKind::kFire && kind != PeriodKind::kHour &&
           fires_.job(dated.version).job.biz_date.unit != BizShift::Unit::kHour &&
           absl::CivilDay(previous_->fire.nominal) == absl::CivilDay(dated.fire.nominal);
  }

  void Add(const NewPeriod& period) {
    if (period.fire.at > input_.now) {
      if (out_.complete) out_.ahead.push_back(period);
    } else if (out_.due.size() < kMostNew) {
      out_.due.push_back(period);
    } else {
      if (out_.complete) out_.reached = out_.due.back().fire.at;
      out_.complete = false;
      ++out_.beyond;
    }
  }

  const PlanInput& input_;
  const Fires& fires_;
  const Known& known_;
  const absl::Time limit_;
  Expected out_;
  absl::Time position_;
  std::optional<DatedFire> previous_;
  std::string key_;  // of the period of `previous_`; empty: none is owed
  bool apart_ = false;
  bool started_ = false;  // backfill.start has been passed
  absl::flat_hash_set<std::string> seen_;
};

}  // namespace

Known::Known(const JobState& state) : spans_(state.spans) {
  for (const PeriodRow& row : state.rows) {
    rows_[row.key.period] = &row;
    dues_[ToMicros(row.due)] = 1;
  }
  std::sort(spans_.begin(), spans_.end(),
            [](const SkipSpan& a, const SkipSpan& b) { return a.from < b.from; });
}

const PeriodRow* Known::Row(absl::string_view period) const {
  const auto found = rows_.find(period);
  return found == rows_.end() ? nullptr : found->second;
}

bool Known::HasRowDue(absl::Time due) const { return dues_.contains(ToMicros(due)); }

std::optional<absl::Time> Known::SpanEnd(absl::Time due) const {
  auto after = std::upper_bound(spans_.begin(), spans_.end(), due,
                                [](absl::Time t, const SkipSpan& span) { return t < span.from; });
  if (after == spans_.begin() || due > (--after)->to) return std::nullopt;
  return after->to;
}

absl::Time BeforeBizDate(const ResolvedJob& job, absl::CivilDay day) {
  return DayStart(day - ForwardDays(job.job.biz_date), job.schedule.zone()) - kTick;
}

absl::StatusOr<Period> PeriodAt(const Fires& fires, const Fire& fire, int version,
                                std::optional<absl::Time> previous) {
  return PeriodOf(fires.job(version).period_rule, fire, previous);
}

absl::Status CalendarEnded(const ResolvedJob& job, const Fire& fire) {
  const std::string until =
      job.calendar->until() ? FormatDay(*job.calendar->until()) : std::string("its end");
  return BadInput(absl::StrCat("calendar ", job.calendar->name(), " of job ", job.job.name),
                  absl::StrCat("covers days until ", until, ", and the job is due on ",
                               FormatDay(absl::CivilDay(fire.nominal))),
                  "extend the calendar and its `until`, and apply the file again");
}

absl::StatusOr<absl::Time> FirstLook(const PlanInput& input, const Fires& fires) {
  const JobState& state = *input.state;
  const absl::Time limit = input.now + input.ahead;
  absl::Time after = IsSetBack(input) ? input.now : state.cursor;
  if (state.gap_from) after = std::min(after, *state.gap_from - kTick);
  // A change within what was planned ahead: look at that stretch again by the new version.
  if (fires.size() > 1) {
    const absl::Time changed = fires.version(fires.size() - 1).from;
    if (changed <= after && after - changed < input.ahead) after = changed - kTick;
  }
  return std::max({after, Bound(input, fires, limit), state.floor});
}

void SetReached(const PlanInput& input, absl::Time reached, PlanWrite& write) {
  const std::optional<absl::Time> gap = input.state->gap_from;
  const bool set_back = IsSetBack(input);
  write.cursor = std::max(input.state->cursor, reached);
  write.gaps_filled = gap.has_value() || set_back;
  write.next_gap.reset();
  if (reached >= write.cursor || !write.gaps_filled) return;
  write.next_gap = reached + kTick;
  if (gap && !set_back) write.next_gap = std::max(*gap, reached + kTick);
}

absl::StatusOr<Expected> Enumerate(const PlanInput& input, const Fires& fires, const Known& known,
                                   absl::Time after) {
  const absl::Time bound =
      std::max(Bound(input, fires, input.now + input.ahead), input.state->floor);
  return Walk(input, fires, known).From(after, bound);
}

}  // namespace matins
