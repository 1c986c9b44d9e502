#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/exec.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ExecDefinition, TellsWhatDiffersKeyByKey) {
  EXPECT_THAT(DifferencesOf(R"({"name":"a","schedule":"@daily","timeout":"1h"})",
                            R"({"name":"a","schedule":"@hourly","lock":{"ttl":"9s"}})"),
              ElementsAre(R"(lock: the default in the store, {"ttl":"9s"} here)",
                          R"(schedule: "@daily" in the store, "@hourly" here)",
                          R"(timeout: "1h" in the store, the default here)"));
}

TEST(ExecDefinition, SaysNothingOfTheSame) {
  EXPECT_THAT(DifferencesOf(R"({"name":"a"})", R"({"name":"a"})"), IsEmpty());
}

TEST(ExecDefinition, WhatItCannotReadDiffers) {
  EXPECT_EQ(DifferencesOf("x", R"({"name":"a"})").size(), 1);
}

}  // namespace
}  // namespace matins
