#include "store/sqlite/sqlite_database.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/rules.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_acts.h"
#include "store/sqlite/sqlite_store.h"

namespace matins::sqlite {
namespace {

// Copies all of `from` over `to`, page by page, in one transaction of each.
absl::Status CopyDatabase(Connection& from, Connection& to) {
  sqlite3_backup* backup = sqlite3_backup_init(to.raw(), "main", from.raw(), "main");
  if (backup == nullptr) return to.ErrorOf(sqlite3_extended_errcode(to.raw()), "backup");
  const int rc = sqlite3_backup_step(backup, -1);
  const int end = sqlite3_backup_finish(backup);
  if (rc == SQLITE_DONE && end == SQLITE_OK) return absl::OkStatus();
  return to.ErrorOf(rc == SQLITE_DONE ? end : rc, "backup");
}

absl::Status NoCopy(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat(path, " is no copy of a store: ", why,
                                                    "; give a file that `matins db backup` made"));
}

absl::Status RefuseNoCopy(const std::string& path, const std::string& store) {
  struct stat copy, ours;
  if (stat(path.c_str(), &copy) != 0) {
    return absl::NotFoundError(absl::StrCat(path, ": ", std::strerror(errno),
                                            "; give a file that `matins db backup` made"));
  }
  if (!S_ISREG(copy.st_mode)) return NoCopy(path, "it is no file");
  if (stat(store.c_str(), &ours) == 0 && ours.st_dev == copy.st_dev && ours.st_ino == copy.st_ino)
    return NoCopy(path, "it is the store itself");
  return absl::OkStatus();
}

absl::Status RefuseWhileAlive(Connection& db, absl::Time now) {
  Statement row =
      db.Sql("SELECT name FROM job_node WHERE NOT left AND seen_at > ? LIMIT 1", now - kNodeGone);
  if (!row.Next()) return db.status();
  return absl::FailedPreconditionError(absl::StrCat(
      "node ", row.Text(0), " is alive on this store; stop it first (`matins status` shows them)"));
}

// A restore is a failover: fences given since the copy was made must never be given again.
absl::Status AfterRestore(Connection& db, int64_t epoch_before) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(db, "restore"));
  const int64_t epoch = NextEpoch(std::max(epoch_before, transaction.epoch()), transaction.now());
  RaiseEpoch(db, epoch, transaction.now());
  db.Sql("UPDATE job_node SET left = 1").Run();
  WriteEvent(
      db, transaction.now(),
      {.kind = "restored", .who = "policy", .detail = absl::StrCat("{\"epoch\":", epoch, "}")});
  return transaction.Commit();
}

class SqliteDatabase final : public Database {
 public:
  SqliteDatabase(std::string path, DatabaseOptions options)
      : path_(std::move(path)), options_(std::move(options)), hub_(std::make_shared<Hub>()) {}

  absl::Status Migrate() override {
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Connect(true));
    return MigrateSchema(*db);
  }

  absl::StatusOr<std::unique_ptr<Store>> Open() override {
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Ready());
    return StoreOn(std::move(db));
  }

  absl::StatusOr<std::unique_ptr<Store>> OpenAnother() override {
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Connect(false));
    return StoreOn(std::move(db));
  }

  absl::StatusOr<absl::Duration> ShortestLease() override {
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Ready());
    Statement row = db->Sql("SELECT min(lock_ttl) FROM job WHERE NOT deleted");
    const bool any = row.Next() && !row.Null(0);
    const absl::Duration shortest = any ? row.Micros(0) : absl::InfiniteDuration();
    RETURN_IF_ERROR(db->status());
    return shortest;
  }

  absl::StatusOr<std::unique_ptr<ActStore>> OpenActs() override {
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Ready());
    return std::make_unique<SqliteActs>(std::move(db));
  }

  absl::StatusOr<SchemaCheck> Check() override {
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Connect(false));
    SchemaCheck check;
    check.wanted = kSchemaVersion;
    ASSIGN_OR_RETURN(check.version, SchemaVersion(*db));
    if (check.version == check.wanted) {
      ASSIGN_OR_RETURN(check.problems, SchemaProblems(*db));
    } else {
      check.problems.push_back(absl::StrCat(
          "schema ", check.version, ", wanted ", check.wanted,
          check.version < check.wanted ? "; run `matins db migrate`" : "; use a newer matins"));
    }
    struct stat info;
    if (stat(path_.c_str(), &info) == 0 && (info.st_mode & 077) != 0) {
      check.problems.push_back(
          absl::StrCat(path_, " can be read or written by others; chmod 600 ", path_));
    }
    return check;
  }

  absl::Status Backup(const std::string& path) override {
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Ready());
    if (access(path.c_str(), F_OK) == 0) {
      return absl::AlreadyExistsError(absl::StrCat(path, " exists; give a new path"));
    }
    ConnectionOptions options = Options(true);
    options.path = path;
    absl::StatusOr<std::unique_ptr<Connection>> copy =
        Connection::Open(options, std::make_shared<Hub>());
    if (!copy.ok()) return copy.status();
    absl::Status status = CopyDatabase(*db, **copy);
    // One plain file, without a -wal beside it.
    if (status.ok()) status = (*copy)->Script("PRAGMA journal_mode=DELETE");
    copy->reset();
    if (!status.ok()) unlink(path.c_str());
    return status;
  }

  absl::Status Restore(const std::string& path) override {
    ConnectionOptions options = Options(false);
    options.path = path;
    RETURN_IF_ERROR(RefuseNoCopy(path, path_));
    absl::StatusOr<std::unique_ptr<Connection>> opened =
        Connection::Open(options, std::make_shared<Hub>());
    if (absl::IsFailedPrecondition(opened.status())) return NoCopy(path, "it is no database");
    ASSIGN_OR_RETURN(const std::unique_ptr<Connection> copy, std::move(opened));
    ASSIGN_OR_RETURN(const int version, SchemaVersion(*copy));
    if (version == 0) return NoCopy(path, "it has no tables of a store");
    if (version > kSchemaVersion) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " has schema ", version, ", this program knows 1 to ", kSchemaVersion,
                       "; restore it with the matins that made it, or a newer one"));
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> problems, SchemaProblems(*copy));
    if (!problems.empty()) return NoCopy(path, problems[0]);
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Connect(true));
    int64_t epoch = 0;
    ASSIGN_OR_RETURN(const int present, SchemaVersion(*db));
    if (present > 0) {
      ASSIGN_OR_RETURN(const ReadSnapshot snapshot, ReadSnapshot::Begin(*db));
      RETURN_IF_ERROR(RefuseWhileAlive(*db, snapshot.now()));
      epoch = snapshot.epoch();
    }
    RETURN_IF_ERROR(CopyDatabase(*copy, *db));
    RETURN_IF_ERROR(MigrateSchema(*db));
    return AfterRestore(*db, epoch);
  }

  std::string Describe() const override { return absl::StrCat("sqlite:", path_); }

 private:
  ConnectionOptions Options(bool create) const {
    return {path_, options_.call_deadline, options_.clock, create};
  }
  absl::StatusOr<std::unique_ptr<Connection>> Connect(bool create) {
    return Connection::Open(Options(create), hub_);
  }
  absl::StatusOr<std::unique_ptr<Connection>> Ready() {
    ASSIGN_OR_RETURN(std::unique_ptr<Connection> db, Connect(false));
    RETURN_IF_ERROR(RequireSchema(*db));
    return db;
  }

  std::unique_ptr<Store> StoreOn(std::unique_ptr<Connection> db) {
    return std::make_unique<SqliteStore>(std::move(db), [options = Options(false), hub = hub_] {
      return Connection::Open(options, hub);
    });
  }

  const std::string path_;
  const DatabaseOptions options_;
  const std::shared_ptr<Hub> hub_;
};

}  // namespace

void CountNoMemory() { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

std::unique_ptr<Database> NewDatabase(std::string path, DatabaseOptions options) {
  return std::make_unique<SqliteDatabase>(std::move(path), std::move(options));
}

}  // namespace matins::sqlite
