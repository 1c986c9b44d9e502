// How long a schedule takes to parse, and to say when it is due next: a scheduler with ten thousand
// jobs asks that ten thousand times after each start.
#include "absl/time/time.h"
#include "benchmark/benchmark.h"
#include "schedule/schedule.h"

namespace matins {
namespace {

constexpr const char* kExpressions[] = {
    "* * * * *",         // each minute
    "0 1 * * *",         // each night
    "0 9 1-7 * 1",       // first Mondays, by either day field
    "0 0 29 2 *",        // once in four years
    "0 30 2 ? 3 SUN#2",  // Quartz, in a gap
    "Mon..Fri *-*-* 08..17:0/15",
};

ScheduleOptions InNewYork() {
  ScheduleOptions options;
  options.zone = LoadZone("America/New_York").value();
  return options;
}

void BM_Parse(benchmark::State& state) {
  const ScheduleOptions options = InNewYork();
  const char* expression = kExpressions[state.range(0)];
  for (auto _ : state) benchmark::DoNotOptimize(Schedule::Parse(expression, options));
  state.SetLabel(expression);
}
BENCHMARK(BM_Parse)->DenseRange(0, 5);

void BM_Next(benchmark::State& state) {
  const Schedule schedule = Schedule::Parse(kExpressions[state.range(0)], InNewYork()).value();
  absl::Time after = absl::FromUnixSeconds(1'768'000'000);
  for (auto _ : state) {
    const auto fire = schedule.Next(after);
    after = fire ? fire->at : absl::FromUnixSeconds(1'768'000'000);
    if (after > absl::FromUnixSeconds(4'000'000'000)) after = absl::FromUnixSeconds(1'768'000'000);
  }
  state.SetLabel(kExpressions[state.range(0)]);
}
BENCHMARK(BM_Next)->DenseRange(0, 5);

}  // namespace
}  // namespace matins
