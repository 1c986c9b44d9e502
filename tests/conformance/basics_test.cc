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

TEST_F(Basics, AnUnknownJobIsNotPlanned) {
  PlanWrite write;
  write.job = "nobody";
  PlanRequest request;
  request.writes = {write};
  ASSERT_OK_AND_ASSIGN(const PlanAnswers answers, store().Plan(request));
  ASSERT_EQ(answers.jobs.size(), 1u);
  EXPECT_FALSE(answers.jobs[0].written);
}

}  // namespace
}  // namespace matins::conformance
