// What every verb stands on: a connection, the schema's names in SQL, and the rules for trying
// again.
#ifndef MATINS_STORE_POSTGRESQL_SESSION_H_
#define MATINS_STORE_POSTGRESQL_SESSION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/fault.h"
#include "base/random.h"
#include "job/values.h"
#include "store/postgresql/connection.h"
#include "store/postgresql/sql.h"

namespace matins::postgresql {

// Where one waits for a row that somebody else has locked, once the rest of the batch is through.
inline constexpr absl::Duration kLockWait = absl::Milliseconds(800);

// A fault point inside an open transaction, which the caller ends where it is told to fail.
inline absl::Status Reach(absl::string_view point) {
#if MATINS_LAB
  return ReachFaultPoint(point);
#else
  return absl::OkStatus();
#endif
}

// Not thread-safe.
class Session {
 public:
  Session(ConnectionOptions options, absl::string_view schema)
      : connection(std::move(options)), sql(schema) {
    connection.set_preamble(sql("select set_config('matins.early', @.matins_now()::text, true)"));
  }

  // Sends the whole transaction again after a deadlock, a serialization error or a collision on a
  // lock key: up to five times, with jitter. `transaction` answers a StatusOr, and leaves nothing
  // open.
  template <typename F>
  auto Retried(F transaction) -> decltype(transaction()) {
    for (int tries = 1;; ++tries) {
      auto answer = transaction();
      if (answer.ok() || tries == 5 || !MayRetry(answer.status())) return answer;
      connection.Rollback();
      Pause(tries);
    }
  }

  // One transaction: in one round trip; or, where it may wait for a lock, with the fault point
  // `before_lock` between its beginning and the statement that locks.
  absl::StatusOr<std::vector<Rows>> Write(const std::vector<Statement>& statements, bool waits,
                                          absl::string_view before_lock);

  // Tells those who wait in AwaitChange, at most once in 50 ms: alone, after the commit, because
  // NOTIFY takes a lock that all commits share. Its failure costs latency alone.
  void Notify();

  Statement Of(absl::string_view text, std::vector<Parameter> params = {}) const {
    return {sql(text), std::move(params)};
  }

  Connection connection;
  SqlNames sql;

 private:
  static bool MayRetry(const absl::Status& status);
  void Pause(int tries);

  SystemRandom random_;
  absl::Time notified_ = absl::InfinitePast();
};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_SESSION_H_
