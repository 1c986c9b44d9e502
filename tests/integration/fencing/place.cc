#include "tests/integration/fencing/place.h"

#include <stdlib.h>

#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/support/mariadb_server.h"
#include "tests/support/postgres_server.h"

namespace matins::demo {

void Place::SetUp() {
  if (GetParam() == "postgresql") {
    url_ = matins::testing::TestPostgresUrl();
  } else if (GetParam() == "mariadb") {
    url_ = matins::testing::TestMariadbUrl();
  } else {
    folder_ = absl::StrCat(std::filesystem::temp_directory_path().string(), "/matins-XXXXXX");
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    url_ = absl::StrCat("sqlite:", folder_, "/ledger.db");
  }
  sql_ = Connect();
  ASSERT_NE(sql_, nullptr);
}

std::string Place::StoreUrl() const {
  if (GetParam() == "postgresql") return matins::testing::TestPostgresUrl();
  if (GetParam() == "mariadb") return matins::testing::TestMariadbUrl();
  return absl::StrCat("sqlite:", folder_, "/matins.db");
}

void Place::TearDown() {
  sql_.reset();
  std::error_code ignored;
  if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
}

std::unique_ptr<Sql> Place::Connect() {
  auto sql = OpenSql(url_);
  EXPECT_TRUE(sql.ok()) << sql.status();
  if (!sql.ok()) return nullptr;
  // What a crash of the machine would lose is not asked here.
  if (sqlite()) {
    EXPECT_TRUE((*sql)->DoAll("PRAGMA synchronous=OFF;").ok());
  }
  return *std::move(sql);
}

int64_t Place::Number(const std::string& query) {
  const auto answer = sql_->Do(query);
  EXPECT_TRUE(answer.ok()) << answer.status();
  return answer.ok() ? answer->Number(0, 0) : -1;
}

void Place::AwaitWaiter() {
  const std::string query =
      GetParam() == "postgresql"
          ? "SELECT count(*) FROM pg_locks WHERE NOT granted"
          : "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'";
  // InnoDB shows nothing new to who asks more often than each 0.1 s.
  while (!sqlite() && Number(query) == 0) absl::SleepFor(absl::Milliseconds(150));
}

}  // namespace matins::demo
