#include "store/sqlite/connection.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "store/rules.h"

namespace matins::sqlite {
namespace {

// Where byte-range locks or shared memory do not mean what SQLite needs: two hosts would both hold
// the write lock.
constexpr struct {
  unsigned magic;
  const char* name;
} kNetworkFileSystems[] = {{0x6969, "NFS"},        {0x517B, "SMB"},       {0xFE534D42, "SMB2"},
                           {0xFF534D42, "CIFS"},   {0x5346414F, "AFS"},   {0x00C36400, "CephFS"},
                           {0x0BD00BD0, "Lustre"}, {0x7461636F, "OCFS2"}, {0x01161970, "GFS2"}};

absl::Status RefuseNetworkFileSystem(const std::string& path) {
  struct statfs info;
  if (statfs(path.c_str(), &info) != 0) return absl::OkStatus();
  for (const auto& [magic, name] : kNetworkFileSystems) {
    if (static_cast<unsigned>(info.f_type) == magic) {
      return absl::FailedPreconditionError(
          absl::StrCat("sqlite:", path, " lies on ", name,
                       ", where SQLite's locks do not hold; move it to a local disk, or use "
                       "postgresql:// for several hosts"));
    }
  }
  return absl::OkStatus();
}

// The file is made before SQLite opens it, so that it, its -wal and its -shm belong to the owner
// alone.
absl::Status MakeFile(const std::string& path) {
  const int fd = open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    return absl::FailedPreconditionError(absl::StrCat("sqlite:", path, ": ", std::strerror(errno),
                                                      "; give a path that can be written"));
  }
  close(fd);
  return absl::OkStatus();
}

void MatinsNow(sqlite3_context* context, int, sqlite3_value**) {
  auto* db = static_cast<Connection*>(sqlite3_user_data(context));
  sqlite3_result_int64(context, ToMicros(db->Now()));
}

}  // namespace

// ---- Hub ----

bool Hub::EnterWriter(absl::Duration wait) {
  absl::MutexLock lock(&mutex_);
  const auto free = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !writing_; };
  if (!SystemClock().AwaitFor(mutex_, absl::Condition(&free), wait)) return false;
  writing_ = true;
  return true;
}

void Hub::LeaveWriter() {
  absl::MutexLock lock(&mutex_);
  writing_ = false;
}

void Hub::Changed() {
  absl::MutexLock lock(&mutex_);
  ++changes_;
  for (WriteWatch* watch : watches_) watch->Ring();
}

void Hub::Join(WriteWatch* watch) {
  absl::MutexLock lock(&mutex_);
  watches_.insert(watch);
}

void Hub::Leave(WriteWatch* watch) {
  absl::MutexLock lock(&mutex_);
  watches_.erase(watch);
}

int64_t Hub::changes() {
  absl::MutexLock lock(&mutex_);
  return changes_;
}

// ---- Statement ----

Statement::~Statement() {
  if (stmt_ == nullptr) return;
  if (owned_) {
    sqlite3_finalize(stmt_);
  } else {
    sqlite3_reset(stmt_);
    sqlite3_clear_bindings(stmt_);
  }
}

void Statement::Check(int rc) {
  if (rc != SQLITE_OK) db_->Fail(db_->ErrorOf(rc, "bind"));
}

Statement& Statement::Bind(int64_t value) {
  if (stmt_ != nullptr) Check(sqlite3_bind_int64(stmt_, next_++, value));
  return *this;
}

Statement& Statement::Bind(double value) {
  if (stmt_ != nullptr) Check(sqlite3_bind_double(stmt_, next_++, value));
  return *this;
}

Statement& Statement::Bind(absl::string_view value) {
  if (stmt_ == nullptr) return *this;
  // A view without data would be NULL to SQLite.
  const char* data = value.data() == nullptr ? "" : value.data();
  Check(sqlite3_bind_text(stmt_, next_++, data, static_cast<int>(value.size()), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::BindBlob(absl::string_view value) {
  if (stmt_ == nullptr) return *this;
  const char* data = value.data() == nullptr ? "" : value.data();
  Check(sqlite3_bind_blob(stmt_, next_++, data, static_cast<int>(value.size()), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::Bind(absl::Time value) {
  if (value == absl::InfinitePast() || value == absl::InfiniteFuture()) return Bind(std::nullopt);
  return Bind(ToMicros(value));
}

Statement& Statement::Bind(std::nullopt_t) {
  if (stmt_ != nullptr) Check(sqlite3_bind_null(stmt_, next_++));
  return *this;
}

bool Statement::Next() {
  if (stmt_ == nullptr || !db_->ok()) return false;
  const int rc = sqlite3_step(stmt_);
  if (rc == SQLITE_ROW) return true;
  if (rc != SQLITE_DONE) db_->Fail(db_->ErrorOf(rc, sqlite3_sql(stmt_)));
  return false;
}

int Statement::Run() {
  while (Next()) {
  }
  return db_->ok() ? sqlite3_changes(db_->raw()) : 0;
}

bool Statement::Null(int column) const { return sqlite3_column_type(stmt_, column) == SQLITE_NULL; }
int64_t Statement::Int(int column) const { return sqlite3_column_int64(stmt_, column); }
double Statement::Real(int column) const { return sqlite3_column_double(stmt_, column); }

std::string Statement::Text(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(stmt_, column));
  const int size = sqlite3_column_bytes(stmt_, column);
  return data == nullptr ? std::string() : std::string(data, size);
}

absl::Time Statement::Time(int column, absl::Time if_null) const {
  return Null(column) ? if_null : FromMicros(Int(column));
}

std::optional<int> Statement::OptionalInt(int column) const {
  if (Null(column)) return std::nullopt;
  return static_cast<int>(Int(column));
}

// ---- Connection ----

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ConnectionOptions& options,
                                                             std::shared_ptr<Hub> hub) {
  if (access(options.path.c_str(), F_OK) != 0) {
    if (!options.create) {
      return absl::NotFoundError(absl::StrCat(
          "sqlite:", options.path, ": there is no such file; `matins db migrate` makes it"));
    }
    RETURN_IF_ERROR(MakeFile(options.path));
  }
  struct stat info;
  if (stat(options.path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return BadInput(absl::StrCat("sqlite:", options.path), "is no file",
                    S_ISDIR(info.st_mode)
                        ? absl::StrCat("name one in it: sqlite:", options.path, "/matins.db")
                        : "name a file");
  }
  RETURN_IF_ERROR(RefuseNetworkFileSystem(options.path));
  std::unique_ptr<Connection> db(new Connection(options, std::move(hub)));
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
  const int rc = sqlite3_open_v2(options.path.c_str(), &db->db_, flags, nullptr);
  if (rc != SQLITE_OK) return db->ErrorOf(rc, "open");
  RETURN_IF_ERROR(db->Configure());
  return db;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::OpenMemory() {
  ConnectionOptions options;
  options.path = ":memory:";
  std::unique_ptr<Connection> db(new Connection(options, std::make_shared<Hub>()));
  const int rc = sqlite3_open(":memory:", &db->db_);
  if (rc != SQLITE_OK) return db->ErrorOf(rc, "open");
  return db;
}

Connection::~Connection() {
  for (auto& [sql, stmt] : statements_) sqlite3_finalize(stmt);
  if (db_ != nullptr) sqlite3_close_v2(db_);
}

absl::Status Connection::Configure() {
  sqlite3_extended_result_codes(db_, 1);
  // A verb's statements take their small memory here, not from the allocator that all connections
  // of the process share a lock of.
  sqlite3_db_config(db_, SQLITE_DBCONFIG_LOOKASIDE, nullptr, 1200, 400);
  sqlite3_busy_handler(db_, &Connection::OnBusy, this);
  const int rc = sqlite3_create_function_v2(db_, "matins_now", 0, SQLITE_UTF8, this, &MatinsNow,
                                            nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) return ErrorOf(rc, "matins_now()");
  std::string mode;
  {
    Statement wal = Sql("PRAGMA journal_mode=WAL");
    if (wal.Next()) mode = wal.Text(0);
  }
  RETURN_IF_ERROR(status());
  if (mode != "wal") {
    return absl::FailedPreconditionError(
        absl::StrCat("sqlite:", options_.path, ": journal_mode is '", mode,
                     "' and cannot be made WAL; put the file on a local disk"));
  }
  RETURN_IF_ERROR(
      Script(IsMutant(Mutant::kNoFlush) ? "PRAGMA synchronous=OFF" : "PRAGMA synchronous=FULL"));
  // Half a MiB of pages each: each commit of another connection empties it, and a node has ten.
  return Script("PRAGMA foreign_keys=OFF; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-512;");
}

absl::Duration Connection::BusyPause(absl::Duration waited, double random) {
  const absl::Duration longest = waited < absl::Milliseconds(200) ? absl::Milliseconds(4)
                                 : waited < absl::Seconds(1)      ? absl::Milliseconds(2)
                                                                  : absl::Milliseconds(1);
  return longest * (0.1 + 0.9 * random);
}

// SQLite's own handler pauses ever longer, up to 0.1 s, and always for the same times: whoever has
// waited longest asks most seldom.
int Connection::OnBusy(void* connection, int times) {
  auto* db = static_cast<Connection*>(connection);
  const absl::Duration now = SystemClock().BootNow();
  if (times == 0) db->busy_since_ = now;
  const absl::Duration waited = now - db->busy_since_;
  if (waited >= db->options_.call_deadline) return 0;
  constexpr uint64_t kSteps = 1 << 20;
  absl::SleepFor(BusyPause(waited, static_cast<double>(db->busy_random_.Below(kSteps)) / kSteps));
  return 1;
}

Statement Connection::Prepare(absl::string_view sql) {
  if (!ok()) return Statement(this, nullptr, false);
  if (auto it = statements_.find(sql); it != statements_.end()) {
    // A statement that is being read (a nested use of the same text) gets a copy of its own.
    if (!sqlite3_stmt_busy(it->second)) return Statement(this, it->second, false);
  }
  sqlite3_stmt* stmt = nullptr;
  const int rc = sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()),
                                    SQLITE_PREPARE_PERSISTENT, &stmt, nullptr);
  if (rc != SQLITE_OK) {
    Fail(ErrorOf(rc, sql));
    return Statement(this, nullptr, false);
  }
  const bool inserted = statements_.try_emplace(std::string(sql), stmt).second;
  return Statement(this, stmt, !inserted);
}

absl::Status Connection::Script(const std::string& sql) {
  const int rc = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  return rc == SQLITE_OK ? absl::OkStatus() : ErrorOf(rc, sql.substr(0, 80));
}

void Connection::Fail(absl::Status status) {
  if (status_.ok()) status_ = std::move(status);
}

absl::Time Connection::RawClock() const {
  return options_.clock ? options_.clock() : SystemClock().WallNow();
}

absl::Time Connection::Now() {
  if (fixed_now_) return *fixed_now_;
  // A store keeps whole microseconds; a finer instant would compare unequal to its own copy.
  const absl::Time raw = FromMicros(ToMicros(RawClock()));
  return IsMutant(Mutant::kNoClockMark) ? raw : std::max(raw, mark_);
}

bool Connection::AnyPutOff() {
  if (!any_put_off_) {
    // By the index that holds such rows alone: left to itself SQLite reads all that is planned.
    Statement row = Sql(
        "SELECT 1 FROM job_watermark INDEXED BY job_watermark_put_off WHERE status = 'PLANNED' AND "
        "look_at > not_before LIMIT 1");
    any_put_off_ = row.Next();
  }
  return *any_put_off_;
}

int64_t Connection::DataVersion() {
  Statement statement = Sql("PRAGMA data_version");
  return statement.Next() ? statement.Int(0) : 0;
}

std::string Connection::WalPath() const {
  return sqlite3_filename_wal(sqlite3_db_filename(db_, "main"));
}

absl::Status Connection::ErrorOf(int rc, absl::string_view what, bool committing) {
  const std::string message = absl::StrCat(
      "sqlite:", options_.path, ": ", db_ != nullptr ? sqlite3_errmsg(db_) : sqlite3_errstr(rc),
      " (", what.substr(0, 120), ")");
  switch (rc & 0xff) {
    case SQLITE_IOERR:
      // The frames are written and only the sync failed: a later recovery may still find them.
      if (committing && (rc == SQLITE_IOERR_FSYNC || rc == SQLITE_IOERR_DIR_FSYNC)) {
        return InDoubtError(message);
      }
      return StoreAwayError(message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
    case SQLITE_NOMEM:
      return StoreAwayError(message);
    case SQLITE_FULL:
      return StoreAwayError(absl::StrCat(message, "; make room on its disk"));
    case SQLITE_CANTOPEN:
      return StoreAwayError(absl::StrCat(
          message, "; its folder has to be there, and this user has to be able to write in it"));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::FailedPreconditionError(
          absl::StrCat(message, "; give this user the right to write the file and its folder"));
    case SQLITE_NOTADB:
    case SQLITE_CORRUPT:
      return absl::FailedPreconditionError(
          absl::StrCat(message, "; restore it from a backup with `matins db restore`"));
    default:
      return absl::InternalError(message);
  }
}

// ---- transactions ----

namespace {

struct Meta {
  int64_t epoch = 0;
  int64_t fence_next = 0;
  absl::Time mark = absl::InfinitePast();
  bool frozen = false;
  int64_t limits = 0;
  int schema = 0;
};

Meta ReadMeta(Connection& db) {
  Meta meta;
  Statement rows = db.Sql(
      "SELECT key, value FROM matins_meta WHERE key IN ('epoch', 'fence_next', 'clock_hwm', "
      "'clock_frozen_at', 'limits', 'schema')");
  while (rows.Next()) {
    const std::string key = rows.Text(0);
    if (key == "epoch") meta.epoch = rows.Int(1);
    if (key == "fence_next") meta.fence_next = rows.Int(1);
    if (key == "clock_hwm") meta.mark = rows.Time(1, absl::InfinitePast());
    if (key == "clock_frozen_at") meta.frozen = !rows.Null(1);
    if (key == "limits") meta.limits = rows.Int(1);
    if (key == "schema") meta.schema = static_cast<int>(rows.Int(1));
  }
  return meta;
}

bool SteppedBack(const Connection& db, absl::Time mark) {
  if (IsMutant(Mutant::kNoStepBack)) return false;
  return mark != absl::InfinitePast() && db.RawClock() < mark - kStepBack;
}

}  // namespace

absl::StatusOr<Transaction> Transaction::Begin(Connection& db, absl::string_view verb) {
  db.ClearStatus();
  db.FixNow(std::nullopt);
  db.ForgetPutOff();
  std::optional<absl::Time> early;
  if (IsMutant(Mutant::kClockBeforeLock)) early = db.Now();
  // Crash here, or wait as long as others let us: nothing is known yet, and the clock is not read.
  MATINS_FAULT_POINT(absl::StrCat("sqlite.", verb, ".before_lock"));
  if (!db.hub().EnterWriter(db.options().call_deadline)) {
    return StoreAwayError(absl::StrCat("sqlite:", db.options().path,
                                       ": no turn to write within the call's deadline"));
  }
  db.Sql("BEGIN IMMEDIATE").Run();
  if (!db.ok()) {
    db.hub().LeaveWriter();
    return db.status();
  }
  Transaction transaction(&db, verb);
  RETURN_IF_ERROR(transaction.Load(early));
  return transaction;
}

absl::Status Transaction::Load(std::optional<absl::Time> early) {
  changes_before_ = sqlite3_total_changes(db_->raw());
  const Meta meta = ReadMeta(*db_);
  db_->SetMark(meta.mark);
  epoch_ = meta.epoch;
  schema_ = meta.schema;
  fence_next_ = fence_read_ = meta.fence_next;
  limits_ = meta.limits;
  {
    Statement clock = db_->Sql("SELECT matins_now()");
    if (clock.Next()) now_ = clock.Time(0, absl::InfinitePast());
  }
  if (early) now_ = *early;
  db_->FixNow(now_);
  frozen_ = meta.frozen || SteppedBack(*db_, meta.mark);
  unjudged_ = !frozen_ && IsUnjudged(db_->RawClock(), meta.mark);
  return db_->status();
}

Transaction::Transaction(Transaction&& other) noexcept
    : db_(std::exchange(other.db_, nullptr)),
      verb_(std::move(other.verb_)),
      now_(other.now_),
      frozen_(other.frozen_),
      unjudged_(other.unjudged_),
      schema_(other.schema_),
      epoch_(other.epoch_),
      fence_next_(other.fence_next_),
      fence_read_(other.fence_read_),
      limits_(other.limits_),
      changes_before_(other.changes_before_) {}

Transaction::~Transaction() {
  if (db_ == nullptr) return;
  db_->FixNow(std::nullopt);
  if (!sqlite3_get_autocommit(db_->raw())) {
    db_->ClearStatus();
    db_->Sql("ROLLBACK").Run();
  }
  db_->hub().LeaveWriter();
}

void Transaction::AcceptClock(absl::Time now) {
  db_->SetMark(now);
  db_->FixNow(now);
  now_ = now;
  frozen_ = unjudged_ = false;
}

int64_t Transaction::NextFence() { return (epoch_ << kEpochShift) | ++fence_next_; }

absl::Status Transaction::Commit() {
  if (fence_next_ != fence_read_) {
    db_->Sql("UPDATE matins_meta SET value = ? WHERE key = 'fence_next'", fence_next_).Run();
  }
  RETURN_IF_ERROR(db_->status());
  // Crash here: nothing of this verb was written; leases run out and the caller asks again.
  MATINS_FAULT_POINT(absl::StrCat("sqlite.", verb_, ".before_commit"));
  {
    Statement commit = db_->Sql("COMMIT");
    commit.Run();
  }
  if (!db_->ok()) return db_->ErrorOf(sqlite3_extended_errcode(db_->raw()), "COMMIT", true);
  if (sqlite3_total_changes(db_->raw()) != changes_before_) db_->hub().Changed();
  // Crash here: all of it was written and nobody heard; Resolve finds it.
  MATINS_FAULT_POINT(absl::StrCat("sqlite.", verb_, ".after_commit"));
  return absl::OkStatus();
}

absl::StatusOr<ReadSnapshot> ReadSnapshot::Begin(Connection& db) {
  db.ClearStatus();
  db.FixNow(std::nullopt);
  db.Sql("BEGIN").Run();
  RETURN_IF_ERROR(db.status());
  ReadSnapshot snapshot(&db);
  const Meta meta = ReadMeta(db);
  db.SetMark(meta.mark);
  {
    Statement clock = db.Sql("SELECT matins_now()");
    if (clock.Next()) snapshot.now_ = clock.Time(0, absl::InfinitePast());
  }
  snapshot.epoch_ = meta.epoch;
  snapshot.schema_ = meta.schema;
  snapshot.frozen_ = meta.frozen || SteppedBack(db, meta.mark);
  snapshot.unjudged_ = !snapshot.frozen_ && IsUnjudged(db.RawClock(), meta.mark);
  RETURN_IF_ERROR(db.status());
  return snapshot;
}

ReadSnapshot::~ReadSnapshot() {
  if (db_ == nullptr) return;
  const absl::Status status = db_->status();
  db_->ClearStatus();
  db_->Sql("ROLLBACK").Run();
  db_->ClearStatus();
  if (!status.ok()) db_->Fail(status);
}

}  // namespace matins::sqlite
