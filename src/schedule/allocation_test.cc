// "Nothing is allocated after Parse" (schedule.h): counted in operator new itself, so this is a
// program of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "schedule/schedule.h"

namespace {

std::atomic<int64_t> allocations{0};

void* Allocate(std::size_t size) {
  ++allocations;
  void* memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) std::abort();
  return memory;
}

}  // namespace

// The other forms come to these.
void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace matins {
namespace {

class NoAllocation : public ::testing::TestWithParam<const char*> {
 protected:
  static Schedule InNewYork(const char* expression) {
    ScheduleOptions options;
    options.zone = LoadZone("America/New_York").value();
    return Schedule::Parse(expression, options).value();
  }
};

TEST_P(NoAllocation, InNextAndPrevious) {
  const int64_t at_first = allocations;
  const Schedule schedule = InNewYork(GetParam());
  const int64_t before = allocations;
  ASSERT_GT(before, at_first) << "parsing allocates, so operator new is not counted";
  const absl::Time begin = absl::FromUnixSeconds(1'768'000'000);
  absl::Time at = begin;
  int fires = 0;
  // Over both changes of the clock of a year, and back.
  for (std::optional<Fire> fire; fires < 10'000 && (fire = schedule.Next(at)); ++fires) {
    at = fire->at;
  }
  for (int i = 0; i < fires; ++i) {
    if (const std::optional<Fire> fire = schedule.Previous(at)) at = fire->at;
  }
  EXPECT_GT(fires, 0);
  EXPECT_EQ(allocations - before, 0);
}

INSTANTIATE_TEST_SUITE_P(Expressions, NoAllocation,
                         ::testing::Values("*/5 * * * *", "0 * * * *", "0 0 29 2 *",
                                           "0 30 2 ? 3 SUN#2", "30 1 1-7 * 1",
                                           "Mon..Fri *-*-* 08..17:0/15", "@every 90m"));

}  // namespace
}  // namespace matins
