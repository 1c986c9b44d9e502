// The store's clock: never back, steps noticed, frozen and settled (I8); and nodes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "conformance/kit.h"
#include "gmock/gmock.h"
#include "store/rules.h"

namespace matins::conformance {
namespace {

using ::testing::HasSubstr;

class Clock : public Conformance {
 protected:
  // `boot` goes with the store's clock unless it is said otherwise.
  TickAnswer TickAt(double seconds, double boot, const std::string& node = "n1",
                    double asking = 0) {
    world().SetClock(At(seconds));
    TickRequest request;
    request.node.name = node;
    request.boot = absl::Seconds(1000 + boot);
    request.asking = absl::Seconds(asking);
    request.wall = At(seconds + 7);
    auto answer = store().Tick(request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or(TickAnswer{});
  }
  TickAnswer TickAt(double seconds) { return TickAt(seconds, seconds); }
};

TEST_F(Clock, NeverGoesBackAndASmallStepIsAbsorbed) {
  TickAt(100);
  const TickAnswer answer = TickAt(98.5);
  EXPECT_FALSE(answer.frozen);
  EXPECT_EQ(answer.now, At(100));
}

// Whoever deletes a row writes the event by a clock of its own: coarser than the store's, or read
// before it waited for the row.
TEST_F(Clock, ADeletionIsToldOfNoEarlierThanTheRowsLastChange) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  world().SetClock(absl::FromCivil(absl::CivilDay(2100, 1, 1), absl::UTCTimeZone()));
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK(world().DeleteRow(KeyOf("a", 0)));
  ASSERT_OK_AND_ASSIGN(const std::vector<EventRow> events, acts().ReadEvents("a", 10));
  const auto reopened = std::find_if(
      events.begin(), events.end(), [](const EventRow& event) { return event.kind == "reopened"; });
  ASSERT_NE(reopened, events.end());
  EXPECT_EQ(reopened->at, claim.claimed_at);
}

TEST_F(Clock, ANodeThatStoodStillSaysSoAndItIsKept) {
  TickRequest request;
  request.node.name = "n1";
  request.wall = At(0);
  request.stood_still = absl::Milliseconds(1999);
  ASSERT_OK(store().Tick(request).status());
  request.stood_still = absl::Milliseconds(4200);
  ASSERT_OK(store().Tick(request).status());
  ASSERT_OK_AND_ASSIGN(std::vector<EventRow> events, acts().ReadEvents("", 10));
  std::erase_if(events, [](const EventRow& event) { return event.kind != "stood_still"; });
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].who, "node:n1");
  EXPECT_EQ(events[0].detail, "{\"ms\":4200}");
}

TEST_F(Clock, AStepBackFreezesAtOnceAndRevivesNothing) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0, 1}).status());
  TickAt(0);
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  TickAt(40);
  world().SetClock(At(10));  // the lease would be alive again
  ASSERT_OK_AND_ASSIGN(const ExtendAnswer extend,
                       ExtendOne(store(), TicketOf(claim), absl::Seconds(30)));
  EXPECT_EQ(extend.refusal.why, "lease");
  ASSERT_OK_AND_ASSIGN(const bool reaped, ReapOne(store(), TicketOf(claim)));
  EXPECT_FALSE(reaped) << "reclaim is frozen";
  ASSERT_OK_AND_ASSIGN(const std::vector<StaleRun> stale, store().ReadStale(10));
  EXPECT_TRUE(stale.empty());
  ASSERT_OK_AND_ASSIGN(const StartAnswer start, StartOne(store(), KeyOf("a", 1)));
  EXPECT_EQ(start.result, StartResult::kFrozen);
  ASSERT_OK_AND_ASSIGN(const bool written, PlanDays(store(), job, {2}));
  EXPECT_FALSE(written) << "planning is frozen";
  const TickAnswer answer = TickAt(11, 41);
  EXPECT_TRUE(answer.frozen);
  EXPECT_THAT(answer.frozen_why, HasSubstr("back"));
  ASSERT_OK_AND_ASSIGN(const StoreStatus status, acts().ReadStatus());
  EXPECT_TRUE(status.frozen);
}

// What is new would be judged by rules that this program does not know.
TEST_F(Clock, ASchemaOfANewerProgramStopsWhatIsNewAndLetsWhatRunsEnd) {
  MATINS_NEEDS(Capability::kSql);
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0, 1, 2}).status());
  EXPECT_EQ(TickAt(7200).schema, kSchemaVersion);
  ASSERT_OK_AND_ASSIGN(const Claim ends, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK_AND_ASSIGN(const std::string why, Done(store(), TicketOf(ends)));
  EXPECT_EQ(why, "");
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 1)));
  const char* name = TheBackend().name() == "mariadb" ? "name" : "\"key\"";
  ASSERT_OK(world().Sql(absl::StrCat("UPDATE matins_meta SET value = '", kSchemaVersion + 1,
                                     "' WHERE ", name, " = 'schema'")));
  EXPECT_EQ(TickAt(7210).schema, kSchemaVersion + 1);
  ASSERT_OK_AND_ASSIGN(const ExtendAnswer extend,
                       ExtendOne(store(), TicketOf(claim), absl::Seconds(30)));
  EXPECT_EQ(extend.refusal.why, "");
  ReadDueRequest look;
  look.by_node = true;
  ASSERT_OK_AND_ASSIGN(const DueJobs due, store().ReadDue(look));
  EXPECT_TRUE(due.frozen) << "a node plans nothing";
  ASSERT_OK_AND_ASSIGN(const StartAnswer start, StartOne(store(), KeyOf("a", 2)));
  EXPECT_EQ(start.result, StartResult::kFrozen);
  ASSERT_OK_AND_ASSIGN(const std::string done, Done(store(), TicketOf(claim)));
  EXPECT_EQ(done, "");
}

TEST_F(Clock, ASchemaOfANewerProgramLeavesDeadRunsToThatOne) {
  MATINS_NEEDS(Capability::kSql);
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  TickAt(0);
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  const char* name = TheBackend().name() == "mariadb" ? "name" : "\"key\"";
  ASSERT_OK(world().Sql(absl::StrCat("UPDATE matins_meta SET value = '", kSchemaVersion + 1,
                                     "' WHERE ", name, " = 'schema'")));
  TickAt(100);
  ASSERT_OK_AND_ASSIGN(const std::vector<StaleRun> stale, store().ReadStale(10));
  EXPECT_TRUE(stale.empty());
  ASSERT_OK_AND_ASSIGN(const bool reaped, ReapOne(store(), TicketOf(claim)));
  EXPECT_FALSE(reaped);
}

TEST_F(Clock, ASteadyClockSettlesByItselfAndBurnsWhatWasAlive) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  world().SetClock(At(10'000));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  TickAt(10'000);
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  EXPECT_TRUE(TickAt(5'000, 10'001).frozen);
  EXPECT_TRUE(TickAt(5'299, 10'300).frozen);
  EXPECT_TRUE(TickAt(5'100, 10'301).frozen) << "stepped again: steady from anew";
  EXPECT_TRUE(TickAt(5'301, 10'502).frozen);
  const TickAnswer settled = TickAt(5'400, 10'601);
  EXPECT_FALSE(settled.frozen);
  EXPECT_EQ(settled.now, At(5'400));
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(StateText(row), "PLANNED(lost)");
  EXPECT_GT(row.fence, claim.fence);
  ASSERT_OK_AND_ASSIGN(const std::string why, Done(store(), TicketOf(claim)));
  EXPECT_EQ(why, "fence");
  ASSERT_OK_AND_ASSIGN(const Claim next, Claimed(store(), KeyOf("a", 0)));
  EXPECT_GT(next.fence, row.fence);
}

TEST_F(Clock, APersonMayAcceptItAtOnce) {
  TickAt(10'000);
  EXPECT_TRUE(TickAt(9'000, 10'001).frozen);
  ASSERT_OK(acts().AcceptClock({"cli:alice", "the old time was wrong"}));
  const TickAnswer answer = TickAt(9'001, 10'002);
  EXPECT_FALSE(answer.frozen);
  EXPECT_EQ(answer.now, At(9'001));
  ASSERT_OK_AND_ASSIGN(const std::vector<EventRow> events, acts().ReadEvents("", 10));
  ASSERT_FALSE(events.empty());
  EXPECT_THAT(events,
              testing::Contains(testing::AllOf(testing::Field(&EventRow::kind, "clock"),
                                               testing::Field(&EventRow::who, "cli:alice"))));
}

TEST_F(Clock, AStepForwardIsOneOnlyWhereTheBootClockDoesNotExplainIt) {
  TickAt(0);
  EXPECT_FALSE(TickAt(50'000, 50'000).frozen) << "the machine slept";
  EXPECT_FALSE(TickAt(53'000, 50'001).frozen) << "less than an hour";
  EXPECT_TRUE(TickAt(60'000, 50'002).frozen);
}

TEST_F(Clock, TheTimeThatANodeWasStoppedExplainsNoStepAfterIt) {
  TickAt(0);
  TickAt(0, 0, "n2");
  EXPECT_FALSE(TickAt(7'200, 7'200, "n2").frozen);
  EXPECT_TRUE(TickAt(16'200, 7'201).frozen) << "n1 was stopped meanwhile; it sees 9000 s too many";
}

TEST_F(Clock, ANewNodeAfterALongNightIsNoStep) {
  TickAt(0);
  ASSERT_OK(store().Leave({"n1", {}}));
  const TickAnswer answer = TickAt(90'000, 5, "n2");
  EXPECT_FALSE(answer.frozen);
  EXPECT_TRUE(answer.returned);
}

TEST_F(Clock, AJumpForwardIsFrozenToNodesUntilATickHasJudgedIt) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0, 1}).status());
  TickAt(0);
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  world().SetClock(At(90'000));
  ASSERT_OK_AND_ASSIGN(const std::vector<StaleRun> stale, store().ReadStale(10));
  EXPECT_TRUE(stale.empty()) << "its lease lives, by the right clock";
  ASSERT_OK_AND_ASSIGN(const bool reaped, ReapOne(store(), TicketOf(claim)));
  EXPECT_FALSE(reaped);
  ASSERT_OK_AND_ASSIGN(const StartAnswer start, StartOne(store(), KeyOf("a", 1)));
  EXPECT_EQ(start.result, StartResult::kFrozen);
  HoldRequest hold;
  hold.node.name = "n1";
  ASSERT_OK_AND_ASSIGN(const HoldAnswer held, store().Hold(hold));
  EXPECT_TRUE(held.rows.empty());
  ReadDueRequest look;
  look.by_node = true;
  ASSERT_OK_AND_ASSIGN(const DueJobs due, store().ReadDue(look));
  EXPECT_TRUE(due.frozen);
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  PlanRequest plan;
  plan.hold_by.name = "n1";
  plan.writes.emplace_back().job = "a";
  plan.writes[0].expected_revision = state.revision;
  ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(plan));
  EXPECT_FALSE(answers.jobs[0].written);
  EXPECT_TRUE(TickAt(90'000, 1).frozen) << "a step: the boot clock moved by a second";
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(StateText(row), "RUNNING");
}

TEST_F(Clock, AJumpThatTheBootClockExplainsIsOverWithTheNextTick) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  TickAt(0);
  world().SetClock(At(90'000));  // the machine slept
  ASSERT_OK_AND_ASSIGN(const StartAnswer start, StartOne(store(), KeyOf("a", 0)));
  EXPECT_EQ(start.result, StartResult::kFrozen);
  EXPECT_FALSE(TickAt(90'000).frozen);
  ASSERT_OK(Claimed(store(), KeyOf("a", 0)).status());
}

TEST_F(Clock, APersonMayComeWhenNoNodeWasAliveForDays) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  TickAt(0);
  world().SetClock(At(900'000));
  ASSERT_OK_AND_ASSIGN(const DueJobs due, store().ReadDue({}));
  EXPECT_FALSE(due.frozen);
  ASSERT_OK_AND_ASSIGN(const bool written, PlanDays(store(), job, {0}));
  EXPECT_TRUE(written);
  ASSERT_OK_AND_ASSIGN(const StoreStatus status, acts().ReadStatus());
  EXPECT_FALSE(status.frozen);
}

TEST_F(Clock, ANewNodeLeavesAJumpToOneThatWasThereBefore) {
  TickAt(0);
  const TickAnswer newcomer = TickAt(90'000, 1, "n2");
  EXPECT_TRUE(newcomer.frozen);
  EXPECT_THAT(newcomer.frozen_why, HasSubstr("waiting"));
  EXPECT_FALSE(newcomer.returned);
  ReadDueRequest look;
  look.by_node = true;
  ASSERT_OK_AND_ASSIGN(const DueJobs due, store().ReadDue(look));
  EXPECT_TRUE(due.frozen) << "the mark stands where it was";
  const TickAnswer witness = TickAt(90'001, 2);
  EXPECT_TRUE(witness.frozen);
  EXPECT_THAT(witness.frozen_why, HasSubstr("forward"));
}

TEST_F(Clock, ANewNodeWaitsForOneThatDiedOnlySoLong) {
  TickAt(0);
  EXPECT_TRUE(TickAt(90'000, 1, "n2").frozen);
  EXPECT_TRUE(TickAt(90'009, 10, "n2", 9).frozen);
  const TickAnswer answer = TickAt(90'010, 11, "n2", 10);
  EXPECT_FALSE(answer.frozen);
  EXPECT_TRUE(answer.returned);
  EXPECT_FALSE(TickAt(90'011, 12, "n3").frozen);
}

TEST_F(Clock, TheFirstNodeBackIsATriggerAndTheSecondIsNone) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  EXPECT_TRUE(TickAt(0).returned);
  EXPECT_FALSE(TickAt(5).returned);
  EXPECT_FALSE(TickAt(6, 0, "n2").returned);
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  EXPECT_EQ(state.pending, Trigger::kReturn);
  TickAt(20, 14, "n2");
  ASSERT_OK(store().Leave({"n1", {}}));
  ASSERT_OK(store().Leave({"n2", {}}));
  const TickAnswer back = TickAt(7'000, 0, "n3");
  EXPECT_TRUE(back.returned);
  EXPECT_EQ(back.live_nodes, 1);
}

// A store of many jobs would be planned anew for nothing.
TEST_F(Clock, ALaterReturnIsATriggerForJobsWithAFailedPeriodAlone) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("quiet"), PlainJob("failed"), PlainJob("held")}));
  TickAt(0);
  std::map<std::string, int64_t> revisions;
  for (const std::string job : {"quiet", "failed", "held"}) {
    ASSERT_OK(PlanDays(store(), PlainJob(job), {0}).status());
    ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), job));
    EXPECT_FALSE(state.pending.has_value());
    revisions[job] = state.revision;
  }
  for (const std::string job : {"failed", "held"}) {
    ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf(job, 0)));
    Outcome outcome;
    outcome.kind = job == "held" ? Outcome::Kind::kHeld : Outcome::Kind::kFailed;
    ASSERT_OK(FinishOne(store(), TicketOf(claim), outcome).status());
  }
  ASSERT_OK(store().Leave({"n1", {}}));
  EXPECT_TRUE(TickAt(7'000, 0, "n2").returned);
  for (const auto& [job, revision] : revisions) {
    ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), job));
    EXPECT_EQ(state.pending == Trigger::kReturn, job == "failed") << job;
    EXPECT_EQ(state.revision, revision + (job == "failed" ? 1 : 0)) << job;
  }
}

TEST_F(Clock, AReturnWithAnotherPlannerIsATriggerForEveryJob) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  TickAt(0);
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  ASSERT_OK(store().Leave({"n1", {}}));
  world().SetClock(At(7'000));
  TickRequest request;
  request.node.name = "n2";
  request.planner = "zone data of another year";
  ASSERT_OK_AND_ASSIGN(const TickAnswer answer, store().Tick(request));
  EXPECT_TRUE(answer.returned);
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  EXPECT_EQ(state.pending, Trigger::kReturn);
}

TEST_F(Clock, ACrashLoopIsNoRetryStorm) {
  int triggers = 0;
  for (int i = 0; i < 60; ++i) {
    const std::string node = absl::StrCat("n", i);
    triggers += TickAt(i * 5, 0, node).returned;
    ASSERT_OK(store().Leave({node, {}}));
  }
  EXPECT_GE(triggers, 3);
  EXPECT_LE(triggers, 5) << "five minutes of a crash loop";
}

TEST_F(Clock, IsIdleWhereNothingRunsAndNothingIsToComeSoon) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  EXPECT_FALSE(TickAt(0).idle) << "a trigger was set";
  EXPECT_FALSE(TickAt(1).idle) << "the job is to be looked at";
  ASSERT_OK(PlanDays(store(), job, {1}).status());
  EXPECT_TRUE(TickAt(2).idle);
  for (int second = 20; second < 3'589; second += 20) TickAt(second);
  EXPECT_TRUE(TickAt(3'589).idle);
  EXPECT_FALSE(TickAt(3'591).idle) << "a row is to be started in nine seconds";
  world().SetClock(At(3'600));
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 1)));
  EXPECT_FALSE(TickAt(3'601).idle) << "it runs";
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  EXPECT_TRUE(TickAt(3'602).idle);
  TickAt(3'500);
  EXPECT_FALSE(TickAt(3'501).idle) << "the clock stands";
}

TEST_F(Clock, NodesAreShownWithTheirOffsetAndDecideNothing) {
  TickAt(0);
  ASSERT_OK_AND_ASSIGN(const std::vector<NodeRow> nodes, acts().ReadNodes());
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].name, "n1");
  EXPECT_EQ(nodes[0].clock_offset, absl::Seconds(7));
  EXPECT_FALSE(nodes[0].left);
  // Years ahead, as after a dead battery: what is due and whose lease lives is the store's clock.
  TickRequest wrong;
  wrong.node.name = "n2";
  wrong.wall = At(100'000'000);
  ASSERT_OK(store().Tick(wrong).status());
  const TickAnswer answer = TickAt(1);
  EXPECT_EQ(answer.now, At(1));
  EXPECT_FALSE(answer.frozen);
}

TEST_F(Clock, LeavingGivesBackWhatIsHeld) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  HoldRequest hold;
  hold.node.name = "n1";
  ASSERT_OK(store().Hold(hold).status());
  ASSERT_OK(store().Leave(hold.node));
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(row.held_by, "");
}

}  // namespace
}  // namespace matins::conformance
