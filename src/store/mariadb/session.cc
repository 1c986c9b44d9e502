#include "store/mariadb/session.h"

#include "absl/time/clock.h"
#include "base/status.h"

namespace matins::mariadb {

bool Session::MayRetry(const absl::Status& status, int tries, int waits) {
  if (IsInDoubt(status)) return false;
  if (IsLockWait(status)) return tries < waits;
  return tries < 5 && (IsContention(status) || IsDuplicate(status, "job_watermark_lock"));
}

void Session::Pause(int tries) {
  const int64_t most_us = int64_t{2000} << tries;
  absl::SleepFor(absl::Microseconds(1 + random_.Below(most_us)));
}

}  // namespace matins::mariadb
