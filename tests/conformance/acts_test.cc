// What people do: definitions, acts with who and why, deletion of rows, other programs' rows.
#include <algorithm>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"
#include "conformance/kit.h"
#include "gmock/gmock.h"

namespace matins::conformance {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

class Acts : public Conformance {
 protected:
  ApplyRequest File(const std::vector<Job>& jobs, const std::string& digest) {
    ApplyRequest request;
    for (const Job& job : jobs) {
      request.jobs.push_back(
          {job, absl::StrCat("{\"name\":\"", job.name, "\",\"priority\":", job.priority, "}")});
    }
    request.source = "matins.yaml";
    request.digest = digest;
    request.act = {"cli:alice", "a change"};
    return request;
  }
  void DoneDay(const Job& job, int day) {
    ASSERT_OK(PlanDays(store(), job, {day}).status());
    auto claim = Claimed(store(), KeyOf(job.name, day));
    ASSERT_OK(claim.status());
    ASSERT_OK(Done(store(), TicketOf(*claim)).status());
  }
};

TEST_F(Acts, TheLocksThatAreHeldAreListed) {
  const Job job = PlainJob("a");
  Job apart = PlainJob("b");
  apart.overlap = Overlap::kAllow;
  apart.lock.scope = LockScope::kPeriod;
  ASSERT_OK_AND_ASSIGN(std::vector<LockRow> locks, acts().ReadLocks());
  EXPECT_TRUE(locks.empty());
  ASSERT_OK(ApplyJobs(acts(), {job, apart}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  ASSERT_OK(PlanDays(store(), apart, {0}).status());
  world().SetClock(DueOf(1));
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK_AND_ASSIGN(const Claim other, Claimed(store(), KeyOf("b", 0)));
  ASSERT_OK_AND_ASSIGN(locks, acts().ReadLocks());
  ASSERT_EQ(locks.size(), 2U);
  EXPECT_EQ(locks[0].key, "job/a");
  EXPECT_EQ(locks[0].run, KeyOf("a", 0));
  EXPECT_EQ(locks[0].fence, claim.fence);
  EXPECT_EQ(locks[0].since, claim.claimed_at);
  EXPECT_EQ(locks[0].until, claim.lease_until);
  EXPECT_FALSE(locks[0].node.empty());
  EXPECT_FALSE(locks[0].leftover);
  EXPECT_EQ(locks[1].key, absl::StrCat("period/b/", KeyOf("b", 0).period));
  // What a deleted row leaves is held until its lease ends.
  ASSERT_OK(world().DeleteRow(KeyOf("a", 0)));
  ASSERT_OK(Done(store(), TicketOf(other)).status());
  ASSERT_OK_AND_ASSIGN(locks, acts().ReadLocks());
  ASSERT_EQ(locks.size(), 1U);
  EXPECT_EQ(locks[0].key, "job/a");
  EXPECT_EQ(locks[0].until, claim.lease_until);
  EXPECT_TRUE(locks[0].leftover);
}

TEST_F(Acts, RenewalsOfALockAreItsAttemptsAcceptedHeartbeats) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  world().SetClock(DueOf(1));
  ASSERT_OK_AND_ASSIGN(const Claim first, Claimed(store(), KeyOf("a", 0)));
  const auto renewals = [&] {
    const auto locks = acts().ReadLocks();
    return locks.ok() && locks->size() == 1 ? (*locks)[0].renewals : -1;
  };
  EXPECT_EQ(renewals(), 0);
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK(ExtendOne(store(), TicketOf(first), absl::Seconds(30)).status());
  }
  EXPECT_EQ(renewals(), 3);
  // What else changes its row renews nothing, and neither does another's heartbeat.
  const CheckpointRequest checkpoint{TicketOf(first), 1, "half"};
  ASSERT_OK(store().Checkpoint({&checkpoint, 1}).status());
  Ticket stranger = TicketOf(first);
  ++stranger.nonce;
  ASSERT_OK_AND_ASSIGN(const ExtendAnswer refused, ExtendOne(store(), stranger, absl::Seconds(30)));
  EXPECT_FALSE(refused.refusal.accepted());
  EXPECT_EQ(renewals(), 3);
  ASSERT_OK(FinishOne(store(), TicketOf(first), {.kind = Outcome::Kind::kReturned}).status());
  ASSERT_OK_AND_ASSIGN(const Claim second, Claimed(store(), KeyOf("a", 0)));
  EXPECT_EQ(renewals(), 0) << "another attempt begins from none";
  ASSERT_OK(ExtendOne(store(), TicketOf(second), absl::Seconds(30)).status());
  EXPECT_EQ(renewals(), 1);
}

TEST_F(Acts, AFileIsAppliedByDigestAndAnOldOneOnlyWithForce) {
  Job job = PlainJob("a");
  ASSERT_OK_AND_ASSIGN(ApplyAnswer answer, acts().Apply(File({job}, "one")));
  EXPECT_THAT(answer.added, ElementsAre("a"));
  ASSERT_OK_AND_ASSIGN(answer, acts().Apply(File({job}, "one")));
  EXPECT_THAT(answer.unchanged, ElementsAre("a"));
  job.priority = 2;
  ASSERT_OK_AND_ASSIGN(answer, acts().Apply(File({job}, "two")));
  EXPECT_THAT(answer.changed, ElementsAre("a"));
  job.priority = 0;
  EXPECT_EQ(acts().Apply(File({job}, "one")).status().code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(std::vector<JobRow> jobs, acts().ReadJobs("a"));
  EXPECT_EQ(jobs.at(0).version, 2) << "a refused file changes nothing";
  ApplyRequest forced = File({job}, "one");
  forced.force = true;
  ASSERT_OK(acts().Apply(forced).status());
  ASSERT_OK_AND_ASSIGN(jobs, acts().ReadJobs("a"));
  EXPECT_EQ(jobs.at(0).version, 3);
}

TEST_F(Acts, DefinitionsAreReadAPageAtATimeInTheOrderOfTheirNamesBytes) {
  ASSERT_OK(acts()
                .Apply(File({PlainJob("b"), PlainJob("B"), PlainJob("a-1"), PlainJob("gone"),
                             PlainJob("a.1")},
                            "one"))
                .status());
  ASSERT_OK(acts().Delete("gone", false, {"cli:alice", "no longer"}));
  Job changed = PlainJob("b");
  changed.priority = 7;
  ASSERT_OK(acts().Apply(File({changed}, "two")).status());
  std::vector<std::string> names;
  std::string last;
  while (true) {
    ASSERT_OK_AND_ASSIGN(const std::vector<JobDefinition> page,
                         acts().ReadDefinitionsAfter(last, 2));
    for (const JobDefinition& one : page) names.push_back(one.job);
    if (page.size() < 2) break;
    last = page.back().job;
  }
  EXPECT_THAT(names, ElementsAre("B", "a-1", "a.1", "b"));
  ASSERT_OK_AND_ASSIGN(const std::vector<JobDefinition> page,
                       acts().ReadDefinitionsAfter("a.1", 9));
  ASSERT_EQ(page.size(), 1u);
  EXPECT_EQ(page[0].version, 2);
  EXPECT_THAT(page[0].definition, HasSubstr("\"priority\":7"));
}

TEST_F(Acts, AJobOfAnotherSourceIsTakenOverOnlyWhenAskedAndElseNothingIsApplied) {
  ASSERT_OK(acts().Apply(File({PlainJob("a")}, "one")).status());
  ApplyRequest theirs = File({PlainJob("a"), PlainJob("b")}, "two");
  theirs.source = "theirs.yaml";
  const absl::Status refused = acts().Apply(theirs).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("'a' (of matins.yaml)"));
  ASSERT_OK_AND_ASSIGN(std::vector<JobRow> jobs, acts().ReadJobs(""));
  EXPECT_EQ(jobs.size(), 1u);
  theirs.take_over = true;
  ASSERT_OK_AND_ASSIGN(const ApplyAnswer answer, acts().Apply(theirs));
  EXPECT_THAT(answer.added, ElementsAre("b"));
  ASSERT_OK_AND_ASSIGN(jobs, acts().ReadJobs("a"));
  EXPECT_EQ(jobs.at(0).source, "theirs.yaml");
}

TEST_F(Acts, ADeletedJobIsNobodys) {
  ASSERT_OK(acts().Apply(File({PlainJob("a")}, "one")).status());
  ASSERT_OK(acts().Delete("a", false, {"cli:alice", "no longer"}));
  ApplyRequest theirs = File({PlainJob("a")}, "two");
  theirs.source = "theirs.yaml";
  ASSERT_OK_AND_ASSIGN(const ApplyAnswer answer, acts().Apply(theirs));
  EXPECT_THAT(answer.added, ElementsAre("a"));
}

TEST_F(Acts, JobsMissingFromTheFileGoOnlyWithPrune) {
  ASSERT_OK(acts().Apply(File({PlainJob("a"), PlainJob("b")}, "one")).status());
  ASSERT_OK_AND_ASSIGN(ApplyAnswer answer, acts().Apply(File({PlainJob("a")}, "two")));
  EXPECT_THAT(answer.missing, ElementsAre("b"));
  ApplyRequest prune = File({PlainJob("a")}, "three");
  prune.prune = true;
  ASSERT_OK_AND_ASSIGN(answer, acts().Apply(prune));
  EXPECT_THAT(answer.pruned, ElementsAre("b"));
  ASSERT_OK_AND_ASSIGN(const std::vector<JobRow> jobs, acts().ReadJobs(""));
  EXPECT_EQ(jobs.size(), 1u);
}

TEST_F(Acts, AChangeWithdrawsWhatWasPlannedAheadAndForgetsNoGap) {
  Job job = PlainJob("a");
  ASSERT_OK(acts().Apply(File({job}, "one")).status());
  ASSERT_OK(PlanDays(store(), job, {0, 1}).status());
  world().SetClock(At(10));
  job.priority = 7;
  ASSERT_OK(acts().Apply(File({job}, "two")).status());
  ASSERT_OK(RowOf(acts(), KeyOf("a", 0)).status());
  EXPECT_EQ(RowOf(acts(), KeyOf("a", 1)).status().code(), absl::StatusCode::kNotFound);
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  EXPECT_EQ(state.cursor, At(10) - absl::Microseconds(1)) << "that instant is the new version's";
  EXPECT_FALSE(state.gap_from.has_value());
  ASSERT_EQ(state.versions.size(), 2u) << "the newest, and what day 0 is judged by";
  EXPECT_EQ(state.versions[0].number, 1);
  EXPECT_EQ(state.versions[1].from, At(10));
  ASSERT_OK(PlanDays(store(), job, {1}).status());
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 1)));
  EXPECT_EQ(row.generation, 1);
}

TEST_F(Acts, AClockSetBackBehindAChangeReadsTheVersionBeforeIt) {
  Job job = PlainJob("a");
  for (const int hour : {0, 1, 2}) {
    world().SetClock(DueOf(0) + absl::Hours(hour));
    job.priority = hour;
    ASSERT_OK(acts().Apply(File({job}, absl::StrCat("digest", hour))).status());
  }
  world().SetClock(DueOf(0) + absl::Hours(3));
  ASSERT_OK_AND_ASSIGN(JobState state, ReadState(store(), "a"));
  PlanWrite write;
  write.job = "a";
  write.expected_revision = state.revision;
  write.cursor = DueOf(0) + absl::Hours(3);
  PlanRequest request;
  request.writes = {write};
  ASSERT_OK(store().Plan(request).status());
  ASSERT_OK_AND_ASSIGN(state, ReadState(store(), "a"));
  EXPECT_EQ(state.versions.front().number, 3);
  world().SetClock(DueOf(0) + absl::Minutes(90));
  ASSERT_OK_AND_ASSIGN(state, ReadState(store(), "a"));
  EXPECT_EQ(state.versions.front().number, 2) << "it is in force again, and planning begins now";
}

TEST_F(Acts, WhatWaitsIsReadWithTheVersionsThatItIsJudgedBy) {
  Job job = PlainJob("a");
  const auto versions = [&] {
    const absl::StatusOr<JobState> read = ReadState(store(), "a");
    std::vector<int> numbers;
    for (const JobVersion& version : read.value().versions) {
      numbers.push_back(version.number);
    }
    return numbers;
  };
  ASSERT_OK(acts().Apply(File({job}, "one")).status());
  job.priority = 2;
  ASSERT_OK(acts().Apply(File({job}, "two")).status());
  ASSERT_OK_AND_ASSIGN(JobState state, ReadState(store(), "a"));
  Intent intent = DayIntent(job, 0);
  intent.version = 2;
  ASSERT_OK(PlanIntents(store(), "a", {intent}).status());
  for (const int priority : {3, 4}) {
    world().SetClock(DueOf(0) + absl::Minutes(10 * priority));
    job.priority = priority;
    ASSERT_OK(acts().Apply(File({job}, absl::StrCat("digest", priority))).status());
    // Planning goes on behind the change, and what was due before it waits.
    ASSERT_OK_AND_ASSIGN(state, ReadState(store(), "a"));
    PlanWrite write;
    write.job = "a";
    write.expected_revision = state.revision;
    write.cursor = DueOf(0) + absl::Minutes(10 * priority) + absl::Minutes(1);
    PlanRequest request;
    request.writes = {write};
    ASSERT_OK(store().Plan(request).status());
  }
  EXPECT_THAT(versions(), ElementsAre(2, 3, 4)) << "without a hole";
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0), "n1"));
  EXPECT_THAT(versions(), ElementsAre(4)) << "what runs is not judged";
  Outcome failed;
  failed.kind = Outcome::Kind::kFailed;
  failed.reason = reason::kExit;
  ASSERT_OK_AND_ASSIGN(const std::string refused, FinishOne(store(), TicketOf(claim), failed));
  EXPECT_EQ(refused, "");
  EXPECT_THAT(versions(), ElementsAre(2, 3, 4));
  const PeriodKey key = KeyOf("a", 0);
  ASSERT_OK(acts().Skip({&key, 1}, {"cli:alice", "not wanted"}));
  EXPECT_THAT(versions(), ElementsAre(4)) << "settled";
}

TEST_F(Acts, ASuspensionIsKeptWithWhoAndWhy) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  ASSERT_OK(acts().Suspend("a", {"cli:alice", "year end"}));
  EXPECT_EQ(acts().Suspend("a", {"cli:bob", "again"}).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(std::vector<JobRow> jobs, acts().ReadJobs("a"));
  ASSERT_TRUE(jobs.at(0).suspension.has_value());
  EXPECT_EQ(jobs[0].suspension->by, "cli:alice");
  EXPECT_EQ(jobs[0].suspension->why, "year end");
  ASSERT_OK(acts().Resume("a", std::nullopt, {"cli:alice", "over"}));
  EXPECT_EQ(acts().Resume("a", std::nullopt, {"cli:alice", "over"}).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(const std::vector<EventRow> events, acts().ReadEvents("a", 10));
  EXPECT_THAT(events, Contains(AllOf(Field(&EventRow::kind, "suspended"),
                                     Field(&EventRow::why, "year end"))));
  EXPECT_THAT(events, Contains(Field(&EventRow::kind, "resumed")));
  EXPECT_EQ(acts().Suspend("nobody", {"cli:alice", ""}).code(), absl::StatusCode::kNotFound);
}

TEST_F(Acts, ResumingMaySkipWhatWasMissedInTheSameStep) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  ASSERT_OK(acts().Suspend("a", {"cli:alice", "year end"}));
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  PlanWrite skip;
  skip.job = "a";
  skip.expected_revision = state.revision - 1;
  skip.cursor = state.cursor;
  Intent intent = DayIntent(job, 0);
  intent.kind = Intent::Kind::kSkip;
  intent.skip_reason = reason::kSuspended;
  intent.by = "cli:alice";
  skip.intents = {intent};
  EXPECT_EQ(acts().Resume("a", skip, {"cli:alice", "over"}).code(), absl::StatusCode::kAborted);
  ASSERT_OK_AND_ASSIGN(PeriodRow row, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(StateText(row), "PLANNED") << "nothing half done";
  skip.expected_revision = state.revision;
  ASSERT_OK(acts().Resume("a", skip, {"cli:alice", "over"}));
  ASSERT_OK_AND_ASSIGN(row, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(StateText(row), "SKIPPED(suspended)");
  EXPECT_EQ(row.by, "cli:alice");
}

TEST_F(Acts, AChangeBeforeTheFirstPlanForgetsNothingThatIsOwed) {
  Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  world().SetClock(At(100));
  job.timeout = absl::Minutes(7);
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  EXPECT_EQ(state.cursor, absl::InfinitePast());
  EXPECT_EQ(state.versions.size(), 2u);
}

TEST_F(Acts, ALeaseThatOutlastsItsRowKeepsTheLockOfARenamedJob) {
  const Job job = PlainJob("old");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  world().SetClock(DueOf(1));
  ASSERT_OK(Claimed(store(), KeyOf("old", 0)).status());
  ASSERT_OK(world().DeleteRow(KeyOf("old", 0)));
  ASSERT_OK(acts().Rename("old", "new", {"cli:alice", "clearer"}));
  ASSERT_OK(PlanDays(store(), PlainJob("new"), {1}).status());
  ASSERT_OK_AND_ASSIGN(const StartAnswer while_it_lives, StartOne(store(), KeyOf("new", 1)));
  EXPECT_EQ(while_it_lives.result, StartResult::kBusy);
  world().SetClock(DueOf(1) + absl::Seconds(31));
  ASSERT_OK_AND_ASSIGN(const StartAnswer afterwards, StartOne(store(), KeyOf("new", 1)));
  EXPECT_EQ(afterwards.result, StartResult::kStarted);
}

TEST_F(Acts, ARenamedJobKeepsItsIdentityAndItsRows) {
  const Job job = PlainJob("old");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  DoneDay(job, 0);
  ASSERT_OK_AND_ASSIGN(const JobState before, ReadState(store(), "old"));
  world().SetClock(At(100));
  ASSERT_OK(acts().Rename("old", "new", {"cli:alice", "clearer"}));
  ASSERT_OK_AND_ASSIGN(const JobState after, ReadState(store(), "new"));
  EXPECT_EQ(after.first_sight, before.first_sight);
  EXPECT_EQ(ReadState(store(), "old").status().code(), absl::StatusCode::kNotFound);
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("new", 0)));
  EXPECT_EQ(StateText(row), "DONE");
  EXPECT_EQ(acts().Rename("nobody", "x", {"", ""}).code(), absl::StatusCode::kNotFound);
}

TEST_F(Acts, ARenamedDefinitionDiffersInTheJobsOwnNameAlone) {
  // Other things of the same name, and another version, before the job's own.
  const auto text = [](absl::string_view name, int days) {
    return absl::StrCat(R"({"env":[{"name":"old"}],"name":")", name,
                        R"(","description":"{\"name\":\"old\"}","days":)", days, "}");
  };
  for (const int days : {30, 7}) {
    ApplyRequest request;
    request.jobs = {{PlainJob("old"), text("old", days)}};
    request.source = "test";
    request.digest = absl::StrCat("digest", days);
    request.act = {"cli:test", "the case"};
    ASSERT_OK(acts().Apply(request).status());
  }
  ASSERT_OK(acts().Rename("old", "new", {"cli:alice", "clearer"}));
  ASSERT_OK_AND_ASSIGN(const std::vector<JobRow> jobs, acts().ReadJobs("new"));
  EXPECT_EQ(jobs.at(0).definition, text("new", 7));
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "new"));
  ASSERT_EQ(state.versions.size(), 2u);
  EXPECT_EQ(state.versions[0].definition, text("new", 30));
  EXPECT_EQ(state.versions[1].definition, text("new", 7));
}

TEST_F(Acts, ADeletedJobStartsNothingAndKeepsItsHistory) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  world().SetClock(DueOf(1));
  ASSERT_OK(PlanDays(store(), job, {0, 1}).status());
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  const absl::Status refused = acts().Delete("a", false, {"cli:alice", "not needed"});
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK(acts().Delete("a", true, {"cli:alice", "not needed"}));
  ASSERT_OK_AND_ASSIGN(const std::string why, Done(store(), TicketOf(claim)));
  EXPECT_EQ(why, "") << "what runs may end";
  ASSERT_OK_AND_ASSIGN(const StartAnswer start, StartOne(store(), KeyOf("a", 1)));
  EXPECT_EQ(start.result, StartResult::kTaken);
  ASSERT_OK(RowOf(acts(), KeyOf("a", 0)).status());
}

TEST_F(Acts, AJobThatComesBackAfterItsDeletionRunsNothingOfTheOldOne) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  world().SetClock(DueOf(3));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  ASSERT_OK_AND_ASSIGN(const Claim failed, Claimed(store(), KeyOf("a", 0)));
  Outcome bad;
  bad.kind = Outcome::Kind::kFailed;
  bad.reason = reason::kExit;
  ASSERT_OK(FinishOne(store(), TicketOf(failed), bad).status());
  ASSERT_OK(PlanDays(store(), job, {1}).status());
  ASSERT_OK_AND_ASSIGN(const Claim running, Claimed(store(), KeyOf("a", 1)));
  ASSERT_OK(PlanDays(store(), job, {2, 9}).status());
  ASSERT_OK_AND_ASSIGN(const JobState before, ReadState(store(), "a"));
  ASSERT_OK(acts().Delete("a", true, {"cli:alice", "not needed"}));
  for (const int day : {0, 2}) {
    ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", day)));
    EXPECT_EQ(StateText(row), "SKIPPED(deleted)");
    EXPECT_EQ(row.by, "cli:alice");
  }
  EXPECT_TRUE(absl::IsNotFound(RowOf(acts(), KeyOf("a", 9)).status())) << "not due yet: withdrawn";
  Outcome back;
  back.kind = Outcome::Kind::kReturned;
  back.reason = reason::kHandedOver;
  ASSERT_OK_AND_ASSIGN(const std::string why, FinishOne(store(), TicketOf(running), back));
  EXPECT_EQ(why, "") << "what ran was left alone";
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const PeriodRow left, RowOf(acts(), KeyOf("a", 1)));
  EXPECT_EQ(StateText(left), "SKIPPED(deleted)") << "it waited since";
  ASSERT_OK_AND_ASSIGN(const JobState after, ReadState(store(), "a"));
  EXPECT_GT(after.revision, before.revision + 1) << "a plan for the old one cannot be meant";
  EXPECT_THAT(after.rows, testing::IsEmpty());
  EXPECT_FALSE(after.gap_from.has_value());
}

TEST_F(Acts, ReopeningSaysWhoRunsItOrWhyNot) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  EXPECT_EQ(acts().Reopen(KeyOf("a", 0), "", {"cli:a", "x"}).code(),
            absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0), "node-7"));
  const absl::Status running = acts().Reopen(KeyOf("a", 0), "", {"cli:a", "x"});
  EXPECT_EQ(running.code(), absl::StatusCode::kFailedPrecondition);
  if (TheBackend().name() != "model") {
    EXPECT_THAT(std::string(running.message()), HasSubstr("node-7"));
  }
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  ASSERT_OK(acts().Reopen(KeyOf("a", 0), "{\"k\":1}", {"cli:a", "wrong rates"}));
  ASSERT_OK_AND_ASSIGN(const Claim again, Claimed(store(), KeyOf("a", 0)));
  EXPECT_EQ(again.generation, 2);
  EXPECT_EQ(again.params, "{\"k\":1}");
  EXPECT_TRUE(again.manual);
  EXPECT_GT(again.fence, claim.fence);
  EXPECT_EQ(acts().Reopen(KeyOf("a", 5), "", {"cli:a", "x"}).code(), absl::StatusCode::kNotFound);
}

TEST_F(Acts, SkippingIsAllOrNothing) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  DoneDay(job, 0);
  ASSERT_OK(PlanDays(store(), job, {1}).status());
  const std::vector<PeriodKey> both = {KeyOf("a", 1), KeyOf("a", 0)};
  EXPECT_EQ(acts().Skip(both, {"cli:a", "x"}).code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 1)));
  EXPECT_EQ(StateText(row), "PLANNED");
}

TEST_F(Acts, APersonsTriggerIsPending) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  ASSERT_OK_AND_ASSIGN(const JobState before, ReadState(store(), "a"));
  ASSERT_OK(acts().TriggerNow("a", {"cli:a", "now"}));
  ASSERT_OK_AND_ASSIGN(const JobState after, ReadState(store(), "a"));
  EXPECT_EQ(after.pending, Trigger::kPerson);
  EXPECT_GT(after.revision, before.revision);
  ASSERT_OK_AND_ASSIGN(const DueJobs due, store().ReadDue({}));
  EXPECT_EQ(due.jobs.size(), 1u);
}

// As `job resume` is: START grants nothing before planning has looked at what the cap leaves (I17).
TEST_F(Acts, AJobThatItsFileResumesLooksAtWhatItOwesFirst) {
  Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  job.suspend = true;
  job.priority = 1;
  ASSERT_OK(ApplyJobs(acts(), {job}));
  job.suspend = false;
  job.priority = 2;
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  EXPECT_FALSE(state.suspended);
  EXPECT_EQ(state.pending, Trigger::kPerson);
  ASSERT_OK_AND_ASSIGN(const StartAnswer early, StartOne(store(), KeyOf("a", 0)));
  EXPECT_EQ(early.result, StartResult::kGap);
  ASSERT_OK(PlanDays(store(), job, {}).status());
  ASSERT_OK(Claimed(store(), KeyOf("a", 0)).status());
}

TEST_F(Acts, APlanOfAnOldRevisionIsNotWritten) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  ASSERT_OK(acts().TriggerNow("a", {"cli:a", "now"}));
  PlanRequest request;
  request.writes.resize(1);
  request.writes[0].job = "a";
  request.writes[0].expected_revision = state.revision;
  request.writes[0].intents = {DayIntent(job, 0)};
  ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(request));
  EXPECT_FALSE(answers.jobs.at(0).written);
  EXPECT_FALSE(RowOf(acts(), KeyOf("a", 0)).ok());
}

// Planning under a clock that was set back fills some gaps, and others are still to come.
TEST_F(Acts, AGapMovesOnAndTheCursorStays) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0, 1, 2}).status());
  ASSERT_OK(world().DeleteRow(KeyOf("a", 0)));
  ASSERT_OK_AND_ASSIGN(const JobState before, ReadState(store(), "a"));
  EXPECT_EQ(before.gap_from, DueOf(0));
  for (const std::optional<absl::Time> next :
       {std::optional(DueOf(1)), std::optional<absl::Time>()}) {
    ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
    PlanRequest plan;
    PlanWrite& write = plan.writes.emplace_back();
    write.job = "a";
    write.expected_revision = state.revision;
    write.cursor = state.cursor;
    write.gaps_filled = true;
    write.next_gap = next;
    ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(plan));
    ASSERT_TRUE(answers.jobs[0].written);
    ASSERT_OK_AND_ASSIGN(const JobState after, ReadState(store(), "a"));
    EXPECT_EQ(after.gap_from, next);
    EXPECT_EQ(after.cursor, before.cursor);
  }
}

TEST_F(Acts, WhatIsPlannedForNowIsHeldByTheSameWrite) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  PlanRequest request;
  request.writes.resize(1);
  request.writes[0].job = "a";
  request.writes[0].expected_revision = state.revision;
  request.writes[0].intents = {DayIntent(job, 0), DayIntent(job, 1)};
  request.hold_by.name = "n1";
  request.hold_at_most = 5;
  ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(request));
  ASSERT_EQ(answers.jobs.at(0).held.size(), 1u);
  EXPECT_EQ(answers.jobs[0].held[0].key, KeyOf("a", 0));
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(row.held_by, "n1");
  EXPECT_EQ(row.held_until, At(2));
}

TEST_F(Acts, RowsOfOtherProgramsCountAndAreNeverPlannedOver) {
  MATINS_NEEDS(Capability::kForeign);
  const Job job = StrictJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(world().InsertForeignRow("a", "2026-10-01", "DONE"));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(StateText(row), "DONE");
  ASSERT_OK(world().InsertForeignRow("a", "2026-10-02", "RUNNING"));
  world().SetClock(DueOf(2));
  ASSERT_OK(PlanDays(store(), job, {2}).status());
  ASSERT_OK_AND_ASSIGN(const StartAnswer start, StartOne(store(), KeyOf("a", 2)));
  EXPECT_EQ(start.result, StartResult::kBlocked) << "an older day that somebody else runs";
}

TEST_F(Acts, ARowOfAnotherProgramAfterADeletionIsOfTheNewGeneration) {
  MATINS_NEEDS(Capability::kForeign);
  ASSERT_OK(acts().SetJournal(/*full=*/true));
  ASSERT_OK(ApplyJobs(acts(), {StrictJob("a")}));
  ASSERT_OK(world().InsertForeignRow("a", "2026-10-01", "DONE"));
  for (const int generation : {2, 3}) {
    ASSERT_OK(world().DeleteRow(KeyOf("a", 0)));
    ASSERT_OK(world().InsertForeignRow("a", "2026-10-01", "DONE"));
    ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 0)));
    EXPECT_EQ(row.generation, generation);
  }
}

TEST_F(Acts, ARunningRowWithoutALeaseGoesStale) {
  MATINS_NEEDS(Capability::kForeign);
  Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(world().InsertForeignRow("a", "2026-10-01", "RUNNING"));
  // Other programs' rows are dated by the machine's own clock.
  world().SetClock(absl::Now() + absl::Hours(1));
  ASSERT_OK_AND_ASSIGN(std::vector<StaleRun> stale, store().ReadStale(10));
  EXPECT_TRUE(stale.empty());
  world().SetClock(absl::Now() + absl::Hours(3));
  ASSERT_OK_AND_ASSIGN(stale, store().ReadStale(10));
  ASSERT_EQ(stale.size(), 1u);
  EXPECT_TRUE(stale[0].without_lease);
  const Ticket ticket{stale[0].row.key, stale[0].row.generation, stale[0].row.fence,
                      stale[0].row.nonce};
  ASSERT_OK_AND_ASSIGN(const bool taken,
                       ReapOne(store(), ticket, Outcome::Kind::kFailed, reason::kStale));
  EXPECT_TRUE(taken);
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(StateText(row), "FAILED(stale)");
}

TEST_F(Acts, DeletingBelowTheFloorReopensNothing) {
  Job job = PlainJob("a");
  job.backfill.max_periods = 3;
  ASSERT_OK(ApplyJobs(acts(), {job}));
  DoneDay(job, 0);
  const absl::Time later = T0() + absl::Hours(24 * 91);
  world().SetClock(later);
  Intent recent = DayIntent(job, 1);
  recent.due = recent.not_before = later - absl::Hours(1);
  ASSERT_OK(PlanIntents(store(), "a", {recent}).status());
  ASSERT_OK_AND_ASSIGN(const int64_t gone, store().Purge(100));
  EXPECT_EQ(gone, 1) << "the row below the floor";
  EXPECT_FALSE(RowOf(acts(), KeyOf("a", 0)).ok());
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  EXPECT_FALSE(state.gap_from.has_value());
  EXPECT_GE(state.floor, DueOf(0));
  ASSERT_OK_AND_ASSIGN(const int64_t more, store().Purge(100));
  EXPECT_EQ(more, 0);
}

TEST_F(Acts, WhatWasSettledBelowTheFloorIsOpenedOnlyAsANewGeneration) {
  Job job = PlainJob("a");
  job.backfill.max_periods = 3;
  ASSERT_OK(ApplyJobs(acts(), {job}));
  world().SetClock(DueOf(1));
  DoneDay(job, 0);
  DoneDay(job, 1);
  ASSERT_OK(acts().Reopen(KeyOf("a", 1), "", {"cli:alice", "new data"}));
  ASSERT_OK_AND_ASSIGN(const Claim second, Claimed(store(), KeyOf("a", 1)));
  ASSERT_OK(Done(store(), TicketOf(second)).status());
  world().SetClock(T0() + absl::Hours(24 * 91));
  ASSERT_OK(PlanDays(store(), job, {24 * 91 - 1}).status());
  ASSERT_OK_AND_ASSIGN(const int64_t gone, store().Purge(100));
  ASSERT_EQ(gone, 2);
  ASSERT_OK_AND_ASSIGN(const bool unasked, PlanDays(store(), job, {0}));
  EXPECT_FALSE(unasked) << "all is settled there";
  for (const int day : {0, 1}) {
    ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
    PlanRequest plan;
    PlanWrite& write = plan.writes.emplace_back();
    write.job = "a";
    write.expected_revision = state.revision;
    write.cursor = state.cursor;
    write.act = Act{"cli:alice", "an auditor asks"};
    Intent& intent = write.intents.emplace_back(DayIntent(job, day));
    intent.manual = intent.reopens = true;
    ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(plan));
    ASSERT_TRUE(answers.jobs[0].written);
  }
  ASSERT_OK_AND_ASSIGN(const PeriodRow first, RowOf(acts(), KeyOf("a", 0)));
  EXPECT_EQ(StateText(first), "PLANNED");
  EXPECT_EQ(first.generation, 2);
  ASSERT_OK_AND_ASSIGN(const PeriodRow other, RowOf(acts(), KeyOf("a", 1)));
  EXPECT_EQ(other.generation, 3) << "it was opened before";
  ASSERT_OK_AND_ASSIGN(const std::vector<EventRow> events, acts().ReadEvents("a", 10));
  EXPECT_THAT(events, testing::Contains(
                          testing::AllOf(testing::Field(&EventRow::kind, "reopened"),
                                         testing::Field(&EventRow::period, KeyOf("a", 0).period),
                                         testing::Field(&EventRow::generation, 2),
                                         testing::Field(&EventRow::why, "an auditor asks"))));
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 1)));
  EXPECT_GT(claim.fence, second.fence);
}

TEST_F(Acts, TheFloorNeverPassesAnOpenPeriod) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  DoneDay(job, 1 - 1);
  ASSERT_OK(PlanDays(store(), job, {1}).status());
  world().SetClock(T0() + absl::Hours(24 * 400));
  ASSERT_OK(store().Purge(100).status());
  ASSERT_OK_AND_ASSIGN(const PeriodRow open, RowOf(acts(), KeyOf("a", 1)));
  EXPECT_EQ(StateText(open), "PLANNED");
}

TEST_F(Acts, HistoryKeepsWhatTheJobSays) {
  Job job = PlainJob("a");
  job.history_succeeded = 2;
  job.history_failed = 1;
  ASSERT_OK(ApplyJobs(acts(), {job}));
  world().SetClock(DueOf(10));
  for (int day = 0; day < 4; ++day) DoneDay(job, day);
  ASSERT_OK_AND_ASSIGN(const int64_t gone, store().Purge(100));
  EXPECT_EQ(gone, 2);
  RunFilter filter;
  filter.job = "a";
  ASSERT_OK_AND_ASSIGN(const std::vector<RunRow> runs, acts().ReadRuns(filter));
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].key, KeyOf("a", 3));
  ASSERT_OK_AND_ASSIGN(const std::vector<JobRow> jobs, acts().ReadJobs("a"));
  EXPECT_EQ(jobs.at(0).last_success, DueOf(10));
}

TEST_F(Acts, CheckpointsGoWhenNoAttemptCanBeHandedThem) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a"), PlainJob("b")}));
  world().SetClock(DueOf(1));
  std::map<std::string, Ticket> tickets;
  for (const char* job : {"a", "b"}) {
    ASSERT_OK(PlanDays(store(), PlainJob(job), {0}).status());
    ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf(job, 0)));
    tickets[job] = TicketOf(claim);
    const CheckpointRequest checkpoint{tickets[job], 5, "half"};
    ASSERT_OK(store().Checkpoint({&checkpoint, 1}).status());
  }
  ASSERT_OK(Done(store(), tickets["a"]).status());
  world().SetClock(DueOf(1) + absl::Seconds(31));
  ASSERT_OK_AND_ASSIGN(const bool reaped, ReapOne(store(), tickets["b"]));
  ASSERT_TRUE(reaped);
  ASSERT_OK_AND_ASSIGN(const int64_t gone, store().Purge(100));
  EXPECT_EQ(gone, 1) << "of the one that is done";
  ASSERT_OK_AND_ASSIGN(const int64_t more, store().Purge(100));
  EXPECT_EQ(more, 0);
  ASSERT_OK_AND_ASSIGN(const Claim again, Claimed(store(), KeyOf("b", 0)));
  EXPECT_EQ(again.checkpoint, 5);
  EXPECT_EQ(again.checkpoint_data, "half");
}

TEST_F(Acts, SpansGoWhenTheFloorHasPassedThem) {
  Job job = PlainJob("a");
  job.backfill.max_periods = 3;
  ASSERT_OK(ApplyJobs(acts(), {job}));
  world().SetClock(DueOf(6));
  DoneDay(job, 5);
  world().SetClock(T0() + absl::Hours(24 * 91));
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  PlanRequest plan;
  PlanWrite& write = plan.writes.emplace_back();
  write.job = "a";
  write.expected_revision = state.revision;
  write.cursor = T0() + absl::Hours(24 * 91) - absl::Hours(1);
  for (const absl::Time from : {DueOf(1), write.cursor - absl::Hours(2)}) {
    write.spans.push_back({.from = from,
                           .to = from + absl::Hours(1),
                           .first_period = "x",
                           .last_period = "y",
                           .count = 2,
                           .reason = "missed"});
  }
  ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(plan));
  ASSERT_TRUE(answers.jobs[0].written);
  ASSERT_OK_AND_ASSIGN(const int64_t gone, store().Purge(100));
  EXPECT_EQ(gone, 2) << "a row and a span";
  ASSERT_OK_AND_ASSIGN(const std::vector<SkipSpan> spans, acts().ReadSpans("a"));
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].from, write.cursor - absl::Hours(2));
}

TEST_F(Acts, TheFullJournalHasEachChangeOnceWithoutAHole) {
  MATINS_NEEDS(Capability::kJournal);
  const Job job = PlainJob("a");
  ASSERT_OK(acts().SetJournal(true));
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  ASSERT_OK_AND_ASSIGN(const Claim first, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK(ExtendOne(store(), TicketOf(first), absl::Seconds(30)).status());
  world().SetClock(At(31));
  ASSERT_OK(ReapOne(store(), TicketOf(first)).status());
  ASSERT_OK_AND_ASSIGN(const Claim second, Claimed(store(), KeyOf("a", 0)));
  const CheckpointRequest checkpoint{TicketOf(second), 1, "x"};
  ASSERT_OK(store().Checkpoint({&checkpoint, 1}).status());
  ASSERT_OK(Done(store(), TicketOf(second)).status());
  ASSERT_OK_AND_ASSIGN(
      const SqlRows rows,
      world().Query("SELECT ver, op, status FROM job_journal ORDER BY generation, ver"));
  EXPECT_THAT(rows,
              ElementsAre(ElementsAre("1", "plan", "PLANNED"), ElementsAre("2", "claim", "RUNNING"),
                          ElementsAre("3", "hb", "RUNNING"), ElementsAre("4", "reclaim", "PLANNED"),
                          ElementsAre("5", "claim", "RUNNING"), ElementsAre("6", "ckpt", "RUNNING"),
                          ElementsAre("7", "commit", "DONE")));
}

}  // namespace
}  // namespace matins::conformance
