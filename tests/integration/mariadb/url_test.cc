// The store's URL, and what of it people get to see.
#include "store/mariadb/url.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins::mariadb {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(MariadbUrl, HasHostPortUserAndDatabase) {
  const auto url = ParseUrl("mariadb://bob:pa%40ss%2Fword@db.example:3307/night");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->host, "db.example");
  EXPECT_EQ(url->port, 3307);
  EXPECT_EQ(url->user, "bob");
  EXPECT_EQ(url->password, "pa@ss/word");
  EXPECT_EQ(url->database, "night");
  EXPECT_EQ(url->description, "mariadb://db.example:3307/night");
}

TEST(MariadbUrl, WhatIsNotNamedHasAUsualValue) {
  const auto url = ParseUrl("mariadb://localhost");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->port, 3306);
  EXPECT_EQ(url->database, "matins");
  EXPECT_EQ(url->tls, Tls::kOff);
}

TEST(MariadbUrl, ASocketAndAnAddressOfVersion6AreTaken) {
  const auto socket = ParseUrl("mariadb:///matins?socket=%2Frun%2Fmysqld%2Fmysqld.sock");
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_EQ(socket->socket, "/run/mysqld/mysqld.sock");
  EXPECT_EQ(socket->description, "mariadb:///matins?socket=/run/mysqld/mysqld.sock");
  const auto v6 = ParseUrl("mariadb://me@[::1]:3309/db");
  ASSERT_TRUE(v6.ok()) << v6.status();
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->port, 3309);
}

TEST(MariadbUrl, AnAuthorityMakesTlsCertain) {
  EXPECT_EQ(ParseUrl("mariadb://h/d?tls_ca=/etc/ca.pem")->tls, Tls::kVerify);
  EXPECT_EQ(ParseUrl("mariadb://h/d?tls=on")->tls, Tls::kOn);
}

TEST(MariadbUrl, WhatIsWrongIsRefusedWithoutThePassword) {
  for (const char* url :
       {"mysql://bob:secret@h/d", "mariadb://bob:secret@h:port/d", "mariadb://bob:secret@h:0/d",
        "mariadb://bob:secret@h/a`b", "mariadb://bob:secret@h/d?no_such_word=1",
        "mariadb://bob:secret@h/d?tls=perhaps", "mariadb://bob:secret@h/d?galera=yes"}) {
    const auto parsed = ParseUrl(url);
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << url;
    EXPECT_THAT(std::string(parsed.status().message()), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace matins::mariadb
