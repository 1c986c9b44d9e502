#include "job/parse.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/json.h"
#include "job/print.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kWhole[] = R"(store: sqlite:matins.db
journal: full
calendars: { cn-workdays: { file: cn.txt, until: 2026-12-31 } }
defaults: { timezone: Asia/Shanghai }
include: conf.d/*.yaml
limits: { global: 200, tenant: { payments: 4, "*": 9 }, key: { bank-a: 3 }, backfill_share: 50% }
jobs:
  - name: recon
    tenant: payments
    schedule: "0 1 * * *"
    timezone: Asia/Shanghai
    period: day
    biz_date: -1d
    calendar: cn-workdays
    misfire: each
    backfill: { start: 2026-10-01, max_periods: 31, max_age: 90d, source_window: 90d, max_parallel: 1, order: strict }
    overlap: forbid
    start_deadline: 90s
    done_by: "09:00"
    lock: { scope: job, ttl: 40s, provider: store }
    limits: { job: 2, key: "bank-{{tenant}}" }
    timeout: 3h
    grace: 20s
    retry: { attempts: 3, backoff: 30s..10m }
    recovery: resume
    max_lost: 4
    stale_after: 1h
    commit: job
    after: [{ job: settle }]
    spread: 60s
    nodes: [db-east]
    priority: 7
    env: { A: no, TOKEN: { file: /run/secrets/t } }
    dir: /srv/recon
    user: batch
    umask: 022
    output: { keep: 1MiB }
    history: { succeeded: 2, failed: 9 }
    dst: { gap: shift, overlap: second }
    run: { command: ["./recon", "--date", "{{biz_date}}"] }
    check: { shell: "./count-differences" }
)";

MemoryFiles WholeFiles() {
  return MemoryFiles({{"matins.yaml", kWhole},
                      {"cn.txt", "2026-10-01..2026-10-07 off\n2026-10-10 on # make-up\n"},
                      {"conf.d/a.yaml",
                       "jobs:\n  - { name: settle, schedule: '@daily', misfire: skip,"
                       " run: { handler: settle } }\n"}});
}

TEST(ParseJobFile, ReadsEachKey) {
  MemoryFiles files = WholeFiles();
  const absl::StatusOr<JobFile> file = ParseJobFile("matins.yaml", {.files = &files});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->store, "sqlite:matins.db");
  EXPECT_TRUE(file->journal_full);
  EXPECT_EQ(file->global_limit, 200);
  EXPECT_EQ(file->limits, (std::vector<LimitRule>{{LimitKind::kGlobal, "", 200},
                                                  {LimitKind::kTenant, "*", 9},
                                                  {LimitKind::kTenant, "payments", 4},
                                                  {LimitKind::kKey, "bank-a", 3},
                                                  {LimitKind::kBackfillShare, "", 50}}));
  ASSERT_EQ(file->jobs.size(), 2U);

  Job want;
  want.name = "recon";
  want.tenant = "payments";
  want.schedule = "0 1 * * *";
  want.timezone = "Asia/Shanghai";
  want.period = PeriodKind::kDay;
  want.biz_date = {-1, BizShift::Unit::kDay};
  want.calendar = "cn-workdays";
  want.calendar_data = {"2026-10-01..2026-10-02 off\n2026-10-05..2026-10-07 off\n2026-10-10 on\n",
                        absl::CivilDay(2026, 12, 31)};
  want.misfire = Misfire::kEach;
  want.backfill = {absl::CivilDay(2026, 10, 1), 31, absl::Hours(90 * 24),
                   absl::Hours(90 * 24),        1,  Order::kStrict};
  want.start_deadline = absl::Seconds(90);
  want.done_by.time_of_day = absl::Hours(9);
  want.lock.ttl = absl::Seconds(40);
  want.limit = 2;
  want.limit_key = "bank-{{tenant}}";
  want.timeout = absl::Hours(3);
  want.grace = absl::Seconds(20);
  want.retry = {3, absl::Seconds(30), absl::Minutes(10)};
  want.recovery = Recovery::kResume;
  want.max_lost = 4;
  want.stale_after = absl::Hours(1);
  want.commit = CommitBy::kJob;
  want.after = {{"settle"}};
  want.spread = absl::Seconds(60);
  want.nodes = {"db-east"};
  want.priority = 7;
  want.env = {{"A", {"no", ""}}, {"TOKEN", {"", "/run/secrets/t"}}};
  want.dir = "/srv/recon";
  want.user = "batch";
  want.umask = 18;
  want.output_keep_bytes = 1 << 20;
  want.history_succeeded = 2;
  want.history_failed = 9;
  want.dst = {GapRule::kShift, OverlapRule::kSecond};
  want.run = {RunKind::kCommand, {"./recon", "--date", "{{biz_date}}"}, "", ""};
  want.check = RunSpec{RunKind::kShell, {}, "./count-differences", ""};
  EXPECT_EQ(file->jobs[0], want) << JobToJson(file->jobs[0]) << "\n" << JobToJson(want);
  // The included file's job takes the including file's defaults.
  EXPECT_EQ(file->jobs[1].name, "settle");
  EXPECT_EQ(file->jobs[1].timezone, "Asia/Shanghai");
}

TEST(ParseJobFile, JobsReadBackFromJsonAndYaml) {
  MemoryFiles files = WholeFiles();
  const absl::StatusOr<JobFile> file = ParseJobFile("matins.yaml", {.files = &files});
  ASSERT_TRUE(file.ok()) << file.status();
  for (const Job& job : file->jobs) {
    const absl::StatusOr<Job> from_json = JobFromJson(JobToJson(job));
    ASSERT_TRUE(from_json.ok()) << from_json.status();
    EXPECT_EQ(*from_json, job);
    EXPECT_EQ(JobToJson(*from_json), JobToJson(job));
    const std::string yaml =
        "calendars: { cn-workdays: { file: cn.txt, until: 2026-12-31 } }\njobs:\n" + JobToYaml(job);
    const absl::StatusOr<JobFile> from_yaml = ParseJobText("x.yaml", yaml, {.files = &files});
    ASSERT_TRUE(from_yaml.ok()) << from_yaml.status() << "\n" << yaml;
    EXPECT_THAT(from_yaml->jobs, ElementsAre(job)) << yaml;
  }
}

TEST(ParseJobFile, FillsInTheDefaults) {
  const absl::StatusOr<JobFile> file = ParseJobText("m.yaml", R"(jobs:
  - { name: a, schedule: "0 1 * * *", misfire: each, run: { handler: h } }
  - { name: b, schedule: "0 1 * * *", misfire: latest, overlap: allow, run: { handler: h } }
)");
  ASSERT_TRUE(file.ok()) << file.status();
  const Job& a = file->jobs[0];
  EXPECT_EQ(a.period, PeriodKind::kFire);
  EXPECT_EQ(a.timezone, "UTC");
  EXPECT_EQ(a.overlap, Overlap::kForbid);
  EXPECT_EQ(a.backfill.order, Order::kStrict);
  EXPECT_EQ(a.backfill.max_periods, 30);
  EXPECT_EQ(a.backfill.max_parallel, 1);
  EXPECT_EQ(a.backfill.max_age, absl::InfiniteDuration());
  EXPECT_EQ(a.backfill.source_window, absl::InfiniteDuration());
  EXPECT_EQ(a.lock.scope, LockScope::kJob);
  EXPECT_EQ(a.lock.ttl, absl::Seconds(30));
  EXPECT_EQ(a.start_deadline, absl::Seconds(60));
  EXPECT_EQ(a.timeout, absl::Hours(2));
  EXPECT_EQ(a.grace, absl::Seconds(10));
  EXPECT_EQ(a.retry.attempts, 1);
  EXPECT_EQ(a.recovery, Recovery::kRerun);
  EXPECT_EQ(a.commit, CommitBy::kNode);
  EXPECT_EQ(a.max_lost, 5);
  EXPECT_EQ(a.stale_after, absl::Hours(2));
  EXPECT_EQ(a.limit, std::nullopt);
  EXPECT_EQ(file->jobs[1].backfill.order, Order::kNone);
  EXPECT_EQ(file->jobs[1].lock.scope, LockScope::kPeriod);
  EXPECT_FALSE(file->journal_full);
  EXPECT_EQ(file->global_limit, std::nullopt);
}

TEST(ParseJobFile, AJobsOwnWordWinsOverADefault) {
  const absl::StatusOr<JobFile> file = ParseJobText("m.yaml", R"(
defaults: { misfire: skip, schedule: "@daily", backfill: { max_periods: 5, max_age: 2d }, run: { handler: h } }
jobs:
  - { name: a }
  - { name: b, misfire: each, backfill: { max_periods: unlimited } }
  - { name: c, at: 2026-12-01T00:00:00Z }
)");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->jobs[0].backfill.max_periods, 5);
  EXPECT_EQ(file->jobs[0].schedule, "@daily");
  EXPECT_EQ(file->jobs[1].misfire, Misfire::kEach);
  EXPECT_EQ(file->jobs[1].backfill.max_periods, std::nullopt);
  EXPECT_EQ(file->jobs[1].backfill.max_age, absl::Hours(48));
  EXPECT_EQ(file->jobs[2].schedule, "");
  EXPECT_TRUE(file->jobs[2].at.has_value());
}

TEST(ParseJobFile, UnderstandsK8sWords) {
  const absl::StatusOr<JobFile> file = ParseJobText("m.yaml", R"(jobs:
  - name: a
    schedule: 0 1 * * *
    timeZone: Europe/Berlin
    concurrencyPolicy: Replace
    startingDeadlineSeconds: 200
    successfulJobsHistoryLimit: 7
    failedJobsHistoryLimit: 2
    suspend: true
    misfire: latest
    run: { handler: h }
)");
  ASSERT_TRUE(file.ok()) << file.status();
  const Job& job = file->jobs[0];
  EXPECT_EQ(job.timezone, "Europe/Berlin");
  EXPECT_EQ(job.overlap, Overlap::kReplace);
  EXPECT_EQ(job.start_deadline, absl::Seconds(200));
  EXPECT_EQ(job.backfill.max_age, absl::Seconds(200));
  EXPECT_EQ(job.history_succeeded, 7);
  EXPECT_EQ(job.history_failed, 2);
  EXPECT_TRUE(job.suspend);
}

TEST(ParseJobFile, TellsAllMistakesOfAFileAtOnce) {
  const absl::Status status = ParseJobText("m.yaml", R"(jobs:
  - name: a
    schedule: "0 61 * * *"
    missfire: each
    run: { handler: h }
  - name: a
    schedule: "@daily"
    misfire: skip
    timeout: soon
    run: { handler: h }
)")
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::string text(status.message());
  EXPECT_THAT(text, HasSubstr("m.yaml:3:5: schedule: "));
  EXPECT_THAT(text, HasSubstr("m.yaml:4:5: unknown key 'missfire'; did you mean 'misfire'?"));
  EXPECT_THAT(text, HasSubstr("m.yaml:2:5: misfire is not given, and has no default; write "
                              "misfire: skip, latest or each (latest is what K8s does)"));
  EXPECT_THAT(text, HasSubstr("m.yaml:6:11: the name 'a' is given twice; first in m.yaml:2:11"));
  EXPECT_THAT(text, HasSubstr("m.yaml:9:5: timeout: 'soon' is not a duration"));
}

}  // namespace
}  // namespace matins
