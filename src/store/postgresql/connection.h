// One connection to a server, non-blocking, each call under the client's own deadline: a server,
// pooler or network that holds still costs the deadline and the connection, never the thread.
//
// Statements go as pipelines (one round trip however many), with bound parameters and binary
// results. No transaction needs anything of its session, so that a pooler may hand each to another
// server connection; statements are prepared where no pooler stands between.
#ifndef MATINS_STORE_POSTGRESQL_CONNECTION_H_
#define MATINS_STORE_POSTGRESQL_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "store/postgresql/prepared.h"

struct pg_conn;
struct pg_result;

namespace matins::postgresql {

// A statement's rows, in PostgreSQL's binary form. Columns count from 0; reading past the end or a
// column of another type is a bug.
class Rows {
 public:
  explicit Rows(std::shared_ptr<pg_result> result) : result_(std::move(result)) {}
  int size() const;
  bool IsNull(int row, int column) const;
  std::string Text(int row, int column) const;  // text or bytea; NULL: ""
  int64_t Int(int row, int column) const;       // int2, int4, int8; NULL: 0
  bool Bool(int row, int column) const;         // NULL: false
  double Number(int row, int column) const;     // float8
  // timestamptz; NULL: `null`.
  absl::Time Time(int row, int column, absl::Time null = absl::InfinitePast()) const;
  absl::CivilDay Day(int row, int column) const;  // date
  int64_t affected() const;                       // rows inserted, updated or deleted

 private:
  std::shared_ptr<pg_result> result_;
};

// A parameter in text form, or in the type's binary form; nothing: NULL.
struct Parameter {
  Parameter(std::string text) : value(std::move(text)) {}                 // NOLINT: a value
  Parameter(const char* text) : value(text) {}                            // NOLINT
  Parameter(std::nullopt_t) {}                                            // NOLINT
  Parameter(std::optional<std::string> text) : value(std::move(text)) {}  // NOLINT
  static Parameter Binary(std::optional<std::string> bytes) {
    Parameter parameter(std::move(bytes));
    parameter.binary = true;
    return parameter;
  }

  std::optional<std::string> value;
  bool binary = false;
};

struct Statement {
  std::string sql;
  std::vector<Parameter> params;
  bool comes_again = false;  // prepared when it comes for the first time
};

// The SQLSTATE of a server's error, "" where the server said nothing.
std::string SqlStateOf(const absl::Status& status);
// The server refused the transaction for another's sake (deadlock, serialization), or does not know
// what was prepared: the whole of it may be sent again.
bool IsContention(const absl::Status& status);
bool IsUniqueViolation(const absl::Status& status, absl::string_view constraint);

struct ConnectionOptions {
  std::vector<std::pair<std::string, std::string>> conninfo;
  std::string where;  // for messages
  absl::Duration call_deadline = absl::Seconds(5);
  // How long a statement waits for a row that somebody else has locked, before it is an error.
  absl::Duration lock_wait = absl::Seconds(2);
};

// Not thread-safe.
//
// Errors of Read and Begin: Unavailable, nothing took effect. Of Write and Commit: Unavailable
// where the server refused or nothing was sent, InDoubt where COMMIT was sent and its answer did
// not come. FailedPrecondition: no schema. After any error the transaction is over.
class Connection {
 public:
  explicit Connection(ConnectionOptions options);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Connects where there is no connection. After a failure further tries are refused at once until
  // a backoff with jitter (50 ms doubling to 2 s) has passed.
  absl::Status Connect();
  // One read-only transaction, one snapshot for all statements, one round trip. Sent again once
  // where the connection turns out to be dead.
  absl::StatusOr<std::vector<Rows>> Read(const std::vector<Statement>& statements);
  // One READ COMMITTED transaction in one round trip: each statement has its own snapshot.
  absl::StatusOr<std::vector<Rows>> Write(const std::vector<Statement>& statements);
  // The same in several round trips. Statements after an error are not run.
  absl::StatusOr<std::vector<Rows>> Begin(const std::vector<Statement>& statements);
  // The same read-only and with one snapshot for all; nothing of it is ever in doubt.
  absl::StatusOr<std::vector<Rows>> BeginSnapshot(const std::vector<Statement>& statements);
  absl::StatusOr<std::vector<Rows>> More(const std::vector<Statement>& statements);
  absl::StatusOr<std::vector<Rows>> Commit(const std::vector<Statement>& statements);
  void Rollback();
  // As Write, but nobody waits: what is called next takes the answers first. For what is worth
  // doing while there is nothing else to do, and harmless where it fails. Does nothing behind a
  // pooler, where the next transaction is another server process's.
  void WriteAhead(const std::vector<Statement>& statements);

  // Bare statements with no transaction of ours around them (LISTEN, NOTIFY).
  absl::StatusOr<std::vector<Rows>> Bare(const std::vector<Statement>& statements);
  // Whether the server is reached through a pooler: its process is not the one that greeted us.
  absl::StatusOr<bool> IsPooled();
  // Takes what has arrived; answers whether notifications were among it. Unavailable where the
  // connection is gone.
  absl::StatusOr<bool> TakeNotifications();
  int socket() const;  // -1: not connected
  void Drop();

  // The statement that stands first in each transaction of the mutant that reads the clock too
  // early.
  void set_preamble(std::string sql) { preamble_ = std::move(sql); }
  // Statements name their rows by keys: none is to be planned as a scan of a whole table, however
  // small that was when it was last analysed, and none is worth compiling.
  void set_by_keys() { by_keys_ = true; }
  void set_lock_wait(absl::Duration wait) { options_.lock_wait = wait; }
  void set_call_deadline(absl::Duration deadline) { options_.call_deadline = deadline; }
  absl::Duration lock_wait() const { return options_.lock_wait; }

 private:
  absl::Status Handshake(absl::Time deadline);
  absl::Status Ready();  // connected, and the socket is not known to be dead
  absl::StatusOr<std::vector<Rows>> Open(absl::string_view begin, bool writes,
                                         const std::vector<Statement>& statements);
  // Queues `statements`; answers, of what will be answered in order, whether it prepares.
  absl::StatusOr<std::vector<bool>> Queue(const std::vector<Statement>& statements);
  absl::StatusOr<std::vector<Rows>> Send(const std::vector<Statement>& statements);
  std::vector<Statement> Framed(absl::string_view begin, const std::vector<Statement>& statements,
                                absl::string_view end) const;
  absl::Status Await(short events, absl::Time deadline);
  absl::StatusOr<std::vector<Rows>> SendFramed(absl::string_view begin,
                                               const std::vector<Statement>& statements,
                                               absl::string_view end);
  absl::Status CollectAhead(absl::Time deadline);
  absl::Status Collect(const std::vector<bool>& preparations, absl::Time deadline,
                       std::vector<Rows>& rows);
  absl::Status Lost(absl::string_view what);
  Statement Settings() const;

  ConnectionOptions options_;
  PreparedStatements prepared_;
  pg_conn* conn_ = nullptr;
  bool open_ = false;  // a transaction of Begin
  bool writes_ = false;
  std::optional<std::vector<bool>> ahead_;  // WriteAhead's, as of Queue, until it is answered
  std::string preamble_;
  bool by_keys_ = false;
  absl::Time next_try_ = absl::InfinitePast();  // of the monotonic clock
  absl::Duration backoff_ = absl::ZeroDuration();
  SystemRandom random_;
};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_CONNECTION_H_
