// How late fires are that another node has planned just before: this program is that node, it
// starts nothing, and plans each fire `--ahead_ms` before it is due. Another process runs them.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/drive/node_process.h"
#include "bench/drive/planning.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

// How long before it was due each was planned, as the store has it.
std::vector<absl::Duration> PlannedBefore(Stage& stage, int64_t runs) {
  RunFilter filter;
  filter.limit = static_cast<int>(runs) + 1;
  const auto attempts = stage.acts().ReadRuns(filter);
  DieUnlessOk(attempts.status(), "reading the history");
  std::vector<absl::Duration> before;
  for (const RunRow& run : *attempts) before.push_back(run.due - run.planned_at);
  return before;
}

void Run(const Options& options) {
  const int64_t runs = options.Int("runs");
  const absl::Duration apart = absl::Seconds(options.Int("seconds")) / runs;
  const absl::Duration ahead = absl::Milliseconds(options.Int("ahead_ms"));
  Stage stage(options);
  const absl::Time first =
      absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 15 + runs / 500);
  stage.ApplySpread(runs, first, apart);
  stage.Plan();
  // The other node's planning has no look of its own to take: it would be as quick as this one's.
  stage.Query(absl::StrCat("UPDATE ", stage.Table("job"),
                           " SET next_look = ", stage.Instant(absl::Hours(24 * 365))));
  stage.Rest();
  PlanningNode planner(stage.database(), absl::Seconds(5));
  NodeProcesses nodes(options, {.latenesses = runs});
  nodes.Go();
  if (absl::Now() > first - absl::Seconds(6)) Die("applying the jobs took too long");
  for (int64_t i = 0; i < runs; ++i) {
    absl::SleepFor(first + i * apart - ahead - absl::Now());
    planner.PlanOne(absl::StrCat("job-", i));
  }
  nodes.Await([&](const Shared& shared) { return shared.finished >= runs; }, absl::Minutes(2));
  const std::vector<absl::Duration> late = nodes.Latenesses();
  const auto early = std::count_if(late.begin(), late.end(),
                                   [](absl::Duration d) { return d < absl::ZeroDuration(); });
  nodes.Stop();
  ProveDone(stage, runs);
  std::vector<absl::Duration> before = PlannedBefore(stage, runs);
  if (Percentile(before, 1.0) > ahead + absl::Seconds(1)) Die("a fire was planned long before");
  Line("other_planner", options)
      .Add("runs", runs)
      .Add("seconds", options.Int("seconds"))
      .Add("ahead_ms", options.Int("ahead_ms"))
      .AddLatencies("", late)
      .Add("early", static_cast<int64_t>(early))
      .Add("planned_before_p50_ms", absl::ToDoubleMilliseconds(Percentile(before, 0.5)))
      .Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv,
                                       {{"runs", "2000"}, {"seconds", "60"}, {"ahead_ms", "50"}});
  matins::bench::Run(options);
}
