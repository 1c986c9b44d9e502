#include "store/server_rows.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace matins {

absl::CivilSecond NominalOf(absl::string_view text) {
  // "2026-11-29T01:00:00", which is read for each run; anything else by the library.
  const auto number = [&](size_t at, size_t length) {
    int value = 0;
    for (size_t i = at; i < at + length; ++i) {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) return -1;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  if (text.size() == 19 && text[4] == '-' && text[10] == 'T') {
    const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
    const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
    if (std::min({year, month, day, hour, minute, second}) >= 0) {
      return absl::CivilSecond(year, month, day, hour, minute, second);
    }
  }
  absl::CivilSecond nominal;
  absl::ParseCivilTime(text, &nominal);
  return nominal;
}

}  // namespace matins
