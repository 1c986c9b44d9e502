#include "job/local_window.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace matins {
namespace {

// "19:00" -> 1140; 24:00 is not a time of the day.
std::optional<int> MinuteOf(absl::string_view text) {
  const std::pair<absl::string_view, absl::string_view> sides =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  int hour = 0, minute = 0;
  const bool digits = sides.first.size() == 2 && sides.second.size() == 2 &&
                      absl::ascii_isdigit(static_cast<unsigned char>(sides.first[0])) &&
                      absl::ascii_isdigit(static_cast<unsigned char>(sides.second[0]));
  if (!digits || !absl::SimpleAtoi(sides.first, &hour) ||
      !absl::SimpleAtoi(sides.second, &minute) || hour > 23 || minute > 59) {
    return std::nullopt;
  }
  return hour * 60 + minute;
}

}  // namespace

absl::StatusOr<LocalWindow> LocalWindow::Parse(absl::string_view text, absl::TimeZone zone) {
  const std::vector<absl::string_view> sides = absl::StrSplit(text, '-');
  LocalWindow window;
  window.zone_ = zone;
  const std::optional<int> from = MinuteOf(sides[0]);
  const std::optional<int> to = sides.size() == 2 ? MinuteOf(sides[1]) : std::nullopt;
  if (!from || !to) {
    return BadInput(absl::StrCat("window '", text, "'"), "is not FROM-TO of a day",
                    "write two times like 19:00-07:00");
  }
  if (*from == *to) {
    return BadInput(absl::StrCat("window '", text, "'"), "has one time twice",
                    "leave the window out where any time will do");
  }
  window.from_minute_ = *from;
  window.to_minute_ = *to;
  return window;
}

LocalWindow::Span LocalWindow::Of(absl::CivilDay day) const {
  const auto instant = [&](absl::CivilDay on, int minute) {
    const absl::TimeZone::TimeInfo info = zone_.At(absl::CivilMinute(on) + minute);
    return info.kind == absl::TimeZone::TimeInfo::SKIPPED ? info.trans : info.pre;
  };
  const absl::CivilDay closes = to_minute_ > from_minute_ ? day : day + 1;
  return {instant(day, from_minute_), instant(closes, to_minute_)};
}

bool LocalWindow::Contains(absl::Time t) const {
  const absl::CivilDay today = absl::ToCivilDay(t, zone_);
  for (const absl::CivilDay day : {today - 1, today}) {
    const Span span = Of(day);
    if (span.from <= t && t < span.to) return true;
  }
  return false;
}

absl::Time LocalWindow::NextOpening(absl::Time t) const {
  if (Contains(t)) return t;
  // A gap takes one day's window at most, and leaves out a whole day where a zone changed sides.
  for (absl::CivilDay day = absl::ToCivilDay(t, zone_);; ++day) {
    const Span span = Of(day);
    if (span.from >= t && span.from < span.to) return span.from;
  }
}

}  // namespace matins
