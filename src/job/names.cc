#include "job/names.h"

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "job/utf8.h"

namespace matins {
namespace {

constexpr size_t kMostBytes = 64;

// Blanks, marks of direction and other characters that do not show: two names that look alike would
// be two jobs.
bool IsInvisible(uint32_t point) {
  return (point >= 0x80 && point <= 0xA0) || point == 0xAD || point == 0x1680 || point == 0x180E ||
         (point >= 0x2000 && point <= 0x200F) || (point >= 0x2028 && point <= 0x202F) ||
         (point >= 0x205F && point <= 0x206F) || point == 0x3000 || point == 0xFEFF ||
         (point >= 0xFFF0 && point <= 0xFFFF) || (point >= 0xE0000 && point <= 0xE0FFF);
}

bool IsPlain(uint32_t point) {
  return point < 0x80 && (absl::ascii_isalnum(static_cast<unsigned char>(point)) || point == '-' ||
                          point == '_' || point == '.');
}

// Safe to print: what is not plain ASCII or UTF-8 is escaped.
std::string Shown(absl::string_view name) {
  absl::string_view rest = name.substr(0, 80);
  std::string text;
  while (!rest.empty()) {
    const absl::string_view before = rest;
    const std::optional<uint32_t> point = NextCodePoint(rest);
    if (!point) rest.remove_prefix(1);
    const absl::string_view bytes = before.substr(0, before.size() - rest.size());
    const bool plain = point && *point >= ' ' && *point != 0x7F && !IsInvisible(*point);
    text += plain ? std::string(bytes) : absl::CHexEscape(bytes);
  }
  return text;
}

}  // namespace

absl::Status CheckName(absl::string_view what, absl::string_view name) {
  const std::string where = absl::StrCat(what, " '", Shown(name), "'");
  constexpr absl::string_view kMend = "use letters, digits, '-', '_' and '.'";
  if (name.empty()) return BadInput(what, "it is empty", kMend);
  if (name.size() > kMostBytes) {
    return BadInput(absl::StrCat(what, " '", Shown(name.substr(0, 16)), "...'"),
                    absl::StrCat("it has ", name.size(), " bytes"),
                    absl::StrCat("take ", kMostBytes, " at most"));
  }
  absl::string_view rest = name;
  while (!rest.empty()) {
    const std::optional<uint32_t> point = NextCodePoint(rest);
    if (!point) return BadInput(where, "it is not UTF-8", kMend);
    if (IsPlain(*point) || (*point >= 0x80 && !IsInvisible(*point))) continue;
    const std::string shown = *point > ' ' && *point < 0x7F
                                  ? absl::StrFormat("'%c'", static_cast<char>(*point))
                                  : absl::StrFormat("U+%04X", *point);
    return BadInput(where, absl::StrCat("it has the character ", shown), kMend);
  }
  if (name.front() == '-' || name.front() == '.' || name.back() == '.') {
    return BadInput(where, "it begins with '-' or '.', or ends in '.'",
                    "begin and end it with a letter, a digit or '_'");
  }
  return absl::OkStatus();
}

}  // namespace matins
