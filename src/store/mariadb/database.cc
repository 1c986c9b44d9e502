#include "store/mariadb/database.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/mariadb/acts.h"
#include "store/mariadb/schema.h"
#include "store/mariadb/store.h"
#include "store/mariadb/url.h"
#include "store/rules.h"

namespace matins {
namespace mariadb {
namespace {

class MariadbDatabase final : public Database {
 public:
  MariadbDatabase(Url url, const DatabaseOptions& options)
      : url_(std::move(url)), options_(options) {}

  absl::Status Migrate() override {
    Session session(Options());
    return MigrateSchema(session);
  }

  absl::StatusOr<std::unique_ptr<Store>> Open() override {
    RETURN_IF_ERROR(CheckUsable());
    return OpenAnother();
  }

  absl::StatusOr<std::unique_ptr<Store>> OpenAnother() override {
    return std::make_unique<MariadbStore>(Options());
  }

  absl::StatusOr<std::unique_ptr<ActStore>> OpenActs() override {
    RETURN_IF_ERROR(CheckUsable());
    return std::make_unique<MariadbActs>(Options());
  }

  absl::StatusOr<absl::Duration> ShortestLease() override {
    Session session(Options());
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session.connection.Bare({Sql("SELECT MIN(lock_ttl) FROM job WHERE NOT deleted")}));
    return rows[0].IsNull(0, 0) ? absl::InfiniteDuration() : absl::Microseconds(rows[0].Int(0, 0));
  }

  absl::StatusOr<SchemaCheck> Check() override {
    Session session(Options());
    RETURN_IF_ERROR(CheckServer(session));
    return CheckSchema(session);
  }

  absl::Status Backup(const std::string& path) override {
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(),
        ": MariaDB makes its own copies: run mariadb-dump --single-transaction --routines "
        "--triggers ",
        url_.database, " > ", path));
  }

  absl::Status Restore(const std::string& path) override {
    return absl::FailedPreconditionError(
        absl::StrCat(Describe(), ": MariaDB puts its own copies back: stop all nodes, run mariadb ",
                     url_.database, " < ", path,
                     ", then `matins epoch bump` (a restore is a failover), then start the nodes"));
  }

  std::string Describe() const override { return url_.description; }

 private:
  ConnectionOptions Options() const { return {url_, options_.call_deadline}; }

  absl::Status CheckUsable() {
    Session session(Options());
    RETURN_IF_ERROR(CheckServer(session));
    ASSIGN_OR_RETURN(const int version, SchemaVersion(session));
    if (version == kSchemaVersion) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrCat(
        Describe(), ": schema version ", version, ", wanted ", kSchemaVersion,
        version > kSchemaVersion ? "; a newer matins has been here: use that, or a newer one"
                                 : "; run `matins db migrate`"));
  }

  const Url url_;
  const DatabaseOptions options_;
};

}  // namespace
}  // namespace mariadb

absl::StatusOr<std::unique_ptr<Database>> OpenMariadbDatabase(absl::string_view url,
                                                              const DatabaseOptions& options) {
  ASSIGN_OR_RETURN(mariadb::Url parsed, mariadb::ParseUrl(url));
  return std::make_unique<mariadb::MariadbDatabase>(std::move(parsed), options);
}

}  // namespace matins
