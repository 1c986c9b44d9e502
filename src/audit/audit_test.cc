// A whole audit of a store, and planning crippled under it.
#include "audit/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "audit/world_test_support.h"
#include "base/fault.h"
#include "base/time.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// An hour after the fourth and the second night's fire; the deadline of that one is to come.
constexpr absl::Duration kToTheFourthFire = absl::Hours(24 * 3 + 2);
constexpr absl::Duration kToTheSecondFire = absl::Hours(24 + 2);

using AuditStore = AuditWorld;

TEST_F(AuditStore, SaysWhatTheSchedulesDemandedAndNobodyPlanned) {
  Apply(Daily("recon"));
  Apply(Daily("settle"));
  Sleep(kToTheFourthFire);
  const AuditReport report = Report({});
  EXPECT_THAT(Told(report),
              ElementsAre("recon absent 2026-10-30 x3", "settle absent 2026-10-30 x3"));
  EXPECT_EQ(report.jobs, 2);
  EXPECT_EQ(report.alarms, 2);
  EXPECT_EQ(report.total.expected, 8);
  EXPECT_EQ(report.total.missing, 6);
  EXPECT_EQ(report.total.open, 2) << "the newest of each is not past its deadline";
  EXPECT_TRUE(report.canary);
}

TEST_F(AuditStore, OneJobAndOneDateAlone) {
  Apply(Daily("recon"));
  Apply(Daily("settle"));
  Sleep(kToTheFourthFire);
  const AuditReport report = Report(
      {.job = "settle", .from = absl::CivilDay(2026, 10, 31), .to = absl::CivilDay(2026, 10, 31)});
  EXPECT_THAT(Told(report), ElementsAre("settle absent 2026-10-31"));
  EXPECT_EQ(Audit(*acts_, {.job = "nobody"}).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(AuditStore, WhatHasRunIsSubtracted) {
  Apply(Daily("recon"));
  for (int day = 0; day < 3; ++day) {
    Sleep(absl::Hours(day == 0 ? 2 : 24));
    RunAllDue();
  }
  const AuditReport report = Report({});
  EXPECT_THAT(Told(report), IsEmpty());
  EXPECT_EQ(report.total.done, 3);
}

// I13: planning that forgets silently is found out, by code that has no part of it.
TEST_F(AuditStore, FindsWhatACrippledPlannerForgot) {
#if MATINS_LAB
  Job skips = Daily("recon");
  skips.misfire = Misfire::kSkip;
  skips.backfill.order = Order::kNone;
  Apply(skips);
  SetMutant(Mutant::kSilentSkip);
  Sleep(kToTheFourthFire);
  PlanAll();
  SetMutant(Mutant::kNone);
  ASSERT_OK_AND_ASSIGN(const std::vector<PeriodRow> rows, acts_->ReadRows({}));
  EXPECT_LT(rows.size(), 4u) << "the mutant planned all: this proves nothing";
  EXPECT_THAT(Told(Report({})), ElementsAre("recon absent 2026-10-30 x3"));
#else
  GTEST_SKIP() << "needs the mutants of a lab build";
#endif
}

TEST_F(AuditStore, ADefinitionThatCannotBeReadIsSaidAndStopsNoOther) {
  Apply(Daily("recon"));
  ApplyText("broken", "{\"name\":\"broken\",\"of\":\"a newer program\"}");
  Sleep(kToTheSecondFire);
  const AuditReport report = Report({});
  EXPECT_THAT(Told(report), ElementsAre("broken unknown ", "recon absent 2026-10-30"));
}

TEST_F(AuditStore, ItsJsonAndItsRowSayTheSame) {
  Apply(Daily("recon"));
  Sleep(kToTheSecondFire);
  const AuditReport report = Report({});
  const AuditRow row = MakeAuditRow(report, 7, "cli:alice");
  EXPECT_EQ(row.id, 7);
  EXPECT_EQ(row.expected, 2);
  EXPECT_EQ(row.alarms, 1);
  EXPECT_TRUE(row.canary);
  EXPECT_THAT(row.detail, HasSubstr("\"kind\":\"absent\""));
  EXPECT_THAT(row.detail, HasSubstr("\"period\":\"2026-10-30\""));
  EXPECT_THAT(ReportJson(report, 0), HasSubstr("\"findings\":[]"));
  EXPECT_THAT(ReportJson(report, 0), HasSubstr("\"findings_in_all\":1"));
  EXPECT_THAT(FindingText(report.findings[0]),
              HasSubstr("recon 2026-10-30 absent: there is no row at all"));
}

}  // namespace
}  // namespace matins
