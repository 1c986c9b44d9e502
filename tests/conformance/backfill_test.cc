// Back-fills that people ask for: their terms are kept by START, over all nodes (I24, I16).
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "conformance/kit.h"

namespace matins::conformance {
namespace {

const Act kAct = {"cli:test", "the case"};

// Nothing but its back-fill keeps its periods apart.
Job WideJob(absl::string_view name) {
  Job job = PlainJob(name);
  job.overlap = Overlap::kAllow;
  job.lock.scope = LockScope::kPeriod;
  return job;
}

class Backfills : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    world().SetClock(DueOf(20));
  }
  BackfillTerms TermsOf(absl::string_view job, std::optional<int> most = std::nullopt) {
    BackfillTerms terms;
    terms.job = std::string(job);
    terms.from = DayOf(0);
    terms.to = DayOf(19);
    terms.reprocess = "failed";
    terms.max_parallel = most;
    terms.zone = "UTC";
    return terms;
  }
  // Opens one of these days of `job`, none of which has a row.
  absl::StatusOr<int64_t> Open(const Job& job, const std::vector<int>& days, BackfillTerms terms,
                               std::vector<PeriodKey> reopen = {}) {
    OpenBackfillRequest request;
    request.terms = std::move(terms);
    ASSIGN_OR_RETURN(const JobState state, ReadState(store(), job.name));
    request.write = {.job = job.name,
                     .expected_revision = state.revision,
                     .cursor = state.cursor,
                     .next_look = DueOf(20)};
    for (const int n : days) {
      Intent intent = DayIntent(job, n);
      intent.manual = intent.backfill = true;
      request.write.intents.push_back(std::move(intent));
    }
    request.reopen = std::move(reopen);
    request.act = kAct;
    return acts().OpenBackfill(request);
  }
  StartResult ResultOf(const PeriodKey& key) {
    const auto answer = StartOne(store(), key, "n1");
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.ok() ? answer->result : StartResult::kFrozen;
  }
  BackfillRow RowOfBackfill(int64_t id) {
    const auto rows = acts().ReadBackfills(id, "");
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() && rows->size() == 1 ? rows->front() : BackfillRow{};
  }
  std::string BlockerOf(const PeriodKey& key) {
    const auto answer = StartOne(store(), key, "n1");
    return answer.ok() ? answer->blocker : std::string(answer.status().message());
  }
};

TEST_F(Backfills, SoManyOfItsPeriodsRunAtATimeAsWereAskedFor) {
  Job job = WideJob("a");
  job.backfill.max_parallel = 1;  // its own number stands in this one's place
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const int64_t id, Open(job, {0, 1, 2, 3}, TermsOf("a", 2)));
  ASSERT_GT(id, 0);
  ASSERT_OK_AND_ASSIGN(const Claim first, Claimed(store(), KeyOf("a", 0)));
  EXPECT_TRUE(first.backfill);
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 2)), StartResult::kBackfill);
  const BackfillRow row = RowOfBackfill(id);
  EXPECT_EQ(row.periods, 4);
  EXPECT_EQ(row.running, 2);
  EXPECT_EQ(row.planned, 2);
  EXPECT_EQ(row.act.who, kAct.who);
  EXPECT_EQ(row.terms.max_parallel, 2);
  ASSERT_OK(Done(store(), TicketOf(first)).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 2)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 3)), StartResult::kBackfill);
  EXPECT_EQ(RowOfBackfill(id).done, 1);
}

TEST_F(Backfills, WithoutANumberTheJobsHolds) {
  Job job = WideJob("a");
  job.backfill.max_parallel = 1;
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(Open(job, {0, 1}, TermsOf("a")).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kFull);
}

TEST_F(Backfills, StartWithinTheirWindowAlone) {
  const Job job = WideJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  BackfillTerms terms = TermsOf("a", 5);
  terms.window = "22:00-02:00";  // the clock stands at 20:00
  ASSERT_OK(Open(job, {0, 1, 2}, terms).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kBackfill);
  EXPECT_NE(BlockerOf(KeyOf("a", 0)).find("22:00-02:00"), std::string::npos);
  // It is put off until the window opens, and no longer.
  HoldRequest hold;
  hold.node.name = "n1";
  ASSERT_OK_AND_ASSIGN(const HoldAnswer held, store().Hold(hold));
  EXPECT_EQ(held.rows.size(), 2u) << "those that were not asked for yet";
  ASSERT_OK(store().Unhold({"n1", {}}, std::vector<PeriodKey>{KeyOf("a", 1), KeyOf("a", 2)}));
  world().SetClock(DueOf(22));
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
  world().SetClock(DueOf(25));
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted) << "01:00 of the next day";
  world().SetClock(DueOf(26));
  EXPECT_EQ(ResultOf(KeyOf("a", 2)), StartResult::kBackfill);
}

TEST_F(Backfills, StopAtTheirFirstFailure) {
  const Job job = WideJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(Open(job, {0, 1}, TermsOf("a", 5)).status());
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  Outcome failed;
  failed.kind = Outcome::Kind::kFailed;
  failed.reason = reason::kExit;
  ASSERT_OK(FinishOne(store(), TicketOf(claim), failed).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kBackfill);
  EXPECT_NE(BlockerOf(KeyOf("a", 1)).find("FAILED"), std::string::npos);
  // What is not of it goes on.
  ASSERT_OK(PlanDays(store(), job, {2}).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 2)), StartResult::kStarted);
  ASSERT_OK(acts().Skip(std::vector<PeriodKey>{KeyOf("a", 0)}, kAct));
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted);
}

TEST_F(Backfills, ArePausedResumedAndCancelled) {
  const Job job = WideJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const int64_t id, Open(job, {0, 1, 2}, TermsOf("a", 5)));
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK(acts().SetBackfill(id, BackfillState::kPaused, {"cli:ann", "the bank asked"}));
  EXPECT_TRUE(absl::IsFailedPrecondition(acts().SetBackfill(id, BackfillState::kPaused, kAct)));
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kBackfill);
  EXPECT_NE(BlockerOf(KeyOf("a", 1)).find("paused by cli:ann"), std::string::npos)
      << BlockerOf(KeyOf("a", 1));
  ASSERT_OK_AND_ASSIGN(const std::string refusal, Done(store(), TicketOf(claim)));
  EXPECT_EQ(refusal, "") << "what runs goes on";
  ASSERT_OK(acts().SetBackfill(id, BackfillState::kActive, kAct));
  // What was put off is looked at again at once.
  StartRequest due;
  due.node.name = "n1";
  due.nonce = 99;
  due.also_due = 1;
  ASSERT_OK_AND_ASSIGN(const StartAnswers answers, store().Start(due));
  ASSERT_EQ(answers.rows.size(), 1u);
  EXPECT_EQ(answers.rows[0].result, StartResult::kStarted);
  ASSERT_OK(acts().SetBackfill(id, BackfillState::kCancelled, {"cli:bob", "not needed"}));
  ASSERT_OK_AND_ASSIGN(const PeriodRow skipped, RowOf(acts(), KeyOf("a", 2)));
  EXPECT_EQ(skipped.status, PeriodStatus::kSkipped);
  EXPECT_EQ(skipped.by, "cli:bob");
  EXPECT_NE(skipped.reason.find("not needed"), std::string::npos) << skipped.reason;
  ASSERT_OK_AND_ASSIGN(const PeriodRow running, RowOf(acts(), KeyOf("a", 1)));
  EXPECT_EQ(running.status, PeriodStatus::kRunning);
  EXPECT_TRUE(absl::IsFailedPrecondition(acts().SetBackfill(id, BackfillState::kActive, kAct)));
  EXPECT_TRUE(absl::IsNotFound(acts().SetBackfill(id + 7, BackfillState::kPaused, kAct)));
  const BackfillRow row = RowOfBackfill(id);
  EXPECT_EQ(row.state, BackfillState::kCancelled);
  EXPECT_EQ(row.changed.who, "cli:bob");
  ASSERT_OK_AND_ASSIGN(const std::vector<EventRow> events, acts().ReadEvents("a", 50));
  std::string kinds;
  for (const EventRow& event : events) {
    if (event.kind != "skip") absl::StrAppend(&kinds, event.kind, " ");
  }
  EXPECT_NE(kinds.find("backfill_cancel backfill_resume backfill_pause backfill "),
            std::string::npos)
      << kinds;
}

TEST_F(Backfills, GoInOrderWhereTheyCascade) {
  const Job a = WideJob("a");
  Job b = WideJob("b");
  b.after = {{"a"}};
  ASSERT_OK(ApplyJobs(acts(), {a, b}));
  std::vector<PeriodKey> done;
  for (const Job& job : {a, b}) {
    ASSERT_OK(PlanDays(store(), job, {0, 1}).status());
    for (int n = 0; n < 2; ++n) {
      ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf(job.name, n)));
      ASSERT_OK(Done(store(), TicketOf(claim)).status());
      done.push_back(KeyOf(job.name, n));
    }
  }
  BackfillTerms terms = TermsOf("a", 5);
  terms.cascade = true;
  ASSERT_OK_AND_ASSIGN(const int64_t id, Open(a, {}, terms, done));
  ASSERT_GT(id, 0);
  EXPECT_EQ(RowOfBackfill(id).planned, 4);
  EXPECT_EQ(ResultOf(KeyOf("b", 0)), StartResult::kAfter);
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kBackfill);
  ASSERT_OK_AND_ASSIGN(const Claim first, Claimed(store(), KeyOf("a", 0)));
  EXPECT_EQ(first.generation, 2);
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kBackfill);
  ASSERT_OK(Done(store(), TicketOf(first)).status());
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("b", 1)), StartResult::kAfter);
  EXPECT_EQ(ResultOf(KeyOf("b", 0)), StartResult::kStarted);
}

TEST_F(Backfills, AreOpenedWholeOrNotAtAll) {
  const Job a = WideJob("a");
  ASSERT_OK(ApplyJobs(acts(), {a}));
  ASSERT_OK(PlanDays(store(), a, {0, 1}).status());
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  ASSERT_OK(Claimed(store(), KeyOf("a", 1)).status());
  // The second runs: neither is opened, and nothing is planned.
  const auto refused = Open(a, {5}, TermsOf("a"), {KeyOf("a", 0), KeyOf("a", 1)});
  EXPECT_TRUE(absl::IsFailedPrecondition(refused.status())) << refused.status();
  ASSERT_OK_AND_ASSIGN(const PeriodRow first, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(first.status, PeriodStatus::kDone);
  EXPECT_EQ(first.generation, 1);
  EXPECT_TRUE(absl::IsNotFound(RowOf(acts(), KeyOf("a", 5)).status()));
  ASSERT_OK_AND_ASSIGN(const std::vector<BackfillRow> none, acts().ReadBackfills(0, "a"));
  EXPECT_TRUE(none.empty());
  // Nor where the job has moved since.
  OpenBackfillRequest stale;
  stale.terms = TermsOf("a");
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  stale.write = {.job = "a",
                 .expected_revision = state.revision - 1,
                 .cursor = state.cursor,
                 .next_look = DueOf(20)};
  stale.reopen = {KeyOf("a", 0)};
  stale.act = kAct;
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().OpenBackfill(stale));
  EXPECT_EQ(id, 0);
  ASSERT_OK_AND_ASSIGN(const PeriodRow still, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(still.generation, 1);
}

TEST_F(Backfills, APeriodThatIsOpenedAgainByItselfBelongsToNoneAnyMore) {
  const Job job = WideJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const int64_t id, Open(job, {0, 1}, TermsOf("a", 5)));
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  ASSERT_OK(acts().SetBackfill(id, BackfillState::kPaused, kAct));
  ASSERT_OK(acts().Reopen(KeyOf("a", 0), "", kAct));
  EXPECT_EQ(ResultOf(KeyOf("a", 0)), StartResult::kStarted);
  EXPECT_EQ(ResultOf(KeyOf("a", 1)), StartResult::kBackfill);
}

TEST_F(Backfills, KeepTheirNumberAmongStartsOfOneInstant) {
  MATINS_NEEDS(Capability::kReopenable);
  Job a = WideJob("a"), b = WideJob("b");
  for (Job* job : {&a, &b}) job->backfill.max_parallel = std::nullopt;
  ASSERT_OK(ApplyJobs(acts(), {a, b}));
  constexpr int kEach = 8, kRounds = 6;
  for (int round = 0; round < kRounds; ++round) {
    // Periods of two jobs in one back-fill: no lock of a job keeps them apart.
    std::vector<PeriodKey> done;
    if (round == 0) {
      for (const Job& job : {a, b}) {
        std::vector<int> days;
        for (int n = 0; n < kEach; ++n) days.push_back(n);
        ASSERT_OK(PlanDays(store(), job, days).status());
      }
    }
    std::vector<PeriodKey> keys;
    for (int n = 0; n < kEach; ++n) {
      keys.push_back(KeyOf("a", n));
      keys.push_back(KeyOf("b", n));
    }
    if (round == 0) ASSERT_OK(acts().Skip(keys, kAct));
    ASSERT_OK_AND_ASSIGN(const int64_t id, Open(a, {}, TermsOf("a", 3), keys));
    ASSERT_GT(id, 0);
    std::barrier together(2);
    std::atomic<int> started = 0;
    const auto node = [&](absl::string_view job, absl::string_view name) {
      auto database = world().OpenAgain();
      ASSERT_OK(database.status());
      auto mine = (*database)->Open();
      ASSERT_OK(mine.status());
      together.arrive_and_wait();
      StartRequest request;
      request.node.name = std::string(name);
      request.nonce = 5000 + round;
      for (int n = 0; n < kEach; ++n) request.keys.push_back(KeyOf(job, n));
      const auto answers = (*mine)->Start(request);
      ASSERT_OK(answers.status());
      for (const StartAnswer& answer : answers->rows) started += answer.claim.has_value();
    };
    std::thread other([&] { node("b", "n2"); });
    node("a", "n1");
    other.join();
    EXPECT_EQ(started, 3) << "round " << round;
    // All end, and are opened by the next round.
    ASSERT_OK_AND_ASSIGN(const std::vector<PeriodRow> rows, acts().ReadRows({}));
    for (const PeriodRow& row : rows) {
      if (row.status != PeriodStatus::kRunning) continue;
      ASSERT_OK(Done(store(), {row.key, row.generation, row.fence, row.nonce}).status());
    }
    ASSERT_OK(acts().SetBackfill(id, BackfillState::kCancelled, kAct));
  }
}

}  // namespace
}  // namespace matins::conformance
