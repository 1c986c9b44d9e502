// How fast a backlog of no-op handler runs goes, with history and fences kept: from the first claim
// (or, from nothing, the first row planned) by the store's clock, to the last end that a node knows
// to be committed.
//
// `--hour`: on a store that has worked for an hour before (hour.h); `--snapshot`: and a transaction
// of another program has been open since before that hour, so that none of its dead rows may go.
#include <algorithm>
#include <optional>

#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "bench/drive/hour.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

constexpr absl::string_view kOneOff = "misfire: each, start_deadline: 1h, run: { handler: noop }";

absl::Time FirstAct(Stage& stage, int64_t attempts_at_most, bool planned) {
  RunFilter filter;
  filter.limit = static_cast<int>(attempts_at_most) + 1;
  const auto attempts = stage.acts().ReadRuns(filter);
  DieUnlessOk(attempts.status(), "reading the history");
  absl::Time first = absl::InfiniteFuture();
  for (const RunRow& run : *attempts) {
    if (absl::StartsWith(run.key.job, "hour-")) continue;
    first = std::min(first, planned ? run.claimed_at : run.planned_at);
  }
  return first;
}

void MakeBacklog(Stage& stage, const Options& options) {
  const int64_t runs = options.Int("runs");
  if (options.Text("shape") == "jobs") {
    // Due once the jobs are there, and not before: no node may look at them meanwhile.
    const absl::Time at = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 8 + runs / 4000);
    stage.ApplyOneOffs(runs, at, kOneOff);
    absl::SleepFor(at + absl::Milliseconds(10) - absl::Now());
  } else {
    stage.ApplyPeriods(runs, "run: { handler: noop }");
  }
  if (options.Flag("planned")) stage.Plan();
  stage.Rest();
}

void Run(const Options& options) {
  const int64_t runs = options.Int("runs");
  const bool planned = options.Flag("planned");
  const bool hour = options.Flag("hour");
  Stage stage(options);
  std::optional<OpenTransaction> snapshot;
  int64_t before = 0;
  if (hour) {
    ApplyHour(stage);
    if (options.Flag("snapshot")) snapshot.emplace(options);
    before = LiveAnHour(stage);
  }
  MakeBacklog(stage, options);
  const int64_t dead = hour ? DeadRows(stage) : 0;

  const int processes = static_cast<int>(options.Int("processes"));
  NodeProcesses nodes(options,
                      {.count = processes, .slots = static_cast<int>(options.Int("slots"))});
  const double store_cpu = StoreCpuSeconds();
  nodes.Go();
  nodes.Await([&](const Shared& shared) { return shared.finished >= runs; }, absl::Minutes(4));
  const double store_seconds = StoreCpuSeconds() - store_cpu;
  const absl::Time last = absl::FromUnixMicros(nodes.shared().last_finished_us);
  nodes.Stop();
  if (nodes.shared().failed > 0) Die("runs have failed");
  ProveDone(stage, before + runs);
  // Of another mind than the others: it has not seen a run of that hour.
  if (snapshot && snapshot->Query("select count(*) from matins.job_run") != "0") {
    Die("the transaction was not open all the while");
  }

  const double seconds = absl::ToDoubleSeconds(last - FirstAct(stage, before + runs, planned));
  Line line("drain", options);
  line.Add("shape", options.Text("shape")).Add("planned", planned);
  line.Add("processes", static_cast<int64_t>(processes)).Add("runs", runs);
  if (hour) line.Add("snapshot", snapshot.has_value()).Add("dead_rows", dead);
  line.Add("per_second", static_cast<double>(runs) / seconds)
      .Add("node_cpu_us_per_run",
           static_cast<double>(nodes.shared().cpu_us) / static_cast<double>(runs))
      .Add("store_cpu_us_per_run", store_seconds * 1e6 / static_cast<double>(runs))
      .Add("plans_stale", nodes.shared().plans_stale.load())
      .Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv,
                                       {{"shape", "jobs"},
                                        {"planned", "false"},
                                        {"processes", "1"},
                                        {"runs", "20000"},
                                        {"slots", "0"},
                                        {"hour", "false"},
                                        {"snapshot", "false"}});
  matins::bench::Run(options);
}
