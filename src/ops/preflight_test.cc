#include "ops/preflight.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "audit/beats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/resolve.h"
#include "store/rules.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

const absl::Time kNow = absl::FromUnixSeconds(1793318400);  // 2026-10-30T00:00:00Z
constexpr absl::Duration kDay = absl::Hours(24);

Job GoodJob() {
  Job job;
  job.name = "recon";
  job.schedule = "0 1 * * *";
  job.period = PeriodKind::kDay;
  job.misfire = Misfire::kEach;
  job.backfill.start = absl::CivilDay(2026, 10, 1);
  job.backfill.max_periods = 10;
  job.backfill.source_window = 90 * kDay;
  job.backfill.order = Order::kStrict;
  job.done_by.time_of_day = absl::Hours(9);
  job.run.kind = RunKind::kShell;
  job.run.shell = "true";
  return job;
}

RunRow Attempt(std::string status, absl::Duration took) {
  RunRow run;
  run.status = std::move(status);
  run.claimed_at = kNow - kDay;
  run.finished_at = run.claimed_at + took;
  return run;
}

JobFacts GoodFacts(const Job& job = GoodJob()) {
  JobFacts facts;
  facts.row.name = job.name;
  facts.row.first_sight = kNow - 30 * kDay;
  absl::StatusOr<ResolvedJob> resolved = ResolveJob(job);
  if (resolved.ok()) facts.job = *std::move(resolved);
  facts.version_from = absl::InfinitePast();
  for (int i = 0; i < 3; ++i) facts.runs.push_back(Attempt("DONE", absl::Minutes(12)));
  DrillRow drill;
  drill.id = 7;
  drill.started_at = kNow - 3 * kDay;
  drill.finished_at = drill.started_at + absl::Minutes(40);
  drill.result = drill_result::kPassed;
  facts.drills = {drill};
  AuditRow audit;
  audit.beat = "jobs 0 9 * * * UTC";
  audit.due = kNow - absl::Hours(15);
  audit.finished_at = audit.due;
  audit.canary = true;
  facts.audits = {audit};
  facts.now = kNow;
  return facts;
}

// "pass: 10 period(s), ..." of the one check of that question.
std::string Answer(const JobFacts& facts, absl::string_view question) {
  for (const PreflightCheck& check : CheckJob(facts)) {
    if (check.question != question) continue;
    EXPECT_EQ(check.mend.empty(), check.level == PreflightLevel::kPass) << question;
    return absl::StrCat(PreflightWord(check.level), ": ", check.measured);
  }
  return "not asked";
}

std::string MendOf(const JobFacts& facts, absl::string_view question) {
  for (const PreflightCheck& check : CheckJob(facts)) {
    if (check.question == question) return check.mend;
  }
  return "not asked";
}

TEST(Preflight, AJobThatIsReadyPassesEverything) {
  for (const PreflightCheck& check : CheckJob(GoodFacts())) {
    EXPECT_EQ(PreflightWord(check.level), "pass") << check.question << ": " << check.measured;
  }
}

TEST(Preflight, NothingThatWasNotMeasuredIsAPass) {
  JobFacts facts = GoodFacts();
  facts.runs.clear();
  facts.drills.clear();
  facts.audits.clear();
  for (const char* question : {"deadline", "time-out", "lease", "history", "audit",
                               "back-fill drilled", "back-fill and business hours"}) {
    EXPECT_THAT(Answer(facts, question), testing::Not(HasSubstr("pass"))) << question;
  }
  EXPECT_EQ(Answer(facts, "back-fill drilled"), "fail: never");
  EXPECT_THAT(Answer(facts, "audit"), HasSubstr("fail: its own beat, 0 9 * * *, was never made"));
}

TEST(Preflight, TheWorstRunIsHeldAgainstDeadlineAndTimeOut) {
  JobFacts facts = GoodFacts();
  EXPECT_EQ(Answer(facts, "deadline"), "pass: 8h after due, worst run 12m");
  EXPECT_EQ(Answer(facts, "time-out"), "pass: 2h, worst run 12m");
  facts.row.worst_duration = absl::Minutes(70);
  EXPECT_EQ(Answer(facts, "time-out"), "warn: 2h, worst run 1h10m");
  facts.row.worst_duration = absl::Hours(9);
  EXPECT_EQ(Answer(facts, "deadline"), "fail: 8h after due, worst run 9h");
  EXPECT_EQ(Answer(facts, "time-out"), "fail: 2h, worst run 9h");
}

TEST(Preflight, BackfillIsHeldAgainstSourceAndBusinessHours) {
  Job job = GoodJob();
  EXPECT_EQ(Answer(GoodFacts(job), "cap"), "pass: 10 period(s), 10d back");
  job.backfill.source_window = 7 * kDay;
  EXPECT_EQ(Answer(GoodFacts(job), "source window"), "fail: back-fill reaches 10d, the source 7d");
  job.backfill.source_window = absl::InfiniteDuration();
  EXPECT_THAT(Answer(GoodFacts(job), "source window"), HasSubstr("warn: not said"));
  job.backfill.max_periods = 60;
  EXPECT_THAT(Answer(GoodFacts(job), "back-fill and business hours"),
              HasSubstr("warn: 60 period(s), 1 at a time, take 12h"));
  job.backfill.max_periods = std::nullopt;
  EXPECT_THAT(Answer(GoodFacts(job), "cap"), HasSubstr("warn: none"));
  job.backfill.start = std::nullopt;
  EXPECT_THAT(Answer(GoodFacts(job), "start date"), HasSubstr("warn: none"));
}

TEST(Preflight, LeasesThatWereLostAndShortOnesAreToldOf) {
  JobFacts facts = GoodFacts();
  facts.runs.push_back(Attempt("LOST", absl::Minutes(1)));
  EXPECT_EQ(Answer(facts, "lease"), "warn: lease 30s, 1 of the last 4 attempt(s) lost it");
  Job job = GoodJob();
  job.lock.ttl = absl::Seconds(3);
  EXPECT_THAT(Answer(GoodFacts(job), "lease"), HasSubstr("warn: lease 3s"));
}

TEST(Preflight, ADrillCountsWhilePassedRecentAndOfThisVersion) {
  JobFacts facts = GoodFacts();
  EXPECT_THAT(Answer(facts, "back-fill drilled"), HasSubstr("pass: drill 7, 3d ago, passed"));
  facts.version_from = kNow - kDay;
  EXPECT_THAT(Answer(facts, "back-fill drilled"),
              HasSubstr("warn: drill 7, 3d ago, passed; the job has changed"));
  facts = GoodFacts();
  facts.drills[0].started_at = kNow - 100 * kDay;
  EXPECT_THAT(Answer(facts, "back-fill drilled"), HasSubstr("warn"));
  facts.drills[0].result = drill_result::kFailed;
  EXPECT_THAT(Answer(facts, "back-fill drilled"), HasSubstr("fail"));
  facts.drills[0].finished_at = absl::InfinitePast();
  EXPECT_THAT(Answer(facts, "back-fill drilled"), HasSubstr("is not over"));
}

TEST(Preflight, AnAuditCountsOnItsOwnBeatOnlyWhileItSeesAndIsRecent) {
  JobFacts facts = GoodFacts();
  facts.audits[0].canary = false;
  EXPECT_THAT(Answer(facts, "audit"), HasSubstr("fail"));
  facts = GoodFacts();
  facts.audits[0].finished_at = kNow - 3 * kDay;
  EXPECT_THAT(Answer(facts, "audit"), HasSubstr("fail"));
  facts.audits[0].beat = kStoreBeat;
  EXPECT_THAT(Answer(facts, "audit"), HasSubstr("never made"));
  EXPECT_EQ(CheckAudits({}, kNow, StartedBy::kNodes).level, PreflightLevel::kFail);
  AuditRow all = GoodFacts().audits[0];
  all.beat = kStoreBeat;
  EXPECT_EQ(CheckAudits({all}, kNow, StartedBy::kNodes).level, PreflightLevel::kPass);
  all.beat = kHandBeat;
  EXPECT_EQ(CheckAudits({all}, kNow, StartedBy::kNodes).level, PreflightLevel::kFail)
      << "a person's is no watch";
}

TEST(Preflight, MonthsAndClockChangesAreAskedOfTheLinter) {
  Job job = GoodJob();
  job.schedule = "30 2 31 * *";
  job.period = PeriodKind::kMonth;
  job.timezone = "Europe/Berlin";
  EXPECT_EQ(Answer(GoodFacts(job), "months, clock changes, calendar"), "not asked");
  EXPECT_THAT(Answer(GoodFacts(job), "lint schedule"), HasSubstr("warn: "));
}

TEST(Preflight, ALeaseHasToBearWhatStoodStill) {
  const auto told = [](absl::Duration ago, absl::string_view detail) {
    EventRow event;
    event.kind = kStoodStillEvent;
    event.at = kNow - ago;
    event.who = "node:db1/1";
    event.detail = std::string(detail);
    return event;
  };
  EventRow other = told(kDay, "{\"ms\":99000}");
  other.kind = "return";
  JobFacts facts = GoodFacts();
  EXPECT_EQ(LongestStoodStill({other, told(kDay, "?"), told(kDay, "{}")}, kNow - 90 * kDay),
            std::nullopt);
  facts.still =
      LongestStoodStill({told(kDay, "{\"ms\":2500}"), told(2 * kDay, "{\"ms\":22500}"),
                         told(3 * kDay, "{\"ms\":9000}"), told(91 * kDay, "{\"ms\":80000}")},
                        kNow - 90 * kDay);
  ASSERT_TRUE(facts.still.has_value());
  EXPECT_EQ(facts.still->length, absl::Milliseconds(22500));
  EXPECT_THAT(Answer(facts, "lease"),
              HasSubstr("pass: lease 30s, 0 of the last 3 attempt(s) lost"));
  EXPECT_THAT(Answer(facts, "lease"), HasSubstr("node:db1/1 stood still for 22s at 2026-10-28"));
  facts.still->length = absl::Milliseconds(22501);
  EXPECT_THAT(Answer(facts, "lease"), HasSubstr("warn: "));
  EXPECT_THAT(MendOf(facts, "lease"), HasSubstr("lock.ttl of 45s"));
}

// No daemon stands behind them: crontab lines call `matins exec`, and one calls `matins audit`.
TEST(Preflight, AsksForNoNodeWhereExecStartsAllJobs) {
  StoreStatus status;
  status.now = kNow;
  const std::vector<PreflightCheck> checks = CheckNodes({}, status, StartedBy::kExec);
  EXPECT_EQ(checks[0].level, PreflightLevel::kPass);
  EXPECT_EQ(checks[1].level, PreflightLevel::kPass);
  const PreflightCheck none = CheckAudits({}, kNow, StartedBy::kExec);
  EXPECT_EQ(none.level, PreflightLevel::kFail);
  EXPECT_THAT(none.mend, HasSubstr("crontab line"));
  AuditRow audit = GoodFacts().audits[0];
  audit.beat = kHandBeat;
  audit.canary = false;
  EXPECT_EQ(CheckAudits({audit}, kNow, StartedBy::kExec).level, PreflightLevel::kPass);
  audit.finished_at = kNow - absl::Hours(30);
  EXPECT_EQ(CheckAudits({audit}, kNow, StartedBy::kExec).level, PreflightLevel::kFail);
  Job job = GoodJob();
  job.run = {};
  job.run.kind = RunKind::kExec;
  JobFacts facts = GoodFacts(job);
  facts.audits.clear();
  facts.drills.clear();
  EXPECT_THAT(Answer(facts, "audit"), HasSubstr("warn: no node has looked"));
  EXPECT_EQ(Answer(facts, "back-fill drilled"), "fail: never");
  EXPECT_THAT(MendOf(facts, "back-fill drilled"), HasSubstr("--days 3 -- COMMAND"));
}

TEST(Preflight, ClocksOfNodesAreMeasuredOrNotPassed) {
  StoreStatus status;
  status.now = kNow;
  std::vector<PreflightCheck> checks = CheckNodes({}, status, StartedBy::kNodes);
  EXPECT_EQ(checks[0].level, PreflightLevel::kFail);
  EXPECT_EQ(checks[1].level, PreflightLevel::kWarn);
  NodeRow node;
  node.seen_at = kNow;
  node.clock_offset = -absl::Seconds(5);
  checks = CheckNodes({node, node}, status, StartedBy::kNodes);
  EXPECT_EQ(checks[0].level, PreflightLevel::kPass);
  EXPECT_EQ(checks[1].level, PreflightLevel::kWarn);
  EXPECT_THAT(checks[1].measured, HasSubstr("5s"));
}

}  // namespace
}  // namespace matins
