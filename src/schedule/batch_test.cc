#include "schedule/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/time.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

std::string Ask(absl::string_view line) {
  return AnswerBatchLine(line, *ParseInstant("2026-11-29T02:00:00Z"));
}

TEST(Batch, AnswersInstantsAfterFrom) {
  EXPECT_EQ(Ask(R"({"expr":"0 1 * * *","dialect":"vixie5","tz":"Asia/Shanghai",)"
                R"("from":"2026-11-28T17:00:00Z","n":2})"),
            R"({"next":["2026-11-29T17:00:00Z","2026-11-30T17:00:00Z"]})");
}

TEST(Batch, TakesUtcOneAndNowWhereNothingIsSaid) {
  EXPECT_EQ(Ask(R"({"expr":"0 2 * * *"})"), R"({"next":["2026-11-30T02:00:00Z"]})");
}

TEST(Batch, AnswersFewerWhenTheScheduleEnds) {
  EXPECT_EQ(Ask(R"({"expr":"0 0 0 1 1 ? 2027,2029","dialect":"quartz","n":5})"),
            R"({"next":["2027-01-01T00:00:00Z","2029-01-01T00:00:00Z"]})");
  EXPECT_EQ(Ask(R"({"expr":"0 0 0 1 1 ? 2020","dialect":"quartz","n":5})"), R"({"next":[]})");
  EXPECT_EQ(Ask(R"({"expr":"@reboot","n":5})"), R"({"next":[]})");
}

TEST(Batch, ZoneInsideTheExpressionWins) {
  EXPECT_EQ(Ask(R"({"expr":"09:00 Asia/Tokyo","dialect":"oncalendar","tz":"Europe/Paris"})"),
            R"({"next":["2026-11-30T00:00:00Z"]})");
}

TEST(Batch, AnswersAnErrorForWhatItCannotRead) {
  for (const char* bad : {"",
                          "{",
                          "[]",
                          "null",
                          "17",
                          R"({"expr":5})",
                          R"({"tz":"UTC"})",
                          R"({"expr":"0 2 * * *","n":0})",
                          R"({"expr":"0 2 * * *","n":-1})",
                          R"({"expr":"0 2 * * *","n":10001})",
                          R"({"expr":"0 2 * * *","n":18446744073709551615})",
                          R"({"expr":"0 2 * * *","n":1e99})",
                          R"({"expr":"0 2 * * *","n":2.5})",
                          R"({"expr":"0 2 * * *","n":"2"})",
                          R"({"expr":"0 2 * * *","dialect":"cron"})",
                          R"({"expr":"0 2 * * *","tz":"Mars/Olympus"})",
                          R"({"expr":"0 2 * * *","from":"today"})",
                          R"({"expr":"0 0 30 2 *"})",
                          "{\"expr\":\"\xff\xfe\"}",
                          R"({"expr":"\u0000 2 * * *"})"}) {
    const auto answer = nlohmann::json::parse(Ask(bad), nullptr, false);
    ASSERT_TRUE(answer.is_object()) << bad;
    EXPECT_TRUE(answer.contains("error")) << bad << " " << answer;
    EXPECT_EQ(answer.size(), 1u);
  }
}

TEST(Batch, PassesOverOtherKeys) {
  EXPECT_EQ(Ask(R"({"id":7,"expr":"0 2 * * *","next":["x"]})"),
            R"({"next":["2026-11-30T02:00:00Z"]})");
}

}  // namespace
}  // namespace matins
