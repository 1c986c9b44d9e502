#include "job/key_template.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

std::string Expanded(absl::string_view key, absl::CivilDay day = absl::CivilDay(2026, 10, 30)) {
  const absl::StatusOr<std::string> text = ExpandKey(key, {"settle", "payments", "2026-W44", day});
  return text.ok() ? *text : std::string(text.status().message());
}

TEST(ExpandKey, PutsValuesIn) {
  EXPECT_EQ(Expanded("settle-{{biz_date}}"), "settle-2026-10-30");
  EXPECT_EQ(Expanded("settle-{biz_date:%Y%m%d}"), "settle-20261030");
  EXPECT_EQ(Expanded("{{ biz_date:%G-W%V-%u/%j%% }}"), "2026-W44-5/303%");
  EXPECT_EQ(Expanded("{{tenant}}/{job}/{{period}}"), "payments/settle/2026-W44");
  EXPECT_EQ(Expanded("bank"), "bank");
}

TEST(ExpandKey, WeeksAreIso) {
  EXPECT_EQ(Expanded("{biz_date:%G %V %u}", absl::CivilDay(2027, 1, 3)), "2026 53 7");
  EXPECT_EQ(Expanded("{biz_date:%G %V %u}", absl::CivilDay(2024, 12, 30)), "2025 01 1");
  EXPECT_EQ(Expanded("{biz_date:%G %V %u}", absl::CivilDay(2026, 1, 1)), "2026 01 4");
}

TEST(ExpandKey, LongKeysStayDifferent) {
  const std::string longer(150, 'x');
  const std::string a = *ExpandKey("{job}{period}", {longer, "", longer + "a", {}});
  const std::string b = *ExpandKey("{job}{period}", {longer, "", longer + "b", {}});
  EXPECT_LE(a.size(), 200U);
  EXPECT_NE(a, b);
}

TEST(CheckKey, RefusesWithReasonAndMend) {
  const struct {
    const char* key;
    const char* what;
  } kBad[] = {{"x-{{date}}", "unknown name 'date'"},    {"x-{{biz_date", "braces do not match"},
              {"x-{{}}", "braces do not match"},        {"x}", "braces do not match"},
              {"x-{{{{job}}}}", "braces do not match"}, {"x-{biz_date:%H}", "unknown % letter"},
              {"x-{biz_date:%}", "unknown % letter"},   {"x-{job:%Y}", "takes no form"},
              {" x", "a blank begins or ends it"},      {"x\ny", "control character"}};
  for (const auto& [key, what] : kBad) {
    const absl::Status status = CheckKey(key);
    EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(what), HasSubstr("; "))) << key;
  }
  EXPECT_FALSE(CheckKey(std::string(201, 'x')).ok());
  EXPECT_TRUE(CheckKey("settle-{biz_date:%Y%m%d}").ok());
}

TEST(LockKeyOf, IsHashedWhereItIsMasked) {
  Job job;
  job.name = "recon";
  job.lock = {LockScope::kKey, "customer-{{period}}"};
  job.mask = Mask::kHash;
  const std::string key = *LockKeyOf(job, "4711", {});
  EXPECT_THAT(key, ::testing::MatchesRegex("hash/[0-9a-f]{32}"));
  EXPECT_EQ(key, *LockKeyOf(job, "4711", {}));
  EXPECT_NE(key, *LockKeyOf(job, "4712", {}));
  // What names nobody's business stays readable.
  job.lock.scope = LockScope::kJob;
  EXPECT_EQ(*LockKeyOf(job, "4711", {}), "job/recon");
}

TEST(LockKeyOf, FollowsTheScope) {
  Job job;
  job.name = "recon";
  job.tenant = "pay";
  const absl::CivilDay day(2026, 10, 30);
  EXPECT_EQ(*LockKeyOf(job, "2026-10-30", day), "job/recon");
  job.lock.scope = LockScope::kPeriod;
  EXPECT_EQ(*LockKeyOf(job, "2026-10-30", day), "");
  job.lock = {LockScope::kKey, "tenant/{{tenant}}"};
  EXPECT_EQ(*LockKeyOf(job, "2026-10-30", day), "tenant/pay");
}

TEST(KeyNamesPeriod, TellsKeysThatChange) {
  EXPECT_TRUE(KeyNamesPeriod("x-{{biz_date}}"));
  EXPECT_TRUE(KeyNamesPeriod("{period}"));
  EXPECT_FALSE(KeyNamesPeriod("x-{{tenant}}"));
}

TEST(CheckRunTemplate, KnowsTheNamesOfARun) {
  EXPECT_TRUE(CheckRunTemplate("--date={{biz_date}} {{ param.k }} \\{{x}} {y}").ok());
  EXPECT_THAT(std::string(CheckRunTemplate("{{biz-date}}").message()),
              HasSubstr("did you mean 'biz_date'?"));
  EXPECT_FALSE(CheckRunTemplate("{{param.}}").ok());
  EXPECT_FALSE(CheckRunTemplate("{{job").ok());
}

TEST(CheckShellTemplate, RefusesOurNamesAlone) {
  EXPECT_TRUE(CheckShellTemplate("docker ps --format '{{.Names}}'; date '+%H:%M'").ok());
  EXPECT_THAT(std::string(CheckShellTemplate("x {{param.day}}").message()),
              HasSubstr("\"$MATINS_PARAM_day\""));
}

}  // namespace
}  // namespace matins
