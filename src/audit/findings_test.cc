// Each way in which a period can be missing, told from the others.
#include "audit/findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/stuck.h"
#include "base/fault.h"
#include "base/time.h"
#include "job/resolve.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

absl::Time At(absl::string_view text) { return ParseInstant(text).value(); }

// recon: 01:00 UTC each day, for the day before; to be done by 09:00.
class Findings : public ::testing::Test {
 protected:
  Findings() {
    words_.name = "recon";
    words_.schedule = "0 1 * * *";
    words_.period = PeriodKind::kDay;
    words_.biz_date = {-1, BizShift::Unit::kDay};
    words_.misfire = Misfire::kEach;
    words_.done_by.time_of_day = absl::Hours(9);
    job_.row.name = "recon";
    job_.row.first_sight = At("2026-10-01T00:00:00Z");
  }

  void Version(absl::string_view from) {
    job_.meanings.push_back(std::make_unique<ResolvedJob>(ResolveJob(words_).value()));
    job_.versions.push_back(
        {static_cast<int>(job_.versions.size()) + 1, At(from), job_.meanings.back().get()});
  }

  // The period of the day before the fire on `day`.
  PeriodRow& Row(int day, PeriodStatus status) {
    PeriodRow row;
    row.biz_date = absl::CivilDay(2026, 10, day);
    row.key = {"recon", FormatDay(row.biz_date)};
    row.status = status;
    row.due = absl::FromCivil(absl::CivilSecond(2026, 10, day + 1, 1), absl::UTCTimeZone());
    row.finished_at = row.due + absl::Minutes(5);
    job_.rows.push_back(row);
    return job_.rows.back();
  }

  // "absent 2026-10-02!", an exclamation mark for an alarm.
  std::vector<std::string> Told(absl::string_view now, int from = 1, int to = 31) {
    if (job_.versions.empty()) Version("2026-10-01T00:00:00Z");
    verdict_ = JudgeJob(job_, {.from = absl::CivilDay(2026, 10, from),
                               .to = absl::CivilDay(2026, 10, to),
                               .now = At(now),
                               .nodes = nodes_});
    std::vector<std::string> told;
    for (const AuditFinding& finding : verdict_.findings) {
      told.push_back(absl::StrCat(AuditWord(finding.kind), " ", finding.period,
                                  finding.count > 1 ? absl::StrCat("..", finding.last_period) : "",
                                  finding.alarm ? "!" : ""));
    }
    return told;
  }

  std::string Why() const { return verdict_.findings.empty() ? "" : verdict_.findings[0].why; }

  Job words_;
  AuditJob job_;
  std::vector<NodeRow> nodes_;
  AuditVerdict verdict_;
};

TEST_F(Findings, NothingIsFoundWhereAllIsDone) {
  Row(1, PeriodStatus::kDone);
  Row(2, PeriodStatus::kDone);
  EXPECT_THAT(Told("2026-10-04T00:00:00Z", 1, 2), IsEmpty());
  EXPECT_EQ(verdict_.months.at(absl::CivilMonth(2026, 10)).expected, 2);
  EXPECT_EQ(verdict_.months.at(absl::CivilMonth(2026, 10)).done, 2);
}

TEST_F(Findings, APeriodWithoutAnyRowIsAbsentFromItsDeadlineOn) {
  Row(1, PeriodStatus::kDone);
  EXPECT_THAT(Told("2026-10-03T09:00:00Z", 1, 2), IsEmpty());
  ASSERT_THAT(Told("2026-10-03T09:00:01Z", 1, 2), ElementsAre("absent 2026-10-02!"));
  EXPECT_EQ(verdict_.findings[0].deadline, At("2026-10-03T09:00:00Z"));
}

TEST_F(Findings, NeighboursWithoutARowAreOneFinding) {
  EXPECT_THAT(Told("2026-10-10T00:00:00Z", 1, 5), ElementsAre("absent 2026-10-01..2026-10-05!"));
  EXPECT_EQ(verdict_.findings[0].count, 5);
}

TEST_F(Findings, AScheduleThatChangedIsJudgedByEachInItsTime) {
  Version("2026-10-01T00:00:00Z");
  words_.schedule = "0 1 * * 1";
  Version("2026-10-05T12:00:00Z");
  // The old one demanded each day up to the 5th; the new one Mondays alone.
  EXPECT_THAT(Told("2026-10-14T00:00:00Z"), ElementsAre("absent 2026-10-01..2026-10-11!"));
  EXPECT_EQ(verdict_.findings[0].count, 5) << "1 to 4 by the old one, the 11th by the new one";
}

TEST_F(Findings, WhatIsNotFinishedOrFailedIsToldApart) {
  Row(1, PeriodStatus::kPlanned);
  PeriodRow& running = Row(2, PeriodStatus::kRunning);
  running.node = "n1";
  running.claimed_at = running.due;
  running.lease_until = At("2026-10-30T00:00:00Z");
  Row(3, PeriodStatus::kFailed).reason = "exit";
  PeriodRow& held = Row(4, PeriodStatus::kFailed);
  held.held = true;
  held.reason = "lost";
  EXPECT_THAT(Told("2026-10-06T00:00:00Z", 1, 4),
              ElementsAre("unfinished 2026-10-01!", "unfinished 2026-10-02!", "failed 2026-10-03!",
                          "failed 2026-10-04!"));
  EXPECT_THAT(verdict_.findings[1].why, HasSubstr("RUNNING on n1"));
  EXPECT_THAT(verdict_.findings[3].why, HasSubstr("FAILED(held): lost"));
  EXPECT_EQ(verdict_.months.at(absl::CivilMonth(2026, 10)).missing, 4);
}

TEST_F(Findings, WhatWasDoneAfterItsDeadlineIsLateAndNoAlarm) {
  Row(1, PeriodStatus::kDone).finished_at = At("2026-10-02T09:00:01Z");
  EXPECT_THAT(Told("2026-10-04T00:00:00Z", 1, 1), ElementsAre("late 2026-10-01"));
}

TEST_F(Findings, WhatPolicySkippedIsShownAndNotAlarmedButForTheUnfillable) {
  Row(1, PeriodStatus::kSkipped).reason = "cap";
  Row(2, PeriodStatus::kSkipped).reason = "unfillable";
  Row(3, PeriodStatus::kSkipped).reason = "suspended";
  EXPECT_THAT(Told("2026-10-06T00:00:00Z", 1, 3),
              ElementsAre("skipped 2026-10-01", "unfillable 2026-10-02!", "suspended 2026-10-03"));
}

TEST_F(Findings, ASpanOfSkippedPeriodsHasNoRowsAndIsNotAbsent) {
  job_.spans = {{At("2026-10-02T01:00:00Z"), At("2026-10-04T01:00:00Z"), "2026-10-01", "2026-10-03",
                 3, "cap"}};
  EXPECT_THAT(Told("2026-10-06T00:00:00Z", 1, 4),
              ElementsAre("skipped 2026-10-01..2026-10-03", "absent 2026-10-04!"));
}

TEST_F(Findings, BelowTheFloorAllIsSettled) {
  job_.row.floor = At("2026-10-04T01:00:00Z");
  EXPECT_THAT(Told("2026-10-06T00:00:00Z", 1, 4), ElementsAre("absent 2026-10-04!"));
}

TEST_F(Findings, ASuspendedJobIsShownAndRemindedOfAfterAWeek) {
  job_.suspended = {{At("2026-10-03T00:00:00Z"), absl::InfiniteFuture(), "cli:alice", "year end"}};
  job_.row.suspension = job_.suspended[0];
  Row(1, PeriodStatus::kDone);
  EXPECT_THAT(Told("2026-10-06T12:00:00Z"), ElementsAre("suspended 2026-10-02..2026-10-05"));
  EXPECT_THAT(Why(), HasSubstr("by cli:alice: year end"));
  EXPECT_THAT(Told("2026-10-10T12:00:00Z"), ElementsAre("suspended 2026-10-02..2026-10-09!"));
}

TEST_F(Findings, AfterASuspensionTheDeadlineCountsFromItsEnd) {
  job_.suspended = {{At("2026-10-02T12:00:00Z"), At("2026-10-05T12:00:00Z"), "cli:alice", "x"}};
  Row(1, PeriodStatus::kDone);
  EXPECT_THAT(Told("2026-10-06T08:00:00Z", 1, 3), IsEmpty());
  EXPECT_THAT(Told("2026-10-06T10:00:00Z", 1, 3), ElementsAre("absent 2026-10-02..2026-10-03!"));
}

TEST_F(Findings, WhatIsAskedForFromBeforeFirstSightHasItsTimeFromThen) {
  words_.backfill.start = absl::CivilDay(2026, 9, 29);
  job_.row.first_sight = At("2026-10-01T12:00:00Z");
  EXPECT_THAT(Told("2026-10-02T08:00:00Z", 1, 1), IsEmpty());
  verdict_ = JudgeJob(job_, {.from = absl::CivilDay(2026, 9, 1),
                             .to = absl::CivilDay(2026, 9, 30),
                             .now = At("2026-10-02T08:00:00Z"),
                             .nodes = {}});
  EXPECT_THAT(verdict_.findings, IsEmpty());
  verdict_ = JudgeJob(job_, {.from = absl::CivilDay(2026, 9, 1),
                             .to = absl::CivilDay(2026, 9, 30),
                             .now = At("2026-10-02T09:00:01Z"),
                             .nodes = {}});
  ASSERT_EQ(verdict_.findings.size(), 1u);
  EXPECT_EQ(verdict_.findings[0].count, 2);
}

TEST_F(Findings, WhatTheSourceWillNotHaveForLongIsToldInTime) {
  words_.backfill.source_window = absl::Hours(240);
  Row(1, PeriodStatus::kFailed);
  EXPECT_THAT(Told("2026-10-09T00:00:00Z", 1, 1), ElementsAre("failed 2026-10-01!"));
  EXPECT_THAT(Told("2026-10-11T00:00:00Z", 1, 1),
              ElementsAre("failed 2026-10-01!", "soon_unfillable 2026-10-01!"));
  EXPECT_THAT(Told("2026-10-13T00:00:00Z", 1, 1),
              ElementsAre("failed 2026-10-01!", "unfillable 2026-10-01!"));
}

TEST_F(Findings, WhereACalendarEndsNobodyKnows) {
  words_.calendar = "cn";
  words_.calendar_data = {"", absl::CivilDay(2026, 10, 3)};
  Row(1, PeriodStatus::kDone);
  Row(2, PeriodStatus::kDone);
  const std::vector<std::string> told = Told("2026-10-06T00:00:00Z", 1, 5);
  EXPECT_THAT(told, ElementsAre("unknown !"));
  EXPECT_THAT(Why(), HasSubstr("calendar cn does not know 2026-10-04"));
}

TEST_F(Findings, RowsOutsideTheDatesThatAreStillOpenAreFoundToo) {
  Row(3, PeriodStatus::kFailed).reason = "exit";
  EXPECT_THAT(Told("2026-10-20T00:00:00Z", 18, 18),
              ElementsAre("absent 2026-10-18!", "failed 2026-10-03!"));
}

// ---- stuck ----

TEST_F(Findings, ARunWhoseLeaseEndedAndThatNobodyTookBackIsStuck) {
  PeriodRow& row = Row(5, PeriodStatus::kRunning);
  row.claimed_at = row.due;
  row.lease_until = row.due + absl::Seconds(30);
  EXPECT_THAT(Told("2026-10-06T01:01:00Z", 5, 5), IsEmpty()) << "a minute is left to the reaper";
  EXPECT_THAT(Told("2026-10-06T01:02:00Z", 5, 5), ElementsAre("stuck 2026-10-05!"));
  EXPECT_THAT(Why(), HasSubstr("claimed and never beaten"));
  row.lease_until = row.due + absl::Minutes(20);
  Told("2026-10-06T01:22:00Z", 5, 5);
  EXPECT_THAT(Why(), HasSubstr("its lease ended at 2026-10-06T01:20:00Z"));
}

TEST_F(Findings, RunningWithoutALeaseIsStuckPastStaleAfter) {
  Row(5, PeriodStatus::kRunning).claimed_at = At("2026-10-06T01:00:00Z");
  EXPECT_THAT(Told("2026-10-06T03:00:00Z", 5, 5), IsEmpty());
  EXPECT_THAT(Told("2026-10-06T03:02:00Z", 5, 5), ElementsAre("stuck 2026-10-05!"));
  EXPECT_THAT(Why(), HasSubstr("without a lease"));
}

TEST_F(Findings, ARowHeldByADeadNodeIsStuck) {
  PeriodRow& row = Row(5, PeriodStatus::kPlanned);
  row.held_by = "n1";
  row.held_until = row.due + absl::Seconds(2);
  nodes_ = {{.name = "n1", .seen_at = row.due}};
  EXPECT_THAT(Told("2026-10-06T01:05:00Z", 5, 5), ElementsAre("stuck 2026-10-05!"));
  EXPECT_THAT(Why(), HasSubstr("held by n1, which is dead"));
}

TEST_F(Findings, ARowThatMayNotStartAnyMoreAndThatNobodyJudgedIsStuck) {
  Row(5, PeriodStatus::kPlanned).start_by = At("2026-10-06T01:01:00Z");
  EXPECT_THAT(Told("2026-10-06T01:10:00Z", 5, 5), IsEmpty());
  EXPECT_THAT(Told("2026-10-06T01:12:00Z", 5, 5), ElementsAre("stuck 2026-10-05!"));
  EXPECT_THAT(Why(), HasSubstr("planned in the past"));
}

TEST_F(Findings, ACursorInTheFutureIsStuck) {
  Row(1, PeriodStatus::kDone);
  job_.row.cursor = At("2027-01-01T00:00:00Z");
  EXPECT_THAT(Told("2026-10-03T00:00:00Z", 1, 1), ElementsAre("stuck !"));
}

TEST_F(Findings, TwoAcceptedResultsTwoOwnersAndANobodysLockAreFound) {
  Version("2026-10-01T00:00:00Z");
  const absl::Time now = At("2026-10-06T02:00:00Z");
  Row(4, PeriodStatus::kRunning).lease_until = now + absl::Seconds(10);
  Row(5, PeriodStatus::kRunning).lease_until = now + absl::Seconds(20);
  AuditFacts facts;
  facts.now = now;
  facts.doubles = {{{"recon", "2026-10-03"}, 1, 2}};
  facts.locks = {{"job/recon", {"recon", "2026-10-02"}, 7, now + absl::Hours(2)},
                 {"job/other", {"other", "2026-10-02"}, 8, now + absl::Seconds(20)}};
  const std::vector<AuditFinding> found = FindOwnership(facts, {&job_, 1}, LongestLock(job_));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].kind, AuditKind::kTooMany);
  EXPECT_THAT(found[0].why, HasSubstr("2 runs are alive at once"));
  EXPECT_EQ(found[1].kind, AuditKind::kTooMany);
  EXPECT_THAT(found[1].why, HasSubstr("2 accepted results in generation 1"));
  EXPECT_EQ(found[2].kind, AuditKind::kStuck);
  EXPECT_THAT(found[2].why, HasSubstr("lock job/recon of run 7 is nobody's"));
}

// ---- the canary ----

TEST(Canary, ItsMissIsFoundByTheVeryJudgeOfAllJobs) {
  for (int hour = 0; hour < 48; ++hour) {
    const absl::Time now = At("2026-10-06T00:00:00Z") + absl::Minutes(60 * hour + 1);
    const Canary canary = PlantCanary(now);
    const absl::CivilDay today = absl::ToCivilDay(now, absl::UTCTimeZone());
    const AuditVerdict verdict =
        JudgeJob(canary.job, {.from = today - 9, .to = today, .now = now, .nodes = {}});
    EXPECT_EQ(canary.missing, FormatDay(today - 1));
    EXPECT_TRUE(CanaryFound(canary, verdict)) << FormatInstant(now);
  }
}

TEST(Canary, AnAuditThatSeesNothingOrTooMuchIsBlind) {
  const Canary canary = PlantCanary(At("2026-10-06T12:00:00Z"));
  EXPECT_FALSE(CanaryFound(canary, AuditVerdict()));
  AuditVerdict other;
  other.findings.push_back({.kind = AuditKind::kAbsent, .period = "2026-10-01"});
  EXPECT_FALSE(CanaryFound(canary, other));
}

}  // namespace
}  // namespace matins
