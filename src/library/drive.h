// How a node's lanes are driven: by threads, or by hand under a test's clock.
#ifndef MATINS_LIBRARY_DRIVE_H_
#define MATINS_LIBRARY_DRIVE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "engine/events.h"
#include "execute/handler_runner.h"
#include "matins/types.h"
#include "store/database.h"

namespace matins {

class Drive {
 public:
  virtual ~Drive() = default;
  // What was changed in the store by this process is looked at now.
  virtual void LookNow() = 0;
  virtual absl::Status Step() = 0;
  virtual absl::Status Drain(absl::Duration patience) = 0;
};

struct DriveParts {
  SchedulerOptions options;
  std::map<std::string, Handler> handlers;
  EngineEvents* events = nullptr;  // outlives the drive, as the next two
  Database* database = nullptr;
  Clock* clock = nullptr;
};

absl::StatusOr<std::unique_ptr<Drive>> DriveByThreads(DriveParts parts);
// On `clock`, which the database reads as well.
absl::StatusOr<std::unique_ptr<Drive>> DriveByHand(DriveParts parts);

}  // namespace matins

#endif  // MATINS_LIBRARY_DRIVE_H_
