#include "store/attempt.h"

#include "gtest/gtest.h"
#include "store/act_rules.h"
#include "store/batches.h"

namespace matins {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'793'318'400);

AttemptRow Running() {
  AttemptRow row;
  row.key = {"a", "2026-10-30"};
  row.status = PeriodStatus::kRunning;
  row.fence = 7;
  row.nonce = 3;
  row.attempts = 1;
  row.not_before = row.due = kNow - absl::Minutes(1);
  row.lease_until = kNow + absl::Seconds(1);
  row.run_until = kNow + absl::Hours(1);
  return row;
}
const Ticket kOwner{{"a", "2026-10-30"}, 1, 7, 3};

TEST(Attempt, IsHeardUntilTheInstantAtWhichItsLeaseEnds) {
  const AttemptRow row = Running();
  EXPECT_EQ(RefusalOf(&row, kOwner, kNow, Asked::kFinish), "");
  EXPECT_EQ(RefusalOf(&row, kOwner, row.lease_until, Asked::kFinish), "lease");
  EXPECT_EQ(RefusalOf(&row, kOwner, row.run_until, Asked::kFinish), "deadline");
  EXPECT_EQ(RefusalOf(nullptr, kOwner, kNow, Asked::kFinish), "gone");
  EXPECT_EQ(RefusalOf(&row, {kOwner.key, 1, 6, 3}, kNow, Asked::kFinish), "fence");
}

TEST(Attempt, ThatAPersonCancelledIsNotTriedAgain) {
  AttemptRow row = Running();
  Outcome retry;
  retry.kind = Outcome::Kind::kRetry;
  retry.reason = reason::kExit;
  retry.backoff = absl::Minutes(5);
  AfterEnd after = EndOf(row, EndingOf(retry), kNow);
  EXPECT_EQ(after.status, PeriodStatus::kPlanned);
  EXPECT_EQ(after.not_before, kNow + absl::Minutes(5));
  EXPECT_FALSE(after.final);
  row.cancel_asked = true;
  after = EndOf(row, EndingOf(retry), kNow);
  EXPECT_EQ(after.status, PeriodStatus::kFailed);
  EXPECT_EQ(after.reason, reason::kCancelled);
  EXPECT_TRUE(after.final);
}

TEST(Attempt, ALossUsesUpNoRetryAndBurnsTheFence) {
  const AfterEnd after =
      EndOf(Running(), ReapedBy({kOwner, Outcome::Kind::kReturned, reason::kLost, "n2"}), kNow);
  EXPECT_EQ(after.status, PeriodStatus::kPlanned);
  EXPECT_EQ(after.attempts, 0);
  EXPECT_EQ(after.losses, 1);
  EXPECT_TRUE(after.burn);
}

TEST(Attempt, AnUnknownEndIsMadeNowOrItsFenceIsBurnt) {
  const AttemptRow row = Running();
  const FinishRequest request{kOwner, {}, "n1"};
  EXPECT_EQ(JudgeResolve(request, &row, std::nullopt, kNow), ResolveVerdict::kComplete);
  EXPECT_EQ(JudgeResolve(request, &row, std::nullopt, row.lease_until), ResolveVerdict::kBurn);
  EXPECT_EQ(JudgeResolve(request, &row, "DONE", kNow), ResolveVerdict::kYes);
  EXPECT_EQ(JudgeResolve(request, nullptr, std::nullopt, kNow), ResolveVerdict::kNo);
  AttemptRow done = row;
  done.status = PeriodStatus::kDone;
  EXPECT_EQ(JudgeResolve(request, &done, std::nullopt, kNow), ResolveVerdict::kYes);
}

TEST(Batches, OneRowThatIsNotTakenIsFoundAndTheOthersAreWritten) {
  std::vector<std::string> answers(9, "?");
  int calls = 0;
  const auto batch = [&](const std::vector<size_t>& part, Locking) -> absl::Status {
    ++calls;
    for (const size_t i : part) {
      if (i == 5) return absl::InvalidArgumentError("no such day");
    }
    for (const size_t i : part) answers[i] = "";
    return absl::OkStatus();
  };
  std::vector<PeriodKey> keys;
  for (int i = 0; i < 9; ++i) keys.push_back({"a", std::string(1, static_cast<char>('0' + i))});
  const BatchErrors errors = {[](const absl::Status& s) { return absl::IsInvalidArgument(s); },
                              [](const absl::Status&) { return false; }};
  ASSERT_TRUE(RunBatches(
                  keys, batch, [&](size_t i) { return absl::string_view(answers[i]); },
                  [&](size_t i, std::string why) { answers[i] = std::move(why); }, errors)
                  .ok());
  for (size_t i = 0; i < answers.size(); ++i) {
    EXPECT_EQ(answers[i], i == 5 ? "row: no such day" : "");
  }
  EXPECT_LE(calls, 9);
}

TEST(StepsOf, AFileAddsChangesKeepsAndPrunesItsOwnAlone) {
  ApplyRequest request;
  request.source = "f";
  request.prune = true;
  for (const char* name : {"new", "same", "other", "back"}) {
    Definition d;
    d.job.name = name;
    d.json = "1";
    request.jobs.push_back(d);
  }
  const std::map<std::string, KnownJob> known = {{"same", {1, "1", "f"}},
                                                 {"other", {4, "0", "f"}},
                                                 {"back", {2, "1", "f", /*deleted=*/true}},
                                                 {"gone", {1, "1", "f"}},
                                                 {"elsewhere", {1, "1", "g"}}};
  ApplyAnswer answer;
  const std::vector<ApplyStep> steps = StepsOf(request, known, answer);
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps[0].kind, ApplyStep::Kind::kAdd);
  EXPECT_FALSE(steps[0].comes_back);
  EXPECT_EQ(steps[1].kind, ApplyStep::Kind::kKeep);
  EXPECT_EQ(steps[2].kind, ApplyStep::Kind::kChange);
  EXPECT_EQ(steps[2].version, 5);
  EXPECT_EQ(steps[3].kind, ApplyStep::Kind::kAdd);
  EXPECT_TRUE(steps[3].comes_back);
  EXPECT_EQ(steps[4].kind, ApplyStep::Kind::kPrune);
  EXPECT_EQ(answer.pruned, std::vector<std::string>{"gone"});
}

}  // namespace
}  // namespace matins
