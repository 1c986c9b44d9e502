// The expected set against the slow model of the planning tests, and against planning itself, over
// random schedules, calendars, changes, outages and suspensions; and, planning crippled, alone.
#include "expect/expect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/time.h"
#include "plan/slow_periods_test_support.h"
#include "plan/world_test_support.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using Dues = std::map<std::string, absl::Time>;  // by key

constexpr absl::CivilDay kLongAgo(2000, 1, 1);
constexpr absl::CivilDay kFarAhead(2100, 1, 1);

Dues DuesOf(const ExpectedSet& set) {
  Dues dues;
  for (const ExpectedPeriod& period : set.periods) dues[period.key] = period.due;
  return dues;
}

std::vector<std::string> Keys(const ExpectedSet& set) {
  std::vector<std::string> keys;
  for (const ExpectedPeriod& period : set.periods) keys.push_back(period.key);
  return keys;
}

ExpectedSet Expect(const std::vector<DatedVersion>& versions, const char* first_sight,
                   const char* until, absl::CivilDay from = kLongAgo,
                   absl::CivilDay to = kFarAhead) {
  return ExpectPeriods({.versions = versions,
                        .first_sight = At(first_sight),
                        .from = from,
                        .to = to,
                        .until = At(until)});
}

Job DailyJob(absl::string_view schedule) {
  Job job = JobOf(schedule, "Asia/Shanghai");
  job.period = PeriodKind::kDay;
  job.biz_date = {-1, BizShift::Unit::kDay};
  return job;
}

TEST(Expect, EachDayBelongsToItsOwnDate) {
  const ResolvedJob job = Resolved(DailyJob("0 1 * * *"));
  const std::vector<DatedVersion> versions = {{1, At("2026-10-01T00:00:00Z"), &job}};
  const ExpectedSet set = Expect(versions, "2026-10-01T00:00:00Z", "2026-10-04T00:00:00Z");
  EXPECT_THAT(Keys(set), ElementsAre("2026-10-01", "2026-10-02", "2026-10-03"));
  EXPECT_EQ(set.periods[0].due, At("2026-10-01T17:00:00Z"));
  EXPECT_FALSE(set.unknown_from.has_value());
}

TEST(Expect, AScheduleThatChangedOnThe12thIsJudgedByTheOldOneBeforeAndTheNewOneAfter) {
  const ResolvedJob daily = Resolved(DailyJob("0 1 * * *"));
  const ResolvedJob mondays = Resolved(DailyJob("0 1 * * 1"));
  const std::vector<DatedVersion> versions = {{1, At("2026-10-01T00:00:00Z"), &daily},
                                              {2, At("2026-10-12T02:00:00Z"), &mondays}};
  const ExpectedSet set =
      Expect(versions, "2026-10-01T00:00:00Z", "2026-10-28T00:00:00Z", absl::CivilDay(2026, 10, 9));
  // The 12th's own fire was at 17:00Z of the 11th, still by the old schedule.
  EXPECT_THAT(Keys(set),
              ElementsAre("2026-10-09", "2026-10-10", "2026-10-11", "2026-10-18", "2026-10-25"));
  EXPECT_EQ(set.periods[2].version, 0);
  EXPECT_EQ(set.periods[3].version, 1);
}

TEST(Expect, AChangeBehindOneOfAClockThatWasAheadTakesItsPlace) {
  const ResolvedJob one = Resolved(JobOf("0 * * * *"));
  const ResolvedJob two = Resolved(JobOf("10 * * * *"));
  const ResolvedJob three = Resolved(JobOf("20 * * * *"));
  const std::vector<DatedVersion> versions = {{1, At("2026-11-29T00:30:00Z"), &one},
                                              {2, At("2026-11-29T05:00:00Z"), &two},
                                              {3, At("2026-11-29T02:00:00Z"), &three}};
  EXPECT_THAT(Keys(Expect(versions, "2026-11-29T00:30:00Z", "2026-11-29T06:00:00Z")),
              ElementsAre("2026-11-29T01:00:00Z", "2026-11-29T02:20:00Z", "2026-11-29T03:20:00Z",
                          "2026-11-29T04:20:00Z", "2026-11-29T05:20:00Z"));
}

TEST(Expect, NothingIsExpectedBeforeFirstSightButWhatBackfillStartAsksFor) {
  Job words = DailyJob("0 1 * * *");
  ResolvedJob job = Resolved(words);
  std::vector<DatedVersion> versions = {{1, At("2026-10-10T00:00:00Z"), &job}};
  EXPECT_THAT(Keys(Expect(versions, "2026-10-10T00:00:00Z", "2026-10-11T18:00:00Z")),
              ElementsAre("2026-10-10", "2026-10-11"));
  words.backfill.start = absl::CivilDay(2026, 10, 8);
  job = Resolved(words);
  EXPECT_THAT(Keys(Expect(versions, "2026-10-10T00:00:00Z", "2026-10-11T18:00:00Z")),
              ElementsAre("2026-10-08", "2026-10-09", "2026-10-10", "2026-10-11"));
}

TEST(Expect, AOneOffIsExpectedThoughItWasSeenAMomentLater) {
  Job words = JobOf("");
  words.at = At("2026-10-10T12:00:00Z");
  const ResolvedJob job = Resolved(words);
  const std::vector<DatedVersion> versions = {{1, At("2026-10-10T12:00:10Z"), &job}};
  EXPECT_THAT(Keys(Expect(versions, "2026-10-10T12:00:10Z", "2026-10-11T00:00:00Z")),
              ElementsAre("2026-10-10T12:00:00Z"));
}

TEST(Expect, DaysLeftOutAreNotExpectedAndWhereACalendarEndsNobodyKnows) {
  Job words = DailyJob("0 1 * * *");
  words.calendar = "cn";
  const ResolvedJob job =
      Resolved(words, "2026-10-01..2026-10-07 off\n", absl::CivilDay(2026, 10, 9));
  const std::vector<DatedVersion> versions = {{1, At("2026-09-29T00:00:00Z"), &job}};
  const ExpectedSet set = Expect(versions, "2026-09-29T00:00:00Z", "2026-10-20T00:00:00Z");
  EXPECT_THAT(Keys(set), ElementsAre("2026-09-29", "2026-10-07", "2026-10-08"));
  ASSERT_TRUE(set.unknown_from.has_value());
  EXPECT_EQ(*set.unknown_from, At("2026-10-09T17:00:00Z"));
  EXPECT_THAT(set.unknown_why, ::testing::HasSubstr("calendar cn does not know 2026-10-10"));
}

TEST(Expect, ManyFiresOfADayAreOnePeriodDueAtTheFirst) {
  const ResolvedJob job = Resolved(DailyJob("*/10 * * * *"));
  const std::vector<DatedVersion> versions = {{1, At("2026-10-01T00:00:00Z"), &job}};
  const ExpectedSet set =
      Expect(versions, "2026-10-01T00:00:00Z", "2026-10-03T00:00:00Z", absl::CivilDay(2026, 10, 1));
  EXPECT_THAT(Keys(set), ElementsAre("2026-10-01", "2026-10-02"));
  EXPECT_EQ(set.periods[0].due, At("2026-10-01T16:00:00Z"));
}

// ---- over random worlds ----

class Trial {
 public:
  Trial(uint64_t seed, bool calendars)
      : random_(seed),
        calendars_(calendars),
        start_(At("2026-03-06T00:00:00Z") + absl::Seconds(Below(3 * 86400))),
        now_(start_),
        world_(RandomJob(), start_) {
    world_.ahead = absl::ZeroDuration();
    slow_.push_back({start_, job_});
  }

  void Run() {
    for (int step = 0; step < 12; ++step) {
      if (Below(5) == 0) Change();
      if (Below(6) == 0) world_.state.suspended = !world_.state.suspended;
      now_ += absl::Seconds(60 + Below(Below(8) == 0 ? 900'000 : 40'000));
      world_.Plan(now_);
    }
    world_.state.suspended = false;
    world_.Plan(now_);
  }

  ExpectedSet Expected(absl::CivilDay from = kLongAgo, absl::CivilDay to = kFarAhead) const {
    std::vector<DatedVersion> versions;
    for (size_t i = 0; i < slow_.size(); ++i) {
      versions.push_back({static_cast<int>(i) + 1, slow_[i].from, &slow_[i].job});
    }
    return ExpectPeriods(
        {.versions = versions, .first_sight = start_, .from = from, .to = to, .until = now_});
  }

  // Expected periods that planning left neither a row nor a span of.
  int Missing() const {
    const ExpectedSet set = Expected();
    return static_cast<int>(
        std::count_if(set.periods.begin(), set.periods.end(), [&](const ExpectedPeriod& period) {
          return !world_.rows.contains(period.key) && !InSpan(period);
        }));
  }

  Dues Slow() const {
    Dues dues;
    for (const SlowPeriod& period : SlowPeriods({slow_.begin(), slow_.end()}, start_, now_)) {
      dues[period.key] = period.due;
    }
    return dues;
  }

  // What planning came to: each expected period in a row or in a span, and nothing else.
  void ComparePlanned(const ExpectedSet& set) const {
    size_t rows = 0;
    int64_t spanned = 0;
    for (const ExpectedPeriod& period : set.periods) {
      const auto row = world_.rows.find(period.key);
      const bool has_row = row != world_.rows.end();
      const bool in_span = InSpan(period);
      ASSERT_NE(has_row, in_span) << period.key;
      if (has_row) {
        ASSERT_EQ(row->second.due, period.due) << period.key;
      }
      rows += has_row;
      spanned += in_span;
    }
    EXPECT_EQ(rows, world_.rows.size()) << "planning has rows that are not expected";
    int64_t counted = 0;
    for (const SkipSpan& span : world_.spans) counted += span.count;
    EXPECT_EQ(spanned, counted);
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  template <typename T>
  T Pick(std::initializer_list<T> choices) {
    return choices.begin()[Below(static_cast<int>(choices.size()))];
  }

  bool InSpan(const ExpectedPeriod& period) const {
    return std::any_of(world_.spans.begin(), world_.spans.end(), [&](const SkipSpan& span) {
      return span.from <= period.due && period.due <= span.to;
    });
  }

  void Change() {
    slow_.push_back({now_ + absl::Seconds(1), RandomJob()});
    world_.Change(job_, now_ + absl::Seconds(1));
  }

  ResolvedJob RandomJob() {
    if (zone_.empty()) {
      zone_ = Pick<const char*>({"UTC", "America/New_York", "Asia/Shanghai"});
      kind_ = Pick({PeriodKind::kFire, PeriodKind::kHour, PeriodKind::kDay, PeriodKind::kWeek,
                    PeriodKind::kMonth});
      shift_ = {Pick<int>({0, -1, 1}), BizShift::Unit::kDay};
    }
    Job job = JobOf(Pick<const char*>({"*/7 * * * *", "0 * * * *", "30 2 * * *", "15 */3 * * *",
                                       "*/20 1-3 * * *", "0 1,2 * * 1-5", "5 4 * * *"}),
                    zone_);
    job.period = kind_;
    if (kind_ != PeriodKind::kFire) job.biz_date = shift_;
    job.misfire = Pick({Misfire::kSkip, Misfire::kLatest, Misfire::kEach});
    job.backfill.max_periods = Pick<int>({1, 30, 200});
    std::string days;
    if (calendars_) {
      job.calendar = "random";
      for (int i = 0; i < 6; ++i) {
        absl::StrAppend(&days, FormatDay(absl::CivilDay(2026, 3, 5) + Below(40)),
                        Below(3) == 0 ? " on\n" : " off\n");
      }
    }
    job_ = Resolved(job, days, absl::CivilDay(2027, 12, 31));
    return job_;
  }

  std::mt19937_64 random_;
  const bool calendars_;
  std::string zone_;
  PeriodKind kind_ = PeriodKind::kFire;
  BizShift shift_;
  ResolvedJob job_ = Resolved(JobOf("0 0 * * *"));
  absl::Time start_;
  absl::Time now_;
  World world_;
  std::vector<SlowVersion> slow_;
};

TEST(ExpectProperty, IsWhatTheSlowModelExpects) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Trial trial(seed, /*calendars=*/false);
    trial.Run();
    ASSERT_EQ(DuesOf(trial.Expected()), trial.Slow()) << "seed " << seed;
  }
}

TEST(ExpectProperty, IsWhatPlanningOwesWithCalendarsToo) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Trial trial(seed, seed % 2 == 0);
    trial.Run();
    trial.ComparePlanned(trial.Expected());
    if (HasFailure()) return;
  }
}

// A stretch of biz_dates gives what the whole gives there: no day of it is lost at an edge.
TEST(ExpectProperty, AStretchOfDatesIsThatStretchOfTheWhole) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Trial trial(seed, seed % 2 == 0);
    trial.Run();
    const ExpectedSet whole = trial.Expected();
    for (int day = 0; day < 40; day += 7) {
      const absl::CivilDay from = absl::CivilDay(2026, 3, 1) + day, to = from + 6;
      Dues want;
      for (const ExpectedPeriod& period : whole.periods) {
        if (period.biz_date >= from && period.biz_date <= to) want[period.key] = period.due;
      }
      ASSERT_EQ(DuesOf(trial.Expected(from, to)), want) << "seed " << seed << " day " << day;
    }
  }
}

#if MATINS_LAB
// I13: planning that forgets silently takes nothing from the expected set.
TEST(ExpectProperty, PlanningThatForgetsChangesNothing) {
  int forgotten = 0;
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    Trial honest(seed, false), silent(seed, false);
    honest.Run();
    SetMutant(Mutant::kSilentSkip);
    silent.Run();
    SetMutant(Mutant::kNone);
    ASSERT_EQ(DuesOf(silent.Expected()), honest.Slow()) << "seed " << seed;
    forgotten += silent.Missing();
  }
  EXPECT_GT(forgotten, 100) << "the crippled planner forgot nothing: the test proves nothing";
}
#endif

}  // namespace
}  // namespace matins
