// A business database of each kind, for tests that are asked of all.
#ifndef MATINS_TESTS_INTEGRATION_FENCING_PLACE_H_
#define MATINS_TESTS_INTEGRATION_FENCING_PLACE_H_

#include <memory>
#include <string>

#include "demo/fence.h"
#include "demo/sql.h"
#include "gtest/gtest.h"
#include "tests/support/assert_ok.h"

namespace matins::demo {

class Place : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override;
  void TearDown() override;
  // A further connection.
  std::unique_ptr<Sql> Connect();
  Sql& sql() { return *sql_; }
  // An empty store of the same kind.
  std::string StoreUrl() const;
  // The first number of a query.
  int64_t Number(const std::string& query);
  // Ends when a statement of somebody waits for a lock. SQLite tells nobody of that: at once.
  void AwaitWaiter();
  bool sqlite() const { return GetParam() == "sqlite"; }

 private:
  std::string url_, folder_;
  std::unique_ptr<Sql> sql_;
};

#define MATINS_EACH_PLACE(Suite)                                                              \
  INSTANTIATE_TEST_SUITE_P(Each, Suite, ::testing::Values("sqlite", "postgresql", "mariadb"), \
                           [](const auto& info) { return info.param; })

}  // namespace matins::demo

#endif  // MATINS_TESTS_INTEGRATION_FENCING_PLACE_H_
