#include "job/values_text.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "base/time.h"

namespace matins {
namespace {

constexpr int64_t kMostBytes = int64_t{16} << 20;

bool AllDigits(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return absl::ascii_isdigit(c); });
}

}  // namespace

absl::StatusOr<DoneBy> ParseDoneBy(absl::string_view text) {
  DoneBy done_by;
  if (!absl::StrContains(text, ':')) {
    ASSIGN_OR_RETURN(done_by.after_due, ParseDuration(text));
    return done_by;
  }
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ':');
  constexpr int kMost[] = {23, 59, 59};
  int values[3] = {};
  bool good = parts.size() == 2 || parts.size() == 3;
  for (size_t i = 0; good && i < std::min(parts.size(), std::size(values)); ++i) {
    good = parts[i].size() == 2 && AllDigits(parts[i]) && absl::SimpleAtoi(parts[i], &values[i]) &&
           values[i] <= kMost[i];
  }
  if (!good) {
    return BadInput("", absl::StrCat("'", text, "' is no time of day"),
                    "write it like \"09:00\", or a duration after due like 3h");
  }
  done_by.time_of_day =
      absl::Hours(values[0]) + absl::Minutes(values[1]) + absl::Seconds(values[2]);
  return done_by;
}

std::string DoneByText(const DoneBy& done_by) {
  if (done_by.after_due) return DurationText(*done_by.after_due);
  if (!done_by.time_of_day) return "";
  const int64_t seconds = absl::ToInt64Seconds(*done_by.time_of_day);
  const std::string minutes = absl::StrFormat("%02d:%02d", seconds / 3600, seconds / 60 % 60);
  return seconds % 60 == 0 ? minutes : absl::StrFormat("%s:%02d", minutes, seconds % 60);
}

absl::StatusOr<std::pair<absl::Duration, absl::Duration>> ParseBackoff(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, "..");
  if (parts.size() > 2) {
    return BadInput("", absl::StrCat("'", text, "' is no backoff"),
                    "write least and most, like 30s..10m");
  }
  ASSIGN_OR_RETURN(const absl::Duration least, ParseDuration(parts.front()));
  ASSIGN_OR_RETURN(const absl::Duration most, ParseDuration(parts.back()));
  return std::make_pair(least, most);
}

absl::StatusOr<int64_t> ParseBytes(absl::string_view text) {
  absl::string_view digits = text;
  int64_t unit = 1;
  if (absl::ConsumeSuffix(&digits, "KiB")) {
    unit = 1 << 10;
  } else if (absl::ConsumeSuffix(&digits, "MiB")) {
    unit = 1 << 20;
  }
  int64_t count = 0;
  if (!AllDigits(digits) || !absl::SimpleAtoi(digits, &count) || count > kMostBytes / unit) {
    return BadInput("", absl::StrCat("'", text, "' is no size from 0 to 16MiB"),
                    "write bytes, or KiB or MiB, like 256KiB");
  }
  return count * unit;
}

std::string BytesText(int64_t bytes) {
  if (bytes > 0 && bytes % (1 << 20) == 0) return absl::StrCat(bytes >> 20, "MiB");
  if (bytes > 0 && bytes % (1 << 10) == 0) return absl::StrCat(bytes >> 10, "KiB");
  return absl::StrCat(bytes);
}

absl::StatusOr<int> ParseUmask(absl::string_view text) {
  absl::string_view digits = text;
  const bool begins_with_0 = absl::ConsumePrefix(&digits, "0");
  if (begins_with_0) absl::ConsumePrefix(&digits, "o");
  int value = 0;
  bool good = begins_with_0 && text.size() >= 3 && !digits.empty() && digits.size() <= 4;
  for (const char c : digits) {
    good = good && c >= '0' && c <= '7';
    value = value * 8 + (c - '0');
  }
  if (!good || value > 0777) {
    return BadInput("", absl::StrCat("'", text, "' is no umask"),
                    "write it in octal, with a 0 in front: 022");
  }
  return value;
}

std::string UmaskText(int umask) { return absl::StrFormat("0%02o", umask); }

}  // namespace matins
