// Leases in Redis. What they are worth alone: docs/locks.md. Never more than a hint beside a store
// (lease/door.h, I22).
//
// A lock is `SET key value NX PX ttl`, with a value that no other holding has ever had; renewing
// and releasing compare that value and act, in one script. Beside it stand, under the same prefix,
//   PREFIX:lock:KEY   the value, while the lease lives
//   PREFIX:fence:KEY  the last fence given, to which value, since when, and how often that was
//                     renewed; stays
//   PREFIX:step:KEY   number and data of the last step; stays for as long as was asked for
//   PREFIX:events     a stream of releases by people, the newest 10,000 or a few more
// A fence is the greater of the last one and one more, and the server's clock in microseconds: so
// fences go on rising when the server has lost its data (restarted empty, FLUSHALL, a replica that
// was behind), unless its clock was set back as well. Below 2^53.
#ifndef MATINS_LEASE_REDIS_LOCKS_H_
#define MATINS_LEASE_REDIS_LOCKS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/random.h"
#include "lease/redis_connection.h"

namespace matins {

// One holding of one lock: who it was taken by and that no other is like it.
struct RedisHolding {
  std::string key;
  std::string value;  // NewValue()
  absl::Duration ttl;
};

struct RedisHolder {
  std::string key;
  std::string who;    // of the value, up to its last colon
  int64_t fence = 0;  // 0: taken without one
  absl::Time since = absl::InfinitePast();
  absl::Time until = absl::InfiniteFuture();  // Redis's clock; InfiniteFuture: the key has no end
  absl::Duration left = absl::InfiniteDuration();
  int64_t renewals = 0;
};

struct RedisTaken {
  bool taken = false;
  int64_t fence = 0;
  RedisHolder holder;   // who has it, where it was not taken
  absl::Status status;  // not OK: Redis would not do it, and why; nothing is held by this call
};

struct RedisKept {
  bool kept = false;
  std::string now_held_by;  // where it was not kept; empty: nobody
  absl::Status status;      // not OK: Redis would not do it; says nothing about the lock
};

struct RedisStep {
  int64_t number = 0;  // 0: none yet
  std::string data;
};

// Not thread-safe. Every verb is one round trip (three where a script is not loaded yet) for any
// number of locks, and has the errors of RedisConnection::Call. A verb whose answer did not come
// may be asked again with the same holdings: none takes or renews twice.
class RedisLocks {
 public:
  RedisLocks(RedisUrl url, Clock& clock);
  ~RedisLocks();

  // "WHO:32 hex digits", where WHO is the node's incarnation.
  static std::string NewValue(absl::string_view who, Random& random);

  // Each with a fence that is counted up beside the lock, in one script.
  absl::StatusOr<std::vector<RedisTaken>> Take(absl::Span<const RedisHolding> holdings,
                                               absl::Duration patience);
  // The locks alone: `fence` is 0, and nothing stands beside them. One more round trip where some
  // are held, to say by whom.
  absl::StatusOr<std::vector<RedisTaken>> TakeUnfenced(absl::Span<const RedisHolding> holdings,
                                                       absl::Duration patience);
  // The lease lives for another ttl from now, where the lock still has this very value. Never
  // revives one that ended.
  absl::StatusOr<std::vector<RedisKept>> Renew(absl::Span<const RedisHolding> holdings,
                                               absl::Duration patience);
  // Another's lock is left alone (`kept` is false then).
  absl::StatusOr<std::vector<RedisKept>> Release(absl::Span<const RedisHolding> holdings,
                                                 absl::Duration patience);

  // All locks of our prefix, by key. One more round trip for each thousand keys of the database.
  absl::StatusOr<std::vector<RedisHolder>> List(absl::Duration patience);
  // Ends another's lease, burns its fence, and records who did so and why. NotFound where nobody
  // holds the lock. Answers who did.
  absl::StatusOr<RedisHolder> Break(const std::string& key, absl::string_view who,
                                    absl::string_view why, absl::Duration patience);

  // The last step of a lock whose work is done in steps.
  absl::StatusOr<RedisStep> ReadStep(const std::string& key, absl::Duration patience);
  // Written only under the lease, and only forward; kept for `keep`. FailedPrecondition where the
  // lock is no longer ours, AlreadyExists where the step is not after the last.
  absl::Status WriteStep(const RedisHolding& holding, const RedisStep& step, absl::Duration keep,
                         absl::Duration patience);

  const RedisUrl& url() const { return connection_.url(); }

 private:
  struct Script;
  struct Scripts;
  // A call of a script: its keys, then its arguments.
  struct Invocation {
    std::vector<std::string> keys;
    std::vector<std::string> args;
  };

  // Loads the script where the server does not have it; calls that it had refused for that are made
  // again.
  absl::StatusOr<std::vector<RedisReply>> Run(Script& script, absl::Span<const Invocation> calls,
                                              absl::Duration patience);
  absl::Status Load(Script& script, absl::Duration patience);
  absl::StatusOr<std::vector<RedisKept>> CompareAndAct(Script& script,
                                                       absl::Span<const RedisHolding> holdings,
                                                       absl::Duration patience);
  absl::StatusOr<std::vector<std::string>> FindLocks(absl::Duration patience);
  std::string Name(absl::string_view kind, absl::string_view key) const;

  RedisConnection connection_;
  const std::unique_ptr<Scripts> scripts_;
};

}  // namespace matins

#endif  // MATINS_LEASE_REDIS_LOCKS_H_
