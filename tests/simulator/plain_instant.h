// An instant as plain SQL reads it off SQLite's clock: whole milliseconds, and where it is a number
// of days what a double keeps of them.
#ifndef MATINS_TESTS_SIMULATOR_PLAIN_INSTANT_H_
#define MATINS_TESTS_SIMULATOR_PLAIN_INSTANT_H_

#include <string>

#include "absl/time/time.h"

namespace matins {

struct PlainInstant {
  std::string text;     // what stands for 'now' in a statement
  absl::Time compared;  // (julianday('now') - 2440587.5) * 86400000000.0
  absl::Time written;   // strftime('%Y-%m-%d %H:%M:%f', 'now')
};

inline PlainInstant PlainInstantOf(absl::Time t) {
  PlainInstant plain;
  const int64_t milliseconds = absl::ToUnixMillis(t);
  const double days = static_cast<double>(milliseconds + 210'866'760'000'000) / 86'400'000.0;
  plain.text = absl::FormatTime("%Y-%m-%d %H:%M:%E3S", t, absl::UTCTimeZone());
  plain.compared =
      absl::FromUnixMicros(static_cast<int64_t>((days - 2'440'587.5) * 86'400'000'000.0));
  plain.written = absl::FromUnixMillis(milliseconds);
  return plain;
}

}  // namespace matins

#endif  // MATINS_TESTS_SIMULATOR_PLAIN_INSTANT_H_
