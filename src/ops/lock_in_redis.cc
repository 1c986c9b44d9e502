#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "lease/redis_locks.h"
#include "ops/lock_lease.h"

namespace matins {
namespace {

// For what is done once the command has ended: the lease lives for longer than this as a rule.
constexpr absl::Duration kPatience = absl::Seconds(5);

std::string HolderText(const RedisHolder& holder) {
  std::string text = holder.who.empty() ? "another" : holder.who;
  if (holder.since != absl::InfinitePast()) {
    absl::StrAppend(&text, " since ",
                    FormatInstant(absl::FromUnixSeconds(absl::ToUnixSeconds(holder.since))),
                    ", fence ", holder.fence);
  }
  if (holder.left == absl::InfiniteDuration()) {
    absl::StrAppend(&text,
                    ", for ever: another program set this key; `matins locks release` ends it");
  } else {
    absl::StrAppend(&text, ", for another ",
                    DurationText(absl::Ceil(holder.left, absl::Seconds(1))),
                    " unless it is renewed");
  }
  return text;
}

class RedisLease final : public LockLease {
 public:
  RedisLease(LockLeaseOptions options, RedisUrl url, Clock& clock)
      : options_(std::move(options)), clock_(clock), locks_(std::move(url), clock) {
    SystemRandom random;
    holding_ = {options_.key, RedisLocks::NewValue(options_.who, random), options_.ttl};
  }

  absl::StatusOr<Taken> Take(absl::Duration patience) override {
    Taken answer;
    answer.sent = clock_.BootNow();
    ASSIGN_OR_RETURN(const std::vector<RedisTaken> taken, locks_.Take({holding_}, patience));
    const RedisTaken& one = taken[0];
    RETURN_IF_ERROR(one.status);
    answer.taken = one.taken;
    answer.fence = one.fence;
    if (!one.taken) {
      answer.held_by = HolderText(one.holder);
      answer.left = one.holder.left;
      return answer;
    }
    ASSIGN_OR_RETURN(RedisStep step, locks_.ReadStep(options_.key, patience));
    answer.step = step.number;
    answer.data = std::move(step.data);
    return answer;
  }

  absl::StatusOr<std::string> Renew(absl::Duration patience) override {
    ASSIGN_OR_RETURN(const std::vector<RedisKept> kept, locks_.Renew({holding_}, patience));
    RETURN_IF_ERROR(kept[0].status);
    if (kept[0].kept) return std::string();
    return kept[0].now_held_by.empty()
               ? std::string("Redis no longer has it: it was released, or lost with its data")
               : absl::StrCat("it is held by ", kept[0].now_held_by);
  }

  absl::Status WriteStep(int64_t number, absl::string_view data) override {
    return locks_.WriteStep(holding_, {number, std::string(data)}, options_.keep, kPatience);
  }

  absl::Status Release(const RunEnded*) override {
    ASSIGN_OR_RETURN(const std::vector<RedisKept> kept, locks_.Release({holding_}, kPatience));
    RETURN_IF_ERROR(kept[0].status);
    return kept[0].kept ? absl::OkStatus()
                        : absl::FailedPreconditionError("it was no longer ours at the end");
  }

 private:
  const LockLeaseOptions options_;
  Clock& clock_;
  RedisLocks locks_;
  RedisHolding holding_;
};

}  // namespace

std::unique_ptr<LockLease> LockInRedis(LockLeaseOptions options, RedisUrl url, Clock& clock) {
  return std::make_unique<RedisLease>(std::move(options), std::move(url), clock);
}

}  // namespace matins
