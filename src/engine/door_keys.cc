#include "engine/door_keys.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "job/key_template.h"
#include "schedule/period.h"

namespace matins {

std::string DoorKeyOf(const ResolvedJob& job, absl::string_view period) {
  if (job.job.lock.provider != LockProvider::kRedis) return "";
  const absl::StatusOr<Period> meaning = PeriodFromKey(job.period_rule, period);
  if (!meaning.ok()) return "";
  const absl::StatusOr<std::string> key = LockKeyOf(job.job, period, meaning->biz_date);
  if (!key.ok()) return "";
  return key->empty() ? absl::StrCat("period/", job.job.name, "/", period) : *key;
}

}  // namespace matins
