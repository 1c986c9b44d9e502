#include "backends/backends.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

TEST(DatabaseFromUrl, TakesASqlitePath) {
  const auto database = DatabaseFromUrl("sqlite:some/matins.db");
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_EQ((*database)->Describe(), "sqlite:some/matins.db");
  EXPECT_EQ((*DatabaseFromUrl("sqlite:///srv/matins.db"))->Describe(), "sqlite:/srv/matins.db");
}

TEST(DatabaseFromUrl, RefusesWhatItDoesNotKnowWithoutRepeatingAPassword) {
  EXPECT_EQ(DatabaseFromUrl("sqlite:").status().code(), absl::StatusCode::kInvalidArgument);
  const absl::Status status = DatabaseFromUrl("oracle://scott:tiger@host").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::Not(testing::HasSubstr("tiger")));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("sqlite:PATH"));
}

TEST(DatabaseFromUrl, TakesAMariadbUrlAndShowsNoPassword) {
  const auto database = DatabaseFromUrl("mariadb://me:secret@db.example:3307/night");
  ASSERT_TRUE(database.ok()) << database.status();
  EXPECT_EQ((*database)->Describe(), "mariadb://db.example:3307/night");
}

TEST(CommitPlaceOf, KnowsDialectAndSchema) {
  EXPECT_EQ(CommitPlaceOf("sqlite:matins.db")->dialect, FenceDialect::kSqlite);
  EXPECT_EQ(CommitPlaceOf("oracle:x").status().code(), absl::StatusCode::kInvalidArgument);
  const auto maria = CommitPlaceOf("mariadb://me@host/night");
  ASSERT_TRUE(maria.ok()) << maria.status();
  EXPECT_EQ(maria->dialect, FenceDialect::kMariadb);
  EXPECT_EQ(maria->schema, "night");
  const auto there = CommitPlaceOf("postgresql://me@host/db?schema=night");
  if (absl::IsInvalidArgument(there.status())) GTEST_SKIP() << "built without PostgreSQL";
  EXPECT_EQ(there->dialect, FenceDialect::kPostgresql);
  EXPECT_EQ(there->schema, "night");
}

}  // namespace
}  // namespace matins
