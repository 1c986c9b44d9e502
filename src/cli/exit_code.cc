#include "cli/exit_code.h"

#include "base/status.h"

namespace matins {

ExitCode ExitCodeOf(const absl::Status& status) {
  if (IsInDoubt(status)) return kExitUnknown;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitOk;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kAborted:
      return kExitRefused;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kResourceExhausted:
      return kExitAway;
    case absl::StatusCode::kDeadlineExceeded:
      return kExitTimeout;
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kCancelled:
      return kExitFailed;
    default:
      return kExitInternal;
  }
}

}  // namespace matins
