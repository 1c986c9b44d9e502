// The cases over PostgreSQL: a schema each, on the server that the test run shares. Behind
// pgbouncer in transaction mode where MATINS_TEST_PGBOUNCER is set.
#include <cstdlib>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/time.h"
#include "conformance/fixture.h"
#include "store/postgresql/database.h"
#include "tests/support/pgbouncer_server.h"
#include "tests/support/postgres_server.h"
#include "tests/support/shared_server.h"
#include "tests/support/sql_client.h"

namespace matins::conformance {
namespace {

using ::matins::testing::SqlClient;

class Held final : public World::Lock {
 public:
  explicit Held(std::unique_ptr<SqlClient> client) : client_(std::move(client)) {}

 private:
  std::unique_ptr<SqlClient> client_;  // its end rolls back
};

class PostgresWorld final : public World {
 public:
  PostgresWorld(std::string direct_url, std::string url, std::unique_ptr<SqlClient> client)
      : direct_url_(std::move(direct_url)), url_(std::move(url)), client_(std::move(client)) {}

  absl::Status Prepare() {
    ASSIGN_OR_RETURN(database_, OpenPostgresDatabase(url_, {}));
    RETURN_IF_ERROR(database_->Migrate());
    const std::string schema = matins::testing::SchemaOf(url_);
    RETURN_IF_ERROR(client_->Query(absl::StrCat("set search_path = \"", schema, "\"")).status());
    // The clock that the schema's own functions read is replaced, and nothing else.
    RETURN_IF_ERROR(
        client_
            ->Query(absl::StrCat("create table test_clock(now timestamptz); insert into test_clock "
                                 "values ('",
                                 Text(T0()),
                                 "'); create or replace function matins_clock() returns "
                                 "timestamptz language sql volatile as 'select now from \"",
                                 schema, "\".test_clock'"))
            .status());
    return absl::OkStatus();
  }

  Database& database() override { return *database_; }
  void SetClock(absl::Time now) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto set = client_->Query(absl::StrCat("update test_clock set now = '", Text(now), "'"));
    if (!set.ok()) ADD_FAILURE() << set.status();
  }
  absl::Status Sql(absl::string_view statement) override { return Query(statement).status(); }
  absl::StatusOr<SqlRows> Query(absl::string_view statement) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return client_->Query(statement);
  }
  absl::StatusOr<std::unique_ptr<Database>> OpenAgain() override {
    return OpenPostgresDatabase(url_, {});
  }
  absl::StatusOr<std::unique_ptr<Lock>> HoldLock(const PeriodKey& key) override {
    ASSIGN_OR_RETURN(std::unique_ptr<SqlClient> client, SqlClient::Connect(direct_url_));
    RETURN_IF_ERROR(
        client
            ->Query(absl::StrCat("begin; select 1 from \"", matins::testing::SchemaOf(url_),
                                 "\".job_watermark where job_name = '", key.job, "' and period = '",
                                 key.period, "' for update"))
            .status());
    return std::make_unique<Held>(std::move(client));
  }

 private:
  static std::string Text(absl::Time t) {
    return absl::FormatTime("%Y-%m-%d %H:%M:%E6S+00", t, absl::UTCTimeZone());
  }
  const std::string direct_url_, url_;
  std::mutex mutex_;
  std::unique_ptr<SqlClient> client_;
  std::unique_ptr<Database> database_;
};

class PostgresBackend final : public Backend {
 public:
  PostgresBackend() {
    if (std::getenv("MATINS_TEST_PGBOUNCER") == nullptr) return;
    auto pool = matins::testing::PgbouncerServer::Start(matins::testing::TestPostgresPort());
    if (!pool.ok()) {
      fprintf(stderr, "pgbouncer: %s\n", std::string(pool.status().message()).c_str());
      std::abort();
    }
    pool_ = *std::move(pool);
  }
  std::string name() const override { return pool_ ? "postgresql behind pgbouncer" : "postgresql"; }
  std::set<Capability> capabilities() const override {
    std::set<Capability> all = {Capability::kSql,      Capability::kForeign,
                                Capability::kJournal,  Capability::kReopenable,
                                Capability::kOldTable, Capability::kLocks};
#if MATINS_LAB
    all.insert(Capability::kFaults);
#endif
    return all;
  }
  std::set<Mutant> mutants() const override {
    return {Mutant::kNoFenceCheck,        Mutant::kNoLeaseCheck,    Mutant::kClockBeforeLock,
            Mutant::kNoUniqueKey,         Mutant::kBlindReap,       Mutant::kNoOrder,
            Mutant::kNoFenceBump,         Mutant::kNaiveResolve,    Mutant::kReviveLease,
            Mutant::kBeatShortens,        Mutant::kBeatPastTimeOut, Mutant::kNoOldLease,
            Mutant::kResolveBurnsNothing, Mutant::kCheckpointBack,  Mutant::kNoCheckpointOffer};
  }
  absl::StatusOr<std::unique_ptr<World>> NewWorld() override {
    const std::string direct = matins::testing::TestPostgresUrl();
    const std::string url = pool_ ? matins::testing::OnPort(direct, pool_->port()) : direct;
    ASSIGN_OR_RETURN(std::unique_ptr<SqlClient> client, SqlClient::Connect(direct));
    auto world = std::make_unique<PostgresWorld>(direct, url, std::move(client));
    RETURN_IF_ERROR(world->Prepare());
    return world;
  }

 private:
  std::unique_ptr<matins::testing::PgbouncerServer> pool_;
};

}  // namespace

std::unique_ptr<Backend> MakeBackend() { return std::make_unique<PostgresBackend>(); }

}  // namespace matins::conformance
