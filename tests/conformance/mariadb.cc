// The cases over MariaDB: a database each, on the server that the test run shares.
#include <mutex>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "conformance/fixture.h"
#include "store/mariadb/database.h"
#include "tests/support/mariadb_server.h"

namespace matins::conformance {
namespace {

using ::matins::testing::MariadbClient;

class Held final : public World::Lock {
 public:
  explicit Held(std::unique_ptr<MariadbClient> client) : client_(std::move(client)) {}

 private:
  std::unique_ptr<MariadbClient> client_;  // its end rolls back
};

class MariadbWorld final : public World {
 public:
  explicit MariadbWorld(std::string url) : url_(std::move(url)) {}

  absl::Status Prepare() {
    ASSIGN_OR_RETURN(database_, OpenMariadbDatabase(url_, {}));
    RETURN_IF_ERROR(database_->Migrate());
    ASSIGN_OR_RETURN(client_, MariadbClient::Connect(url_));
    // The clock that the schema's own functions read is replaced, and nothing else.
    return client_
        ->Query(absl::StrCat("CREATE TABLE test_clock (now DATETIME(6)); INSERT INTO test_clock "
                             "VALUES ('",
                             Text(T0()),
                             "'); DROP FUNCTION matins_clock; CREATE FUNCTION matins_clock() "
                             "RETURNS DATETIME(6) NOT DETERMINISTIC READS SQL DATA RETURN (SELECT "
                             "now FROM test_clock)"))
        .status();
  }

  Database& database() override { return *database_; }
  void SetClock(absl::Time now) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto set = client_->Query(absl::StrCat("UPDATE test_clock SET now = '", Text(now), "'"));
    if (!set.ok()) ADD_FAILURE() << set.status();
  }
  absl::Status Sql(absl::string_view statement) override { return Query(statement).status(); }
  absl::StatusOr<SqlRows> Query(absl::string_view statement) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return client_->Query(statement);
  }
  absl::StatusOr<std::unique_ptr<Database>> OpenAgain() override {
    return OpenMariadbDatabase(url_, {});
  }
  absl::StatusOr<std::unique_ptr<Lock>> HoldLock(const PeriodKey& key) override {
    ASSIGN_OR_RETURN(std::unique_ptr<MariadbClient> client, MariadbClient::Connect(url_));
    RETURN_IF_ERROR(
        client
            ->Query(absl::StrCat("BEGIN; SELECT 1 FROM job_watermark WHERE job_name = '", key.job,
                                 "' AND period = '", key.period, "' FOR UPDATE"))
            .status());
    return std::make_unique<Held>(std::move(client));
  }

 private:
  static std::string Text(absl::Time t) {
    return absl::FormatTime("%Y-%m-%d %H:%M:%E6S", t, absl::UTCTimeZone());
  }
  const std::string url_;
  std::mutex mutex_;
  std::unique_ptr<MariadbClient> client_;
  std::unique_ptr<Database> database_;
};

class MariadbBackend final : public Backend {
 public:
  std::string name() const override { return "mariadb"; }
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
    auto world = std::make_unique<MariadbWorld>(matins::testing::TestMariadbUrl());
    RETURN_IF_ERROR(world->Prepare());
    return world;
  }
};

}  // namespace

std::unique_ptr<Backend> MakeBackend() { return std::make_unique<MariadbBackend>(); }

}  // namespace matins::conformance
