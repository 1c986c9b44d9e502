// One connection to a server, non-blocking, each call under the client's own deadline: a server,
// proxy or network that holds still costs the deadline and the connection, never the thread.
//
// Statements go in packets of several (one round trip however many), as text with every value
// quoted, each packet below max_allowed_packet. What a session must be (READ COMMITTED, UTC,
// strict, bounded waits) is set by the same packet that greets a new connection, so that none is
// used without.
#ifndef MATINS_STORE_MARIADB_CONNECTION_H_
#define MATINS_STORE_MARIADB_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "store/mariadb/url.h"

struct st_mysql;
struct st_mysql_res;

namespace matins::mariadb {

// A statement's rows. Columns count from 0; reading past the end is a bug.
class Rows {
 public:
  Rows(st_mysql_res* result, int64_t affected);  // takes it; nullptr: no rows
  int size() const { return static_cast<int>(cells_.size() / columns_); }
  bool IsNull(int row, int column) const { return Cell(row, column).data() == nullptr; }
  std::string Text(int row, int column) const;  // NULL: ""
  int64_t Int(int row, int column) const;       // NULL: 0
  bool Bool(int row, int column) const { return Int(row, column) != 0; }
  // DATETIME, which is UTC everywhere; NULL: `null`.
  absl::Time Time(int row, int column, absl::Time null = absl::InfinitePast()) const;
  absl::CivilDay Day(int row, int column) const;  // DATE
  int64_t affected() const { return affected_; }  // rows inserted, matched or deleted

 private:
  const absl::string_view& Cell(int row, int column) const {
    return cells_[static_cast<size_t>(row) * columns_ + static_cast<size_t>(column)];
  }
  std::shared_ptr<st_mysql_res> result_;
  size_t columns_ = 1;
  std::vector<absl::string_view> cells_;  // NULL: no data
  int64_t affected_;
};

struct Statement {
  std::string sql;
};

// The server's error number, 0 where the server said nothing.
int ErrorOf(const absl::Status& status);
// The server refused the transaction for another's sake (deadlock): the whole of it may be sent
// again.
bool IsContention(const absl::Status& status);
bool IsLockWait(const absl::Status& status);  // somebody kept a row locked for too long
bool IsDuplicate(const absl::Status& status, absl::string_view key);
// The database will not take this row, whoever asks; or it fits no packet.
bool IsRowError(const absl::Status& status);

struct ConnectionOptions {
  Url url;
  absl::Duration call_deadline = absl::Seconds(5);
};

// Not thread-safe.
//
// Errors of Read and Begin: Unavailable, nothing took effect. Of Write and Commit: Unavailable
// where the server refused or nothing was sent, InDoubt where COMMIT was sent and its answer did
// not come. FailedPrecondition: no schema, or no right. After any error the transaction is over.
class Connection {
 public:
  explicit Connection(ConnectionOptions options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Connects where there is no connection. After a failure further tries are refused at once until
  // a backoff with jitter (50 ms doubling to 2 s) has passed.
  absl::Status Connect();
  // One read-only transaction, one snapshot for all statements. Sent again once where the
  // connection turns out to be dead.
  absl::StatusOr<std::vector<Rows>> Read(const std::vector<Statement>& statements);
  // One READ COMMITTED transaction, one round trip: each statement has its own snapshot.
  absl::StatusOr<std::vector<Rows>> Write(const std::vector<Statement>& statements);
  // The same in several round trips. Statements after an error are not run.
  absl::StatusOr<std::vector<Rows>> Begin(const std::vector<Statement>& statements);
  // The same read-only and with one snapshot for all; nothing of it is ever in doubt.
  absl::StatusOr<std::vector<Rows>> BeginSnapshot(const std::vector<Statement>& statements);
  absl::StatusOr<std::vector<Rows>> More(const std::vector<Statement>& statements);
  absl::StatusOr<std::vector<Rows>> Commit(const std::vector<Statement>& statements);
  void Rollback();
  // Bare statements with no transaction of ours around them (DDL commits by itself). Each may take
  // as long as the call's deadline.
  absl::StatusOr<std::vector<Rows>> Bare(const std::vector<Statement>& statements);
  void Drop();

  // Whether the URL's database is entered when connecting; not before it has been made.
  void set_enter_database(bool enter) { enter_database_ = enter; }
  void set_call_deadline(absl::Duration deadline);
  const ConnectionOptions& options() const { return options_; }
  // Whether a call's deadline leaves room to wait for a locked row (the server counts in seconds).
  bool may_wait() const { return options_.call_deadline >= absl::Seconds(2); }
  // The most that one statement should carry, with room to spare.
  size_t statement_bytes() const { return packet_bytes_ / 4; }

 private:
  absl::Status Handshake(absl::Time deadline);
  absl::Status Ready();  // connected, and the socket is not known to be dead
  absl::StatusOr<std::vector<Rows>> Open(bool snapshot, const std::vector<Statement>& statements);
  // Sends all, in as few packets as they fit; the first error is answered, what follows it was not
  // run. `reached`: how many statements had been answered, `sent`: how many had been handed over.
  struct Progress {
    size_t reached = 0, sent = 0;
  };
  absl::StatusOr<std::vector<Rows>> Send(const std::vector<Statement>& statements,
                                         Progress* progress = nullptr);
  absl::Status SendPacket(const std::string& packet, size_t statements, absl::Time deadline,
                          std::vector<Rows>& rows);
  absl::Status ReadResult(absl::Time deadline, std::vector<Rows>& rows);
  absl::Status ReadNext(absl::Time deadline, bool* more);
  // Waits for what a non-blocking call asked for; answers the events that came.
  absl::StatusOr<int> Await(int wanted, absl::Time deadline);
  absl::Status Failed();  // what the client or the server says went wrong
  absl::Status Lost(absl::string_view what);
  std::string Settings() const;
  std::vector<Statement> Begun(bool snapshot, const std::vector<Statement>& statements) const;

  ConnectionOptions options_;
  st_mysql* conn_ = nullptr;
  bool connected_ = false;
  bool enter_database_ = true;
  bool open_ = false;  // a transaction of Begin
  bool writes_ = false;
  size_t packet_bytes_ = 1 << 20;
  absl::Time next_try_ = absl::InfinitePast();  // of the monotonic clock
  absl::Duration backoff_ = absl::ZeroDuration();
  SystemRandom random_;
};

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_CONNECTION_H_
