// The quick door (lease/door.h) as the lanes use it.
#ifndef MATINS_ENGINE_DOOR_KEYS_H_
#define MATINS_ENGINE_DOOR_KEYS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "job/job.h"

namespace matins {

// The key under which a door knows the lock of that period: the lock's own (key_template.h), or
// "period/JOB/PERIOD" where the period's row is the lock. Empty: the job asks no door.
std::string DoorKeyOf(const ResolvedJob& job, absl::string_view period);

}  // namespace matins

#endif  // MATINS_ENGINE_DOOR_KEYS_H_
