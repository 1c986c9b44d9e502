#include "store/postgresql/session.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status.h"

namespace matins::postgresql {

bool Session::MayRetry(const absl::Status& status) {
  return IsContention(status) || IsUniqueViolation(status, "job_watermark_lock");
}

void Session::Pause(int tries) {
  const int64_t most_us = int64_t{2000} << tries;
  absl::SleepFor(absl::Microseconds(1 + random_.Below(most_us)));
}

absl::StatusOr<std::vector<Rows>> Session::Write(const std::vector<Statement>& statements,
                                                 bool waits, absl::string_view before_lock) {
  if (!waits) return connection.Write(statements);
  RETURN_IF_ERROR(connection.Begin({}).status());
  if (absl::Status fault = Reach(before_lock); !fault.ok()) {
    connection.Rollback();
    return fault;
  }
  return connection.Commit(statements);
}

void Session::Notify() {
  const absl::Time now = absl::Now();  // decides nothing but how often one is told
  if (now >= notified_ && now < notified_ + absl::Milliseconds(50)) return;
  notified_ = now;
  connection.Bare({{absl::StrCat("notify ", sql.channel()), {}}}).IgnoreError();
}

}  // namespace matins::postgresql
