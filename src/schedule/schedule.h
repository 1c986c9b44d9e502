// When a job is due: a pure function of (expression, zone, instant). No clock, no I/O; nothing is
// allocated after Parse, and every question is answered in bounded time for every input. The rule
// for clock changes, day fields and ranges that wrap is in docs/schedules.md.
#ifndef MATINS_SCHEDULE_SCHEDULE_H_
#define MATINS_SCHEDULE_SCHEDULE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace matins {

enum class Dialect { kAuto, kVixie5, kSeconds6, kQuartz, kOnCalendar };

// What a fixed-time schedule does where the local clock jumps.
enum class GapRule {
  kNext,
  kSkip,
  kShift
};  // the first instant after the gap; not at all; as much later
enum class OverlapRule { kFirst, kSecond, kBoth };

struct DstRule {
  GapRule gap = GapRule::kNext;
  OverlapRule overlap = OverlapRule::kFirst;
  bool operator==(const DstRule&) const = default;
};

// An instant at which a schedule is due, and what the clock on the wall should have shown (for a
// time inside a gap, the missing local time; of several that fall together, the earliest).
struct Fire {
  absl::Time at;
  absl::CivilSecond nominal;
  bool operator==(const Fire&) const = default;
};

struct ScheduleOptions {
  Dialect dialect = Dialect::kAuto;
  absl::TimeZone zone;  // a zone inside an OnCalendar expression wins over it
  DstRule dst;
};

struct ScheduleParts;  // schedule_impl.h

// Immutable, cheap to copy, and safe to use from many threads at once.
class Schedule {
 public:
  // Cron of 5 and 6 fields, Quartz of 6 and 7, systemd OnCalendar, @macros, "@every 90s". The
  // dialect kAuto is found from the text's form (docs/schedules.md). Errors: InvalidArgument that
  // names the field, the reason and the mend; a date that never comes ("0 0 30 2 *") says so here.
  static absl::StatusOr<Schedule> Parse(absl::string_view expression,
                                        const ScheduleOptions& options);
  // Due once, at `at`; its nominal local time is that of `zone`.
  static Schedule At(absl::Time at, absl::TimeZone zone);

  // The first fire strictly after `after`; nothing when there is none before the year 2200.
  std::optional<Fire> Next(absl::Time after) const;
  // The last fire strictly before `before`: the exact reverse of Next. Nothing when there is none
  // after 1970.
  std::optional<Fire> Previous(absl::Time before) const;

  // "at 01:00 every day, Asia/Shanghai".
  std::string Describe() const;
  Dialect dialect() const;
  const absl::TimeZone& zone() const;
  const std::string& expression() const;
  // Whether it follows the wall clock through both passes of a repeated hour (docs/schedules.md).
  bool is_interval() const;

 private:
  friend const ScheduleParts& PartsOf(const Schedule& schedule);  // for this folder's own files
  class Impl;
  explicit Schedule(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

// Loads an IANA zone by its exact name ("Asia/Shanghai", "UTC"). The host's TZ is never read;
// "localtime", offsets and abbreviations are refused with the mend.
absl::StatusOr<absl::TimeZone> LoadZone(absl::string_view name);
// The version of the system's zone data, "2025b"; "unknown" where it cannot be told.
std::string ZoneDataVersion();

}  // namespace matins

#endif  // MATINS_SCHEDULE_SCHEDULE_H_
