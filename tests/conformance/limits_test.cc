// Limits of tenants, keys, back-fill and the store (I24).
#include <algorithm>
#include <atomic>
#include <barrier>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "conformance/kit.h"

namespace matins::conformance {
namespace {

const Act kAct = {"cli:test", "the case"};

Job WideJob(absl::string_view name, absl::string_view tenant, absl::string_view key = "") {
  Job job = PlainJob(name);
  job.overlap = Overlap::kAllow;
  job.lock.scope = LockScope::kPeriod;
  job.tenant = std::string(tenant);
  job.limit_key = std::string(key);
  return job;
}

class Limits : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    world().SetClock(DueOf(20));
  }
  void Set(std::vector<LimitRule> rules) {
    ASSERT_OK(acts().SetLimits({std::move(rules), {}, "", kAct}).status());
  }
  void Plan(const Job& job, int days) {
    std::vector<int> list;
    for (int n = 0; n < days; ++n) list.push_back(n);
    ASSERT_OK(PlanDays(store(), job, list).status());
  }
  StartResult ResultOf(const PeriodKey& key) {
    const auto answer = StartOne(store(), key, "n1");
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->result : StartResult::kFrozen;
  }
  std::vector<StartAnswer> AlsoDue(int count) {
    StartRequest request;
    request.node.name = "n1";
    request.nonce = ++nonce_;
    request.also_due = count;
    const auto answers = store().Start(request);
    EXPECT_TRUE(answers.ok()) << answers.status();
    return answers.ok() ? answers->rows : std::vector<StartAnswer>();
  }
  LimitUse UseOf(LimitKind kind, absl::string_view name) {
    const auto view = acts().ReadLimits();
    EXPECT_TRUE(view.ok()) << view.status();
    if (!view.ok()) return {};
    for (const LimitUse& use : view->uses) {
      if (use.kind == kind && use.name == name) return use;
    }
    return {};
  }

 private:
  int64_t nonce_ = 7000;
};

TEST_F(Limits, OfATenantAreNeverPassedAndTouchNobodyElse) {
  const Job a = WideJob("a", "payments"), b = WideJob("b", "payments"), c = WideJob("c", "reports");
  const Job d = WideJob("d", "");
  ASSERT_OK(ApplyJobs(acts(), {a, b, c, d}));
  for (const Job& job : {a, b, c, d}) Plan(job, 3);
  Set({{LimitKind::kTenant, "payments", 2}});
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("b", 0)), StartResult::kStarted);
  ASSERT_OK_AND_ASSIGN(const StartAnswer full, StartOne(store(), KeyOf("a", 1)));
  EXPECT_EQ(full.result, StartResult::kFull);
  EXPECT_NE(full.blocker.find("tenant"), std::string::npos) << full.blocker;
  EXPECT_NE(full.blocker.find("payments"), std::string::npos) << full.blocker;
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(ResultOf(KeyOf("c", n)), StartResult::kStarted);
    EXPECT_EQ(ResultOf(KeyOf("d", n)), StartResult::kStarted);
  }
  // In one call as well.
  EXPECT_EQ(UseOf(LimitKind::kTenant, "payments").taken, 2);
  EXPECT_EQ(UseOf(LimitKind::kTenant, "payments").waiting, 1);
  EXPECT_EQ(UseOf(LimitKind::kTenant, "reports").taken, 3);
  EXPECT_EQ(UseOf(LimitKind::kGlobal, "").taken, 8);
}

TEST_F(Limits, HoldWithinOneCall) {
  const Job a = WideJob("a", "payments", "bank");
  ASSERT_OK(ApplyJobs(acts(), {a}));
  Plan(a, 6);
  Set({{LimitKind::kTenant, "payments", 4}, {LimitKind::kKey, "bank", 3}});
  int started = 0;
  for (const StartAnswer& answer : AlsoDue(6)) started += answer.claim.has_value();
  EXPECT_EQ(started, 3);
}

TEST_F(Limits, OfAKeyCountAllJobsThatSayIt) {
  const Job a = WideJob("a", "x", "bank-1"), b = WideJob("b", "y", "bank-1");
  const Job c = WideJob("c", "x", "bank-2");
  ASSERT_OK(ApplyJobs(acts(), {a, b, c}));
  for (const Job& job : {a, b, c}) Plan(job, 2);
  Set({{LimitKind::kKey, "bank-1", 1}});
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("b", 0)), StartResult::kFull);
  EXPECT_EQ(ResultOf(KeyOf("c", 0)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("c", 1)), StartResult::kStarted) << "no rule speaks of bank-2";
}

TEST_F(Limits, OfAPatternCountEachNameAloneAndANearerRuleGoesBefore) {
  const Job a = WideJob("a", "shop-1"), b = WideJob("b", "shop-2"), c = WideJob("c", "shop-22");
  const Job d = WideJob("d", "other");
  ASSERT_OK(ApplyJobs(acts(), {a, b, c, d}));
  for (const Job& job : {a, b, c, d}) Plan(job, 3);
  Set({{LimitKind::kTenant, "*", 1},
       {LimitKind::kTenant, "shop-*", 2},
       {LimitKind::kTenant, "shop-2", 3}});
  for (const auto& [job, most] :
       std::map<std::string, int>{{"a", 2}, {"b", 3}, {"c", 2}, {"d", 1}}) {
    for (int n = 0; n < 3; ++n) {
      EXPECT_EQ(ResultOf(KeyOf(job, n)), n < most ? StartResult::kStarted : StartResult::kFull)
          << job << n;
    }
  }
}

TEST_F(Limits, OfTheStoreAndItsShareOfBackfill) {
  Job a = WideJob("a", "");
  a.backfill.max_parallel = std::nullopt;
  ASSERT_OK(ApplyJobs(acts(), {a}));
  std::vector<Intent> intents;
  for (int n = 0; n < 8; ++n) {
    intents.push_back(DayIntent(a, n));
    intents.back().backfill = n < 4;
  }
  ASSERT_OK(PlanIntents(store(), "a", intents).status());
  Set({{LimitKind::kGlobal, "", 5}, {LimitKind::kBackfillShare, "", 50}});  // two, rounded down
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 2)), StartResult::kFull);
  for (int n = 4; n < 7; ++n) EXPECT_EQ(ResultOf(KeyOf("a", n)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 7)), StartResult::kFull);
  EXPECT_EQ(UseOf(LimitKind::kBackfillShare, "").taken, 2);
}

TEST_F(Limits, ASlotIsGivenBackOnEachWayOut) {
  Job a = WideJob("a", "t", "k");
  ASSERT_OK(ApplyJobs(acts(), {a}));
  Plan(a, 10);
  Set({{LimitKind::kTenant, "t", 1}, {LimitKind::kKey, "k", 1}});
  int n = 0;
  const auto end = [&](Outcome outcome) {
    const auto claim = Claimed(store(), KeyOf("a", n));
    ASSERT_TRUE(claim.ok()) << claim.status();
    EXPECT_EQ(ResultOf(KeyOf("a", 9)), StartResult::kFull);
    ASSERT_OK_AND_ASSIGN(const std::string why,
                         FinishOne(store(), TicketOf(*claim), std::move(outcome)));
    EXPECT_EQ(why, "");
    ++n;
  };
  for (const auto kind : {Outcome::Kind::kDone, Outcome::Kind::kFailed, Outcome::Kind::kHeld,
                          Outcome::Kind::kReturned, Outcome::Kind::kRetry}) {
    Outcome outcome;
    outcome.kind = kind;
    outcome.backoff = absl::Hours(1);
    end(std::move(outcome));
  }
  ASSERT_OK_AND_ASSIGN(const Claim cancelled, Claimed(store(), KeyOf("a", n)));
  ASSERT_OK(acts().Cancel(cancelled.fence, kAct));
  Outcome told;
  told.kind = Outcome::Kind::kFailed;
  told.reason = reason::kCancelled;
  ASSERT_OK(FinishOne(store(), TicketOf(cancelled), told).status());
  // Lost: the slot goes with the reap.
  ASSERT_OK_AND_ASSIGN(const Claim lost, Claimed(store(), KeyOf("a", n + 1)));
  world().SetClock(DueOf(20) + absl::Seconds(31));
  EXPECT_EQ(ResultOf(KeyOf("a", 9)), StartResult::kFull);
  ASSERT_OK_AND_ASSIGN(const bool reaped,
                       ReapOne(store(), TicketOf(lost), Outcome::Kind::kFailed, reason::kLost));
  EXPECT_TRUE(reaped);
  EXPECT_EQ(ResultOf(KeyOf("a", 9)), StartResult::kStarted);
}

TEST_F(Limits, ADeletedRunsSlotIsItsOwnUntilItsLeaseHasEnded) {
  const Job a = WideJob("a", "t", "k");
  ASSERT_OK(ApplyJobs(acts(), {a}));
  Plan(a, 3);
  Set({{LimitKind::kTenant, "t", 1}});
  ASSERT_OK(Claimed(store(), KeyOf("a", 0)).status());
  ASSERT_OK(world().DeleteRow(KeyOf("a", 0)));
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kFull);
  EXPECT_EQ(UseOf(LimitKind::kTenant, "t").left, 1);
  world().SetClock(DueOf(20) + absl::Seconds(30));
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted);
}

TEST_F(Limits, ABurntRunsSlotIsItsOwnUntilItsLeaseHasEnded) {
  const Job a = WideJob("a", "t", "k");
  ASSERT_OK(ApplyJobs(acts(), {a}));
  Plan(a, 3);
  Set({{LimitKind::kKey, "k", 1}});
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  Outcome outcome;
  outcome.kind = Outcome::Kind::kDoneByJob;
  const FinishRequest request{TicketOf(claim), outcome, "n1"};
  ASSERT_OK(store().Resolve({&request, 1}).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kFull);
  world().SetClock(DueOf(20) + absl::Seconds(30));
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted);
}

TEST_F(Limits, AReplacedRunsSlotIsItsOwnUntilItsTreeIsDead) {
  Job a = PlainJob("a");
  a.overlap = Overlap::kReplace;
  a.tenant = "t";
  const Job b = WideJob("b", "t");
  ASSERT_OK(ApplyJobs(acts(), {a, b}));
  Plan(a, 2);
  Plan(b, 1);
  Set({{LimitKind::kTenant, "t", 1}});
  ASSERT_OK(Claimed(store(), KeyOf("a", 0)).status());
  const PeriodKey newer = KeyOf("a", 1);
  ASSERT_OK_AND_ASSIGN(const std::vector<Ticket> burnt, store().Replace({&newer, 1}));
  ASSERT_EQ(burnt.size(), 1u);
  EXPECT_EQ(ResultOf(KeyOf("b", 0)), StartResult::kFull);
  ASSERT_OK(store().ReportDead(burnt));
  EXPECT_EQ(ResultOf(KeyOf("b", 0)), StartResult::kStarted);
}

TEST_F(Limits, AreChangedWhileRunsAreAlive) {
  const Job a = WideJob("a", "t");
  ASSERT_OK(ApplyJobs(acts(), {a}));
  Plan(a, 6);
  std::vector<Ticket> running;
  for (int n = 0; n < 3; ++n) {
    ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", n)));
    running.push_back(TicketOf(claim));
  }
  // What ran before there was a limit counts too, and goes on.
  Set({{LimitKind::kTenant, "t", 2}});
  EXPECT_EQ(ResultOf(KeyOf("a", 3)), StartResult::kFull);
  ASSERT_OK(Done(store(), running[0]).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 3)), StartResult::kFull);
  ASSERT_OK(Done(store(), running[1]).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 3)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 4)), StartResult::kFull);
  // Whoever waits is looked at by the new one at once.
  Set({{LimitKind::kTenant, "t", 3}});
  const std::vector<StartAnswer> woken = AlsoDue(1);
  ASSERT_EQ(woken.size(), 1u);
  EXPECT_EQ(woken[0].key, KeyOf("a", 4));
  EXPECT_EQ(woken[0].result, StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 5)), StartResult::kFull);
  ASSERT_OK(acts().SetLimits({{}, {{LimitKind::kTenant, "t", 1}}, "", kAct}).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 5)), StartResult::kStarted);
}

TEST_F(Limits, AFreedSlotWakesOneOfThoseThatWaitForIt) {
  const Job a = WideJob("a", "t");
  const Job b = WideJob("b", "t");
  ASSERT_OK(ApplyJobs(acts(), {a, b}));
  Plan(a, 1);
  Plan(b, 2);
  Set({{LimitKind::kTenant, "t", 1}});
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  EXPECT_EQ(ResultOf(KeyOf("b", 0)), StartResult::kFull);
  EXPECT_EQ(ResultOf(KeyOf("b", 1)), StartResult::kFull);
  EXPECT_TRUE(AlsoDue(2).empty()) << "both are put off";
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  const std::vector<StartAnswer> woken = AlsoDue(2);
  ASSERT_EQ(woken.size(), 1u);
  EXPECT_EQ(woken[0].key, KeyOf("b", 0));
  EXPECT_EQ(woken[0].result, StartResult::kStarted);
}

TEST_F(Limits, AFreedSlotGoesPastThoseThatNobodyCanStart) {
  Job far = WideJob("far", "t");
  far.nodes = {"gpu"};
  const Job away = WideJob("away", "t"), near = WideJob("near", "t"), last = WideJob("last", "t");
  const Job holder = WideJob("holder", "t");
  ASSERT_OK(ApplyJobs(acts(), {far, away, near, last, holder}));
  ASSERT_OK(PlanDays(store(), holder, {0}).status());
  ASSERT_OK(PlanDays(store(), far, {1, 2}).status());
  ASSERT_OK(PlanDays(store(), away, {3}).status());
  ASSERT_OK(PlanDays(store(), near, {4}).status());
  ASSERT_OK(PlanDays(store(), last, {5}).status());
  Set({{LimitKind::kTenant, "t", 1}});
  ASSERT_OK_AND_ASSIGN(Claim claim, Claimed(store(), KeyOf("holder", 0)));
  // Whoever has the label was there, and has left.
  const NodeId gpu = {"n2", {"gpu"}}, plain = {"n1", {}};
  for (const NodeId& node : {gpu, plain}) {
    TickRequest tick;
    tick.node = node;
    ASSERT_OK(store().Tick(tick).status());
  }
  for (const int n : {1, 2}) {
    StartRequest request;
    request.node = gpu;
    request.nonce = 77 + n;
    request.keys = {KeyOf("far", n)};
    request.put_off = absl::Seconds(5);
    ASSERT_OK_AND_ASSIGN(const StartAnswers answers, store().Start(request));
    ASSERT_EQ(answers.rows.at(0).result, StartResult::kFull);
  }
  EXPECT_EQ(ResultOf(KeyOf("away", 3)), StartResult::kFull);
  EXPECT_EQ(ResultOf(KeyOf("near", 4)), StartResult::kFull);
  EXPECT_EQ(ResultOf(KeyOf("last", 5)), StartResult::kFull);
  ASSERT_OK(store().Leave(gpu));
  ASSERT_OK(acts().Suspend("away", kAct));
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  std::vector<StartAnswer> woken = AlsoDue(5);
  ASSERT_EQ(woken.size(), 1u);
  EXPECT_EQ(woken[0].key, KeyOf("near", 4)) << "the oldest that can start";
  ASSERT_TRUE(woken[0].claim.has_value());
  // Who comes back is the oldest again.
  TickRequest tick;
  tick.node = gpu;
  ASSERT_OK(store().Tick(tick).status());
  ASSERT_OK(Done(store(), TicketOf(*woken[0].claim)).status());
  EXPECT_TRUE(AlsoDue(5).empty());
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("far", 1)));
  EXPECT_EQ(row.status, PeriodStatus::kPlanned);
  StartRequest request;
  request.node = gpu;
  request.nonce = 99;
  request.also_due = 5;
  ASSERT_OK_AND_ASSIGN(const StartAnswers back, store().Start(request));
  ASSERT_EQ(back.rows.size(), 1u);
  EXPECT_EQ(back.rows[0].key, KeyOf("far", 1));
}

// The same of a lock: who may run does not stand behind who may not.
TEST_F(Limits, AFreedLockGoesPastThoseThatNobodyCanStart) {
  const auto locked = [](absl::string_view name) {
    Job job = WideJob(name, "");
    job.lock.scope = LockScope::kKey;
    job.lock.key = "ledger";
    return job;
  };
  Job far = locked("far");
  far.nodes = {"gpu"};
  const Job away = locked("away"), near = locked("near"), holder = locked("holder");
  ASSERT_OK(ApplyJobs(acts(), {far, away, near, holder}));
  ASSERT_OK(PlanDays(store(), holder, {0}).status());
  ASSERT_OK(PlanDays(store(), far, {1}).status());
  ASSERT_OK(PlanDays(store(), away, {2}).status());
  ASSERT_OK(PlanDays(store(), near, {3}).status());
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("holder", 0)));
  const NodeId gpu = {"n2", {"gpu"}}, plain = {"n1", {}};
  for (const NodeId& node : {gpu, plain}) {
    TickRequest tick;
    tick.node = node;
    ASSERT_OK(store().Tick(tick).status());
  }
  StartRequest request;
  request.node = gpu;
  request.nonce = 77;
  request.keys = {KeyOf("far", 1), KeyOf("away", 2), KeyOf("near", 3)};
  request.put_off = absl::Seconds(5);
  ASSERT_OK_AND_ASSIGN(const StartAnswers answers, store().Start(request));
  for (const StartAnswer& answer : answers.rows) EXPECT_EQ(answer.result, StartResult::kBusy);
  ASSERT_OK(store().Leave(gpu));
  ASSERT_OK(acts().Suspend("away", kAct));
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  const std::vector<StartAnswer> woken = AlsoDue(5);
  ASSERT_EQ(woken.size(), 1u) << "the oldest that can start is not put off any more";
  EXPECT_EQ(woken[0].key, KeyOf("near", 3));
  ASSERT_TRUE(woken[0].claim.has_value());
}

TEST_F(Limits, AFilesWordHoldsUntilTheFileSaysSomethingElse) {
  const auto file = [&](std::vector<LimitRule> rules) {
    return acts().SetLimits({std::move(rules), {}, "jobs.yaml", kAct});
  };
  ASSERT_OK_AND_ASSIGN(const bool first,
                       file({{LimitKind::kGlobal, "", 9}, {LimitKind::kTenant, "t", 2}}));
  EXPECT_TRUE(first);
  Set({{LimitKind::kTenant, "t", 5}, {LimitKind::kTenant, "u", 1}});
  ASSERT_OK_AND_ASSIGN(const bool again,
                       file({{LimitKind::kGlobal, "", 9}, {LimitKind::kTenant, "t", 2}}));
  EXPECT_FALSE(again) << "a person has changed it since";
  ASSERT_OK_AND_ASSIGN(const LimitsView view, acts().ReadLimits());
  ASSERT_EQ(view.rules.size(), 3u);
  EXPECT_EQ(view.rules[1].rule, (LimitRule{LimitKind::kTenant, "t", 5}));
  EXPECT_EQ(view.rules[1].source, "");
  EXPECT_EQ(view.rules[0].source, "jobs.yaml");
  ASSERT_OK_AND_ASSIGN(const bool other, file({{LimitKind::kTenant, "t", 3}}));
  EXPECT_TRUE(other);
  ASSERT_OK_AND_ASSIGN(const LimitsView after, acts().ReadLimits());
  ASSERT_EQ(after.rules.size(), 2u) << "global was the file's, and is in it no more";
  EXPECT_EQ(after.rules[0].rule, (LimitRule{LimitKind::kTenant, "t", 3}));
  EXPECT_EQ(after.rules[1].rule, (LimitRule{LimitKind::kTenant, "u", 1}));
  ASSERT_OK_AND_ASSIGN(const std::vector<EventRow> events, acts().ReadEvents("", 10));
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].kind, "limits");
  EXPECT_EQ(events[0].who, kAct.who);
  EXPECT_NE(events[0].detail.find("tenant/t 3"), std::string::npos) << events[0].detail;
}

TEST_F(Limits, AShareNeedsAGlobalLimit) {
  const auto refused = acts().SetLimits({{{LimitKind::kBackfillShare, "", 50}}, {}, "", kAct});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  Set({{LimitKind::kGlobal, "", 4}, {LimitKind::kBackfillShare, "", 50}});
  const auto cleared = acts().SetLimits({{}, {{LimitKind::kGlobal, "", 1}}, "", kAct});
  EXPECT_TRUE(absl::IsFailedPrecondition(cleared.status())) << cleared.status();
  ASSERT_OK_AND_ASSIGN(const LimitsView view, acts().ReadLimits());
  EXPECT_EQ(view.rules.size(), 2u);
}

// ---- turns ----

class Turns : public Limits {
 protected:
  // Plans `count` further periods, all due by now.
  void Queue(const Job& job, int count) {
    std::vector<Intent> intents;
    for (int n = 0; n < count; ++n) {
      intents.push_back(DayIntent(job, 0));
      intents.back().key.period = absl::StrCat("p", 10'000 + queued_++);
      intents.back().due = intents.back().not_before = DueOf(0) + absl::Milliseconds(queued_);
    }
    ASSERT_OK(PlanIntents(store(), job.name, std::move(intents)).status());
  }
  // Starts one run after the other, and ends each; the jobs in their order.
  std::vector<std::string> Serve(int count) {
    std::vector<std::string> jobs;
    for (int n = 0; n < count; ++n) {
      for (const StartAnswer& answer : AlsoDue(1)) {
        if (!answer.claim) continue;
        jobs.push_back(answer.key.job);
        EXPECT_TRUE(Done(store(), TicketOf(*answer.claim)).ok());
      }
    }
    return jobs;
  }

 private:
  int queued_ = 0;
};

int Count(const std::vector<std::string>& jobs, absl::string_view name) {
  return static_cast<int>(std::count(jobs.begin(), jobs.end(), name));
}

TEST_F(Turns, ABacklogDelaysAnotherTenantBySlotAtMost) {
  const Job big = WideJob("big", "big"), small = WideJob("small", "small");
  const Job none = WideJob("none", "");
  ASSERT_OK(ApplyJobs(acts(), {big, small, none}));
  // The model looks at each row each time.
  Queue(big, TheBackend().name() == "model" ? 400 : 10'000);
  EXPECT_EQ(Count(Serve(5), "big"), 5);
  for (int round = 0; round < 3; ++round) {
    Queue(small, 1);
    Queue(none, 1);
    const std::vector<std::string> served = Serve(3);
    EXPECT_EQ(Count(served, "small"), 1) << round;
    EXPECT_EQ(Count(served, "none"), 1) << round;
  }
  // Two backlogs take turns.
  Queue(small, 20);
  const std::vector<std::string> served = Serve(20);
  EXPECT_GE(Count(served, "small"), 9);
  EXPECT_GE(Count(served, "big"), 9);
}

TEST_F(Turns, ATenantIsNotHeldToWhatItUsedWhileNobodyElseWaited) {
  const Job big = WideJob("big", "big"), late = WideJob("late", "late");
  ASSERT_OK(ApplyJobs(acts(), {big, late}));
  Queue(big, 60);
  EXPECT_EQ(Count(Serve(50), "big"), 50);
  Queue(late, 100);
  Queue(big, 1);
  const std::vector<std::string> served = Serve(24);
  EXPECT_GE(Count(served, "big"), 10);
  EXPECT_GE(Count(served, "late"), 10);
}

TEST_F(Turns, WhatWasPlannedBeforeThereWereTenantsIsServedToo) {
  const Job old = WideJob("old", ""), young = WideJob("young", "young");
  ASSERT_OK(ApplyJobs(acts(), {old, young}));
  Queue(old, 3);
  Queue(young, 100);
  ASSERT_OK(store().Purge(1000).status());
  EXPECT_EQ(Count(Serve(8), "old"), 3);
}

// Periods that a person opens again stand behind those that wait, in turn, whatever turn they once
// had.
TEST_F(Turns, WhatIsOpenedAgainWaitsForItsTurn) {
  const Job big = WideJob("big", "big"), small = WideJob("small", "small");
  ASSERT_OK(ApplyJobs(acts(), {big, small}));
  Queue(big, 40);
  EXPECT_EQ(Count(Serve(40), "big"), 40);
  Queue(small, 30);
  EXPECT_EQ(Count(Serve(5), "small"), 5);
  RowFilter filter;
  filter.job = "big";
  ASSERT_OK_AND_ASSIGN(const std::vector<PeriodRow> done, acts().ReadRows(filter));
  ASSERT_EQ(done.size(), 40u);
  // Some at once, as a back-fill does it; others one by one.
  OpenBackfillRequest request;
  request.terms.job = "big";
  request.terms.reprocess = "all";
  request.terms.max_parallel = 100;
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "big"));
  request.write.job = "big";
  request.write.expected_revision = state.revision;
  request.write.cursor = state.cursor;
  request.write.next_look = absl::InfiniteFuture();
  request.act = {"cli:alice", "again"};
  for (int i = 0; i < 20; ++i) request.reopen.push_back(done[i].key);
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().OpenBackfill(request));
  ASSERT_GT(id, 0);
  for (int i = 20; i < 40; ++i) ASSERT_OK(acts().Reopen(done[i].key, "", {"cli:alice", "again"}));
  const std::vector<std::string> served = Serve(20);
  EXPECT_GE(Count(served, "small"), 9);
  EXPECT_GE(Count(served, "big"), 9);
}

// ---- under contention ----

constexpr int kClaimers = 4;
constexpr int kPeriods = 60;

// What is alive between a START's answer and the sending of its end, of one tenant or key: never
// more than the store counts.
class LiveCount {
 public:
  void Begin() {
    const int alive = ++alive_;
    int most = most_;
    while (alive > most && !most_.compare_exchange_weak(most, alive)) {
    }
  }
  void End() { --alive_; }
  int most() const { return most_; }

 private:
  std::atomic<int> alive_{0}, most_{0};
};

struct Race {
  World& world;
  std::map<std::string, LiveCount> tenants, keys;
  std::atomic<int> done{0};
  int wanted = 0;
};

absl::Status Claimer(Race& race, const std::vector<Job>& jobs, int number) {
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, race.world.database().Open());
  std::map<std::string, const Job*> by_name;
  for (const Job& job : jobs) by_name[job.name] = &job;
  int64_t nonce = 100'000 * (number + 1);
  while (race.done < race.wanted) {
    StartRequest request;
    request.node.name = absl::StrCat("n", number);
    request.nonce = ++nonce;
    request.also_due = 3;
    request.put_off = absl::ZeroDuration();
    ASSIGN_OR_RETURN(const StartAnswers answers, store->Start(request));
    std::vector<FinishRequest> ends;
    for (const StartAnswer& answer : answers.rows) {
      if (!answer.claim) continue;
      const Job& job = *by_name[answer.key.job];
      race.tenants.at(job.tenant).Begin();
      race.keys.at(job.limit_key).Begin();
      ends.push_back({TicketOf(*answer.claim), {}, request.node.name});
    }
    for (const FinishRequest& end : ends) {
      const Job& job = *by_name[end.ticket.key.job];
      race.tenants.at(job.tenant).End();
      race.keys.at(job.limit_key).End();
    }
    ASSIGN_OR_RETURN(const std::vector<Refusal> refusals, store->Finish(ends));
    for (const Refusal& refusal : refusals) {
      if (!refusal.accepted()) return absl::InternalError(refusal.why);
    }
    race.done += static_cast<int>(ends.size());
  }
  return absl::OkStatus();
}

TEST_F(Limits, AreExactUnderContention) {
  const std::vector<Job> jobs = {WideJob("a", "t", "k1"), WideJob("b", "t", "k2"),
                                 WideJob("c", "u", "k1"), WideJob("d", "u", "k2")};
  ASSERT_OK(ApplyJobs(acts(), jobs));
  Race race{world(), {}, {}};
  for (const Job& job : jobs) {
    race.tenants[job.tenant];
    race.keys[job.limit_key];
    std::vector<Intent> intents;
    for (int n = 0; n < kPeriods; ++n) {
      intents.push_back(DayIntent(job, 0));
      intents.back().key.period = absl::StrCat("p", 100 + n);
    }
    ASSERT_OK(PlanIntents(store(), job.name, std::move(intents)).status());
    race.wanted += kPeriods;
  }
  Set({{LimitKind::kTenant, "t", 2}, {LimitKind::kTenant, "u", 3}, {LimitKind::kKey, "*", 2}});
  std::vector<absl::Status> statuses(kClaimers);
  std::vector<std::thread> claimers;
  for (int i = 0; i < kClaimers; ++i) {
    claimers.emplace_back([&, i] { statuses[i] = Claimer(race, jobs, i); });
  }
  for (std::thread& claimer : claimers) claimer.join();
  for (const absl::Status& status : statuses) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(race.done, race.wanted);
  EXPECT_LE(race.tenants["t"].most(), 2);
  EXPECT_LE(race.tenants["u"].most(), 3);
  EXPECT_LE(race.keys["k1"].most(), 2);
  EXPECT_LE(race.keys["k2"].most(), 2);
  EXPECT_GE(race.tenants["t"].most(), 1);
}

// Nothing ends between the STARTs: what each grants, the others have to have counted.
TEST_F(Limits, AreExactAmongStartsOfOneInstant) {
  Set({{LimitKind::kTenant, "t", 2}});
  // A job each: none is in another's way but by the limit.
  std::vector<Job> jobs;
  std::vector<std::unique_ptr<Store>> stores;
  for (int i = 0; i < kClaimers; ++i) {
    jobs.push_back(WideJob(absl::StrCat("job", i), "t"));
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<Store> opened, world().database().Open());
    stores.push_back(std::move(opened));
  }
  ASSERT_OK(ApplyJobs(acts(), jobs));
  for (int round = 0; round < 20; ++round) {
    const auto key = [&](int i, int n) {
      return PeriodKey{jobs[i].name, absl::StrCat("r", round, "p", n)};
    };
    for (int i = 0; i < kClaimers; ++i) {
      std::vector<Intent> intents;
      for (int n = 0; n < 5; ++n) {
        intents.push_back(DayIntent(jobs[i], 0));
        intents.back().key = key(i, n);
      }
      ASSERT_OK(PlanIntents(store(), jobs[i].name, std::move(intents)).status());
    }
    std::barrier together(kClaimers);
    std::vector<absl::StatusOr<StartAnswers>> answers(kClaimers);
    std::vector<std::thread> claimers;
    for (int i = 0; i < kClaimers; ++i) {
      claimers.emplace_back([&, i] {
        StartRequest request;
        request.node.name = absl::StrCat("n", i);
        request.nonce = 1000 * (round + 1) + i;
        for (int n = 0; n < 5; ++n) request.keys.push_back(key(i, n));
        together.arrive_and_wait();
        answers[i] = stores[i]->Start(request);
      });
    }
    for (std::thread& claimer : claimers) claimer.join();
    std::vector<FinishRequest> ends;
    for (int i = 0; i < kClaimers; ++i) {
      ASSERT_OK(answers[i].status());
      for (const StartAnswer& answer : answers[i]->rows) {
        if (answer.claim) ends.push_back({TicketOf(*answer.claim), {}, absl::StrCat("n", i)});
      }
    }
    ASSERT_EQ(ends.size(), 2u) << "in round " << round;
    ASSERT_OK(store().Finish(ends).status());
  }
}

}  // namespace
}  // namespace matins::conformance
