#include "ops/twice.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

absl::Time At(int seconds) { return absl::FromUnixSeconds(1793318400) + absl::Seconds(seconds); }

AttemptStory Attempt(int64_t fence, absl::string_view status, int claimed, int finished,
                     int generation = 1) {
  AttemptStory attempt;
  attempt.run.fence = fence;
  attempt.run.status = std::string(status);
  attempt.run.generation = generation;
  attempt.run.claimed_at = At(claimed);
  attempt.run.finished_at = finished < 0 ? absl::InfinitePast() : At(finished);
  return attempt;
}

PeriodStory Story(std::vector<AttemptStory> attempts, CommitBy commit = CommitBy::kNode) {
  PeriodStory story;
  story.key = {"recon", "2026-10-29"};
  story.attempts = std::move(attempts);
  story.commit = commit;
  return story;
}

const Guard& GuardOf(const TwiceAnswer& answer, absl::string_view name) {
  for (const Guard& guard : answer.guards) {
    if (guard.name == name) return guard;
  }
  ADD_FAILURE() << "no guard " << name;
  return answer.guards.front();
}

TEST(Twice, OneAttemptIsNotDoubledAndEachGuardHeld) {
  const TwiceAnswer answer = JudgeTwice(Story({Attempt(5, "DONE", 0, 10)}));
  EXPECT_EQ(answer.verdict, TwiceAnswer::Verdict::kSingle);
  EXPECT_EQ(answer.missing, "");
  EXPECT_THAT(answer.says, HasSubstr("not doubled: 1 attempt(s), one accepted result"));
  ASSERT_EQ(answer.guards.size(), 4u);
  for (const Guard& guard : answer.guards)
    EXPECT_EQ(guard.state, Guard::State::kHeld) << guard.name;
  EXPECT_THAT(GuardOf(answer, "key").evidence, HasSubstr("recon/2026-10-29/STEP"));
}

TEST(Twice, ALostAttemptBeforeTheResultLacksTheCommitCondition) {
  PeriodStory story = Story({Attempt(5, "LOST", 0, 30), Attempt(6, "DONE", 31, 40)});
  story.attempts[0].refusals.push_back({At(45), "node:a", "fence"});
  const TwiceAnswer answer = JudgeTwice(story);
  EXPECT_EQ(answer.verdict, TwiceAnswer::Verdict::kPossible);
  EXPECT_EQ(answer.missing, "commit");
  EXPECT_THAT(GuardOf(answer, "commit").evidence, HasSubstr("run 5 LOST"));
  EXPECT_EQ(GuardOf(answer, "lease").state, Guard::State::kHeld);
  EXPECT_EQ(GuardOf(answer, "fence").state, Guard::State::kHeld);
  EXPECT_THAT(GuardOf(answer, "fence").evidence, HasSubstr("5 < 6; refused: run 5 at"));
  EXPECT_EQ(GuardOf(answer, "key").state, Guard::State::kUnknown);
}

TEST(Twice, WithTheJobsOwnCommitALostAttemptLeftNothing) {
  const TwiceAnswer answer =
      JudgeTwice(Story({Attempt(5, "LOST", 0, 30), Attempt(6, "DONE", 31, 40)}, CommitBy::kJob));
  EXPECT_EQ(answer.verdict, TwiceAnswer::Verdict::kSingle);
  EXPECT_EQ(GuardOf(answer, "commit").state, Guard::State::kHeld);
}

TEST(Twice, AGenerationEachIsAnActOfSomebodysAndTheKeysAffair) {
  PeriodStory story = Story({Attempt(5, "DONE", 0, 10), Attempt(9, "DONE", 100, 110, 2)});
  EventRow event;
  event.generation = 2;
  event.who = "cli:ann@db1";
  event.why = "source corrected";
  event.at = At(90);
  story.reopened.push_back(event);
  const TwiceAnswer answer = JudgeTwice(story);
  EXPECT_EQ(answer.verdict, TwiceAnswer::Verdict::kAgain);
  EXPECT_EQ(answer.missing, "key");
  EXPECT_THAT(answer.says, HasSubstr("generation 2 by cli:ann@db1"));
  EXPECT_THAT(answer.says, HasSubstr("source corrected"));
}

TEST(Twice, TwoResultsOfOneGenerationNameWhatLetThemThrough) {
  // Both were owners at once.
  const TwiceAnswer lease =
      JudgeTwice(Story({Attempt(5, "DONE", 0, 50), Attempt(6, "DONE", 20, 40)}));
  EXPECT_EQ(lease.verdict, TwiceAnswer::Verdict::kDoubled);
  EXPECT_EQ(lease.missing, "lease");
  EXPECT_EQ(GuardOf(lease, "fence").state, Guard::State::kMissing);
  EXPECT_THAT(GuardOf(lease, "fence").evidence, HasSubstr("the older fence 5 was accepted"));
  EXPECT_THAT(GuardOf(lease, "lease").evidence, HasSubstr("run 6 was claimed"));
  // One after the other: a final period was claimed again.
  const TwiceAnswer commit =
      JudgeTwice(Story({Attempt(5, "DONE", 0, 10), Attempt(6, "DONE", 20, 30)}));
  EXPECT_EQ(commit.verdict, TwiceAnswer::Verdict::kDoubled);
  EXPECT_EQ(commit.missing, "commit");
  EXPECT_EQ(GuardOf(commit, "lease").state, Guard::State::kHeld);
}

TEST(Twice, ARunThatNeverStartedHadNoEffect) {
  PeriodStory story = Story({Attempt(5, "RETRY", 0, 1), Attempt(6, "DONE", 5, 9)});
  story.attempts[0].run.reason = "start_failed";
  EXPECT_EQ(JudgeTwice(story).verdict, TwiceAnswer::Verdict::kSingle);
}

}  // namespace
}  // namespace matins
