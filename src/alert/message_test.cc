#include "alert/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const absl::Time kNow = absl::FromUnixSeconds(1793318400);

AlertRow Row(int64_t id, const std::string& job, const std::string& period) {
  AlertRow row;
  row.id = id;
  row.key = {"gap", job, period};
  row.kind = "failed";
  row.level = 3;
  row.period = period;
  row.text = absl::StrCat(job, " ", period, " FAILED: \"exit\"");
  row.opened_at = kNow;
  return row;
}

AlertRow Resolved(AlertRow row) {
  row.told_at = kNow;
  row.resolved_at = kNow + absl::Hours(1);
  row.resolution = "DONE";
  return row;
}

TEST(Compose, AlertsOfOneJobAreOneMessage) {
  const auto messages =
      Compose({Row(1, "a", "2026-10-29"), Row(2, "b", "2026-10-29"), Row(3, "a", "2026-10-30")},
              {.node = "n", .now = kNow});
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_EQ(messages[0].subject, "a 2 failed");
  EXPECT_EQ(messages[0].text, "a 2026-10-29 FAILED: \"exit\"\na 2026-10-30 FAILED: \"exit\"");
  EXPECT_EQ(messages[1].subject, "b 2026-10-29 failed");
}

TEST(Compose, WhatCameBeforeWhatEnded) {
  const auto messages = Compose({Resolved(Row(1, "a", "2026-10-29")), Row(2, "z", "2026-10-30")},
                                {.node = "n", .now = kNow});
  ASSERT_THAT(messages, SizeIs(2));
  EXPECT_EQ(messages[0].subject, "z 2026-10-30 failed");
  EXPECT_EQ(messages[1].subject, "resolved: a 2026-10-29 failed");
  EXPECT_THAT(messages[1].text, HasSubstr("made good: DONE"));
}

TEST(Compose, ManyAreOneWithCountsAndTheFirstFew) {
  std::vector<AlertRow> rows;
  for (int i = 0; i < 40; ++i) rows.push_back(Row(i + 1, absl::StrCat("j", i), "2026-10-30"));
  rows[3].kind = "absent";
  rows.push_back(Resolved(Row(99, "back", "2026-10-29")));
  const auto messages = Compose(rows, {.node = "n", .now = kNow, .digest = 5});
  ASSERT_THAT(messages, SizeIs(1));
  EXPECT_EQ(messages[0].subject, "41 alerts: 39 failed, 1 absent; resolved: 1 failed");
  EXPECT_THAT(messages[0].text, AllOf(HasSubstr("j9 2026-10-30"), HasSubstr("and 31 more")));
  EXPECT_THAT(messages[0].alerts, SizeIs(41));
  EXPECT_EQ(messages[0].id, Compose(rows, {.node = "m", .now = kNow, .digest = 5})[0].id);
}

TEST(Message, AsJsonHasItsAlerts) {
  const auto messages = Compose({Row(1, "a", "2026-10-29")}, {.node = "n", .now = kNow});
  const auto json = nlohmann::json::parse(MessageJson(messages[0]));
  EXPECT_EQ(json["step"], "fire");
  EXPECT_EQ(json["id"], "1.1.fire.3");
  EXPECT_EQ(json["total"], 1);
  EXPECT_EQ(json["alerts"][0]["job"], "a");
  EXPECT_EQ(json["alerts"][0]["period"], "2026-10-29");
  EXPECT_EQ(json["alerts"][0]["resolved_at"], nullptr);
}

TEST(Render, EscapesForWhereItStands) {
  auto message = Compose({Row(1, "a", "2026-10-29")}, {.node = "n", .now = kNow})[0];
  message.text = "one \"two\"\n\xff & three";
  const std::string json =
      RenderBody(R"({"t": "{{ text }}", "j": "{{job}}"})", message, Escape::kJson);
  EXPECT_EQ(nlohmann::json::parse(json)["t"], "one \"two\"\n\xEF\xBF\xBD & three");
  EXPECT_EQ(RenderBody("t={{text}}&k={{kind}}", message, Escape::kForm),
            "t=one%20%22two%22%0A%FF%20%26%20three&k=failed");
  EXPECT_EQ(RenderBody("{{subject}}/{{count}}/{{step}}", message, Escape::kNone),
            "a 2026-10-29 failed/1/fire");
}

TEST(Message, OfATestSaysSo) {
  const AlertMessage message = TestMessage("ops", "cli:ann", kNow);
  EXPECT_EQ(nlohmann::json::parse(MessageJson(message))["step"], "test");
  EXPECT_THAT(message.text, HasSubstr("cli:ann"));
}

}  // namespace
}  // namespace matins
