#include "base/fault.h"

#include <gtest/gtest.h>

namespace matins {
namespace {

#if MATINS_LAB
absl::Status Window() {
  MATINS_FAULT_POINT("test.window");
  return absl::OkStatus();
}

TEST(FaultPoint, ReturnsWhatTheHookSaysForItsOwnName) {
  SetFaultHook([](absl::string_view point) {
    return point == "test.window" ? absl::DataLossError("here") : absl::OkStatus();
  });
  EXPECT_EQ(Window().code(), absl::StatusCode::kDataLoss);
  SetFaultHook(nullptr);
  EXPECT_TRUE(Window().ok());
}

TEST(Mutant, IsWhatWasSetLast) {
  SetMutant(Mutant::kNoCap);
  EXPECT_TRUE(IsMutant(Mutant::kNoCap));
  EXPECT_FALSE(IsMutant(Mutant::kNoOrder));
  SetMutant(Mutant::kNone);
}
#else
TEST(Mutant, IsNeverThereWithoutTheLab) { EXPECT_FALSE(IsMutant(Mutant::kNoFenceCheck)); }
#endif

}  // namespace
}  // namespace matins
