// A crowd: many due rows that a node may not run, in front of those that it may.
#include "store/set_aside.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "conformance/kit.h"

namespace matins::conformance {
namespace {

// Three times what START reads where one row is wanted: it sets them all aside.
constexpr int kCrowd = 3 * (kPassedOver + 25);

std::string Named(absl::string_view job, int minutes) {
  return absl::StrCat(job, " m", 1000 + minutes);
}

// `minutes` after T0, so that a whole crowd is due soon.
Intent MinuteIntent(const Job& job, int minutes) {
  Intent intent = DayIntent(job, 0);
  intent.key.period = absl::StrCat("m", 1000 + minutes);
  intent.due = intent.not_before = T0() + absl::Minutes(minutes);
  intent.nominal += minutes * 60;
  intent.window_start = intent.due;
  intent.window_end = intent.due + absl::Minutes(1);
  intent.priority = job.priority;
  intent.tenant = job.tenant;
  return intent;
}

class Aside : public Conformance {
 protected:
  // Of any labels; many run at a time.
  static Job JobFor(absl::string_view name, std::vector<std::string> labels) {
    Job job = PlainJob(name);
    job.overlap = Overlap::kAllow;
    job.lock.scope = LockScope::kPeriod;
    job.nodes = std::move(labels);
    return job;
  }

  void Plan(const Job& job, int first, int count) {
    std::vector<Intent> intents;
    for (int i = first; i < first + count; ++i) intents.push_back(MinuteIntent(job, i));
    const auto written = PlanIntents(store(), job.name, std::move(intents));
    ASSERT_OK(written.status());
    ASSERT_TRUE(*written);
  }

  // A crowd for nodes in the west, and behind it `count` of `own`, all due now; which is answered.
  absl::Time PlanBehindACrowd(int count) {
    const Job absent = JobFor("absent", {"west"}), own = JobFor("own", {});
    EXPECT_TRUE(ApplyJobs(acts(), {absent, own}).ok());
    Plan(absent, 0, kCrowd);
    Plan(own, kCrowd, count);
    const absl::Time now = T0() + absl::Minutes(kCrowd + count);
    world().SetClock(now);
    return now;
  }

  // What one call starts by itself, as "JOB PERIOD".
  std::vector<std::string> StartDue(const NodeId& node, int wanted, bool* more) {
    StartRequest request;
    request.node = node;
    request.nonce = ++nonce_;
    request.also_due = wanted;
    const auto answers = store().Start(request);
    EXPECT_TRUE(answers.ok()) << answers.status();
    std::vector<std::string> started;
    if (!answers.ok()) return started;
    *more = answers->more;
    for (const StartAnswer& answer : answers->rows) {
      if (answer.claim) started.push_back(absl::StrCat(answer.key.job, " ", answer.key.period));
    }
    return started;
  }
  // Until `wanted` have been started, or there are no more.
  std::vector<std::string> StartAll(const NodeId& node, size_t wanted) {
    std::vector<std::string> started;
    bool more = true;
    for (int calls = 0; more && started.size() < wanted && calls < 20; ++calls) {
      for (std::string& one : StartDue(node, static_cast<int>(wanted - started.size()), &more)) {
        started.push_back(std::move(one));
      }
    }
    return started;
  }
  HoldAnswer Hold(const NodeId& node) {
    HoldRequest request;
    request.node = node;
    request.due = false;
    const auto answer = store().Hold(request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? *answer : HoldAnswer();
  }

  const NodeId west_{"west", {"west", "x"}}, east_{"east", {"east"}}, plain_{"plain", {}};
  int64_t nonce_ = 0;
};

TEST_F(Aside, ACrowdForOthersKeepsNobodyWaiting) {
  PlanBehindACrowd(2);
  EXPECT_TRUE(Hold(plain_).due);
  EXPECT_EQ(StartAll(plain_, 5),
            (std::vector<std::string>{Named("own", kCrowd), Named("own", kCrowd + 1)}));
  EXPECT_FALSE(Hold(plain_).due) << "what is left is for others";
  // Who has the labels comes at last, and starts the oldest at once.
  bool more = false;
  EXPECT_EQ(StartDue(west_, 3, &more),
            (std::vector<std::string>{"absent m1000", "absent m1001", "absent m1002"}));
  EXPECT_TRUE(more);
  EXPECT_TRUE(Hold(west_).due);
  EXPECT_EQ(StartAll(west_, 1000).size(), static_cast<size_t>(kCrowd - 3));
  EXPECT_FALSE(Hold(west_).due);
  EXPECT_TRUE(StartAll(west_, 1000).empty());
}

// Both are there, and each is in the other's way.
TEST_F(Aside, TwoNodesWithOtherLabelsFindTheirOwnInOrder) {
  const Job west = JobFor("w", {"west"}), east = JobFor("e", {"east"});
  ASSERT_OK(ApplyJobs(acts(), {west, east}));
  Plan(west, 0, kCrowd);
  Plan(east, 10, kCrowd);
  world().SetClock(T0() + absl::Minutes(kCrowd + 10));
  EXPECT_EQ(StartAll(east_, 2), (std::vector<std::string>{"e m1010", "e m1011"}));
  EXPECT_EQ(StartAll(west_, 2), (std::vector<std::string>{"w m1000", "w m1001"}));
  EXPECT_EQ(StartAll(east_, 2), (std::vector<std::string>{"e m1012", "e m1013"}));
  const std::vector<std::string> rest = StartAll(west_, 1000);
  ASSERT_EQ(rest.size(), static_cast<size_t>(kCrowd - 2));
  EXPECT_EQ(rest.front(), "w m1002");
  EXPECT_EQ(rest.back(), Named("w", kCrowd - 1));
  EXPECT_EQ(StartAll(east_, 1000).size(), static_cast<size_t>(kCrowd - 4));
}

TEST_F(Aside, TenantsAreServedInTurnBehindACrowd) {
  Job large = JobFor("large", {"west"}), small = JobFor("small", {"west"});
  large.tenant = "l";
  small.tenant = "s";
  Job own = JobFor("own", {});
  own.tenant = "o";
  ASSERT_OK(ApplyJobs(acts(), {large, small, own}));
  Plan(large, 0, kCrowd);
  Plan(own, kCrowd, 1);
  world().SetClock(T0() + absl::Minutes(kCrowd + 10));
  EXPECT_EQ(StartAll(plain_, 1), (std::vector<std::string>{Named("own", kCrowd)}));
  // While most of the large tenant's are set aside.
  Plan(small, kCrowd + 1, 3);
  // A call may look for rows from before there were tenants; the next one does not.
  std::vector<std::string> started = StartAll(west_, 8);
  for (std::string& one : StartAll(west_, 8)) started.push_back(std::move(one));
  ASSERT_EQ(started.size(), 16u);
  EXPECT_EQ(std::count_if(started.begin(), started.end(),
                          [](const std::string& s) { return s.starts_with("small"); }),
            3)
      << absl::StrJoin(started, ", ");
  EXPECT_EQ(StartAll(west_, 1000).size(), static_cast<size_t>(kCrowd + 3 - 16));
}

TEST_F(Aside, WhatIsUrgentGoesFirst) {
  Job urgent = JobFor("urgent", {"west"});
  urgent.priority = 5;
  const Job absent = JobFor("absent", {"west"}), own = JobFor("own", {});
  ASSERT_OK(ApplyJobs(acts(), {urgent, absent, own}));
  Plan(absent, 0, kPassedOver / 4);
  Plan(urgent, kPassedOver / 4, kCrowd);
  Plan(own, kCrowd + 60, 1);
  world().SetClock(T0() + absl::Minutes(kCrowd + 61));
  EXPECT_EQ(StartAll(plain_, 1).size(), 1u);
  bool more = false;
  EXPECT_EQ(StartDue(west_, 1, &more), (std::vector<std::string>{"urgent m1050"}));
}

TEST_F(Aside, OrderIsKept) {
  Job strict = StrictJob("strict");
  strict.nodes = {"west"};
  const Job own = JobFor("own", {});
  ASSERT_OK(ApplyJobs(acts(), {strict, own}));
  Plan(strict, 0, kCrowd);
  Plan(own, kCrowd, 1);
  world().SetClock(T0() + absl::Minutes(kCrowd + 1));
  EXPECT_EQ(StartAll(plain_, 1).size(), 1u);
  for (int i = 0; i < 4; ++i) {
    StartRequest request;
    request.node = west_;
    request.nonce = ++nonce_;
    request.also_due = 2;
    ASSERT_OK_AND_ASSIGN(const StartAnswers answers, store().Start(request));
    int granted = 0;
    for (const StartAnswer& answer : answers.rows) {
      if (!answer.claim) continue;
      ++granted;
      EXPECT_EQ(answer.key.period, absl::StrCat("m", 1000 + i));
      ASSERT_OK_AND_ASSIGN(const std::string why, Done(store(), TicketOf(*answer.claim)));
      EXPECT_EQ(why, "");
    }
    EXPECT_EQ(granted, 1);
  }
}

TEST_F(Aside, OtherLabelsByANewVersionCountAtOnce) {
  Job job = JobFor("absent", {"west"});
  const Job own = JobFor("own", {});
  ASSERT_OK(ApplyJobs(acts(), {job, own}));
  Plan(job, 0, kCrowd);
  Plan(own, kCrowd, 1);
  world().SetClock(T0() + absl::Minutes(kCrowd + 1));
  EXPECT_EQ(StartAll(plain_, 1).size(), 1u);
  job.nodes = {"east"};
  job.timeout = absl::Hours(3);
  ASSERT_OK(ApplyJobs(acts(), {job, own}));
  EXPECT_TRUE(StartAll(west_, 1).empty());
  EXPECT_EQ(StartAll(east_, 1000).size(), static_cast<size_t>(kCrowd));
}

TEST_F(Aside, ASuspendedJobsCrowdComesBackWithIt) {
  const Job job = JobFor("a", {}), own = JobFor("own", {});
  ASSERT_OK(ApplyJobs(acts(), {job, own}));
  Plan(job, 0, kCrowd);
  Plan(own, kCrowd, 1);
  world().SetClock(T0() + absl::Minutes(kCrowd + 1));
  ASSERT_OK(acts().Suspend("a", {"cli:test", "maintenance"}));
  EXPECT_EQ(StartAll(plain_, 1), (std::vector<std::string>{Named("own", kCrowd)}));
  EXPECT_TRUE(StartAll(plain_, 1).empty());
  ASSERT_OK(acts().Resume("a", std::nullopt, {"cli:test", "over"}));
  Plan(job, 0, 0);
  EXPECT_EQ(StartAll(plain_, 1000).size(), static_cast<size_t>(kCrowd));
}

// Whoever asks for a row by name has it, wherever it stands.
TEST_F(Aside, ARowThatIsNamedIsStarted) {
  PlanBehindACrowd(1);
  EXPECT_EQ(StartAll(plain_, 1).size(), 1u);
  StartRequest request;
  request.node = west_;
  request.nonce = ++nonce_;
  request.keys = {{"absent", "m1007"}};
  ASSERT_OK_AND_ASSIGN(const StartAnswers answers, store().Start(request));
  ASSERT_EQ(answers.rows.size(), 1u);
  EXPECT_EQ(answers.rows[0].result, StartResult::kStarted);
}

// A node that rests asks for nothing: not while something waits for its labels.
TEST_F(Aside, OnlyWhoHasTheLabelsDoesNotRest) {
  const absl::Time now = PlanBehindACrowd(1);
  const auto idle = [&](const NodeId& node) {
    TickRequest tick;
    tick.node = node;
    tick.boot = now - T0();
    tick.wall = now;
    const auto answer = store().Tick(tick);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() && answer->idle;
  };
  EXPECT_EQ(StartAll(plain_, 1).size(), 1u);
  ASSERT_OK_AND_ASSIGN(const PeriodRow row,
                       RowOf(acts(), {"own", absl::StrCat("m", 1000 + kCrowd)}));
  ASSERT_OK_AND_ASSIGN(const std::string why,
                       Done(store(), {row.key, row.generation, row.fence, row.nonce}));
  ASSERT_EQ(why, "");
  idle(plain_);  // the first after a return
  EXPECT_FALSE(idle(west_));
}

// At the latest after an hour it is looked at again whatever its list says.
TEST_F(Aside, NothingIsSetAsideForEver) {
  const absl::Time now = PlanBehindACrowd(1);
  EXPECT_EQ(StartAll(plain_, 1).size(), 1u);
  world().SetClock(now + 2 * kAsideFor);
  EXPECT_TRUE(Hold(west_).due);
  EXPECT_EQ(StartAll(west_, 1000).size(), static_cast<size_t>(kCrowd));
}

}  // namespace
}  // namespace matins::conformance
