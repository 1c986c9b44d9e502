#include "store/mariadb/store.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"

namespace matins::mariadb {
namespace {

// Often enough that a person's act is seen at once, seldom enough that idle nodes cost nothing.
constexpr absl::Duration kPoll = absl::Milliseconds(250);

}  // namespace

// The newest act, the most urgent row, the next job to look at: three reads of an index's end.
std::optional<std::string> MariadbStore::ChangeMark() {
  const auto rows = session_.connection.Read(
      {Sql("SELECT (SELECT MAX(id) FROM job_event), (SELECT MIN(look_at) FROM job_watermark WHERE "
           "status = 'PLANNED'), (SELECT MIN(next_look) FROM job WHERE NOT deleted)")});
  if (!rows.ok()) return std::nullopt;
  const Rows& r = (*rows)[0];
  return absl::StrCat(r.Text(0, 0), "|", r.Text(0, 1), "|", r.Text(0, 2));
}

Heard MariadbStore::AwaitChange(absl::Duration at_most) {
  const absl::Duration until = SystemClock().BootNow() + at_most;
  absl::Duration left = at_most;
  Heard heard = Heard::kNothing;
  while (left > absl::ZeroDuration()) {
    {
      absl::MutexLock lock(&mutex_);
      SystemClock().AwaitFor(mutex_, absl::Condition(&interrupted_), std::min(left, kPoll));
      const bool interrupted = interrupted_;
      interrupted_ = false;
      if (interrupted) return heard;
    }
    std::optional<std::string> mark = ChangeMark();
    heard = mark ? Heard::kNothing : Heard::kDeaf;
    if (mark && *mark != seen_) {
      seen_ = *std::move(mark);
      return Heard::kTold;
    }
    left = until - SystemClock().BootNow();
  }
  return heard;
}

void MariadbStore::Interrupt() {
  absl::MutexLock lock(&mutex_);
  interrupted_ = true;
}

}  // namespace matins::mariadb
