// Runs of a program, `true`, each under its guard: how many a second go, or, due at one instant,
// when the last of them has started.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

void Run(const Options& options) {
  const int64_t runs = options.Int("runs");
  const bool burst = options.Flag("burst");
  Stage stage(options);
  const absl::Time at = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 12);
  if (burst) {
    stage.ApplyOneOffs(runs, at, "misfire: latest, run: { command: [\"true\"] }");
  } else {
    stage.ApplyPeriods(runs, "run: { command: [\"true\"] }");
    stage.Plan();
  }
  stage.Rest();
  NodeProcesses nodes(options, {.slots = static_cast<int>(options.Int("slots"))});
  nodes.Go();
  if (burst && absl::Now() > at - absl::Seconds(6)) Die("applying the jobs took too long");
  nodes.Await([&](const Shared& shared) { return shared.finished >= runs; }, absl::Minutes(4));
  nodes.Stop();
  ProveDone(stage, runs);
  RunFilter filter;
  filter.limit = static_cast<int>(runs) + 1;
  const auto attempts = stage.acts().ReadRuns(filter);
  DieUnlessOk(attempts.status(), "reading the history");
  absl::Time first = absl::InfiniteFuture(), started = absl::InfinitePast(),
             ended = absl::InfinitePast();
  for (const RunRow& run : *attempts) {
    first = std::min(first, run.claimed_at);
    started = std::max(started, run.started_at);
    ended = std::max(ended, run.finished_at);
  }
  Line line("commands", options);
  line.Add("runs", runs).Add("burst", burst).Add("slots", options.Int("slots"));
  if (burst) {
    line.Add("started_ms", absl::ToDoubleMilliseconds(started - at));
    line.Add("committed_ms", absl::ToDoubleMilliseconds(ended - at));
  } else {
    line.Add("per_second", static_cast<double>(runs) / absl::ToDoubleSeconds(ended - first));
  }
  line.Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv,
                                       {{"runs", "3000"}, {"burst", "false"}, {"slots", "64"}});
  matins::bench::Run(options);
}
