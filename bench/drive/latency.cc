// From the instant at which a run is due to its handler's first instruction, for one-offs that are
// spread over some seconds; or, over none, how long a burst takes to start and to be committed.
#include <algorithm>
#include <vector>

#include "absl/time/clock.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

void Run(const Options& options) {
  const int64_t runs = options.Int("runs");
  const int64_t seconds = options.Int("seconds");
  Stage stage(options);
  const absl::Time first =
      absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 15 + runs / 500);
  stage.ApplySpread(runs, first, absl::Seconds(seconds) / std::max<int64_t>(runs, 1));
  stage.Rest();
  NodeProcesses nodes(options,
                      {.count = static_cast<int>(options.Int("processes")), .latenesses = runs});
  nodes.Go();
  if (absl::Now() > first - absl::Seconds(6)) Die("applying the jobs took too long");
  nodes.Await([&](const Shared& shared) { return shared.finished >= runs; },
              absl::Seconds(seconds) + absl::Minutes(2));
  const absl::Time last = absl::FromUnixMicros(nodes.shared().last_finished_us);
  const std::vector<absl::Duration> late = nodes.Latenesses();
  const auto early = std::count_if(late.begin(), late.end(),
                                   [](absl::Duration d) { return d < absl::ZeroDuration(); });
  nodes.Stop();
  ProveDone(stage, runs);
  Line line("latency", options);
  line.Add("runs", runs).Add("seconds", seconds).Add("processes", options.Int("processes"));
  line.AddLatencies("", late).Add("early", static_cast<int64_t>(early));
  if (seconds == 0) line.Add("committed_ms", absl::ToDoubleMilliseconds(last - first));
  line.Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv,
                                       {{"runs", "2000"}, {"seconds", "60"}, {"processes", "1"}});
  matins::bench::Run(options);
}
