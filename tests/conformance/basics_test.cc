// The shortest way through: apply, plan, start, finish.
#include "base/status.h"
#include "conformance/kit.h"

namespace matins::conformance {
namespace {

using Basics = Conformance;

TEST_F(Basics, APeriodIsPlannedStartedAndDone) {
  const Job job = PlainJob("recon");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const bool written, PlanDays(store(), job, {0}));
  EXPECT_TRUE(written);
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("recon", 0)));
  EXPECT_EQ(claim.attempt, 1);
  EXPECT_EQ(claim.lease_until, At(30));
  EXPECT_EQ(claim.run_until, At(2 * 3600 + 10));
  EXPECT_GT(claim.fence, 0);
  ASSERT_OK_AND_ASSIGN(const std::string why, Done(store(), TicketOf(claim)));
  EXPECT_EQ(why, "");
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("recon", 0)));
  EXPECT_EQ(StateText(row), "DONE");
  EXPECT_EQ(row.finished_at, T0());
  EXPECT_EQ(row.fence, claim.fence);
}

TEST_F(Basics, DefinitionsAreTheNewestOfTheJobsThatAreThere) {
  Job changed = PlainJob("changed");
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("gone"), changed, PlainJob("plain")}));
  world().SetClock(At(60));
  changed.timeout = absl::Minutes(7);
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("gone"), changed, PlainJob("plain")}));
  ASSERT_OK(acts().Delete("gone", false, {"me", "it is over"}));
  ASSERT_OK_AND_ASSIGN(const std::vector<JobDefinition> read,
                       store().ReadDefinitions({"plain", "gone", "changed", "nobody"}));
  ASSERT_EQ(read.size(), 2u);
  for (const JobDefinition& one : read) {
    ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), one.job));
    EXPECT_EQ(one.version, one.job == "changed" ? 2 : 1) << one.job;
    EXPECT_EQ(one.version, state.versions.back().number) << one.job;
    EXPECT_EQ(one.definition, state.versions.back().definition) << one.job;
  }
}

TEST_F(Basics, AnUnknownJobIsNotPlanned) {
  PlanWrite write;
  write.job = "nobody";
  PlanRequest request;
  request.writes = {write};
  ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(request));
  ASSERT_EQ(answers.jobs.size(), 1u);
  EXPECT_FALSE(answers.jobs[0].written);
}

// Of more jobs than are asked for, half are those whose looks came due last.
TEST_F(Basics, ABacklogOfLooksDoesNotKeepThoseWaitingThatCameDueLast) {
  std::vector<Job> jobs;
  for (int i = 0; i < 9; ++i) jobs.push_back(PlainJob(absl::StrCat("j", i)));
  ASSERT_OK(ApplyJobs(acts(), jobs));
  for (int i = 0; i < 9; ++i) {
    ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), jobs[i].name));
    PlanRequest plan;
    plan.writes.push_back({.job = state.job,
                           .expected_revision = state.revision,
                           .cursor = state.cursor,
                           .next_look = i < 8 ? At(i < 2 ? 1 : i) : At(1000)});
    ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(plan));
    ASSERT_TRUE(answers.jobs.at(0).written);
  }
  world().SetClock(At(100));
  const auto read = [&](int limit) {
    ReadDueRequest request;
    request.limit = limit;
    const auto due = store().ReadDue(request);
    EXPECT_TRUE(due.ok()) << due.status();
    std::string names;
    for (const JobState& job : due->jobs) absl::StrAppend(&names, job.job, " ");
    return absl::StrCat(names, absl::ToDoubleSeconds(due->next_look - T0()));
  };
  EXPECT_EQ(read(1), "j0 1");
  EXPECT_EQ(read(3), "j0 j1 j7 2");
  EXPECT_EQ(read(4), "j0 j1 j6 j7 2");
  EXPECT_EQ(read(7), "j0 j1 j2 j3 j5 j6 j7 4");
  EXPECT_EQ(read(8), "j0 j1 j2 j3 j4 j5 j6 j7 1000");
  EXPECT_EQ(read(9), "j0 j1 j2 j3 j4 j5 j6 j7 1000");
}

}  // namespace
}  // namespace matins::conformance
