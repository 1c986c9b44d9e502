// Two STARTs of one instant, of different jobs' rows: neither locks, waits for or is answered with
// what is the other's, in a table of a few rows too, which the server would rather read whole.
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "gtest/gtest.h"
#include "tests/integration/server_side.h"
#include "tests/integration/stage.h"

namespace matins::testing {
namespace {

#if MATINS_LAB

class Beside : public ::testing::TestWithParam<int> {
 protected:
  static PeriodKey Key(int job) { return KeyOf(absl::StrCat("job", job), job); }

  void SetUp() override {
    const std::string url = SideUrl();
    ASSERT_OK_AND_ASSIGN(first_, Stage::Open(url));
    ASSERT_OK_AND_ASSIGN(second_, Stage::Open(url));
    for (int job = 0; job < GetParam(); ++job) {
      ASSERT_OK(first_.Apply(Key(job).job));
      ASSERT_OK(first_.Plan(Key(job).job, job, job + 1));
    }
  }

  static StartRequest Asking(int job, absl::string_view node) {
    StartRequest request;
    request.node.name = std::string(node);
    request.nonce = 100 + job;
    request.keys = {Key(job)};
    return request;
  }

  void ExpectStarted(const absl::StatusOr<StartAnswers>& answers, int job, absl::string_view node) {
    SCOPED_TRACE(absl::StrCat("of ", Key(job).job));
    ASSERT_OK(answers.status());
    ASSERT_EQ(answers->rows.size(), 1u);
    const StartAnswer& answer = answers->rows[0];
    EXPECT_EQ(answer.key, Key(job));
    ASSERT_TRUE(answer.claim) << static_cast<int>(answer.result);
    EXPECT_EQ(answer.claim->key, Key(job));
    ASSERT_OK_AND_ASSIGN(const PeriodRow row, first_.Row(Key(job)));
    EXPECT_EQ(row.fence, answer.claim->fence);
    EXPECT_EQ(row.nonce, 100 + job);
    EXPECT_EQ(row.node, node);
  }

  Stage first_, second_;
};

// While the first job's START stands before its commit, the others' are begun and end: one that
// waited for it would do so until its deadline, since both are this thread's.
TEST_P(Beside, EachGetsItsOwnRow) {
  std::vector<absl::StatusOr<StartAnswers>> others;
  SetFaultHook([&](absl::string_view point) {
    if (point != "start.before_commit" || !others.empty()) return absl::OkStatus();
    for (int job = 1; job < GetParam(); ++job) {
      others.emplace_back(StartAnswers());
      others.back() = second_.store->Start(Asking(job, "n2"));
    }
    return absl::OkStatus();
  });
  const absl::StatusOr<StartAnswers> one = first_.store->Start(Asking(0, "n1"));
  SetFaultHook(nullptr);
  ExpectStarted(one, 0, "n1");
  ASSERT_EQ(others.size(), static_cast<size_t>(GetParam() - 1));
  for (int job = 1; job < GetParam(); ++job) ExpectStarted(others[job - 1], job, "n2");
}

INSTANTIATE_TEST_SUITE_P(Jobs, Beside, ::testing::Values(2, 5));

#endif

}  // namespace
}  // namespace matins::testing
