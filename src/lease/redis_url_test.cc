#include "lease/redis_url.h"

#include <cstdio>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ParseRedisUrl, TakesAServer) {
  const auto url = ParseRedisUrl("redis://cache.example");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_THAT(url->places, ElementsAre(RedisPlace{"cache.example", 6379}));
  EXPECT_FALSE(url->tls);
  EXPECT_EQ(url->prefix, "matins");
  EXPECT_EQ(url->description, "redis://cache.example:6379");
}

TEST(ParseRedisUrl, TakesUserPasswordPortDatabaseAndPrefix) {
  const auto url = ParseRedisUrl("redis://me:s%40cret@[::1]:6390/3?prefix=night");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->user, "me");
  EXPECT_EQ(url->password, "s@cret");
  EXPECT_THAT(url->places, ElementsAre(RedisPlace{"::1", 6390}));
  EXPECT_EQ(url->database, 3);
  EXPECT_EQ(url->prefix, "night");
  EXPECT_EQ(url->description, "redis://[::1]:6390/3");
  EXPECT_EQ(ParseRedisUrl("redis://:pw@h")->user, "");
}

TEST(ParseRedisUrl, TakesSentinelsAndTls) {
  const auto url =
      ParseRedisUrl("rediss+sentinel://u:p@a,b:26380/night/2?sentinel_password=q&tls_ca=/ca");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_THAT(url->places, ElementsAre(RedisPlace{"a", 26379}, RedisPlace{"b", 26380}));
  EXPECT_EQ(url->master, "night");
  EXPECT_EQ(url->database, 2);
  EXPECT_EQ(url->sentinel_password, "q");
  EXPECT_TRUE(url->tls);
  EXPECT_EQ(url->description, "rediss+sentinel://a:26379,b:26380/night/2");
}

TEST(ParseRedisUrl, ReadsAPasswordFromAFileWithoutItsLineEnd) {
  const std::string path = ::testing::TempDir() + "/redis_password";
  std::ofstream(path) << "hush\n";
  const auto url = ParseRedisUrl("redis://h?password_file=" + path);
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->password, "hush");
  std::remove(path.c_str());
  EXPECT_EQ(ParseRedisUrl("redis://h?password_file=" + path).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ParseRedisUrl, SaysWhatIsWrongAndRepeatsNoPassword) {
  const struct {
    const char* text;
    const char* says;
  } cases[] = {
      {"", "does not begin"},
      {"redis:h", "does not begin"},
      {"http://x:tiger@h", "does not begin"},
      {"redis://", "names no host"},
      {"redis://:tiger@", "names no host"},
      {"redis://tiger@h", "without a password"},
      {"redis://u:@h", "password before @ is empty"},
      {"redis://:tiger@h:0", "port"},
      {"redis://:tiger@h:x", "port"},
      {"redis://:tiger@h/x", "database"},
      {"redis://:tiger@h/1/2", "after the database"},
      {"redis://:tiger@h,k", "several servers"},
      {"redis+sentinel://:tiger@h", "by which name"},
      {"redis://:tiger@h?what=1", "'what' is not known"},
      {"redis://:tiger@h?tls_ca=/ca", "rediss://"},
      {"rediss://:tiger@h?tls_cert=/c", "go together"},
      {"redis://:tiger@h?sentinel_password=tiger", "no sentinel"},
      {"redis://:tiger@h?prefix=", "prefix"},
      {"redis://:tiger@[::1", "'['"},
  };
  for (const auto& one : cases) {
    const absl::Status status = ParseRedisUrl(one.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << one.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(one.says)) << one.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("; ")) << one.text;
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("tiger"))) << one.text;
  }
}

}  // namespace
}  // namespace matins
