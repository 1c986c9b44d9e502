// While it runs, how it ends, and when it is lost.
#include "base/status.h"
#include "conformance/kit.h"
#include "gmock/gmock.h"

namespace matins::conformance {
namespace {

using ::testing::HasSubstr;

class Run : public Conformance {
 protected:
  // A job with one period that runs.
  Claim Running(Job job, int day = 0) {
    EXPECT_TRUE(ApplyJobs(acts(), {job}).ok());
    EXPECT_TRUE(PlanDays(store(), job, {day}).ok());
    auto claim = Claimed(store(), KeyOf(job.name, day));
    EXPECT_TRUE(claim.ok()) << claim.status();
    return claim.value_or(Claim{});
  }
  PeriodRow Row(const PeriodKey& key) {
    auto row = RowOf(acts(), key);
    EXPECT_TRUE(row.ok()) << row.status();
    return row.value_or(PeriodRow{});
  }
  std::string End(const Claim& claim, Outcome outcome) {
    auto why = FinishOne(store(), TicketOf(claim), std::move(outcome));
    EXPECT_TRUE(why.ok()) << why.status();
    return why.value_or("error");
  }
  RunRow LastRun(const std::string& job) {
    RunFilter filter;
    filter.job = job;
    auto runs = acts().ReadRuns(filter);
    EXPECT_TRUE(runs.ok()) << runs.status();
    return runs.ok() && !runs->empty() ? runs->front() : RunRow{};
  }
};

// Above 2^53, where a database that adds as a double rounds; by a connection that took no fence, as
// that of a node's finish lane.
TEST_F(Run, AFenceStaysExactHoweverHighAndWhoeverEndsTheRun) {
  ASSERT_OK(acts().BumpEpoch({"cli:test", "failover"}).status());
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0, 1, 2}).status());
  world().SetClock(DueOf(2));
  for (const int day : {0, 1, 2}) {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> other, world().database().Open());
    ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", day)));
    EXPECT_GT(claim.fence, int64_t{1} << 53);
    ASSERT_OK_AND_ASSIGN(const std::string why, Done(*other, TicketOf(claim)));
    EXPECT_EQ(why, "");
    EXPECT_EQ(Row(claim.key).fence, claim.fence);
    EXPECT_EQ(LastRun("a").fence, claim.fence);
  }
}

TEST_F(Run, ARetryComesBackAfterItsBackoffAndUsesUpAnAttempt) {
  const Claim claim = Running(PlainJob("a"));
  Outcome outcome;
  outcome.kind = Outcome::Kind::kRetry;
  outcome.reason = reason::kExit;
  outcome.message = "exit code 3";
  outcome.exit_code = 3;
  outcome.backoff = absl::Seconds(40);
  EXPECT_EQ(End(claim, outcome), "");
  PeriodRow row = Row(claim.key);
  EXPECT_EQ(StateText(row), "PLANNED(exit)");
  EXPECT_EQ(row.attempts, 1);
  EXPECT_EQ(row.not_before, At(40));
  world().SetClock(At(39));
  ASSERT_OK_AND_ASSIGN(const StartAnswer early, StartOne(store(), claim.key));
  EXPECT_EQ(early.result, StartResult::kNotDue);
  world().SetClock(At(40));
  ASSERT_OK_AND_ASSIGN(const Claim second, Claimed(store(), claim.key));
  EXPECT_EQ(second.attempt, 2);
  EXPECT_EQ(second.attempt_total, 2);
  const RunRow run = [&] {
    RunFilter filter;
    filter.fence = claim.fence;
    return acts().ReadRuns(filter).value().at(0);
  }();
  EXPECT_EQ(run.status, "RETRY");
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_EQ(run.message, "exit code 3");
}

TEST_F(Run, AFailedPeriodGetsNewAttemptsAtTheNextTriggerInTheSameGeneration) {
  const Job job = PlainJob("a");
  const Claim claim = Running(job);
  Outcome outcome;
  outcome.kind = Outcome::Kind::kFailed;
  outcome.reason = reason::kTimeout;
  EXPECT_EQ(End(claim, outcome), "");
  EXPECT_EQ(StateText(Row(claim.key)), "FAILED(timeout)");
  Intent again = DayIntent(job, 0);
  again.kind = Intent::Kind::kReattempt;
  ASSERT_OK(PlanIntents(store(), "a", {again}).status());
  const PeriodRow row = Row(claim.key);
  EXPECT_EQ(StateText(row), "PLANNED");
  EXPECT_EQ(row.attempts, 0);
  EXPECT_EQ(row.attempts_total, 1);
  EXPECT_EQ(row.generation, 1);
}

TEST_F(Run, AHeldPeriodStaysUntilAPersonActs) {
  const Job job = PlainJob("a");
  const Claim claim = Running(job);
  Outcome outcome;
  outcome.kind = Outcome::Kind::kHeld;
  outcome.reason = reason::kHeld;
  EXPECT_EQ(End(claim, outcome), "");
  Intent again = DayIntent(job, 0);
  again.kind = Intent::Kind::kReattempt;
  ASSERT_OK(PlanIntents(store(), "a", {again}).status());
  EXPECT_EQ(StateText(Row(claim.key)), "FAILED(held) held");
  ASSERT_OK(acts().Reopen(claim.key, "", {"cli:alice", "looked at it"}));
  const PeriodRow row = Row(claim.key);
  EXPECT_EQ(StateText(row), "PLANNED");
  EXPECT_EQ(row.generation, 2);
}

TEST_F(Run, WhatIsGivenBackUsesUpNothing) {
  const Claim claim = Running(PlainJob("a"));
  Outcome outcome;
  outcome.kind = Outcome::Kind::kReturned;
  outcome.reason = reason::kHandedOver;
  EXPECT_EQ(End(claim, outcome), "");
  const PeriodRow row = Row(claim.key);
  EXPECT_EQ(row.status, PeriodStatus::kPlanned);
  EXPECT_EQ(row.attempts, 0);
  EXPECT_EQ(row.losses, 0);
  EXPECT_GT(row.fence, claim.fence);
  EXPECT_EQ(LastRun("a").status, "RETURNED");
  ASSERT_OK_AND_ASSIGN(const Claim next, Claimed(store(), claim.key, "n2"));
  EXPECT_EQ(next.attempt, 1);
}

TEST_F(Run, WhatADeadNodesGuardGivesBackIsALoss) {
  const Claim claim = Running(PlainJob("a"));
  Outcome outcome;
  outcome.kind = Outcome::Kind::kReturned;
  outcome.reason = reason::kLost;
  EXPECT_EQ(End(claim, outcome), "");
  const PeriodRow row = Row(claim.key);
  EXPECT_EQ(StateText(row), "PLANNED(lost)");
  EXPECT_EQ(row.losses, 1);
  EXPECT_EQ(row.attempts, 0);
  EXPECT_GT(row.fence, claim.fence);
  EXPECT_EQ(LastRun("a").status, "LOST");
}

TEST_F(Run, ALostAttemptIsNoFailureAndIsRecorded) {
  const Claim claim = Running(PlainJob("a"));
  world().SetClock(At(31));
  ASSERT_OK_AND_ASSIGN(const bool reaped, ReapOne(store(), TicketOf(claim)));
  EXPECT_TRUE(reaped);
  const PeriodRow row = Row(claim.key);
  EXPECT_EQ(StateText(row), "PLANNED(lost)");
  EXPECT_EQ(row.losses, 1);
  EXPECT_EQ(row.attempts, 0);
  const RunRow run = LastRun("a");
  EXPECT_EQ(run.status, "LOST");
  EXPECT_EQ(run.fence, claim.fence);
  EXPECT_EQ(run.node, "n1");
}

TEST_F(Run, TheAttemptsRowTellsItsWholeLife) {
  Claim claim = Running(PlainJob("a"));
  world().SetClock(At(4));
  const CheckpointRequest checkpoint{TicketOf(claim), 1, "x"};
  ASSERT_OK(store().Checkpoint({&checkpoint, 1}).status());
  world().SetClock(At(9));
  Outcome outcome;
  outcome.started_at = At(1);
  outcome.result = "{\"rows\":5}";
  outcome.output_head = std::string("a\0b", 3);
  outcome.output_tail = "\xff";
  outcome.output_bytes = 100;
  outcome.figures = {{"differences", 3.5}};
  EXPECT_EQ(End(claim, outcome), "");
  const RunRow run = LastRun("a");
  EXPECT_EQ(run.status, "DONE");
  EXPECT_EQ(run.due, At(0));
  EXPECT_EQ(run.planned_at, At(0));
  EXPECT_EQ(run.claimed_at, At(0));
  EXPECT_EQ(run.started_at, At(1));
  EXPECT_EQ(run.checkpointed_at, At(4));
  EXPECT_EQ(run.finished_at, At(9));
  EXPECT_EQ(run.result, "{\"rows\":5}");
  EXPECT_EQ(run.output_bytes, 100);
  ASSERT_OK_AND_ASSIGN(const OutputRow output, acts().ReadOutput(claim.fence));
  EXPECT_EQ(output.head, std::string("a\0b", 3));
  EXPECT_EQ(output.tail, "\xff");
  EXPECT_FALSE(output.running);
  ASSERT_OK_AND_ASSIGN(const std::vector<JobRow> jobs, acts().ReadJobs("a"));
  EXPECT_EQ(jobs.at(0).last_success, At(9));
  EXPECT_EQ(jobs.at(0).last_result, "DONE");
  EXPECT_EQ(jobs.at(0).worst_duration, absl::Seconds(9));
}

TEST_F(Run, LiveOutputIsTheOwnersAlone) {
  const Claim claim = Running(PlainJob("a"));
  ASSERT_OK(store().PutOutput(TicketOf(claim), "head", "tail", 8));
  Ticket wrong = TicketOf(claim);
  ++wrong.nonce;
  ASSERT_OK(store().PutOutput(wrong, "evil", "", 4));
  ASSERT_OK_AND_ASSIGN(const OutputRow output, acts().ReadOutput(claim.fence));
  EXPECT_EQ(output.head, "head");
  EXPECT_TRUE(output.running);
}

TEST_F(Run, ACancelIsSeenByTheNextHeartbeat) {
  const Claim claim = Running(PlainJob("a"));
  ASSERT_OK(acts().Cancel(claim.fence, {"cli:alice", "wrong day"}));
  ASSERT_OK_AND_ASSIGN(const ExtendAnswer answer,
                       ExtendOne(store(), TicketOf(claim), absl::Seconds(30)));
  EXPECT_TRUE(answer.refusal.accepted());
  EXPECT_TRUE(answer.cancel_asked);
  EXPECT_EQ(answer.cancel_why, "wrong day");
  Outcome outcome;
  outcome.kind = Outcome::Kind::kFailed;
  outcome.reason = reason::kCancelled;
  EXPECT_EQ(End(claim, outcome), "");
  EXPECT_EQ(LastRun("a").status, "CANCELLED");
  EXPECT_EQ(acts().Cancel(claim.fence, {"cli:alice", ""}).code(), absl::StatusCode::kNotFound);
}

// Its node went, or drained, before a heartbeat could tell it: nobody starts the period again.
TEST_F(Run, ACancelThatNoHeartbeatSawIsKeptAllTheSame) {
  const auto cancelled = [this](const std::string& job) {
    const Claim claim = Running(PlainJob(job));
    EXPECT_TRUE(acts().Cancel(claim.fence, {"cli:alice", "wrong day"}).ok());
    return claim;
  };
  const Claim returned = cancelled("a");
  Outcome outcome;
  outcome.kind = Outcome::Kind::kReturned;
  outcome.reason = reason::kHandedOver;
  EXPECT_EQ(End(returned, outcome), "");
  EXPECT_EQ(LastRun("a").status, "RETURNED");
  const Claim failed = cancelled("b");
  outcome.kind = Outcome::Kind::kRetry;
  outcome.reason = reason::kExit;
  EXPECT_EQ(End(failed, outcome), "");
  const Claim done = cancelled("c");
  EXPECT_EQ(End(done, Outcome()), "");
  const Claim unknown = cancelled("d");
  const FinishRequest request{TicketOf(unknown), Outcome(), "n1"};
  world().SetClock(At(31));
  ASSERT_OK(store().Resolve({&request, 1}).status());
  EXPECT_EQ(StateText(Row(returned.key)), "FAILED(cancelled)");
  EXPECT_EQ(StateText(Row(failed.key)), "FAILED(cancelled)");
  EXPECT_EQ(StateText(Row(done.key)), "DONE");
  EXPECT_EQ(StateText(Row(unknown.key)), "FAILED(cancelled)");
  EXPECT_NE(Row(returned.key).finished_at, absl::InfinitePast());
}

TEST_F(Run, ACancelledRunThatIsLostIsNotTriedAgain) {
  const Claim claim = Running(PlainJob("a"));
  ASSERT_OK(acts().Cancel(claim.fence, {"cli:alice", "wrong day"}));
  world().SetClock(At(31));
  ASSERT_OK_AND_ASSIGN(const bool reaped, ReapOne(store(), TicketOf(claim)));
  EXPECT_TRUE(reaped);
  EXPECT_EQ(StateText(Row(claim.key)), "FAILED(cancelled)");
  EXPECT_EQ(LastRun("a").status, "LOST");
}

TEST_F(Run, ABatchIsAnsweredOneByOne) {
  const Claim a = Running(PlainJob("a"));
  const Claim b = Running(PlainJob("b"));
  Ticket wrong = TicketOf(a);
  ++wrong.fence;
  const std::vector<FinishRequest> requests = {{wrong, {}, "n1"}, {TicketOf(b), {}, "n1"}};
  ASSERT_OK_AND_ASSIGN(const std::vector<Refusal> answers, store().Finish(requests));
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].why, "fence");
  EXPECT_EQ(answers[1].why, "");
  EXPECT_EQ(StateText(Row(a.key)), "RUNNING");
  EXPECT_EQ(StateText(Row(b.key)), "DONE");
}

TEST_F(Run, TheJobsOwnCommitIsNeededWhereTheJobCommits) {
  const Claim claim = Running(PlainJob("a"));
  Outcome outcome;
  outcome.kind = Outcome::Kind::kDoneByJob;
  EXPECT_EQ(End(claim, outcome), "no_commit");
  EXPECT_EQ(StateText(Row(claim.key)), "RUNNING");
}

// As its own transaction does it, under its fence; the node that beats for it is no zombie then.
TEST_F(Run, ABeatAfterTheJobsOwnCommitIsToldThatItIsDone) {
  Job job = PlainJob("a");
  job.commit = CommitBy::kJob;
  const Claim by_job = Running(job);
  const Claim by_node = Running(PlainJob("b"));
  EXPECT_EQ(End(by_job, {}), "");
  EXPECT_EQ(End(by_node, {}), "");
  ASSERT_OK_AND_ASSIGN(ExtendAnswer beat, ExtendOne(store(), TicketOf(by_job), absl::Seconds(30)));
  EXPECT_EQ(beat.refusal.why, "done");
  const CheckpointRequest late{TicketOf(by_job), 1, ""};
  ASSERT_OK_AND_ASSIGN(const std::vector<Refusal> checkpoint, store().Checkpoint({&late, 1}));
  EXPECT_EQ(checkpoint[0].why, "done");
  ASSERT_OK_AND_ASSIGN(beat, ExtendOne(store(), TicketOf(by_node), absl::Seconds(30)));
  EXPECT_EQ(beat.refusal.why, "fence");
}

TEST_F(Run, ACheckpointThatIsTooLargeIsRefusedWithTheLimit) {
  const Claim claim = Running(PlainJob("a"));
  const CheckpointRequest request{TicketOf(claim), 1, std::string(64 * 1024 + 1, 'x')};
  const absl::Status status = store().Checkpoint({&request, 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("65536"));
}

class Replace : public Run {};

TEST_F(Replace, TheOldRunIsBurntAndItsTreeIsWaitedFor) {
  Job job = PlainJob("a");
  job.overlap = Overlap::kReplace;
  const Claim old = Running(job);
  world().SetClock(DueOf(0) + absl::Seconds(20));
  Intent next = DayIntent(job, 1);
  next.due = next.not_before = At(20);
  ASSERT_OK(PlanIntents(store(), "a", {next}).status());
  ASSERT_OK_AND_ASSIGN(const std::vector<Ticket> burnt, store().Replace({&next.key, 1}));
  ASSERT_EQ(burnt.size(), 1u);
  EXPECT_EQ(burnt[0].fence, old.fence);
  EXPECT_EQ(StateText(Row(old.key)), "SKIPPED(replaced)");
  EXPECT_EQ(LastRun("a").status, "REPLACED");
  EXPECT_EQ(End(old, {}), "fence");
  ASSERT_OK_AND_ASSIGN(StartAnswer start, StartOne(store(), next.key));
  EXPECT_EQ(start.result, StartResult::kBusy);
  world().SetClock(At(39.9));  // the lease's end and the grace
  ASSERT_OK_AND_ASSIGN(start, StartOne(store(), next.key));
  EXPECT_EQ(start.result, StartResult::kBusy);
  world().SetClock(At(40));
  ASSERT_OK_AND_ASSIGN(start, StartOne(store(), next.key));
  EXPECT_EQ(start.result, StartResult::kStarted);
}

TEST_F(Replace, ADeadTreeFreesTheLockAtOnce) {
  Job job = PlainJob("a");
  job.overlap = Overlap::kReplace;
  Running(job);
  world().SetClock(At(20));
  Intent next = DayIntent(job, 1);
  next.due = next.not_before = At(20);
  ASSERT_OK(PlanIntents(store(), "a", {next}).status());
  ASSERT_OK_AND_ASSIGN(const std::vector<Ticket> burnt, store().Replace({&next.key, 1}));
  ASSERT_OK_AND_ASSIGN(StartAnswer start, StartOne(store(), next.key));
  EXPECT_EQ(start.result, StartResult::kBusy);
  ASSERT_OK(store().ReportDead(burnt));
  ASSERT_OK_AND_ASSIGN(start, StartOne(store(), next.key));
  EXPECT_EQ(start.result, StartResult::kStarted);
}

TEST_F(Replace, OnlyWhereTheJobSaysReplace) {
  const Job job = PlainJob("a");
  const Claim claim = Running(job);
  world().SetClock(At(20));
  Intent next = DayIntent(job, 1);
  next.due = next.not_before = At(20);
  ASSERT_OK(PlanIntents(store(), "a", {next}).status());
  ASSERT_OK_AND_ASSIGN(const std::vector<Ticket> burnt, store().Replace({&next.key, 1}));
  EXPECT_TRUE(burnt.empty());
  EXPECT_EQ(StateText(Row(claim.key)), "RUNNING");
}

}  // namespace
}  // namespace matins::conformance
