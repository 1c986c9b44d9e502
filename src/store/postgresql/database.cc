#include "store/postgresql/database.h"

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status.h"
#include "store/postgresql/acts.h"
#include "store/postgresql/schema.h"
#include "store/postgresql/store.h"
#include "store/postgresql/url.h"
#include "store/rules.h"

namespace matins {
namespace postgresql {
namespace {

// A connection costs the server a process. One that looked at the schema goes on as the next
// store's or act store's, where that is opened soon: an older one may be dead without knowing it.
constexpr absl::Duration kSpareStands = absl::Seconds(5);

class PostgresDatabase final : public Database {
 public:
  PostgresDatabase(Url url, const DatabaseOptions& options)
      : url_(std::move(url)), options_(options) {}

  absl::Status Migrate() override {
    std::unique_ptr<Session> session = Take();
    RETURN_IF_ERROR(MigrateSchema(*session));
    session->connection.set_lock_wait(kLockWait);
    session->connection.set_call_deadline(options_.call_deadline);
    Keep(std::move(session));
    return absl::OkStatus();
  }

  void Prepare() override {
    std::unique_ptr<Session> session = Take();
    if (session->connection.Connect().ok()) Keep(std::move(session));
  }

  absl::StatusOr<std::unique_ptr<Store>> Open() override {
    RETURN_IF_ERROR(CheckUsable());
    return OpenAnother();
  }

  absl::StatusOr<std::unique_ptr<Store>> OpenAnother() override {
    const bool direct = url_.listen.empty();
    ConnectionOptions options = Options();
    if (!direct) options.conninfo = url_.listen;
    auto listener =
        std::make_unique<Listener>(std::move(options), SqlNames(url_.schema).channel(), direct);
    return std::make_unique<PostgresStore>(Take(), std::move(listener));
  }

  absl::StatusOr<std::unique_ptr<ActStore>> OpenActs() override {
    RETURN_IF_ERROR(CheckUsable());
    return std::make_unique<PostgresActs>(Take());
  }

  absl::StatusOr<absl::Duration> ShortestLease() override {
    std::unique_ptr<Session> session = Take();
    ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                     session->connection.Read({session->Of(
                         "select (extract(epoch from min(lock_ttl)) * 1000000)::bigint from @.job "
                         "where not deleted")}));
    Keep(std::move(session));
    return rows[0].IsNull(0, 0) ? absl::InfiniteDuration() : absl::Microseconds(rows[0].Int(0, 0));
  }

  absl::StatusOr<SchemaCheck> Check() override { return CheckSchema(*Take()); }

  absl::Status Backup(const std::string& path) override {
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(), ": PostgreSQL makes its own copies: run pg_dump --format=custom --schema='\"",
        url_.schema, "\"' --file=", path, " with this database's URL"));
  }

  absl::Status Restore(const std::string& path) override {
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(),
        ": PostgreSQL puts its own copies back: stop all nodes, run pg_restore --clean "
        "--if-exists --dbname=DATABASE ",
        path, ", then `matins epoch bump` (a restore is a failover), then start the nodes"));
  }

  std::string Describe() const override { return url_.description; }

 private:
  ConnectionOptions Options() const {
    return {url_.conninfo, url_.description, options_.call_deadline, kLockWait};
  }

  std::unique_ptr<Session> Take() {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<Session> spare = std::move(spare_);
    if (spare != nullptr && SystemClock().BootNow() < kept_at_ + kSpareStands) return spare;
    return std::make_unique<Session>(Options(), url_.schema);
  }

  void Keep(std::unique_ptr<Session> session) {
    absl::MutexLock lock(&mutex_);
    spare_ = std::move(session);
    kept_at_ = SystemClock().BootNow();
  }

  absl::Status CheckUsable() {
    std::unique_ptr<Session> session = Take();
    ASSIGN_OR_RETURN(const int version, CheckedVersion(*session));
    if (version == kSchemaVersion) {
      Keep(std::move(session));
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(), ": schema version ", version, ", wanted ", kSchemaVersion,
        version > kSchemaVersion ? "; a newer matins has been here: use that, or a newer one"
                                 : "; run `matins db migrate`"));
  }

  const Url url_;
  const DatabaseOptions options_;
  absl::Mutex mutex_;
  std::unique_ptr<Session> spare_ ABSL_GUARDED_BY(mutex_);  // with nothing open on it
  absl::Duration kept_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace
}  // namespace postgresql

absl::StatusOr<std::unique_ptr<Database>> OpenPostgresDatabase(absl::string_view url,
                                                               const DatabaseOptions& options) {
  ASSIGN_OR_RETURN(postgresql::Url parsed, postgresql::ParseUrl(url));
  return std::make_unique<postgresql::PostgresDatabase>(std::move(parsed), options);
}

}  // namespace matins
