// What a Schedule is made of, for the folder's own files: the description in words and the lint.
#ifndef MATINS_SCHEDULE_SCHEDULE_IMPL_H_
#define MATINS_SCHEDULE_SCHEDULE_IMPL_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "schedule/pattern.h"
#include "schedule/schedule.h"

namespace matins {

enum class ScheduleKind {
  kPattern,
  kEvery,  // at the multiples of every_seconds since 1970-01-01T00:00:00Z
  kOnce,
  kNever,  // "@reboot": valid, and no fire by the clock
};

struct ScheduleParts {
  ScheduleKind kind = ScheduleKind::kPattern;
  std::string expression;
  Dialect dialect = Dialect::kAuto;
  absl::TimeZone zone;
  DstRule dst;
  std::optional<Matcher> matcher;  // kPattern
  int64_t every_seconds = 0;       // kEvery
  absl::Time once;                 // kOnce
};

const ScheduleParts& PartsOf(const Schedule& schedule);

}  // namespace matins

#endif  // MATINS_SCHEDULE_SCHEDULE_IMPL_H_
