#include "expect/expect.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/time.h"
#include "job/calendar_fires.h"

namespace matins {
namespace {

constexpr absl::Duration kTick = absl::Nanoseconds(1);
// A local time that comes twice, or in a gap, may stand a day from its neighbours'.
constexpr int kSlackDays = 2;
// A first sight further ahead than this was written under a clock that has been set back.
constexpr absl::Duration kClockSlack = absl::Seconds(2);

// Fires of one nominal day are one period there.
bool IsOfDays(const Job& job) {
  return job.period != PeriodKind::kFire && job.period != PeriodKind::kHour &&
         job.biz_date.unit != BizShift::Unit::kHour;
}

// No fire before it can have a biz_date of `day` or later.
absl::Time EarliestFor(const ResolvedJob& job, absl::CivilDay day) {
  return DayStart(day - ForwardDays(job.job.biz_date), job.schedule.zone());
}

class Walk {
 public:
  explicit Walk(const ExpectQuestion& question)
      : question_(question),
        start_day_(question.versions.back().job->job.backfill.start),
        begin_(FirstInstant()) {}

  ExpectedSet Take() && {
    const absl::Span<const DatedVersion> versions = question_.versions;
    for (size_t i = 0; i < versions.size() && !set_.unknown_from; ++i) {
      const absl::Time from = i == 0 ? absl::InfinitePast() : versions[i].from;
      // A clock that was set back between two changes makes the later one begin before the other,
      // whose time is not to come any more.
      absl::Time end = absl::InfiniteFuture();
      for (size_t later = i + 1; later < versions.size(); ++later) {
        end = std::min(end, versions[later].from);
      }
      Version(static_cast<int>(i), std::max(from, begin_), end);
    }
    return std::move(set_);
  }

 private:
  // The first instant whose fire may be owed at all.
  absl::Time FirstInstant() const {
    const ResolvedJob& current = *question_.versions.back().job;
    if (start_day_) return EarliestFor(current, *start_day_);
    if (question_.first_sight > question_.until + kClockSlack) return question_.until;
    // A one-off "now" is a moment old when it is first seen.
    if (current.job.at) return question_.first_sight - current.job.start_deadline;
    return question_.first_sight;
  }

  // The fires of one version in [from, end).
  void Version(int index, absl::Time from, absl::Time end) {
    const ResolvedJob& job = *question_.versions[index].job;
    absl::Time after = std::max(from, EarliestFor(job, question_.from)) - kTick;
    std::optional<absl::CivilDay> day;  // of the fire before, where it settles the period
    while (const std::optional<CalendarFire> next = NextFire(job, after)) {
      const Fire& fire = next->fire;
      if (fire.at >= end || fire.at > question_.until) return;
      after = fire.at;
      if (IsOfDays(job.job)) {
        const absl::CivilDay nominal(fire.nominal);
        if (day == nominal) continue;
        day = nominal;
      }
      if (!next->covered) return Unknown(job, fire);
      absl::StatusOr<Period> period = PeriodOf(job.period_rule, fire, std::nullopt);
      if (!period.ok()) return Unknown(job, fire);
      if (period->biz_date > question_.to + kSlackDays) return;
      Add(*std::move(period), fire.at, index);
    }
  }

  void Add(Period period, absl::Time due, int index) {
    if (start_day_ && !started_) started_ = period.biz_date >= *start_day_;
    if (start_day_ && !started_) return;
    const Job& job = question_.versions[index].job->job;
    if (job.period != PeriodKind::kFire) {
      if (period.key == last_key_) return;
      last_key_ = period.key;
      // After a change a period may come again without being the one just before.
      if (question_.versions.size() > 1 && !seen_.insert(period.key).second) return;
    }
    if (period.biz_date < question_.from || period.biz_date > question_.to) return;
    set_.periods.push_back({std::move(period.key), period.biz_date, due, index});
  }

  void Unknown(const ResolvedJob& job, const Fire& fire) {
    set_.unknown_from = fire.at;
    set_.unknown_why = absl::StrCat("calendar ", job.job.calendar, " does not know ",
                                    FormatDay(absl::CivilDay(fire.nominal)),
                                    "; extend it and its `until`, and apply the file again");
  }

  const ExpectQuestion& question_;
  const std::optional<absl::CivilDay> start_day_;
  const absl::Time begin_;
  bool started_ = false;
  std::string last_key_;
  absl::flat_hash_set<std::string> seen_;
  ExpectedSet set_;
};

}  // namespace

ExpectedSet ExpectPeriods(const ExpectQuestion& question) {
  ExpectQuestion asked = question;
  if (IsMutant(Mutant::kAuditNewest)) asked.versions = asked.versions.last(1);
  ExpectedSet set = Walk(asked).Take();
  for (ExpectedPeriod& period : set.periods) {
    period.version += static_cast<int>(question.versions.size() - asked.versions.size());
  }
  return set;
}

}  // namespace matins
