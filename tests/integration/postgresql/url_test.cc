// The store's URL, and what of it people get to see.
#include "store/postgresql/url.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins::postgresql {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Url, TakesTheSchemaAndLeavesTheRestToLibpq) {
  const auto url =
      ParseUrl("postgresql://bob:pa%40ss@db.example:6432/jobs?schema=night&sslmode=require");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->schema, "night");
  EXPECT_THAT(url->conninfo,
              ::testing::Contains(std::pair<std::string, std::string>("password", "pa@ss")));
  EXPECT_THAT(url->conninfo,
              ::testing::Contains(std::pair<std::string, std::string>("sslmode", "require")));
  EXPECT_EQ(url->description, "postgresql://db.example:6432/jobs?schema=night");
}

TEST(Url, TheSchemaIsMatinsWhereNoneIsNamed) {
  const auto url = ParseUrl("postgresql://localhost/db");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->schema, "matins");
}

TEST(Url, ASocketFolderAndAListenUrlAreTaken) {
  const auto url =
      ParseUrl("postgresql:///db?host=/run/postgresql&listen_url=postgresql%3A%2F%2Fdirect%2Fdb");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_THAT(url->conninfo,
              ::testing::Contains(std::pair<std::string, std::string>("host", "/run/postgresql")));
  EXPECT_THAT(url->listen,
              ::testing::Contains(std::pair<std::string, std::string>("host", "direct")));
}

TEST(Url, ASchemaThatCouldBeSqlIsRefused) {
  for (const char* url : {"postgresql://h/d?schema=a\"b", "postgresql://h/d?schema=",
                          "postgresql://h/d?schema=1a", "postgresql://h/d?schema=a.b"}) {
    EXPECT_EQ(ParseUrl(url).status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
}

TEST(Url, ARefusalShowsNoPassword) {
  const auto url = ParseUrl("postgresql://bob:secret@h/d?no_such_word=1");
  ASSERT_FALSE(url.ok());
  EXPECT_THAT(std::string(url.status().message()), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace matins::postgresql
