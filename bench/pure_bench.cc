// The pure parts under Google Benchmark: `per_operation`, in seconds.
#include "benchmark/benchmark.h"
#include "pure.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const std::vector<matins::bench::PureWork> all = matins::bench::AllPureWork();
  for (const matins::bench::PureWork& work : all) {
    benchmark::RegisterBenchmark(work.name.c_str(), [&work](benchmark::State& state) {
      for (auto _ : state) work.run();
      using Counter = benchmark::Counter;
      state.counters["per_operation"] =
          Counter(work.operations, Counter::kIsIterationInvariantRate | Counter::kInvert);
      state.SetLabel(work.label);
    });
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
