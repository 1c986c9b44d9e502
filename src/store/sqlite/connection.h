// A connection to the SQLite file, its prepared statements, and transactions that take the write
// lock first and read the clock second (I4).
#ifndef MATINS_STORE_SQLITE_CONNECTION_H_
#define MATINS_STORE_SQLITE_CONNECTION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "store/database.h"
#include "store/rules.h"
#include "store/sqlite/watch.h"

struct sqlite3;
struct sqlite3_stmt;

namespace matins::sqlite {

// What the connections of one Database share: writers queue here before they ask SQLite for its
// lock, so that threads of one process take turns instead of polling, and waiting lanes are woken.
// Thread-safe.
class Hub {
 public:
  // False where the queue did not move on within `wait`.
  bool EnterWriter(absl::Duration wait) ABSL_LOCKS_EXCLUDED(mutex_);
  void LeaveWriter() ABSL_LOCKS_EXCLUDED(mutex_);
  // Something may have become due or changed: those who wait hear of it.
  void Changed() ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t changes() ABSL_LOCKS_EXCLUDED(mutex_);
  // Rings `watch` at each change until it is left.
  void Join(WriteWatch* watch) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(WriteWatch* watch) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<WriteWatch*> watches_ ABSL_GUARDED_BY(mutex_);
};

class Connection;

// One run of a prepared statement. Errors stick to the connection: a statement after a failed one
// does nothing and answers no row, and the transaction's Commit tells the first error.
class Statement {
 public:
  Statement(Statement&& other) noexcept
      : db_(other.db_), stmt_(other.stmt_), owned_(other.owned_), next_(other.next_) {
    other.stmt_ = nullptr;
  }
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Binds the next parameter. Infinite instants and nothing are NULL; durations are microseconds.
  Statement& Bind(int64_t value);
  Statement& Bind(int value) { return Bind(int64_t{value}); }
  Statement& Bind(bool value) { return Bind(int64_t{value}); }
  Statement& Bind(double value);
  Statement& Bind(absl::string_view value);
  Statement& Bind(const std::string& value) { return Bind(absl::string_view(value)); }
  Statement& Bind(const char* value) { return Bind(absl::string_view(value)); }
  Statement& BindBlob(absl::string_view value);
  Statement& Bind(absl::Time value);
  Statement& Bind(absl::Duration value) { return Bind(absl::ToInt64Microseconds(value)); }
  Statement& Bind(std::nullopt_t);
  template <typename T>
  Statement& Bind(const std::optional<T>& value) {
    return value ? Bind(*value) : Bind(std::nullopt);
  }

  // Steps to the next row; false at the end and after an error.
  bool Next();
  // Runs to the end; answers the rows changed by it.
  int Run();

  // Columns of the current row, from 0.
  bool Null(int column) const;
  int64_t Int(int column) const;
  bool Bool(int column) const { return Int(column) != 0; }
  double Real(int column) const;
  std::string Text(int column) const;  // empty for NULL; bytes of any content
  absl::Time Time(int column, absl::Time if_null) const;
  absl::Duration Micros(int column) const { return absl::Microseconds(Int(column)); }
  std::optional<int> OptionalInt(int column) const;

 private:
  friend class Connection;
  Statement(Connection* db, sqlite3_stmt* stmt, bool owned) : db_(db), stmt_(stmt), owned_(owned) {}
  void Check(int rc);

  Connection* db_;
  sqlite3_stmt* stmt_;
  bool owned_;
  int next_ = 1;
};

struct ConnectionOptions {
  std::string path;
  absl::Duration call_deadline = absl::Seconds(5);
  std::function<absl::Time()> clock;  // empty: CLOCK_REALTIME
  bool create = false;
};

// Used from one thread at a time.
class Connection {
 public:
  // WAL, synchronous=FULL, foreign keys off, matins_now() registered. Errors: NotFound where the
  // file is missing, FailedPrecondition where it is no database, is read-only, or lies on a network
  // file system; Unavailable where it is busy.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ConnectionOptions& options,
                                                          std::shared_ptr<Hub> hub);
  // An empty database that lives as long as the connection.
  static absl::StatusOr<std::unique_ptr<Connection>> OpenMemory();
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  template <typename... Args>
  Statement Sql(absl::string_view sql, const Args&... args) {
    Statement statement = Prepare(sql);
    (statement.Bind(args), ...);
    return statement;
  }
  // Several statements without parameters or rows.
  absl::Status Script(const std::string& sql);

  // The first error since the last ClearStatus.
  const absl::Status& status() const { return status_; }
  void ClearStatus() { status_ = absl::OkStatus(); }
  void Fail(absl::Status status);
  bool ok() const { return status_.ok(); }

  // What matins_now() answers: the clock, never below the high-water mark. Inside a transaction it
  // stands still at the instant of its first reading, which comes after the lock.
  absl::Time Now();
  absl::Time RawClock() const;
  void SetMark(absl::Time mark) { mark_ = mark; }
  void FixNow(std::optional<absl::Time> now) { fixed_now_ = now; }

  // How long to pause before a lock that somebody else has is tried again, after `waited` in all;
  // `random` in [0, 1). The longer one has waited the shorter it is, so that no caller stays behind
  // writers who take the lock again at once.
  static absl::Duration BusyPause(absl::Duration waited, double random);

  // Whether any row waits for something to be freed, or for its next look: asked once a
  // transaction, since most stores have none.
  bool AnyPutOff();
  void ForgetPutOff() { any_put_off_.reset(); }

  // Changes made by other connections (PRAGMA data_version).
  int64_t DataVersion();
  // The file that commits are written to; it is there once something was read.
  std::string WalPath() const;
  absl::Status ErrorOf(int rc, absl::string_view what, bool committing = false);

  Hub& hub() { return *hub_; }
  sqlite3* raw() { return db_; }
  const ConnectionOptions& options() const { return options_; }

 private:
  friend class Statement;
  Connection(ConnectionOptions options, std::shared_ptr<Hub> hub)
      : options_(std::move(options)), hub_(std::move(hub)) {}
  absl::Status Configure();
  static int OnBusy(void* connection, int times);  // as sqlite3_busy_handler wants it
  Statement Prepare(absl::string_view sql);

  ConnectionOptions options_;
  std::shared_ptr<Hub> hub_;
  sqlite3* db_ = nullptr;
  absl::flat_hash_map<std::string, sqlite3_stmt*> statements_;
  absl::Status status_;
  absl::Time mark_ = absl::InfinitePast();
  std::optional<absl::Time> fixed_now_;
  absl::Duration
      busy_since_;  // of the boot clock: when the lock that is waited for was first tried
  SeededRandom busy_random_{SystemRandom().Next()};
  std::optional<bool> any_put_off_;
};

// BEGIN IMMEDIATE .. COMMIT of one verb; rolls back unless committed.
class Transaction {
 public:
  // Takes the write lock within the call's deadline, then reads epoch, mark and clock. `verb` names
  // the fault points sqlite.VERB.before_commit and sqlite.VERB.after_commit.
  static absl::StatusOr<Transaction> Begin(Connection& db, absl::string_view verb);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  absl::Time now() const { return now_; }
  bool frozen() const { return frozen_; }  // the clock stepped (I8)
  // It stepped, or has jumped forward and no tick has judged that yet: nodes decide nothing.
  // Or the schema is of a newer program, whose rules this one does not know.
  bool frozen_to_nodes() const { return frozen_ || unjudged_ || schema_ > kSchemaVersion; }
  int schema() const { return schema_; }
  int64_t epoch() const { return epoch_; }
  bool has_limits() const { return limits_ > 0; }  // rows in job_limit
  // The clock is accepted as it stands: the transaction goes on at `now`, not frozen.
  void AcceptClock(absl::Time now);
  // The next number of the one source of fences; I6. Kept by Commit.
  int64_t NextFence();
  // Unavailable: nothing took effect. InDoubt: the disk failed while the commit was being synced.
  absl::Status Commit();

 private:
  Transaction(Connection* db, absl::string_view verb) : db_(db), verb_(verb) {}
  absl::Status Load(std::optional<absl::Time> early);

  Connection* db_;
  std::string verb_;
  absl::Time now_;
  bool frozen_ = false;
  bool unjudged_ = false;
  int schema_ = 0;
  int64_t epoch_ = 0;
  int64_t fence_next_ = 0;
  int64_t fence_read_ = 0;
  int64_t limits_ = 0;
  int64_t changes_before_ = 0;
};

// A deferred read of one snapshot; ends with the object.
class ReadSnapshot {
 public:
  static absl::StatusOr<ReadSnapshot> Begin(Connection& db);
  ReadSnapshot(ReadSnapshot&& other) noexcept
      : db_(other.db_),
        now_(other.now_),
        frozen_(other.frozen_),
        unjudged_(other.unjudged_),
        schema_(other.schema_),
        epoch_(other.epoch_) {
    other.db_ = nullptr;
  }
  ReadSnapshot& operator=(ReadSnapshot&&) = delete;
  ~ReadSnapshot();
  absl::Time now() const { return now_; }
  bool frozen() const { return frozen_; }
  bool frozen_to_nodes() const { return frozen_ || unjudged_ || schema_ > kSchemaVersion; }
  int64_t epoch() const { return epoch_; }

 private:
  explicit ReadSnapshot(Connection* db) : db_(db) {}
  Connection* db_;
  absl::Time now_;
  bool frozen_ = false;
  bool unjudged_ = false;
  int schema_ = 0;
  int64_t epoch_ = 0;
};

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_CONNECTION_H_
