// Each promise holds on the store as it ships, and its check goes red with the protection taken
// out.
#include "base/status.h"
#include "conformance/checks.h"
#include "conformance/kit.h"

namespace matins::conformance {
namespace {

absl::StatusOr<std::unique_ptr<World>> WorldFor(const Check& check) {
  if (check.needs && !TheBackend().capabilities().contains(*check.needs)) {
    return absl::UnimplementedError(CapabilityName(*check.needs));
  }
  return TheBackend().NewWorld();
}

TEST(Promises, EachHolds) {
  for (const Check& check : AllChecks()) {
    SCOPED_TRACE(check.name);
    auto world = WorldFor(check);
    if (absl::IsUnimplemented(world.status())) {
      GTEST_LOG_(INFO) << "skipped " << check.name << ": " << TheBackend().name()
                       << " lacks the capability " << world.status().message();
      continue;
    }
    ASSERT_OK(world.status());
    const absl::Status verdict = check.run(**world);
    EXPECT_TRUE(verdict.ok()) << verdict;
  }
}

#if MATINS_LAB
TEST(Promises, EachMutantTurnsItsChecksRed) {
  if (TheBackend().mutants().empty()) GTEST_SKIP() << TheBackend().name() << " carries no mutants";
  std::set<Mutant> caught;
  for (const Check& check : AllChecks()) {
    for (const Mutant mutant : check.caught) {
      if (!TheBackend().mutants().contains(mutant)) continue;
      SCOPED_TRACE(testing::Message() << check.name << " with mutant " << static_cast<int>(mutant));
      auto world = WorldFor(check);
      if (absl::IsUnimplemented(world.status())) continue;
      ASSERT_OK(world.status());
      SetMutant(mutant);
      const absl::Status verdict = check.run(**world);
      SetMutant(Mutant::kNone);
      EXPECT_FALSE(verdict.ok()) << "its protection is out, and the check does not see it";
      if (!verdict.ok()) caught.insert(mutant);
    }
  }
  EXPECT_EQ(caught, TheBackend().mutants());
}
#endif

}  // namespace
}  // namespace matins::conformance
