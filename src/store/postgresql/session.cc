#include "store/postgresql/session.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace matins::postgresql {

bool Session::MayRetry(const absl::Status& status) {
  return IsContention(status) || IsUniqueViolation(status, "job_watermark_lock");
}

void Session::Pause(int tries) {
  const int64_t most_us = int64_t{2000} << tries;
  absl::SleepFor(absl::Microseconds(1 + random_.Below(most_us)));
}

void Session::Notify() {
  const absl::Time now = absl::Now();  // decides nothing but how often one is told
  if (now >= notified_ && now < notified_ + absl::Milliseconds(50)) return;
  notified_ = now;
  connection.Bare({{absl::StrCat("notify ", sql.channel()), {}}}).IgnoreError();
}

}  // namespace matins::postgresql
