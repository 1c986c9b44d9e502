// A connection to Redis or Valkey: commands out, replies back, all under the caller's deadline.
#ifndef MATINS_LEASE_REDIS_CONNECTION_H_
#define MATINS_LEASE_REDIS_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "lease/redis_url.h"
#include "lease/socket.h"

struct redisReader;

namespace matins {

// The words of one command; the texts have to outlive the call.
using RedisCommand = absl::InlinedVector<absl::string_view, 8>;

struct RedisReply {
  enum class Type { kNil, kText, kInteger, kError, kList };
  Type type = Type::kNil;
  std::string text;  // kText, kError
  int64_t integer = 0;
  std::vector<RedisReply> items;  // kList

  bool IsError(absl::string_view code) const;  // "NOSCRIPT"
  // An error as a status: PermissionDenied (NOAUTH, NOPERM), Unavailable (LOADING, READONLY, BUSY,
  // MASTERDOWN, OOM ...), else FailedPrecondition; OK for all other replies.
  absl::Status ToStatus() const;
};

// Not thread-safe. Connects at the first call and again after one that failed; logs in, chooses the
// database, and takes only a server that says that it is no replica. With sentinels it asks them
// where that is, each time that it connects.
class RedisConnection {
 public:
  RedisConnection(RedisUrl url, Clock& clock);
  ~RedisConnection();

  const RedisUrl& url() const { return url_; }

  // Sends all of `commands` at once; answers their replies in order. Unavailable: nothing was sent.
  // PermissionDenied, FailedPrecondition: nor here; logging in was refused, and why. InDoubt: some
  // may have taken effect, or may still. After each of these the next call connects anew.
  absl::StatusOr<std::vector<RedisReply>> Call(absl::Span<const RedisCommand> commands,
                                               absl::Duration patience);
  void Close();

 private:
  absl::Status Connect(absl::Duration until);
  absl::StatusOr<RedisPlace> AskSentinels(absl::Duration until);
  // Opens a connection to `place` and logs in there.
  absl::Status Enter(const RedisPlace& place, const std::string& user, const std::string& password,
                     int database, absl::Duration until);
  absl::Status CheckRole(absl::Duration until);
  absl::StatusOr<std::vector<RedisReply>> Exchange(absl::Span<const RedisCommand> commands,
                                                   absl::Duration until);
  absl::StatusOr<RedisReply> ReadReply(absl::Duration until);

  const RedisUrl url_;
  Clock& clock_;
  size_t first_sentinel_ = 0;  // the one that answered last
  std::unique_ptr<Socket> socket_;
  redisReader* reader_ = nullptr;
  std::string out_, in_;
};

}  // namespace matins

#endif  // MATINS_LEASE_REDIS_CONNECTION_H_
