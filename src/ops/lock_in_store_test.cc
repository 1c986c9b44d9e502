#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/fault.h"
#include "gtest/gtest.h"
#include "ops/lock_lease.h"

namespace matins {
namespace {

#if MATINS_LAB
// Its holder lets go between START's no and the question who holds it.
TEST(LockInStore, WhatHasJustBeenLetGoIsTakenAndNobodyIsNamed) {
  std::string folder = ::testing::TempDir() + "/lock_in_store.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string url = absl::StrCat("sqlite:", folder, "/store.db");
  Clock& clock = SystemClock();
  const auto open = [&](const char* who) {
    return LockInStore({"ledger", who, absl::Seconds(30), absl::Hours(1)}, url, clock);
  };
  const auto first = open("first"), second = open("second");
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(second.ok()) << second.status();
  auto taken = (*first)->Take(absl::Seconds(30));
  ASSERT_TRUE(taken.ok()) << taken.status();
  ASSERT_TRUE(taken->taken);

  taken = (*second)->Take(absl::Seconds(30));
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_FALSE(taken->taken);
  EXPECT_TRUE(absl::StartsWith(taken->held_by, "first since ")) << taken->held_by;

  bool gone = false;
  SetFaultHook([&](absl::string_view point) {
    if (absl::EndsWith(point, "start.after_commit") && !std::exchange(gone, true)) {
      EXPECT_TRUE((*first)->Release(nullptr).ok());
    }
    return absl::OkStatus();
  });
  taken = (*second)->Take(absl::Seconds(30));
  SetFaultHook(nullptr);
  ASSERT_TRUE(gone);
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(taken->taken) << taken->held_by;
  std::filesystem::remove_all(folder);
}
#endif

}  // namespace
}  // namespace matins
