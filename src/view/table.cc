#include "view/table.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace matins {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

// The length of the UTF-8 character that starts at `text[i]`, or 0 where there is none (RFC 3629:
// no surrogates, none above U+10FFFF, none longer than need be).
size_t CharacterAt(absl::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char first = byte(i);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  }
  const unsigned char second = byte(i + 1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return length;
}

size_t Width(absl::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

template <typename Take>
std::string Map(absl::string_view text, Take take) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = CharacterAt(text, i);
    if (length == 0) {
      absl::StrAppend(&out, kReplacement);
      ++i;
    } else {
      take(out, text.substr(i, length));
      i += length;
    }
  }
  return out;
}

}  // namespace

std::string ValidUtf8(absl::string_view bytes) {
  return Map(bytes, [](std::string& out, absl::string_view c) { absl::StrAppend(&out, c); });
}

std::string Harmless(absl::string_view text, bool lines) {
  return Map(text, [lines](std::string& out, absl::string_view c) {
    const auto first = static_cast<unsigned char>(c[0]);
    const bool c1 = c.size() == 2 && first == 0xC2 && static_cast<unsigned char>(c[1]) < 0xA0;
    const bool control = c.size() == 1 && (first < 0x20 || first == 0x7F);
    if ((control && !(lines && (first == '\n' || first == '\t'))) || c1) {
      absl::StrAppend(&out, kReplacement);
    } else {
      absl::StrAppend(&out, c);
    }
  });
}

std::string Table::Text() const {
  std::vector<std::vector<std::string>> all;
  all.push_back(head_);
  for (const auto& row : rows_) {
    std::vector<std::string>& cells = all.emplace_back();
    for (const std::string& cell : row) cells.push_back(Harmless(cell, false));
  }
  std::vector<size_t> widths(head_.size(), 0);
  for (const auto& row : all) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(row[i]));
  }
  std::string text;
  for (const auto& row : all) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      if (i + 1 < row.size()) line.append(widths[i] - Width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

}  // namespace matins
