#include "execute/template.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

RunValues Values() {
  RunValues values;
  values.job = "recon";
  values.period = "2026-10-30";
  values.biz_date = "2026-10-30";
  values.backfill = true;
  values.params = {{"who", "a b; rm -rf $HOME `id` {{job}}"}};
  return values;
}

std::string Expanded(absl::string_view text) {
  return ExpandTemplate(text, Values(), int64_t{5} << 40).value();
}
std::string Error(absl::string_view text, RunValues values = Values()) {
  return std::string(ExpandTemplate(text, values, 1).status().message());
}

TEST(Template, PutsValuesIn) {
  EXPECT_EQ(Expanded("--date={{biz_date}} of {{ job }}"), "--date=2026-10-30 of recon");
  EXPECT_EQ(Expanded("{{fence}}/{{run_id}}/{{backfill}}"), "5497558138880/5497558138880/1");
  EXPECT_EQ(Expanded("plain } {x} }}"), "plain } {x} }}");
  EXPECT_EQ(Expanded(""), "");
}

TEST(Template, AValueIsNeverExpandedAgain) {
  EXPECT_EQ(Expanded("{{param.who}}"), "a b; rm -rf $HOME `id` {{job}}");
}

TEST(Template, BracesCanBeMeant) { EXPECT_EQ(Expanded("\\{{.Names}}"), "{{.Names}}"); }

TEST(Template, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(Error("{{bizdate}}"), HasSubstr("'bizdate'"));
  EXPECT_THAT(Error("{{bizdate}}"), HasSubstr("biz_date"));
  EXPECT_THAT(Error("{{}}"), HasSubstr("unknown name"));
  EXPECT_THAT(Error("x {{job"), HasSubstr("close it"));
  EXPECT_THAT(Error("{{param.other}}"), HasSubstr("--param other="));
}

TEST(Template, RefusesABusinessDateThatIsNotThere) {
  RunValues values = Values();
  values.biz_date = "";
  EXPECT_THAT(Error("{{biz_date}}", values), HasSubstr("no business date"));
}

TEST(Template, IsRefusedInAShellTextWithTheVariableToUse) {
  EXPECT_THAT(std::string(CheckShellText("echo {{biz_date}}").message()),
              HasSubstr("\"$MATINS_BIZ_DATE\""));
  EXPECT_THAT(std::string(CheckShellText("echo {{ param.x }}").message()),
              HasSubstr("\"$MATINS_PARAM_x\""));
  EXPECT_TRUE(CheckShellText("docker ps --format '{{.Names}}' {{").ok());
}

}  // namespace
}  // namespace matins
