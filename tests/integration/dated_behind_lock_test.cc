// What is written to a row is dated behind that row's lock: after whatever another did to it (I8).
#include <functional>

#include "base/fault.h"
#include "gtest/gtest.h"
#include "tests/integration/server_side.h"
#include "tests/integration/stage.h"

namespace matins::testing {
namespace {

#if MATINS_LAB

// While `act` stands at `point`, having read its clock, another node takes hold of the job's only
// row. Answers when it did.
absl::StatusOr<absl::Time> HeldMeanwhile(const std::string& url, absl::string_view point,
                                         const std::function<absl::Status()>& act) {
  ASSIGN_OR_RETURN(Stage other, Stage::Open(url));
  absl::StatusOr<HoldAnswer> held = absl::NotFoundError("the point was not reached");
  SetFaultHook([&](absl::string_view reached) {
    if (reached != point) return absl::OkStatus();
    HoldRequest request;
    request.node.name = "n2";
    held = other.store->Hold(request);
    return absl::OkStatus();
  });
  const absl::Status done = act();
  SetFaultHook(nullptr);
  RETURN_IF_ERROR(done);
  RETURN_IF_ERROR(held.status());
  if (held->rows.size() != 1) return absl::NotFoundError("no row was held");
  return held->now;
}

TEST(DatedBehindLock, APlanThatSkipsARow) {
  const std::string url = SideUrl();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 1));
  ReadDueRequest read;
  read.jobs = {"a"};
  ASSERT_OK_AND_ASSIGN(const DueJobs due, stage.store->ReadDue(read));
  PlanRequest request;
  request.writes.resize(1);
  PlanWrite& write = request.writes[0];
  write.job = "a";
  write.expected_revision = due.jobs[0].revision;
  write.cursor = due.now;
  write.next_look = absl::InfiniteFuture();
  write.intents.resize(1);
  write.intents[0].kind = Intent::Kind::kSkip;
  write.intents[0].key = KeyOf("a", 0);
  write.intents[0].skip_reason = "missed";

  ASSERT_OK_AND_ASSIGN(const absl::Time held, HeldMeanwhile(url, "plan.before_commit", [&] {
                         return stage.store->Plan(request).status();
                       }));

  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage.Row(KeyOf("a", 0)));
  EXPECT_EQ(row.status, PeriodStatus::kSkipped);
  EXPECT_GE(row.finished_at, held);
}

TEST(DatedBehindLock, ADeletionThatSkipsARow) {
  const std::string url = SideUrl();
  ASSERT_OK_AND_ASSIGN(Stage stage, Stage::Open(url));
  ASSERT_OK(stage.Apply("a"));
  ASSERT_OK(stage.Plan("a", 0, 1));

  ASSERT_OK_AND_ASSIGN(const absl::Time held, HeldMeanwhile(url, "act.before_commit", [&] {
                         return stage.acts->Delete("a", false, {"cli:test", "the case"});
                       }));

  ASSERT_OK_AND_ASSIGN(const PeriodRow row, stage.Row(KeyOf("a", 0)));
  EXPECT_EQ(row.status, PeriodStatus::kSkipped);
  EXPECT_GE(row.finished_at, held);
}

#endif

}  // namespace
}  // namespace matins::testing
