// Hold and START: what is granted, what is refused, and by which word.
#include "base/status.h"
#include "conformance/kit.h"

namespace matins::conformance {
namespace {

class Start : public Conformance {
 protected:
  void Apply(const std::vector<Job>& jobs) { ASSERT_OK(ApplyJobs(acts(), jobs)); }
  void Plan(const Job& job, const std::vector<int>& days) {
    auto written = PlanDays(store(), job, days);
    ASSERT_OK(written.status());
    ASSERT_TRUE(*written);
  }
  StartResult ResultOf(const PeriodKey& key, absl::string_view node = "n1") {
    auto answer = StartOne(store(), key, node);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->result : StartResult::kFrozen;
  }
};

TEST_F(Start, NothingStartsEarly) {
  const Job job = PlainJob("a");
  Apply({job});
  Plan(job, {1});
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kNotDue);
  world().SetClock(DueOf(1) - absl::Microseconds(1));
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kNotDue);
  world().SetClock(DueOf(1));
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kTaken);
  EXPECT_EQ(ResultOf(KeyOf("a", 9)), StartResult::kTaken);
}

TEST_F(Start, WhatIsPastItsDeadlineIsToBeJudged) {
  const Job job = PlainJob("a");
  Apply({job});
  Intent intent = DayIntent(job, 0);
  intent.start_by = At(60);
  ASSERT_OK(PlanIntents(store(), "a", {intent}).status());
  world().SetClock(At(60.000001));
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kMissed);
  intent.kind = Intent::Kind::kJudge;
  intent.start_by = absl::InfiniteFuture();
  intent.backfill = true;
  ASSERT_OK(PlanIntents(store(), "a", {intent}).status());
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  EXPECT_TRUE(claim.backfill);
}

TEST_F(Start, ASuspendedJobIsLeftAndWhatItHeldIsTakenBack) {
  const Job job = PlainJob("a");
  Apply({job});
  Plan(job, {0});
  HoldRequest hold;
  hold.node.name = "n1";
  ASSERT_OK_AND_ASSIGN(const HoldAnswer held, store().Hold(hold));
  ASSERT_EQ(held.rows.size(), 1u);
  ASSERT_OK(acts().Suspend("a", {"cli:test", "maintenance"}));
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kSuspended);
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(row.held_by, "");
  ASSERT_OK(acts().Resume("a", std::nullopt, {"cli:test", "over"}));
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kGap) << "it may be past the cap by now";
  Plan(job, {});
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
}

// Planning that has not got through a backlog of looks keeps back the jobs in it, and no others.
TEST_F(Start, PlanningThatIsBehindKeepsBackTheJobsWhoseLooksAreDue) {
  const std::vector<Job> jobs = {PlainJob("a"), PlainJob("b"), PlainJob("c")};
  Apply(jobs);
  const absl::Time looks[] = {At(3600), At(96), At(95)};
  for (size_t i = 0; i < jobs.size(); ++i) {
    ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), jobs[i].name));
    PlanRequest plan;
    plan.writes.push_back({.job = state.job,
                           .expected_revision = state.revision,
                           .intents = {DayIntent(jobs[i], 0)},
                           .cursor = DueOf(0),
                           .next_look = looks[i]});
    ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(plan));
    ASSERT_TRUE(answers.jobs.at(0).written);
  }
  world().SetClock(At(100));
  StartRequest request;
  request.node.name = "n1";
  request.nonce = 1;
  request.keys = {KeyOf("a", 0), KeyOf("b", 0), KeyOf("c", 0)};
  request.not_after = At(99);
  const auto results = [&] {
    std::vector<StartResult> results;
    const auto answers = store().Start(request);
    EXPECT_TRUE(answers.ok()) << answers.status();
    for (const StartAnswer& answer : answers->rows) results.push_back(answer.result);
    return results;
  };
  const std::vector<StartResult> none(3, StartResult::kGap);
  EXPECT_EQ(results(), none);
  request.looks_ahead = absl::Seconds(5);
  EXPECT_EQ(results(),
            (std::vector{StartResult::kStarted, StartResult::kStarted, StartResult::kGap}));
  request.not_after = At(100);
  EXPECT_EQ(results(),
            (std::vector{StartResult::kTaken, StartResult::kTaken, StartResult::kStarted}));
}

TEST_F(Start, AHeldRowIsItsNodesUntilTwoSecondsAfterItIsDue) {
  const Job job = PlainJob("a");
  Apply({job});
  Plan(job, {0, 1});
  HoldRequest hold;
  hold.node.name = "n1";
  hold.limit = 5;
  ASSERT_OK_AND_ASSIGN(const HoldAnswer held, store().Hold(hold));
  ASSERT_EQ(held.rows.size(), 1u);
  EXPECT_EQ(held.rows[0].key, KeyOf("a", 0));
  EXPECT_EQ(held.next_start, DueOf(1));
  HoldRequest other = hold;
  other.node.name = "n2";
  ASSERT_OK_AND_ASSIGN(const HoldAnswer none, store().Hold(other));
  EXPECT_TRUE(none.rows.empty());
  EXPECT_EQ(ResultOf(KeyOf("a", 0), "n2"), StartResult::kTaken);
  const PeriodKey key = KeyOf("a", 0);
  ASSERT_OK(store().Unhold(other.node, {&key, 1}));
  EXPECT_EQ(ResultOf(KeyOf("a", 0), "n2"), StartResult::kTaken) << "another's hold was ended";
  world().SetClock(At(2));
  EXPECT_EQ(ResultOf(KeyOf("a", 0), "n2"), StartResult::kStarted);
}

// START refuses it as often as it is held: a node that held it again at once would do nothing else.
TEST_F(Start, WhatWasPutOffIsNotHeldBeforeItsNextLook) {
  const Job job = StrictJob("a");
  Apply({job});
  Plan(job, {0, 1});
  world().SetClock(DueOf(1));
  ASSERT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
  StartRequest start;
  start.node.name = "n1";
  start.keys = {KeyOf("a", 1)};
  start.put_off = absl::Seconds(4);
  ASSERT_OK_AND_ASSIGN(const StartAnswers refused, store().Start(start));
  ASSERT_EQ(refused.rows[0].result, StartResult::kBlocked);
  HoldRequest hold;
  hold.node.name = "n1";
  hold.limit = 5;
  ASSERT_OK_AND_ASSIGN(const HoldAnswer none, store().Hold(hold));
  EXPECT_TRUE(none.rows.empty());
  EXPECT_FALSE(none.due);
  EXPECT_EQ(none.next_look, DueOf(1) + absl::Seconds(4));
  EXPECT_EQ(none.next_start, absl::InfiniteFuture());
  world().SetClock(DueOf(1) + absl::Seconds(4));
  ASSERT_OK_AND_ASSIGN(const HoldAnswer held, store().Hold(hold));
  ASSERT_EQ(held.rows.size(), 1u);
  EXPECT_EQ(held.rows[0].key, KeyOf("a", 1));
  EXPECT_EQ(held.next_look, absl::InfiniteFuture());
}

TEST_F(Start, ANodeNeedsAllOfTheJobsLabels) {
  Job job = PlainJob("a");
  job.nodes = {"db", "east"};
  Apply({job});
  Plan(job, {0});
  StartRequest request;
  request.node = {"n1", {"db"}};
  request.nonce = 1;
  request.also_due = 5;
  ASSERT_OK_AND_ASSIGN(StartAnswers answers, store().Start(request));
  EXPECT_TRUE(answers.rows.empty());
  HoldRequest hold;
  hold.node = request.node;
  ASSERT_OK_AND_ASSIGN(const HoldAnswer held, store().Hold(hold));
  EXPECT_TRUE(held.rows.empty());
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kLabels);
  request.node.labels = {"east", "x", "db"};
  ASSERT_OK_AND_ASSIGN(answers, store().Start(request));
  ASSERT_EQ(answers.rows.size(), 1u);
  EXPECT_EQ(answers.rows[0].result, StartResult::kStarted);
}

TEST_F(Start, TheLockIsHeldByTheRun) {
  const Job job = PlainJob("a");
  Apply({job});
  world().SetClock(DueOf(1));
  Plan(job, {0, 1});
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK_AND_ASSIGN(const StartAnswer busy, StartOne(store(), KeyOf("a", 1)));
  EXPECT_EQ(busy.result, StartResult::kBusy);
  EXPECT_NE(busy.blocker.find(KeyOf("a", 0).period), std::string::npos);
  ASSERT_OK_AND_ASSIGN(const std::string why, Done(store(), TicketOf(claim)));
  EXPECT_EQ(why, "");
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted);
}

TEST_F(Start, LimitsAreNeverPassed) {
  Job job = PlainJob("a");
  job.overlap = Overlap::kAllow;
  job.lock.scope = LockScope::kPeriod;
  job.limit = 2;
  Apply({job});
  world().SetClock(DueOf(5));
  Plan(job, {0, 1, 2});
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 2)), StartResult::kFull);

  Job back = PlainJob("b");
  back.overlap = Overlap::kAllow;
  back.lock.scope = LockScope::kPeriod;
  back.backfill.max_parallel = 1;
  Apply({back});
  std::vector<Intent> intents = {DayIntent(back, 0), DayIntent(back, 1), DayIntent(back, 2)};
  intents[0].backfill = intents[1].backfill = true;
  ASSERT_OK(PlanIntents(store(), "b", intents).status());
  EXPECT_EQ(ResultOf(KeyOf("b", 0)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("b", 1)), StartResult::kFull);
  EXPECT_EQ(ResultOf(KeyOf("b", 2)), StartResult::kStarted) << "what is on time is not back-fill";

  StartRequest request;
  request.node.name = "n1";
  request.nonce = 5;
  request.keys = {KeyOf("a", 2), KeyOf("b", 1)};
  request.global_limit = 4;
  ASSERT_OK_AND_ASSIGN(const StartAnswers answers, store().Start(request));
  EXPECT_EQ(answers.rows[1].result, StartResult::kFull);
}

TEST_F(Start, AfterWaitsForTheSameDay) {
  const Job first = PlainJob("first");
  Job second = PlainJob("second");
  second.after = {{"first"}};
  Apply({first, second});
  Plan(second, {0});
  EXPECT_EQ(ResultOf(KeyOf("second", 0)), StartResult::kAfter);
  Plan(first, {0});
  EXPECT_EQ(ResultOf(KeyOf("second", 0)), StartResult::kAfter);
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("first", 0)));
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  // It was put off for five seconds; DONE woke it.
  StartRequest request;
  request.node.name = "n1";
  request.nonce = 5;
  request.also_due = 1;
  ASSERT_OK_AND_ASSIGN(const StartAnswers answers, store().Start(request));
  ASSERT_EQ(answers.rows.size(), 1u);
  EXPECT_EQ(answers.rows[0].key, KeyOf("second", 0));
  EXPECT_EQ(answers.rows[0].result, StartResult::kStarted);
}

TEST_F(Start, AlsoDueTakesTheGreaterPriorityAndThenTheOldest) {
  Job low = PlainJob("low");
  Job high = PlainJob("high");
  high.priority = 5;
  for (Job* job : {&low, &high}) {
    job->overlap = Overlap::kAllow;
    job->lock.scope = LockScope::kPeriod;
  }
  Apply({low, high});
  world().SetClock(DueOf(3));
  Plan(low, {0, 1});
  Plan(high, {2});
  StartRequest request;
  request.node.name = "n1";
  request.nonce = 5;
  request.also_due = 2;
  ASSERT_OK_AND_ASSIGN(const StartAnswers answers, store().Start(request));
  ASSERT_EQ(answers.rows.size(), 2u);
  EXPECT_EQ(answers.rows[0].key, KeyOf("high", 2));
  EXPECT_EQ(answers.rows[1].key, KeyOf("low", 0));
}

TEST_F(Start, ARefusedRowDoesNotStandInTheWay) {
  const Job job = StrictJob("a");
  const Job other = PlainJob("b");
  Apply({job, other});
  world().SetClock(DueOf(50));
  std::vector<int> days;
  for (int n = 0; n < 40; ++n) days.push_back(n);
  Plan(job, days);
  Plan(other, {45});
  StartRequest request;
  request.node.name = "n1";
  request.also_due = 2;
  std::set<PeriodKey> started;
  for (int round = 0; round < 3; ++round) {
    request.nonce = 10 + round;
    ASSERT_OK_AND_ASSIGN(const StartAnswers answers, store().Start(request));
    for (const StartAnswer& answer : answers.rows) {
      if (answer.result == StartResult::kStarted) started.insert(answer.key);
    }
  }
  EXPECT_EQ(started, (std::set<PeriodKey>{KeyOf("a", 0), KeyOf("b", 45)}));
}

TEST_F(Start, ADeletedPeriodOfAnOrderedJobIsAGap) {
  const Job job = StrictJob("a");
  Apply({job});
  world().SetClock(DueOf(5));
  Plan(job, {0, 1});
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  ASSERT_OK(world().DeleteRow(KeyOf("a", 0)));
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kGap);
  Plan(job, {0});
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kBlocked);
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
}

TEST_F(Start, TheClaimSaysAllThatTheRunNeeds) {
  Job job = PlainJob("a");
  job.timeout = absl::Seconds(15);
  job.grace = absl::Seconds(5);
  Apply({job});
  Intent intent = DayIntent(job, 0);
  intent.manual = true;
  intent.params = "{\"k\":\"v\"}";
  ASSERT_OK(PlanIntents(store(), "a", {intent}).status());
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  EXPECT_EQ(claim.biz_date, DayOf(0));
  EXPECT_EQ(claim.window_start, intent.window_start);
  EXPECT_EQ(claim.window_end, intent.window_end);
  EXPECT_EQ(claim.due, intent.due);
  EXPECT_EQ(claim.nominal, intent.nominal);
  EXPECT_EQ(claim.params, intent.params);
  EXPECT_TRUE(claim.manual);
  EXPECT_EQ(claim.version, 1);
  EXPECT_EQ(claim.current_version, 1);
  EXPECT_EQ(claim.claimed_at, At(0));
  EXPECT_EQ(claim.run_until, At(20));
  EXPECT_EQ(claim.lease_until, At(20)) << "a lease never passes the time-out";
}

}  // namespace
}  // namespace matins::conformance
