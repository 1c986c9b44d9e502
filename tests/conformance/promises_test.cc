// Each promise holds on the store as it ships, and its check goes red with the protection taken
// out.
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "conformance/checks.h"
#include "conformance/kit.h"

namespace matins::conformance {
namespace {

absl::StatusOr<std::unique_ptr<World>> WorldFor(const Check& check) {
  if (check.needs && !TheBackend().capabilities().contains(*check.needs)) {
    return absl::UnimplementedError(CapabilityName(*check.needs));
  }
#if MATINS_LAB
  // What a mutant takes out stands in the verbs; the store is made without it.
  const Mutant asked = ActiveMutant();
  SetMutant(Mutant::kNone);
  auto world = TheBackend().NewWorld();
  SetMutant(asked);
  return world;
#else
  return TheBackend().NewWorld();
#endif
}

class Promise : public ::testing::TestWithParam<Check> {};

TEST_P(Promise, Holds) {
  auto world = WorldFor(GetParam());
  if (absl::IsUnimplemented(world.status())) {
    GTEST_SKIP() << TheBackend().name() << " lacks the capability " << world.status().message();
  }
  ASSERT_OK(world.status());
  const absl::Status verdict = GetParam().run(**world);
  EXPECT_TRUE(verdict.ok()) << verdict;
}

INSTANTIATE_TEST_SUITE_P(Each, Promise, ::testing::ValuesIn(AllChecks()), [](const auto& check) {
  return absl::StrReplaceAll(check.param.name, {{".", "_"}});
});

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
      const Mutant before = ActiveMutant();
      SetMutant(mutant);
      const absl::Status verdict = check.run(**world);
      SetMutant(before);
      EXPECT_FALSE(verdict.ok()) << "its protection is out, and the check does not see it";
      if (!verdict.ok()) caught.insert(mutant);
    }
  }
  EXPECT_EQ(caught, TheBackend().mutants());
}
#endif

}  // namespace
}  // namespace matins::conformance
