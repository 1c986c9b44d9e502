#include "store/json_rows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::ElementsAre;

TEST(JsonRows, WritesInstantsAndDurationsAsTheDatabaseReadsThem) {
  const absl::Time t = absl::FromUnixMicros(1793318400'500000);
  JsonRows postgresql(JsonForm::kPostgresql), mariadb(JsonForm::kMariadb);
  postgresql.Row().AddTime("at", t).AddSpan("ttl", absl::Milliseconds(1500));
  mariadb.Row().AddTime("at", t).AddSpan("ttl", absl::Milliseconds(1500));
  EXPECT_EQ(postgresql.Take(),
            R"([{"at":"2026-10-30 00:00:00.500000+00","ttl":"1500000 microseconds"}])");
  EXPECT_EQ(mariadb.Take(), R"([{"at":"2026-10-30 00:00:00.500000","ttl":1500000}])");
}

TEST(JsonRows, InfinityIsNull) {
  JsonRows rows(JsonForm::kMariadb);
  rows.Row().AddTime("at", absl::InfiniteFuture()).AddSpan("d", absl::InfiniteDuration());
  EXPECT_EQ(rows.Take(), R"([{"at":null,"d":null}])");
}

TEST(JsonRows, PartsHoldEachRowOnceAndAreArraysOfTheirOwn) {
  const auto make = [] {
    JsonRows rows(JsonForm::kMariadb);
    for (int i = 0; i < 5; ++i) rows.Row().AddInt("n", i).Add("text", "},{\"");
    return rows;
  };
  const std::string row = R"({"n":0,"text":"},{\""})";
  EXPECT_THAT(make().TakeParts(2 * row.size()),
              ElementsAre(R"([{"n":0,"text":"},{\""},{"n":1,"text":"},{\""}])",
                          R"([{"n":2,"text":"},{\""},{"n":3,"text":"},{\""}])",
                          R"([{"n":4,"text":"},{\""}])"));
  EXPECT_EQ(make().TakeParts(1).size(), 5u) << "a row is never cut";
  EXPECT_THAT(make().TakeParts(1'000'000), ElementsAre(make().Take()));
  EXPECT_TRUE(JsonRows(JsonForm::kMariadb).TakeParts(100).empty());
}

TEST(UsableText, ReplacesWhatAServerWouldRefuse) {
  EXPECT_EQ(UsableText("gr\xc3\xbc\xc3\x9f"
                       "e"),
            "gr\xc3\xbc\xc3\x9f"
            "e");
  EXPECT_EQ(UsableText(absl::string_view("a\0b\xff\xc3", 5)), "a?b??");
}

}  // namespace
}  // namespace matins
