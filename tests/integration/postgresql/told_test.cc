// What a node hears of others. Here it never polls: what it does, it was told of.
#include <memory>

#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/random.h"
#include "engine/engine.h"
#include "execute/scripted_runner.h"
#include "gtest/gtest.h"
#include "tests/integration/stage.h"
#include "tests/support/eventually.h"
#include "tests/support/postgres_server.h"

namespace matins::testing {
namespace {

// Of two plans in one moment the second is not told by itself.
TEST(Told, WhatAnotherPlansIsHeldLongBeforeItIsDue) {
  ASSERT_OK_AND_ASSIGN(Stage other, Stage::Open(TestPostgresUrl()));
  ASSERT_OK(other.Apply("a"));
  ASSERT_OK(other.Plan("a", 0, 1));
  ScriptedRunner runner(SystemClock(), [](const RunRequest&) { return Script{}; });
  NodeParts parts;
  parts.options.id.name = "n";
  parts.options.ahead = absl::Hours(2);
  parts.options.poll = absl::Hours(1);
  parts.clock = &SystemClock();
  parts.runner = &runner;
  parts.random = std::make_unique<SystemRandom>();
  parts.open_store = [&other](LaneKind) { return other.database->Open(); };
  ASSERT_OK_AND_ASSIGN(const auto node, Engine::Create(std::move(parts)));
  node->Start();
  ASSERT_TRUE(Eventually([&] {
    const auto row = other.Row(KeyOf("a", 0));
    return row.ok() && row->status != PeriodStatus::kPlanned;
  })) << "it does not work";
  for (int n = 1; n <= 20; ++n) {
    ASSERT_OK(other.Plan("a", n, n + 1, absl::Hours(1)));
    ASSERT_TRUE(Eventually([&] {
      const auto row = other.Row(KeyOf("a", n));
      return row.ok() && row->held_by == "n";
    })) << n;
  }
}

}  // namespace
}  // namespace matins::testing
