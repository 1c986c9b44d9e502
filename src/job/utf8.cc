#include "job/utf8.h"

namespace matins {

std::optional<uint32_t> NextCodePoint(absl::string_view& rest) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned char lead = byte(0);
  const size_t size = lead < 0x80   ? 1
                      : lead < 0xC2 ? 0
                      : lead < 0xE0 ? 2
                      : lead < 0xF0 ? 3
                      : lead < 0xF5 ? 4
                                    : 0;
  if (size == 0 || rest.size() < size) return std::nullopt;
  uint32_t point = size == 1 ? lead : lead & (0x7FU >> size);
  for (size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return std::nullopt;
    point = point << 6 | (byte(i) & 0x3FU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (point < kLeast[size] || point > 0x10FFFF || (point >= 0xD800 && point < 0xE000)) {
    return std::nullopt;
  }
  rest.remove_prefix(size);
  return point;
}

size_t FindNotUtf8(absl::string_view text) {
  absl::string_view rest = text;
  while (!rest.empty()) {
    if (!NextCodePoint(rest)) return text.size() - rest.size();
  }
  return absl::string_view::npos;
}

}  // namespace matins
