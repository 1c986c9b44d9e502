#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/random.h"
#include "lease/door.h"
#include "lease/redis_locks.h"

namespace matins {
namespace {

class RedisDoor final : public Door {
 public:
  RedisDoor(RedisUrl url, absl::string_view who, Clock& clock, absl::Duration patience)
      : clock_(clock),
        who_(who),
        patience_(patience),
        locks_(std::move(url), clock),
        thread_([this] { Keep(); }) {}
  ~RedisDoor() override;

  std::vector<DoorAnswer> Enter(absl::Span<const DoorKey> keys) override;
  void Leave(absl::Span<const std::string> keys) override;

 private:
  struct Kept {
    RedisHolding holding;
    absl::Duration renew_at;
  };

  std::vector<RedisHolding> HoldingsFor(absl::Span<const DoorKey> keys);
  // By the one who has `calls_`; nothing where the server did not answer.
  template <typename Answers>
  std::optional<Answers> Told(absl::StatusOr<Answers> answers);
  void Keep();
  absl::Duration NextRenewal() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Renew();
  bool IsAway() const;

  Clock& clock_;
  const std::string who_;
  const absl::Duration patience_;
  SystemRandom random_;
  absl::Mutex calls_;  // one call at a time; taken before mutex_
  RedisLocks locks_ ABSL_GUARDED_BY(calls_);
  mutable absl::Mutex mutex_;
  std::map<std::string, Kept> kept_ ABSL_GUARDED_BY(mutex_);
  std::vector<RedisHolding> left_ ABSL_GUARDED_BY(mutex_);  // to be released
  absl::Duration away_until_ ABSL_GUARDED_BY(mutex_) = -absl::InfiniteDuration();
  bool changed_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

RedisDoor::~RedisDoor() {
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [key, kept] : kept_) left_.push_back(kept.holding);
    kept_.clear();
    ending_ = true;
    changed_ = true;
  }
  thread_.join();
}

bool RedisDoor::IsAway() const {
  absl::MutexLock lock(&mutex_);
  return clock_.BootNow() < away_until_;
}

template <typename Answers>
std::optional<Answers> RedisDoor::Told(absl::StatusOr<Answers> answers) {
  if (answers.ok()) return *std::move(answers);
  absl::MutexLock lock(&mutex_);
  away_until_ = clock_.BootNow() + kDoorAway;
  return std::nullopt;
}

std::vector<RedisHolding> RedisDoor::HoldingsFor(absl::Span<const DoorKey> keys) {
  std::vector<RedisHolding> holdings;
  absl::MutexLock lock(&mutex_);
  for (const DoorKey& key : keys) {
    const auto found = kept_.find(key.key);
    holdings.push_back(found != kept_.end()
                           ? found->second.holding
                           : RedisHolding{key.key, RedisLocks::NewValue(who_, random_), key.ttl});
  }
  return holdings;
}

std::vector<DoorAnswer> RedisDoor::Enter(absl::Span<const DoorKey> keys) {
  std::vector<DoorAnswer> answers(keys.size());
  if (IsAway()) return answers;
  // Another thread's call may take its whole patience; we have ours alone.
  if (!calls_.TryLock()) return answers;
  const std::vector<RedisHolding> holdings = HoldingsFor(keys);
  const absl::Duration sent = clock_.BootNow();
  const auto taken = Told(locks_.TakeUnfenced(holdings, patience_));
  calls_.Unlock();
  if (!taken.has_value()) return answers;
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const RedisTaken& one = (*taken)[i];
    if (one.taken) {
      kept_[keys[i].key] = {holdings[i], sent + keys[i].ttl / 4};
      changed_ = true;
    } else if (one.status.ok() && !one.holder.who.empty() && one.holder.who != who_) {
      answers[i] = {false, one.holder.who, one.holder.left};
    }
  }
  return answers;
}

void RedisDoor::Leave(absl::Span<const std::string> keys) {
  absl::MutexLock lock(&mutex_);
  for (const std::string& key : keys) {
    const auto found = kept_.find(key);
    if (found == kept_.end()) continue;
    left_.push_back(found->second.holding);
    kept_.erase(found);
    changed_ = true;
  }
}

absl::Duration RedisDoor::NextRenewal() const {
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [key, kept] : kept_) next = std::min(next, kept.renew_at);
  return next;
}

void RedisDoor::Renew() {
  const absl::Duration now = clock_.BootNow();
  std::vector<RedisHolding> due;
  {
    absl::MutexLock lock(&mutex_);
    for (auto& [key, kept] : kept_) {
      if (kept.renew_at > now) continue;
      kept.renew_at = now + kept.holding.ttl / 4;
      due.push_back(kept.holding);
    }
  }
  if (due.empty()) return;
  std::optional<std::vector<RedisKept>> renewed;
  if (IsAway()) return;
  {
    absl::MutexLock calls(&calls_);
    renewed = Told(locks_.Renew(due, patience_));
  }
  if (!renewed.has_value()) return;
  // One that the server no longer has is not put back: somebody else may be there by now.
  absl::MutexLock lock(&mutex_);
  for (size_t i = 0; i < due.size(); ++i) {
    if ((*renewed)[i].kept || !(*renewed)[i].status.ok()) continue;
    const auto found = kept_.find(due[i].key);
    if (found != kept_.end() && found->second.holding.value == due[i].value) kept_.erase(found);
  }
}

void RedisDoor::Keep() {
  for (;;) {
    std::vector<RedisHolding> left;
    bool ending;
    {
      absl::MutexLock lock(&mutex_);
      clock_.AwaitUntil(mutex_, absl::Condition(&changed_), NextRenewal());
      changed_ = false;
      left = std::exchange(left_, {});
      ending = ending_;
    }
    if (!left.empty() && !IsAway()) {
      absl::MutexLock calls(&calls_);
      Told(locks_.Release(left, patience_));
    }
    if (ending) return;
    Renew();
  }
}

}  // namespace

std::unique_ptr<Door> OpenRedisDoor(RedisUrl url, absl::string_view who, Clock& clock,
                                    absl::Duration patience) {
  return std::make_unique<RedisDoor>(std::move(url), who, clock, patience);
}

}  // namespace matins
