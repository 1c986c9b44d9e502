// Planning against a slow, obviously right model of "On time and missed" (docs/planning.md): random
// schedules, outages, policies, versions, suspensions and fates of runs.
//
// The model keeps every period that was ever expected in one list, in order of due, and judges each
// by the words of docs/planning.md, with no cursor, no span, no bound and no cleverness.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/time.h"
#include "job/words.h"
#include "plan/plan.h"
#include "plan/slow_periods_test_support.h"
#include "plan/world_test_support.h"

namespace matins {
namespace {

struct ModelPeriod {
  std::string key;
  absl::Time due;
  absl::Time newest_fire;  // the newest of its fires by the last look
  Job job;                 // the version in force when it was due
  // "": open and never tried; else DONE, RUNNING, RETRY, FAILED, HELD, or SKIPPED with a reason.
  std::string fate;
  absl::Time failed_at;
  bool seen = false;     // was planned at some look
  bool in_time = false;  // when it was first judged
};

class Model {
 public:
  explicit Model(absl::Time first_sight) : first_sight_(first_sight) {}

  void Change(ResolvedJob job, absl::Time from) { versions_.push_back({from, std::move(job)}); }

  // What one look by a trigger at `now` decides.
  void Look(absl::Time now, bool triggered) {
    Expect(now);
    std::vector<ModelPeriod*> owed;
    for (ModelPeriod& period : periods) {
      if (period.due <= now && IsOpen(period)) owed.push_back(&period);
    }
    for (size_t i = 0; i < owed.size(); ++i) {
      Judge(*owed[i], static_cast<int>(owed.size() - 1 - i), now, triggered);
    }
  }

  ModelPeriod& Of(const std::string& key) {
    for (ModelPeriod& period : periods) {
      if (period.key == key) return period;
    }
    ADD_FAILURE() << key << " is outside the schedule";
    return periods.emplace_back();
  }

  std::vector<ModelPeriod> periods;

 private:
  static bool IsOpen(const ModelPeriod& period) {
    return period.fate != "DONE" && period.fate.rfind("SKIPPED", 0) != 0;
  }

  // What was always expected and what is new, from the very beginning each time.
  void Expect(absl::Time now) {
    std::map<std::string, size_t> index;
    for (size_t i = 0; i < periods.size(); ++i) index[periods[i].key] = i;
    for (const SlowPeriod& slow : SlowPeriods(versions_, first_sight_, now)) {
      newest_fire_ = std::max(newest_fire_, slow.newest_fire);
      const auto found = index.find(slow.key);
      if (found == index.end()) {
        periods.push_back({slow.key, slow.due, slow.newest_fire, versions_[slow.version].job.job});
      } else {
        ModelPeriod& known = periods[found->second];
        known.newest_fire = std::max(known.newest_fire, slow.newest_fire);
      }
    }
    std::stable_sort(periods.begin(), periods.end(),
                     [](const ModelPeriod& a, const ModelPeriod& b) { return a.due < b.due; });
  }

  void Judge(ModelPeriod& period, int newer, absl::Time now, bool triggered) {
    const Job& job = period.job;
    const std::string& fate = period.fate;
    if (fate == "RUNNING" || fate == "RETRY" || fate == "HELD") return;
    const bool failed = fate == "FAILED";
    if (failed && !triggered && newest_fire_ <= period.failed_at) return;
    const bool queued = period.in_time && !failed && job.overlap == Overlap::kQueue;
    const bool missed = now > period.newest_fire + job.start_deadline && !queued;
    if (!std::exchange(period.seen, true)) period.in_time = !missed;
    const absl::Duration age = now - period.due;
    const bool beyond = job.backfill.max_periods && newer >= *job.backfill.max_periods;
    if (missed && age > job.backfill.source_window) {
      period.fate = "SKIPPED unfillable";
    } else if (missed && age > job.backfill.max_age) {
      period.fate = "SKIPPED expired";
    } else if (missed && job.misfire == Misfire::kSkip) {
      period.fate = "SKIPPED missed";
    } else if (missed && job.misfire == Misfire::kLatest && newer > 0) {
      period.fate = "SKIPPED superseded";
    } else if (beyond) {
      period.fate = "SKIPPED cap";
    } else if (failed) {
      period.fate = "RETRY";  // new attempts at this trigger
    }
  }

  absl::Time first_sight_;
  absl::Time newest_fire_ = absl::InfinitePast();
  std::vector<SlowVersion> versions_;
};

class Trial {
 public:
  explicit Trial(uint64_t seed)
      : random_(seed),
        start_(At("2026-03-07T00:00:00Z") + absl::Seconds(Below(3 * 86400))),
        now_(start_),
        world_(RandomJob(), start_),
        model_(start_) {
    world_.ahead = absl::ZeroDuration();  // planning ahead has tests of its own
    model_.Change(job_, start_);
  }

  void Run() {
    for (int step = 0; step < 25 && !::testing::Test::HasFailure(); ++step) {
      Act();
      Advance();
      Look();
      Compare();
    }
  }

 private:
  int Below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  bool OneIn(int n) { return Below(n) == 0; }
  template <typename T>
  T Pick(std::initializer_list<T> choices) {
    return choices.begin()[Below(static_cast<int>(choices.size()))];
  }

  ResolvedJob RandomJob() {
    // The zone and kind stay the same over versions; a change of these has tests by sentence.
    if (zone_.empty()) {
      zone_ = Pick<const char*>({"UTC", "America/New_York", "Asia/Shanghai"});
      kind_ = Pick({PeriodKind::kFire, PeriodKind::kFire, PeriodKind::kHour, PeriodKind::kDay});
      shift_ = Pick<int>({0, -1});
    }
    Job job = JobOf(Pick<const char*>({"*/7 * * * *", "0 * * * *", "30 2 * * *", "15 */3 * * *",
                                       "*/20 1-3 * * *", "0 1,2 * * 1-5",
                                       OneIn(3) ? "* * * * *" : "5 4 * * *"}),
                    zone_);
    job.period = kind_;
    if (kind_ != PeriodKind::kFire) job.biz_date = {shift_, BizShift::Unit::kDay};
    job.misfire = Pick({Misfire::kSkip, Misfire::kLatest, Misfire::kEach});
    job.overlap = Pick({Overlap::kForbid, Overlap::kAllow, Overlap::kQueue});
    job.start_deadline = absl::Seconds(Pick<int>({1, 60, 3600, 30000}));
    job.backfill.max_periods =
        OneIn(4) ? std::nullopt : std::optional<int>(Pick<int>({1, 3, 30, 150}));
    if (OneIn(3)) job.backfill.max_age = absl::Hours(Pick<int>({1, 10, 100}));
    if (OneIn(3)) job.backfill.source_window = absl::Hours(Pick<int>({1, 10, 100}));
    job_ = Resolved(job);
    return job_;
  }

  // The fates of some rows, a deletion, a change, a suspension.
  void Act() {
    std::vector<std::string> open;
    for (const auto& [key, row] : world_.rows) open.push_back(key);
    for (const std::string& key : open) {
      const PeriodRow& row = world_.rows.at(key);
      ModelPeriod& period = model_.Of(key);
      if (row.status == PeriodStatus::kPlanned && OneIn(3)) {
        world_.Run(key, now_);
        period.fate = "RUNNING";
      } else if (row.status == PeriodStatus::kRunning) {
        End(key, period);
      } else if (row.status == PeriodStatus::kDone && OneIn(40)) {
        world_.Delete(key);
        period.fate = "";
        period.seen = period.in_time = false;
      }
    }
    if (OneIn(12)) {
      ResolvedJob job = RandomJob();
      model_.Change(job, now_ + absl::Seconds(1));
      world_.Change(std::move(job), now_ + absl::Seconds(1));
    }
    if (OneIn(8)) world_.state.suspended = !world_.state.suspended;
  }

  void End(const std::string& key, ModelPeriod& period) {
    switch (Below(6)) {
      case 0:
        return;
      case 1:
        world_.Lose(key);
        period.fate = "RETRY";
        return;
      case 2:
        world_.Fail(key, now_, OneIn(3));
        period.fate = world_.rows.at(key).held ? "HELD" : "FAILED";
        period.failed_at = now_;
        return;
      default:
        world_.Done(key, now_);
        period.fate = "DONE";
    }
  }

  void Advance() {
    now_ += absl::Seconds(2 + Below(OneIn(12) ? 400'000 : Pick<int>({50, 4000, 4000, 30'000})));
  }

  void Look() {
    const bool triggered = OneIn(5);
    const PlanWrite write =
        world_.Plan(now_, triggered ? std::optional(Trigger::kReturn) : std::optional<Trigger>());
    if (world_.state.suspended) {
      EXPECT_TRUE(write.intents.empty());
      EXPECT_TRUE(write.spans.empty());
      return;
    }
    model_.Look(now_, triggered);
    const PlanWrite again = world_.Plan(now_);
    EXPECT_TRUE(again.intents.empty()) << "planning again planned " << again.intents.size();
    EXPECT_TRUE(again.spans.empty());
    for (size_t i = 1; i < write.intents.size(); ++i) {
      EXPECT_LE(write.intents[i - 1].due, write.intents[i].due);
    }
  }

  // Each expected period exactly once in a row or a span, each with the model's fate, and nothing
  // else.
  void Compare() {
    if (world_.state.suspended) return;
    size_t rows = 0;
    for (const ModelPeriod& period : model_.periods) {
      int spans = 0;
      std::string told;
      for (const SkipSpan& span : world_.spans) {
        if (span.from <= period.due && period.due <= span.to) {
          ++spans;
          told = absl::StrCat("SKIPPED ", span.reason);
        }
      }
      const auto row = world_.rows.find(period.key);
      const bool has_row = row != world_.rows.end();
      rows += has_row;
      ASSERT_EQ(spans + has_row, 1) << period.key << " at " << FormatInstant(now_);
      if (has_row) told = Fate(row->second);
      const std::string want =
          period.fate.empty() || period.fate == "RETRY" ? "PLANNED" : period.fate;
      ASSERT_EQ(told, want) << period.key << " at " << FormatInstant(now_);
    }
    ASSERT_EQ(rows, world_.rows.size()) << "a row outside the schedule";
    int64_t in_spans = 0;
    for (const SkipSpan& span : world_.spans) {
      EXPECT_GT(span.count, 100);
      in_spans += span.count;
    }
    ASSERT_EQ(in_spans + static_cast<int64_t>(rows), static_cast<int64_t>(model_.periods.size()));
  }

  static std::string Fate(const PeriodRow& row) {
    if (row.held) return "HELD";
    if (row.status != PeriodStatus::kSkipped) return std::string(Word(row.status));
    return absl::StrCat(Word(row.status), " ", row.reason);
  }

  std::mt19937_64 random_;
  std::string zone_;
  PeriodKind kind_ = PeriodKind::kFire;
  int shift_ = 0;
  ResolvedJob job_ = Resolved(JobOf("0 0 * * *"));
  absl::Time start_;
  absl::Time now_;
  World world_;
  Model model_;
};

TEST(PlanModel, AgreesWithTheSlowModel) {
  constexpr uint64_t kSeeds = 120;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Trial(seed).Run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace matins
