// commit: job (I12): the job writes DONE in its own transaction, by the statements that `matins
// fence sql` prints.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/fence_sql.h"
#include "tests/integration/server_side.h"
#include "tests/integration/stage.h"

namespace matins::testing {
namespace {

// `sql` with its '?' replaced by job, period, generation and fence.
std::string For(const Claim& claim, absl::string_view sql) {
  const std::string values[] = {absl::StrCat("'", claim.key.job, "'"),
                                absl::StrCat("'", claim.key.period, "'"),
                                absl::StrCat(claim.generation), absl::StrCat(claim.fence)};
  std::string text;
  size_t next = 0;
  for (const char c : sql) {
    if (c == '?') {
      text += values[next++];
    } else {
      text += c;
    }
  }
  return text;
}

class JobCommit : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string url = SideUrl();
    auto stage = Stage::Open(url);
    ASSERT_TRUE(stage.ok()) << stage.status();
    stage_ = *std::move(stage);
    ASSERT_OK(stage_.Apply("a"));
    ASSERT_OK(stage_.Plan("a", 0, 1));
    auto session = ConnectTo(url);
    ASSERT_TRUE(session.ok()) << session.status();
    job_ = *std::move(session);
    auto claim = stage_.Claimed(KeyOf("a", 0));
    ASSERT_TRUE(claim.ok()) << claim.status();
    claim_ = *std::move(claim);
  }
  void Run(const std::string& sql) {
    const absl::Status done = job_(sql);
    EXPECT_TRUE(done.ok()) << done;
  }
  void CommitByJob() {
    const FenceStatements& sql = FenceSql(Side().dialect);
    Run("begin");
    Run(For(claim_, sql.lock));
    Run(For(claim_, sql.commit));
    Run(For(claim_, sql.record));
    Run("commit");
  }
  FinishRequest EndByJob() const {
    FinishRequest request = DoneOf(claim_);
    request.outcome.kind = Outcome::Kind::kDoneByJob;
    request.outcome.exit_code = 3;
    return request;
  }
  absl::StatusOr<std::string> FinishByJob() {
    const FinishRequest request = EndByJob();
    ASSIGN_OR_RETURN(const auto answers, stage_.store->Finish({&request, 1}));
    return answers[0].why;
  }

  Stage stage_;
  SqlSession job_;
  Claim claim_;
};

TEST_F(JobCommit, StandsAndItsNodeCompletesTheAttemptsRow) {
  CommitByJob();
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage_.Row(claim_.key));
  EXPECT_EQ(row.status, PeriodStatus::kDone);
  ASSERT_OK_AND_ASSIGN(const std::string why, FinishByJob());
  EXPECT_EQ(why, "");
  ASSERT_OK_AND_ASSIGN(const auto runs, stage_.acts->ReadRuns({}));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].status, "DONE");
  EXPECT_EQ(runs[0].exit_code, 3);
}

TEST_F(JobCommit, IsCompletedOnceWhereTheAnswerWasLost) {
  CommitByJob();
  FinishRequest request = EndByJob();
  request.outcome.figures = {{"payments", 20'000}};
  request.outcome.output_head = "all is booked\n";
  request.outcome.output_bytes = 14;
  for (int i = 0; i < 2; ++i) {  // the request was lost; then the answer
    ASSERT_OK_AND_ASSIGN(const auto answers, stage_.store->Resolve({&request, 1}));
    EXPECT_EQ(answers[0].kind, ResolveAnswer::Kind::kCommitted);
  }
  ASSERT_OK_AND_ASSIGN(const auto runs, stage_.acts->ReadRuns({}));
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].exit_code, 3);
  ASSERT_OK_AND_ASSIGN(const auto output, stage_.acts->ReadOutput(claim_.fence));
  EXPECT_EQ(output.head, "all is booked\n");
  Run("create unique index each_figure_once on job_figure (fence, name)");
}

TEST_F(JobCommit, IsMissedWhereTheJobDidNotMakeIt) {
  ASSERT_OK_AND_ASSIGN(const std::string why, FinishByJob());
  EXPECT_EQ(why, "no_commit");
}

TEST_F(JobCommit, OfAnotherFenceChangesNothing) {
  --claim_.fence;
  CommitByJob();
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage_.Row(claim_.key));
  EXPECT_EQ(row.status, PeriodStatus::kRunning);
}

TEST_F(JobCommit, ChangesNothingOnceTheLeaseHasEnded) {
  Run(Side().end_leases);
  CommitByJob();
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage_.Row(claim_.key));
  EXPECT_EQ(row.status, PeriodStatus::kRunning);
}

}  // namespace
}  // namespace matins::testing
