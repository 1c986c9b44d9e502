// From the instant at which a run is due to its handler's first instruction, for one-offs that are
// spread over some seconds; or, over none, how long a burst takes to start and to be committed.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

// One-offs that are due one after another, `apart`, in texts of bounded size.
void ApplySpread(Stage& stage, int64_t count, absl::Time first, absl::Duration apart) {
  constexpr int64_t kJobsAText = 2000;
  for (int64_t begin = 0; begin < count; begin += kJobsAText) {
    std::string yaml = "jobs:\n";
    for (int64_t i = begin; i < std::min(count, begin + kJobsAText); ++i) {
      absl::StrAppend(&yaml, "  - { name: job-", i, ", at: ", FormatInstant(first + i * apart),
                      ", misfire: latest, run: { handler: noop } }\n");
    }
    stage.Apply(yaml, absl::StrCat("bench/", begin));
  }
}

void Run(const Options& options) {
  const int64_t runs = options.Int("runs");
  const int64_t seconds = options.Int("seconds");
  Stage stage(options);
  const absl::Time first =
      absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 15 + runs / 500);
  ApplySpread(stage, runs, first, absl::Seconds(seconds) / std::max<int64_t>(runs, 1));
  stage.Rest();
  NodeProcesses nodes(options, static_cast<int>(options.Int("processes")), runs);
  nodes.Go();
  if (absl::Now() > first - absl::Seconds(6)) Die("applying the jobs took too long");
  nodes.Await([&](const Shared& shared) { return shared.finished >= runs; },
              absl::Seconds(seconds) + absl::Minutes(2));
  const absl::Time last = absl::FromUnixMicros(nodes.shared().last_finished_us);
  std::vector<absl::Duration> late;
  int64_t early = 0;
  for (int64_t i = 0; i < runs; ++i) {
    late.push_back(absl::Microseconds(nodes.lateness_us(i)));
    early += nodes.lateness_us(i) < 0;
  }
  nodes.Stop();
  ProveDone(stage, runs);
  Line line("latency", options);
  line.Add("runs", runs).Add("seconds", seconds).Add("processes", options.Int("processes"));
  line.AddLatencies("", late).Add("early", early);
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
