#include "base/client_library.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ClientLibrary, FindsFunctions) {
  double (*cosine)(double) = nullptr;
  ASSERT_TRUE(
      LoadClientLibrary("libm.so.6", "libc6", {{"cos", reinterpret_cast<void**>(&cosine)}}).ok());
  EXPECT_EQ(cosine(0), 1);
}

TEST(ClientLibrary, SaysWhatToInstallWhereItIsMissing) {
  const absl::Status status = LoadClientLibrary("libnothere.so.7", "libnothere7", {});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("libnothere.so.7"), HasSubstr("install the package libnothere7")));
}

TEST(ClientLibrary, SaysWhichFunctionAnOldOneLacks) {
  void* missing = nullptr;
  const absl::Status status = LoadClientLibrary("libm.so.6", "libc6", {{"cosh_of_2040", &missing}});
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(status.message(), AllOf(HasSubstr("libm.so.6 has no cosh_of_2040"),
                                      HasSubstr("newer version of the package libc6")));
}

}  // namespace
}  // namespace matins
