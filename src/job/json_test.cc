#include "job/json.h"

#include <string>

#include "base/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/resolve.h"
#include "job/sha256.h"
#include "schedule/timetable.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

Job SmallJob() {
  Job job;
  job.name = "a";
  job.schedule = "0 1 * * *";
  job.run.handler = "h";
  return job;
}

TEST(JobToJson, LeavesDefaultsOutAndIsStable) {
  EXPECT_EQ(JobToJson(SmallJob()),
            R"({"name":"a","schedule":"0 1 * * *","misfire":"skip","run":{"handler":"h"}})");
}

TEST(StoredAudit, SaysWhatTheWholeDefinitionWould) {
  Job job = SmallJob();
  const auto same = [&] {
    const std::optional<AuditWords> words = StoredAudit(JobToJson(job));
    const absl::StatusOr<Job> whole = StoredJob(JobToJson(job));
    ASSERT_TRUE(words.has_value());
    ASSERT_TRUE(whole.ok()) << whole.status();
    EXPECT_EQ(words->expression, whole->audit);
    EXPECT_EQ(words->zone, whole->timezone);
  };
  same();
  job.timezone = "Asia/Shanghai";
  same();
  job.audit = "30 7 * * 1-5";
  same();
  job.timezone = Job().timezone;
  same();
  // Words of those names elsewhere are not meant.
  job = SmallJob();
  job.env["audit"] = {"no", ""};
  job.env["timezone"] = {"none", ""};
  same();
  EXPECT_FALSE(StoredAudit(R"({"audit":7})").has_value());
  EXPECT_FALSE(StoredAudit(R"({"audit":""})").has_value());
  EXPECT_FALSE(StoredAudit(R"(["audit"])").has_value());
}

// What was checked once is not checked again; what is no definition is still none.
TEST(StoredJob, IsReadWithoutWhatItsValuesMeanTogether) {
  const Job job = SmallJob();
  EXPECT_EQ(*StoredJob(JobToJson(job)), job);
  const std::string contradiction =
      R"({"name":"a","schedule":"0 1 * * *","misfire":"skip","backfill":{"order":"strict"},"run":{"handler":"h"}})";
  EXPECT_FALSE(JobFromJson(contradiction).ok());
  EXPECT_TRUE(StoredJob(contradiction).ok());
  EXPECT_FALSE(StoredJob(R"({"name":"a","misfire":"sometimes"})").ok());
  EXPECT_FALSE(StoredJob("[]").ok());
}

// What the file's reader derives from other words is written where it differs from that.
TEST(JobToJson, KeepsDerivedDefaultsApart) {
  Job job = SmallJob();
  job.misfire = Misfire::kEach;
  EXPECT_THAT(JobToJson(job), HasSubstr(R"("backfill":{"order":"none"})"));
  EXPECT_EQ(*JobFromJson(JobToJson(job)), job);
  job.backfill.order = Order::kStrict;
  EXPECT_THAT(JobToJson(job), ::testing::Not(HasSubstr("order")));
  EXPECT_EQ(*JobFromJson(JobToJson(job)), job);
  job.overlap = Overlap::kAllow;
  job.lock.scope = LockScope::kPeriod;
  EXPECT_EQ(*JobFromJson(JobToJson(job)), job);
}

TEST(JobToJson, KeepsTextsByteForByte) {
  Job job = SmallJob();
  job.run = {RunKind::kShell, {}, "echo \"$A\"\t'\\\n\x01\x7f \u5bf9 \U0001F552 #: - {x}", ""};
  job.env = {{"A", {" lead: # \\ \"", ""}}, {"B", {"", "/run/t"}}, {"EMPTY", {"", ""}}};
  ASSERT_TRUE(JobFromJson(JobToJson(job)).ok()) << JobFromJson(JobToJson(job)).status();
  EXPECT_EQ(*JobFromJson(JobToJson(job)), job);
}

TEST(RenamedJson, IsTheRenamedJobsOwnText) {
  Job job = SmallJob();
  job.run = {
      RunKind::kShell, {}, "echo \"$A\"\t'\\\n\x01\x7f \u5bf9 \U0001F552 \"name\":\"a\"", ""};
  job.env = {{"name", {"a", ""}}};
  job.history_succeeded = 7;
  const std::string before = JobToJson(job);
  job.name = "b \u5bf9";
  EXPECT_EQ(RenamedJson(before, job.name), JobToJson(job));
  for (const char* other : {"", "[]", "{\"name\":"}) EXPECT_EQ(RenamedJson(other, "b"), other);
}

TEST(JobFromJson, IsStrict) {
  for (
      const char* json :
      {"", "[]", "{", "{}", R"({"name":"a"})",
       R"({"name":"a","schedule":"0 1 * * *","misfire":"skip","run":{"handler":"h"},"x":1})",
       R"({"name":"a","schedule":"0 61 * * *","misfire":"skip","run":{"handler":"h"}})",
       R"({"name":"a","schedule":"0 1 * * *","misfire":"no","run":{"handler":"h"}})",
       R"({"name":"a","schedule":"0 1 * * *","misfire":"skip","run":{"handler":"h"},"timeout":2.5})",
       R"({"name":"a","schedule":"0 1 * * *","misfire":"skip","run":{"shell":"x\u0000"}})"}) {
    EXPECT_EQ(JobFromJson(json).status().code(), absl::StatusCode::kInvalidArgument) << json;
  }
  EXPECT_THAT(std::string(JobFromJson(R"({"name":"a","schedule":"@daily","run":{"handler":"h"}})")
                              .status()
                              .message()),
              HasSubstr("misfire is not given"));
}

TEST(JobFromJson, CarriesTheCalendar) {
  Job job = SmallJob();
  job.calendar = "cn";
  job.calendar_data = {"2026-10-01 off\n", absl::CivilDay(2026, 12, 31)};
  const absl::StatusOr<Job> back = JobFromJson(JobToJson(job));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, job);
  const absl::StatusOr<ResolvedJob> resolved = ResolveJob(*back);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_FALSE(resolved->calendar->IsBusinessDay(absl::CivilDay(2026, 10, 1)));
  EXPECT_EQ(resolved->calendar->until(), absl::CivilDay(2026, 12, 31));
}

TEST(ValidateJob, JudgesAJobThatAProgramMade) {
  EXPECT_TRUE(ValidateJob(SmallJob()).ok()) << ValidateJob(SmallJob());
  const auto refused = [](auto change) {
    Job job = SmallJob();
    change(job);
    return !ValidateJob(job).ok();
  };
  EXPECT_TRUE(refused([](Job& job) { job.name = "a/b"; }));
  EXPECT_TRUE(refused([](Job& job) { job.at = absl::UnixEpoch(); }));
  EXPECT_TRUE(refused([](Job& job) { job.timeout = absl::ZeroDuration(); }));
  EXPECT_TRUE(refused([](Job& job) { job.timeout = absl::Seconds(5) + absl::Nanoseconds(1); }));
  EXPECT_TRUE(refused([](Job& job) { job.overlap = Overlap::kAllow; }));
  EXPECT_TRUE(refused([](Job& job) { job.run.shell = "unused"; }));
  EXPECT_TRUE(refused([](Job& job) { job.calendar_data.days = "2026-10-01 off\n"; }));
  EXPECT_TRUE(refused([](Job& job) { job.env["A"].text = "\xff"; }));
}

// A table of holidays that covers 2026 alone: left out within it, refused beyond it.
TEST(ResolveJob, ACalendarNeverTakesAnUnknownDayForAWorkingDay) {
  Job job = SmallJob();
  job.schedule = "0 6 * * 1-5";
  job.timezone = "Asia/Seoul";
  job.calendar = "kr";
  job.calendar_data = {"2026-09-24..2026-09-25 off\n", absl::CivilDay(2026, 12, 31)};
  const absl::StatusOr<ResolvedJob> resolved = ResolveJob(job);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  const auto next =
      NextOn(resolved->schedule, &*resolved->calendar, *ParseInstant("2026-09-23T07:00:00+09:00"));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(FormatInstant((*next)->at), "2026-09-27T21:00:00Z");
  EXPECT_EQ(
      NextOn(resolved->schedule, &*resolved->calendar, *ParseInstant("2026-12-31T07:00:00+09:00"))
          .status()
          .code(),
      absl::StatusCode::kOutOfRange);
}

TEST(ResolveJob, AZoneInsideTheExpressionWins) {
  Job job = SmallJob();
  job.schedule = "*-*-* 01:00:00 Asia/Shanghai";
  job.timezone = "UTC";
  const absl::StatusOr<ResolvedJob> resolved = ResolveJob(job);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->period_rule.zone.name(), "Asia/Shanghai");
}

TEST(Sha256Hex, GivesTheStandardsOwnExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

}  // namespace
}  // namespace matins
