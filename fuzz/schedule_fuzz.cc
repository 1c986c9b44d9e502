// Any text as an expression, in any dialect, zone and rule for clock changes: refused with a
// reason, or a schedule whose fires rise strictly and are the same backwards.
//
// The first byte picks dialect and rules, the second the zone, four more the start; the rest is the
// expression.
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <string>

#include "schedule/lint.h"
#include "schedule/schedule.h"

namespace {

using matins::Dialect;
using matins::Fire;
using matins::Schedule;

constexpr Dialect kDialects[] = {Dialect::kAuto, Dialect::kVixie5, Dialect::kSeconds6,
                                 Dialect::kQuartz, Dialect::kOnCalendar};
constexpr const char* kZones[] = {"UTC",           "America/New_York", "Australia/Lord_Howe",
                                  "Africa/Cairo",  "Pacific/Apia",     "Antarctica/Troll",
                                  "Asia/Kathmandu"};

void Require(bool what) {
  if (!what) std::abort();
}

void CheckFires(const Schedule& schedule, absl::Time from) {
  absl::Time after = from;
  for (int i = 0; i < 20; ++i) {
    const std::optional<Fire> next = schedule.Next(after);
    if (!next.has_value()) break;
    Require(next->at > after);
    const std::optional<Fire> back = schedule.Previous(next->at + absl::Nanoseconds(1));
    Require(back.has_value() && *back == *next);
    const std::optional<Fire> before = schedule.Previous(next->at);
    Require(!before.has_value() || (before->at <= after && schedule.Next(before->at) == next));
    after = next->at;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 6) return 0;
  const absl::TimeZone zone = *matins::LoadZone(kZones[data[1] % std::size(kZones)]);
  const matins::DstRule dst{static_cast<matins::GapRule>(data[0] / 5 % 3),
                            static_cast<matins::OverlapRule>(data[0] / 15 % 3)};
  uint32_t start = 0;
  for (int i = 2; i < 6; ++i) start = start << 8 | data[i];
  const std::string text(reinterpret_cast<const char*>(data) + 6, size - 6);
  const auto schedule =
      Schedule::Parse(text, {kDialects[data[0] % std::size(kDialects)], zone, dst});
  if (!schedule.ok()) {
    Require(!schedule.status().message().empty());
    return 0;
  }
  CheckFires(*schedule, absl::FromUnixSeconds(int64_t{start} + 1));
  Require(!schedule->Describe().empty());
  matins::LintSchedule(*schedule);
  const std::optional<absl::Duration> step = matins::ShortestStep(*schedule);
  Require(!step.has_value() || *step >= absl::Seconds(1));
  return 0;
}
