// Many jobs that fire each minute, on two nodes, for some minutes: how late each fire is, whether
// one is missed or run twice, and the CPU time of nodes and store.
#include <algorithm>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

void Run(const Options& options) {
  const int64_t jobs = options.Int("jobs");
  const int64_t minutes = options.Int("minutes");
  const int64_t fires = jobs * minutes;
  Stage stage(options);
  std::string yaml = "jobs:\n";
  for (int64_t i = 0; i < jobs; ++i) {
    // All attempts are kept: they are counted at the end.
    absl::StrAppend(&yaml, "  - { name: job-", i,
                    ", schedule: \"* * * * *\", misfire: each, history: { succeeded: ", 4 * minutes,
                    " }, run: { handler: noop } }\n");
  }
  // Not across a minute: each job has its first fire at the next one.
  const int64_t second = absl::ToUnixSeconds(absl::Now()) % 60;
  if (second > 40) absl::SleepFor(absl::Seconds(61 - second));
  stage.Apply(yaml);
  stage.Rest();
  NodeProcesses nodes(
      options, {.count = static_cast<int>(options.Int("processes")), .latenesses = 2 * fires});
  const double store_cpu = StoreCpuSeconds();
  nodes.Go();
  nodes.Await([&](const Shared& shared) { return shared.finished >= fires; },
              absl::Minutes(minutes + 2));
  const double store_seconds = StoreCpuSeconds() - store_cpu;
  const std::vector<absl::Duration> late = nodes.Latenesses();
  nodes.Stop();
  const double cpu = static_cast<double>(nodes.shared().cpu_us) / 1e6 + store_seconds;
  RunFilter filter;
  filter.limit = static_cast<int>(4 * fires);
  const auto attempts = stage.acts().ReadRuns(filter);
  DieUnlessOk(attempts.status(), "reading the history");
  std::set<PeriodKey> periods;
  for (const RunRow& run : *attempts) periods.insert(run.key);
  const auto ran = static_cast<int64_t>(attempts->size());
  const auto different = static_cast<int64_t>(periods.size());
  Line("cron", options)
      .Add("jobs", jobs)
      .Add("minutes", minutes)
      .Add("processes", options.Int("processes"))
      .AddLatencies("", late)
      .Add("missed", std::max<int64_t>(0, fires - different))
      .Add("twice", ran - different)
      .Add("cpu_seconds", cpu * 3000 / static_cast<double>(fires))
      .Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv,
                                       {{"jobs", "1000"}, {"minutes", "10"}, {"processes", "2"}});
  matins::bench::Run(options);
}
