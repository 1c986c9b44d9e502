#include "base/time.h"

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr std::array<std::pair<absl::string_view, int64_t>, 6> kUnitsMs = {{{"w", 604'800'000},
                                                                            {"d", 86'400'000},
                                                                            {"h", 3'600'000},
                                                                            {"m", 60'000},
                                                                            {"s", 1'000},
                                                                            {"ms", 1}}};

// A century in milliseconds: longer lengths are typing errors, and far from overflow.
constexpr int64_t kMostMs = int64_t{36'525} * 86'400'000;

// "2026-11-29T01:02:03", the form that nearly all instants have, without the library's general
// machinery: each run has several.
std::optional<absl::CivilSecond> WholeSecond(absl::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' ||
      text[16] != ':') {
    return std::nullopt;
  }
  bool digits = true;
  const auto number = [&](size_t at, size_t length) {
    int value = 0;
    for (size_t i = at; i < at + length; ++i) {
      digits &= absl::ascii_isdigit(static_cast<unsigned char>(text[i]));
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
  const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
  if (!digits) return std::nullopt;
  const absl::CivilSecond civil(year, month, day, hour, minute, second);
  // A date that does not exist would have become another one.
  const bool exists = civil.month() == month && civil.day() == day && civil.hour() == hour &&
                      civil.minute() == minute && civil.second() == second;
  return exists ? std::optional(civil) : std::nullopt;
}

}  // namespace

std::string FormatInstant(absl::Time t) {
  const absl::CivilSecond civil = absl::ToCivilSecond(t, absl::UTCTimeZone());
  if (civil.year() >= 1000 && civil.year() <= 9999 &&
      absl::FromCivil(civil, absl::UTCTimeZone()) == t) {
    const auto two = [](int value) { return absl::Dec(value, absl::kZeroPad2); };
    return absl::StrCat(FormatDay(absl::CivilDay(civil)), "T", two(civil.hour()), ":",
                        absl::StrCat(two(civil.minute()), ":", two(civil.second()), "Z"));
  }
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E*SZ", t, absl::UTCTimeZone());
}

std::string FormatLocal(absl::Time t, const absl::TimeZone& zone) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S %Z", t, zone);
}

absl::StatusOr<absl::Time> ParseInstant(absl::string_view text) {
  if (text.size() == 20 && text[19] == 'Z') {
    if (const auto civil = WholeSecond(text)) return absl::FromCivil(*civil, absl::UTCTimeZone());
  }
  absl::Time t;
  std::string error;
  std::string form(text);
  if (form.size() > 10 && form[10] == ' ') form[10] = 'T';
  if (form.size() < 20 || !absl::ascii_isdigit(form[0]) ||
      !absl::ParseTime(absl::RFC3339_full, form, &t, &error)) {
    return BadInput("", absl::StrCat("'", text, "' is not an instant"),
                    "write it like 2026-11-29T02:00:00Z or 2026-11-29T10:00:00+08:00");
  }
  return t;
}

std::string FormatDay(absl::CivilDay day) {
  if (day.year() < 0) return absl::StrFormat("%04d-%02d-%02d", day.year(), day.month(), day.day());
  return absl::StrCat(absl::Dec(day.year(), absl::kZeroPad4), "-",
                      absl::Dec(day.month(), absl::kZeroPad2), "-",
                      absl::Dec(day.day(), absl::kZeroPad2));
}

absl::StatusOr<absl::CivilDay> ParseDay(absl::string_view text) {
  int year, month, day;
  const bool shaped = text.size() == 10 && text[4] == '-' && text[7] == '-' &&
                      absl::ascii_isdigit(text[0]) && absl::ascii_isdigit(text[5]) &&
                      absl::ascii_isdigit(text[8]) && absl::SimpleAtoi(text.substr(0, 4), &year) &&
                      absl::SimpleAtoi(text.substr(5, 2), &month) &&
                      absl::SimpleAtoi(text.substr(8, 2), &day);
  if (shaped) {
    const absl::CivilDay civil(year, month, day);
    if (civil.month() == month && civil.day() == day) return civil;
  }
  return BadInput("", absl::StrCat("'", text, "' is not a date"), "write it like 2026-11-29");
}

absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text) {
  const absl::Status error = BadInput("", absl::StrCat("'", text, "' is not a duration"),
                                      "write it like 90s, 10m, 2h, 7d or 1h30m");
  int64_t total_ms = 0;
  absl::string_view rest = text;
  if (rest.empty()) return error;
  while (!rest.empty()) {
    size_t digits = 0;
    while (digits < rest.size() && absl::ascii_isdigit(rest[digits])) ++digits;
    int64_t count;
    if (digits == 0 || !absl::SimpleAtoi(rest.substr(0, digits), &count)) return error;
    rest.remove_prefix(digits);
    size_t letters = 0;
    while (letters < rest.size() && absl::ascii_isalpha(rest[letters])) ++letters;
    int64_t unit_ms = 0;
    for (const auto& [name, ms] : kUnitsMs) {
      if (name == rest.substr(0, letters)) unit_ms = ms;
    }
    if (unit_ms == 0 || count > kMostMs / unit_ms) return error;
    total_ms += count * unit_ms;
    if (total_ms > kMostMs) return error;
    rest.remove_prefix(letters);
  }
  return absl::Milliseconds(total_ms);
}

std::string DurationText(absl::Duration d) {
  int64_t left_ms = absl::ToInt64Milliseconds(d);
  if (left_ms == 0) return "0s";
  std::string text = left_ms < 0 ? "-" : "";
  if (left_ms < 0) left_ms = -left_ms;
  for (const auto& [name, ms] : kUnitsMs) {
    if (name == "w") continue;
    if (const int64_t count = left_ms / ms; count > 0) absl::StrAppend(&text, count, name);
    left_ms %= ms;
  }
  return text;
}

}  // namespace matins
