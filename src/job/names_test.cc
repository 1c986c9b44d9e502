#include "job/names.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::HasSubstr;

std::string Times(int n, absl::string_view text) {
  std::string all;
  for (int i = 0; i < n; ++i) absl::StrAppend(&all, text);
  return all;
}

TEST(CheckName, TakesLettersAndDigitsOfAnyScript) {
  for (const std::string& name :
       {std::string("a"), std::string("recon-2"), std::string("_x"), std::string("a.b_c-d"),
        std::string("7"), std::string("job"), std::string("Job"), std::string("j\u00f3b"),
        std::string("jo\u0301b"), std::string("\u5bf9\u8d26"), Times(64, "x"),
        Times(16, "\U0001F552")}) {
    EXPECT_TRUE(CheckName("job name", name).ok()) << name << CheckName("job name", name);
  }
}

// The limit is in bytes, and the same for every name that is made from one.
TEST(CheckName, RefusesMoreThan64Bytes) {
  for (const std::string& name :
       {Times(65, "x"), Times(255, "x"), Times(256, "x"), Times(17, "\U0001F552")}) {
    EXPECT_THAT(std::string(CheckName("job name", name).message()),
                AllOf(HasSubstr(absl::StrCat("it has ", name.size(), " bytes")),
                      HasSubstr("take 64 at most")));
  }
}

// What would break an address, a file name or a command is refused when the job is made.
TEST(CheckName, RefusesWhatBreaksRoutesAndFiles) {
  for (const char* name : {"",
                           "a/b",
                           "a b",
                           "a%2Fb",
                           "..",
                           ".",
                           "a+b",
                           "a?b#c",
                           ".json",
                           "a.",
                           "-a",
                           "job ",
                           " job",
                           "a\nb",
                           "a\tb",
                           "a'b",
                           "a\"b",
                           "a:b",
                           "a\\b",
                           "a;b",
                           "a\177b",
                           "a\u00a0b",
                           "a\u200bb",
                           "a\u202eb",
                           "\ufeff"
                           "a",
                           "a\u0085",
                           "a\xff",
                           "a\xc3",
                           "\xc0\xaf",
                           "\xed\xa0\x80",
                           "\xf4\x90\x80\x80"}) {
    const absl::Status status = CheckName("job name", name);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("job name")) << name;
    EXPECT_THAT(std::string(status.message()), HasSubstr("; ")) << name;
  }
}

TEST(CheckName, ShowsWhatCannotBeSeen) {
  EXPECT_THAT(std::string(CheckName("job name", "a\u200bb").message()), HasSubstr("U+200B"));
  EXPECT_THAT(std::string(CheckName("job name", "a\nb").message()), HasSubstr("'a\\nb'"));
  EXPECT_THAT(std::string(CheckName("job name", "a/b").message()), HasSubstr("the character '/'"));
}

}  // namespace
}  // namespace matins
