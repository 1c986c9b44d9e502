#include "view/table.h"

#include <gtest/gtest.h>

namespace matins {
namespace {

TEST(Table, AlignsColumnsByCharactersNotBytes) {
  Table table({"NAME", "STATE"});
  table.Add({"é", "ok"});
  table.Add({"longer", "x"});
  EXPECT_EQ(table.Text(), "NAME    STATE\né       ok\nlonger  x\n");
}

TEST(Harmless, TakesTheTeethOutOfEscapesAndKeepsLines) {
  EXPECT_EQ(Harmless("a\x1b[2Jb\nc", true), "a\xEF\xBF\xBD[2Jb\nc");
  EXPECT_EQ(Harmless("a\nb", false),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_EQ(Harmless("\xC2\x9B"
                     "31m",
                     true),
            "\xEF\xBF\xBD"
            "31m");
}

TEST(ValidUtf8, ReplacesWhatIsNoCharacterAndKeepsSplitFreeText) {
  EXPECT_EQ(ValidUtf8("hi\n\x80\xff\x00"
                      "end"),
            "hi\n\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(ValidUtf8("\xE4\xB8\xAD"), "\xE4\xB8\xAD");
  EXPECT_EQ(ValidUtf8("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace matins
