// Every line of testdata/: instants that independent implementations agree on, and expressions that
// they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/time.h"
#include "nlohmann/json.hpp"
#include "schedule/schedule.h"

namespace matins {
namespace {

std::vector<nlohmann::json> ReadLines(const std::string& file) {
  std::ifstream in(absl::StrCat(MATINS_SCHEDULE_TESTDATA, "/", file));
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

// The next `n` instants, or none where the expression is refused as never firing.
std::vector<std::string> NextOf(const absl::StatusOr<Schedule>& schedule, absl::Time from,
                                size_t n) {
  std::vector<std::string> found;
  if (!schedule.ok()) return found;
  absl::Time after = from;
  while (found.size() < n) {
    const std::optional<Fire> fire = schedule->Next(after);
    if (!fire.has_value()) break;
    found.push_back(FormatInstant(fire->at));
    after = fire->at;
  }
  return found;
}

// Answers how many starts were asked.
int ExpectGoldenFires(const std::string& file, Dialect dialect) {
  int asked = 0;
  for (const nlohmann::json& line : ReadLines(file)) {
    const std::string expr = line["expr"];
    const std::string tz = line["tz"];
    const auto schedule = Schedule::Parse(expr, {dialect, *LoadZone(tz), {}});
    for (const auto& [from, next] : line["next"].items()) {
      ++asked;
      const std::vector<std::string> wanted = next;
      // Data end at five instants; fewer mean that the schedule ends.
      EXPECT_EQ(absl::StrJoin(NextOf(schedule, *ParseInstant(from), 5), " "),
                absl::StrJoin(wanted, " "))
          << "'" << expr << "' in " << tz << " after " << from << " " << schedule.status();
      EXPECT_TRUE(schedule.ok() || wanted.empty()) << expr << ": " << schedule.status();
      // Backwards from the last instant the same ones come.
      for (size_t i = wanted.size(); i-- > 1;) {
        if (!schedule.ok()) break;
        const auto back = schedule->Previous(*ParseInstant(wanted[i]));
        EXPECT_EQ(back.has_value() ? FormatInstant(back->at) : "none", wanted[i - 1])
            << expr << " in " << tz << " before " << wanted[i];
      }
    }
  }
  return asked;
}

TEST(Golden, CronOfFiveFieldsFiresAtTheInstantsAgreedOn) {
  EXPECT_EQ(ExpectGoldenFires("fires_vixie5.jsonl", Dialect::kVixie5), 6514);
}

TEST(Golden, CronOfSixFieldsFiresAtTheInstantsAgreedOn) {
  EXPECT_EQ(ExpectGoldenFires("fires_seconds6.jsonl", Dialect::kSeconds6), 2861);
}

TEST(Golden, QuartzFiresAtTheInstantsAgreedOn) {
  EXPECT_EQ(ExpectGoldenFires("fires_quartz.jsonl", Dialect::kQuartz), 2505);
}

TEST(Golden, OnCalendarFiresAtTheInstantsAgreedOn) {
  EXPECT_EQ(ExpectGoldenFires("fires_oncalendar.jsonl", Dialect::kOnCalendar), 2957);
}

TEST(Golden, WhatOthersRefuseIsRefusedWithFieldReasonAndMend) {
  const std::map<std::string, Dialect> dialects = {{"vixie5", Dialect::kVixie5},
                                                   {"seconds6", Dialect::kSeconds6},
                                                   {"quartz", Dialect::kQuartz},
                                                   {"oncalendar", Dialect::kOnCalendar}};
  const std::vector<nlohmann::json> lines = ReadLines("refused.jsonl");
  EXPECT_EQ(lines.size(), 113u);
  for (const nlohmann::json& line : lines) {
    const std::string expr = line["expr"];
    const auto schedule =
        Schedule::Parse(expr, {dialects.at(line["dialect"]), absl::UTCTimeZone(), {}});
    ASSERT_FALSE(schedule.ok()) << "'" << expr << "': " << line["why"];
    EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(
        std::string(schedule.status().message()),
        testing::MatchesRegex("(schedule|second|minute|hour|day of month|month|day of week|year|"
                              "date|time|timezone|@every).*: .*; .*"))
        << expr << ": " << line["why"];
  }
}

}  // namespace
}  // namespace matins
