#include "simulate/simulate.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

absl::Time At(int month, int day, int hour = 0, int minute = 0, int second = 0) {
  return absl::FromCivil(absl::CivilSecond(2026, month, day, hour, minute, second),
                         absl::UTCTimeZone());
}

Job Nightly(std::string name = "recon") {
  Job job;
  job.name = std::move(name);
  job.schedule = "0 1 * * *";
  job.period = PeriodKind::kDay;
  job.biz_date = BizShift{-1, BizShift::Unit::kDay};
  job.misfire = Misfire::kEach;
  job.backfill.order = Order::kStrict;
  job.run.kind = RunKind::kShell;
  job.run.shell = "true";
  return job;
}

SimulateReport Simulated(const SimulateRequest& request) {
  absl::StatusOr<SimulateReport> report = SimulateJobs(request);
  EXPECT_TRUE(report.ok()) << report.status();
  return report.ok() ? *std::move(report) : SimulateReport();
}

SimulateRequest Fortnight(std::vector<Job> jobs) {
  SimulateRequest request;
  request.jobs = std::move(jobs);
  request.from = At(3, 1);
  request.to = At(3, 15);
  request.otherwise = absl::Minutes(10);
  return request;
}

TEST(Simulate, ANightlyJobRunsEachNightOnTime) {
  const SimulateReport report = Simulated(Fortnight({Nightly()}));
  ASSERT_THAT(report.periods, SizeIs(14));
  for (int i = 0; i < 14; ++i) {
    const SimulatedPeriod& period = report.periods[i];
    EXPECT_EQ(period.due, At(3, 1 + i, 1));
    EXPECT_EQ(period.biz_date, absl::CivilDay(2026, 2, 28) + i);
    EXPECT_EQ(period.started, period.due);
    EXPECT_EQ(period.finished, period.due + absl::Minutes(10));
    EXPECT_EQ(period.status, PeriodStatus::kDone);
    EXPECT_FALSE(period.late || period.backfill);
  }
  ASSERT_THAT(report.jobs, SizeIs(1));
  EXPECT_EQ(report.jobs[0].done, 14);
  EXPECT_EQ(report.jobs[0].longest_wait, absl::ZeroDuration());
  EXPECT_THAT(report.piles, IsEmpty());
}

// Down over three nights: the policy decides, as it would.
TEST(Simulate, AnOutageIsMadeGoodByThePolicy) {
  Job each = Nightly("each"), latest = Nightly("latest"), skip = Nightly("skip");
  latest.misfire = Misfire::kLatest;
  skip.misfire = Misfire::kSkip;
  latest.backfill.order = skip.backfill.order = Order::kNone;
  SimulateRequest request = Fortnight({each, latest, skip});
  request.outages = {{At(3, 5), At(3, 7, 12)}};
  const SimulateReport report = Simulated(request);
  ASSERT_THAT(report.jobs, SizeIs(3));
  EXPECT_EQ(report.jobs[0].name, "each");
  EXPECT_EQ(report.jobs[0].done, 14);
  EXPECT_EQ(report.jobs[0].backfilled, 3);
  EXPECT_EQ(report.jobs[0].late, 3);
  EXPECT_THAT(report.jobs[0].skipped, IsEmpty());
  EXPECT_EQ(report.jobs[1].done, 12);
  EXPECT_THAT(report.jobs[1].skipped, ElementsAre(Pair("superseded", 2)));
  EXPECT_EQ(report.jobs[2].done, 11);
  EXPECT_THAT(report.jobs[2].skipped, ElementsAre(Pair("missed", 3)));
  // Oldest first, one after the other, from the return on.
  std::vector<absl::Time> starts;
  for (const SimulatedPeriod& period : report.periods) {
    if (period.key.job == "each" && period.backfill) starts.push_back(period.started);
  }
  ASSERT_THAT(starts, SizeIs(3));
  EXPECT_EQ(starts[0], At(3, 7, 12));
  EXPECT_EQ(starts[1], At(3, 7, 12, 10));
  EXPECT_EQ(starts[2], At(3, 7, 12, 20));
  ASSERT_THAT(report.piles, testing::Contains(testing::Field(&Pile::job, "each")));
  const Pile& pile = report.piles[0];
  EXPECT_EQ(pile.from, At(3, 6, 1)) << "from the second that waits";
  EXPECT_EQ(pile.to, At(3, 7, 12, 10));
  EXPECT_EQ(pile.most, 3);
}

TEST(Simulate, WhatRanWhenTheNodeDiedIsLostAndRunAgain) {
  SimulateRequest request = Fortnight({Nightly()});
  request.outages = {{At(3, 5, 1, 5), At(3, 5, 2)}};
  const SimulateReport report = Simulated(request);
  EXPECT_EQ(report.jobs[0].lost, 1);
  EXPECT_EQ(report.jobs[0].done, 14);
  const SimulatedPeriod& period = report.periods[4];
  EXPECT_EQ(period.attempts, 2);
  EXPECT_EQ(period.lost, 1);
  EXPECT_EQ(period.started, At(3, 5, 1)) << "the first attempt";
  EXPECT_EQ(period.finished, At(3, 5, 2, 10));
}

// An outage that is shorter than the lease: the next attempt waits for the lease, not for the node.
TEST(Simulate, AShortOutageWaitsForTheLeaseOfWhatWasLost) {
  SimulateRequest request = Fortnight({Nightly()});
  request.outages = {{At(3, 5, 1, 5), At(3, 5, 1, 5, 2)}};
  const SimulateReport report = Simulated(request);
  const SimulatedPeriod& period = report.periods[4];
  EXPECT_EQ(period.lost, 1);
  EXPECT_GT(period.finished, At(3, 5, 1, 15, 2));
  EXPECT_LE(period.finished, At(3, 5, 1, 15, 30));
}

TEST(Simulate, RunsThatTakeLongerThanTheirStepPileUp) {
  Job hourly = Nightly("billing");
  hourly.schedule = "0 * * * *";
  hourly.period = PeriodKind::kHour;
  hourly.biz_date = {};
  hourly.timeout = absl::Hours(10);
  SimulateRequest request = Fortnight({hourly});
  request.to = At(3, 2);
  request.durations = {{"billing", {absl::Hours(2)}}};
  const SimulateReport report = Simulated(request);
  EXPECT_EQ(report.jobs[0].done, 11);
  EXPECT_EQ(report.jobs[0].due, 24) << "the instant of --to is not in it, that of --from not owed";
  ASSERT_THAT(report.piles, testing::Not(IsEmpty()));
  EXPECT_GE(report.piles.back().most, 11);
  EXPECT_GE(report.jobs[0].longest_wait, absl::Hours(10));
}

TEST(Simulate, SlotsLimitsAndTimeOutsCount) {
  std::vector<Job> jobs;
  for (int i = 0; i < 6; ++i) jobs.push_back(Nightly(absl::StrCat("j", i)));
  SimulateRequest request = Fortnight(jobs);
  EXPECT_EQ(Simulated(request).most_running, 6);
  request.slots = 2;
  SimulateReport report = Simulated(request);
  EXPECT_EQ(report.most_running, 2);
  EXPECT_EQ(report.most_running_at, At(3, 1, 1));
  for (const SimulatedJob& job : report.jobs) EXPECT_EQ(job.done, 14) << job.name;
  request.slots = 64;
  request.limits = {{LimitKind::kGlobal, "", 3}};
  report = Simulated(request);
  EXPECT_EQ(report.most_running, 3);
  EXPECT_EQ(report.jobs[5].longest_wait + report.jobs[0].longest_wait, absl::Minutes(10));
  jobs.resize(1);
  jobs[0].timeout = absl::Minutes(5);
  request = Fortnight(jobs);
  report = Simulated(request);
  EXPECT_EQ(report.jobs[0].done, 0);
  EXPECT_EQ(report.periods[0].status, PeriodStatus::kFailed);
  EXPECT_EQ(report.periods[0].reason, "timeout");
}

TEST(Simulate, ClockChangesAreTheSchedulesOwn) {
  Job job = Nightly();
  job.schedule = "30 2 * * *";
  job.timezone = "Europe/Berlin";
  SimulateRequest request = Fortnight({job});
  request.from = At(3, 28);
  request.to = At(3, 31);
  const SimulateReport report = Simulated(request);
  ASSERT_THAT(report.periods, SizeIs(3));
  EXPECT_EQ(report.periods[0].due, At(3, 28, 1, 30));
  EXPECT_EQ(report.periods[1].due, At(3, 29, 1, 0)) << "the first instant after the gap";
  EXPECT_EQ(report.periods[2].due, At(3, 30, 0, 30));
}

// Long runs of a simulation forget what is settled, and nothing is lost or said twice by that.
TEST(Simulate, AYearOfAnHourlyJobIsAllThere) {
  Job hourly = Nightly("billing");
  hourly.schedule = "5 * * * *";
  hourly.period = PeriodKind::kHour;
  hourly.biz_date = {};
  Job after = Nightly("report");
  after.after = {{"recon"}};
  SimulateRequest request = Fortnight({hourly, Nightly(), after});
  request.from = At(1, 1);
  request.to = At(1, 1) + absl::Hours(24 * 365);
  request.outages = {{At(6, 1), At(6, 1, 9)}};
  request.durations = {{"billing", {absl::Seconds(30)}}};
  const SimulateReport report = Simulated(request);
  ASSERT_THAT(report.jobs, SizeIs(3));
  EXPECT_EQ(report.jobs[0].due, 8760);
  EXPECT_EQ(report.jobs[0].done, 8760);
  EXPECT_EQ(report.jobs[0].backfilled, 9);
  EXPECT_EQ(report.jobs[1].done, 365);
  EXPECT_EQ(report.jobs[2].done, 365);
  for (const SimulatedPeriod& period : report.periods) {
    if (period.key.job == "report") {
      EXPECT_GE(period.started, period.due + absl::Minutes(10)) << "after recon";
    }
  }
}

// What schedulers have been seen to do wrong after an outage, each as its users told it.
SimulatedJob After(Job job, absl::Time from, Outage outage, absl::Time to, SimulateReport* report) {
  SimulateRequest request;
  request.jobs = {std::move(job)};
  request.from = from;
  request.to = to;
  request.outages = {outage};
  *report = Simulated(request);
  return report->jobs.empty() ? SimulatedJob() : report->jobs[0];
}

Job EachMinutes(std::string schedule, Misfire misfire) {
  Job job = Nightly();
  job.schedule = std::move(schedule);
  job.period = PeriodKind::kFire;
  job.start_deadline = absl::Seconds(10);
  job.biz_date = {};
  job.misfire = misfire;
  job.backfill.order = misfire == Misfire::kEach ? Order::kStrict : Order::kNone;
  return job;
}

TEST(Simulate, MoreThanAHundredMissedStartsBlockNothing) {
  const absl::Time from = absl::FromUnixSeconds(1488823200 - 600);  // 2017-03-06T17:50:00Z
  const absl::Time down = from + absl::Seconds(630),
                   up = from + absl::Minutes(820) + absl::Seconds(30);
  SimulateReport report;
  SimulatedJob job = After(EachMinutes("* * * * *", Misfire::kSkip), from, {down, up},
                           up + absl::Minutes(2), &report);
  EXPECT_THAT(job.skipped, ElementsAre(Pair("missed", 810)));
  EXPECT_EQ(report.periods.back().status, PeriodStatus::kDone);
  EXPECT_EQ(job.done + 810, job.due);
  ASSERT_THAT(report.spans, SizeIs(1)) << "they have a span instead of rows";
  EXPECT_EQ(report.spans[0].count, 810);
  job = After(EachMinutes("* * * * *", Misfire::kLatest), from, {down, up}, up + absl::Minutes(2),
              &report);
  EXPECT_THAT(job.skipped, ElementsAre(Pair("superseded", 809)));
  EXPECT_EQ(job.backfilled, 1) << "the newest, at once";
}

TEST(Simulate, MissedFiresLeaveATraceEach) {
  SimulateReport report;
  const SimulatedJob job = After(EachMinutes("*/5 * * * *", Misfire::kLatest), At(4, 28, 11, 57),
                                 {At(4, 28, 12, 2), At(4, 28, 15, 2)}, At(4, 28, 15, 4), &report);
  EXPECT_EQ(job.due, 37) << "12:00, and 36 that came due meanwhile";
  EXPECT_EQ(job.done, 2);
  EXPECT_THAT(job.skipped, ElementsAre(Pair("superseded", 35)));
  EXPECT_EQ(report.periods.back().due, At(4, 28, 15));
  EXPECT_EQ(report.periods.back().started, At(4, 28, 15, 2));
}

TEST(Simulate, AnIntervalDoesNotBeginAnewWithEachRelease) {
  SimulateRequest request;
  request.jobs = {EachMinutes("@every 24h", Misfire::kEach)};
  request.from = At(5, 1, 7, 30);
  request.to = request.from + absl::Hours(73);
  for (int restart = 1; restart < 8; ++restart) {
    const absl::Time at = request.from + restart * absl::Hours(10);
    request.outages.push_back({at, at + absl::Minutes(1)});
  }
  const SimulateReport report = Simulated(request);
  ASSERT_THAT(report.periods, SizeIs(3));
  for (const SimulatedPeriod& period : report.periods) {
    EXPECT_EQ(period.started, period.due);
    EXPECT_EQ(period.status, PeriodStatus::kDone);
  }
  EXPECT_EQ(report.periods[1].due - report.periods[0].due, absl::Hours(24));
}

TEST(Simulate, ABacklogHasNoHoles) {
  Job job = Nightly();
  job.backfill.start = absl::CivilDay(2026, 1, 20);
  job.backfill.max_periods = std::nullopt;
  SimulateRequest request = Fortnight({job});
  request.from = At(3, 1);
  request.to = At(3, 2);
  for (int kill = 0; kill < 5; ++kill) {
    const absl::Time at = request.from + absl::Minutes(30 + 45 * kill);
    request.outages.push_back({at, at + absl::Seconds(40)});
  }
  const SimulateReport report = Simulated(request);
  ASSERT_THAT(report.periods, SizeIs(40));
  for (size_t i = 0; i < report.periods.size(); ++i) {
    EXPECT_EQ(report.periods[i].status, PeriodStatus::kDone);
    EXPECT_EQ(report.periods[i].biz_date, absl::CivilDay(2026, 1, 20) + static_cast<int>(i));
  }
  EXPECT_EQ(report.jobs[0].lost, 5);
}

TEST(Simulate, WhatMakesNoSenseIsRefused) {
  SimulateRequest request = Fortnight({Nightly()});
  request.to = request.from;
  EXPECT_EQ(SimulateJobs(request).status().code(), absl::StatusCode::kInvalidArgument);
  request = Fortnight({Nightly()});
  request.outages = {{At(3, 3), At(3, 2)}};
  EXPECT_EQ(SimulateJobs(request).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace matins
