// Instants as the project writes and stores them. In memory an instant is absl::Time, a length
// absl::Duration; in a store it is a whole number of microseconds since 1970-01-01T00:00:00Z.
#ifndef MATINS_BASE_TIME_H_
#define MATINS_BASE_TIME_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace matins {

inline int64_t ToMicros(absl::Time t) { return absl::ToUnixMicros(t); }
inline absl::Time FromMicros(int64_t us) { return absl::FromUnixMicros(us); }

// "2026-11-29T02:00:00Z"; with a fraction only where there is one: "2026-11-29T02:00:00.25Z".
std::string FormatInstant(absl::Time t);

// The local form for people: "2026-11-29 10:00:00 CST".
std::string FormatLocal(absl::Time t, const absl::TimeZone& zone);

// RFC 3339 with "Z" or a numeric offset ("2026-11-29T02:00:00Z", "2026-11-29T10:00:00+08:00", a
// blank for the T is taken). Anything else is an InvalidArgument error that shows the form wanted.
absl::StatusOr<absl::Time> ParseInstant(absl::string_view text);

// "2026-11-29", strictly, a day that exists.
std::string FormatDay(absl::CivilDay day);
absl::StatusOr<absl::CivilDay> ParseDay(absl::string_view text);

// "90s", "10m", "2h", "7d", "1h30m", "250ms"; not negative. Units: ms s m h d w.
absl::StatusOr<absl::Duration> ParseDuration(absl::string_view text);
// The shortest such text that reads back the same: "1h30m".
std::string DurationText(absl::Duration d);

}  // namespace matins

#endif  // MATINS_BASE_TIME_H_
