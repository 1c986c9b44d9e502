// Errors of the house: absl::Status whose code says what the caller should do, and two kinds of its
// own that a scheduler must never confuse with a plain failure.
#ifndef MATINS_BASE_STATUS_H_
#define MATINS_BASE_STATUS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace matins {

// The call was sent and its answer did not come: it may have taken effect, or may still take
// effect. Never retried blindly; read back by run and fence under the row's lock (promise I9).
absl::Status InDoubtError(absl::string_view message);
bool IsInDoubt(const absl::Status& status);

// The store cannot be reached or is busy: nothing took effect, and the same call may be sent again.
inline absl::Status StoreAwayError(absl::string_view message) {
  return absl::UnavailableError(message);
}

// The store was away, before the call or in its midst: what may be done twice may be sent again.
bool MayBeAskedAgain(const absl::Status& status);

// Bad input, told as a person can mend it: where (file:line, field), what is wrong, and the mend.
absl::Status BadInput(absl::string_view where, absl::string_view what, absl::string_view mend);

// Stands before the message: "applying conf.yaml: ...". Keeps code and payloads.
absl::Status Annotate(const absl::Status& status, absl::string_view prefix);

}  // namespace matins

#define MATINS_CONCAT_INNER(a, b) a##b
#define MATINS_CONCAT(a, b) MATINS_CONCAT_INNER(a, b)

#define RETURN_IF_ERROR(expr)                                         \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, expr) \
  ASSIGN_OR_RETURN_IMPL(MATINS_CONCAT(statusor_, __LINE__), lhs, expr)
#define ASSIGN_OR_RETURN_IMPL(var, lhs, expr)    \
  auto var = (expr);                             \
  if (!var.ok()) return std::move(var).status(); \
  lhs = *std::move(var)

#endif  // MATINS_BASE_STATUS_H_
