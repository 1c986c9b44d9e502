#include "plan/cascade.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const absl::Time kNow = absl::FromCivil(absl::CivilDay(2026, 11, 20), absl::UTCTimeZone());

PeriodRow Row(absl::string_view job, int day, PeriodStatus status = PeriodStatus::kDone) {
  PeriodRow row;
  row.biz_date = absl::CivilDay(2026, 11, day);
  row.key = {std::string(job), absl::FormatCivilTime(row.biz_date)};
  row.due = absl::FromCivil(row.biz_date + 1, absl::UTCTimeZone());
  row.status = status;
  return row;
}

std::vector<std::string> Names(const std::vector<PeriodKey>& keys) {
  std::vector<std::string> names;
  for (const PeriodKey& key : keys) names.push_back(key.job + key.period.substr(7));
  return names;
}

Cascade From(int day, const std::vector<CascadeJob>& jobs, const std::vector<PeriodRow>& rows) {
  return PlanCascade("a", Row("a", day).due, absl::CivilDay(2026, 11, day), jobs, rows, kNow);
}

TEST(Cascade, TakesLaterDonePeriodsUpToTheNewest) {
  const Cascade cascade =
      From(11, {{"a", {}}},
           {Row("a", 13), Row("a", 10), Row("a", 11), Row("a", 12),
            Row("a", 14, PeriodStatus::kPlanned), Row("a", 15, PeriodStatus::kSkipped)});
  EXPECT_THAT(Names(cascade.reopen), ElementsAre("a-12", "a-13"));
  EXPECT_THAT(cascade.running, IsEmpty());
}

TEST(Cascade, GoesOnToTheJobsThatComeAfterFromTheSameDate) {
  const std::vector<CascadeJob> jobs = {
      {"d", {"c"}}, {"c", {"b", "x"}}, {"b", {"a"}}, {"a", {}}, {"x", {}}};
  EXPECT_THAT(JobsAfter("a", jobs), ElementsAre("b", "c", "d"));
  const Cascade cascade =
      From(11, jobs,
           {Row("d", 11), Row("x", 12), Row("b", 12), Row("b", 11), Row("b", 10), Row("c", 11)});
  EXPECT_THAT(Names(cascade.reopen), ElementsAre("b-11", "b-12", "c-11", "d-11"));
}

TEST(Cascade, TellsWhatRunsOnWhatIsToBeComputedAgain) {
  const Cascade cascade =
      From(11, {{"a", {}}}, {Row("a", 12, PeriodStatus::kRunning), Row("a", 13)});
  ASSERT_EQ(cascade.running.size(), 1u);
  EXPECT_EQ(cascade.running[0].key.period, "2026-11-12");
}

TEST(Cascade, LeavesWhatTheSourceNoLongerHas) {
  const std::vector<CascadeJob> jobs = {{"a", {}}, {"b", {"a"}, absl::Hours(24 * 7)}};
  const Cascade cascade = From(11, jobs, {Row("b", 11), Row("b", 13)});
  EXPECT_THAT(Names(cascade.reopen), ElementsAre("b-13"));
  EXPECT_THAT(Names(cascade.unfillable), ElementsAre("b-11"));
}

}  // namespace
}  // namespace matins
