// What a node costs while nothing is due for months: memory, and per second the CPU time of node
// and store and the store's transactions; and then, still among as many jobs, how late some fires
// are. The server's own CPU time without any node is told beside.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

// As the server is after hours: no longer at work on what was loaded.
constexpr absl::Duration kServerAlone = absl::Seconds(20);

void ApplyYearly(Stage& stage, int64_t count) {
  constexpr int64_t kJobsAText = 4000;
  for (int64_t begin = 0; begin < count; begin += kJobsAText) {
    std::string yaml = "jobs:\n";
    for (int64_t i = begin; i < std::min(count, begin + kJobsAText); ++i) {
      absl::StrAppend(&yaml, "  - { name: yearly-", i, ", schedule: \"0 0 ", 1 + i % 28,
                      " 6 *\", misfire: latest, run: { handler: noop } }\n");
    }
    stage.Apply(yaml, absl::StrCat("bench/", begin));
  }
}

double StoreMsASecond(absl::Duration while_asleep) {
  const double before = StoreCpuSeconds();
  absl::SleepFor(while_asleep);
  return (StoreCpuSeconds() - before) * 1000 / absl::ToDoubleSeconds(while_asleep);
}

void AddIdle(Stage& stage, NodeProcesses& node, Line& line) {
  const Options& options = stage.options();
  const absl::Duration seconds = absl::Seconds(options.Int("seconds"));
  const double took = absl::ToDoubleSeconds(seconds);
  const double node_cpu = node.CpuSeconds();
  const int64_t transactions = TransactionsSoFar(options);
  const double store_ms = StoreMsASecond(seconds);
  // Of PostgreSQL's, one was the first count's own.
  const int64_t own = options.IsPostgres() ? 1 : 0;
  const auto transacted = static_cast<double>(TransactionsSoFar(options) - transactions - own);
  const double node_ms = (node.CpuSeconds() - node_cpu) * 1000 / took;
  line.Add("resident_mib", ResidentMib(node.pids()[0]));
  line.Add("cpu_ms_per_second", node_ms + store_ms);
  line.Add("node_cpu_ms_per_second", node_ms).Add("store_cpu_ms_per_second", store_ms);
  line.Add("transactions_per_second", transacted / took);
}

void AddFires(Stage& stage, NodeProcesses& node, Line& line) {
  const int64_t fires = stage.options().Int("fires");
  const absl::Time first = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 9);
  stage.ApplySpread(fires, first, absl::Milliseconds(200));
  node.Await([&](const Shared& shared) { return shared.finished >= fires; },
             absl::Milliseconds(200) * fires + absl::Minutes(1));
  line.Add("fires", fires).AddLatencies("", node.Latenesses());
}

void Run(const Options& options) {
  Stage stage(options);
  ApplyYearly(stage, options.Int("jobs"));
  stage.Plan();
  stage.Rest();
  double alone_ms = 0;
  if (options.IsPostgres()) {
    absl::SleepFor(absl::Seconds(5));
    alone_ms = StoreMsASecond(kServerAlone);
  }
  NodeProcesses node(options, {.latenesses = options.Int("fires")});
  node.Go();
  // What a node does in its first two minutes (the audits read all definitions each minute) and the
  // server after a load (its own vacuum) is not rest.
  absl::SleepFor(absl::Seconds(options.Int("settle")));
  Line line("idle", options);
  line.Add("jobs", options.Int("jobs")).Add("seconds", options.Int("seconds"));
  line.Add("store_alone_cpu_ms_per_second", alone_ms);
  AddIdle(stage, node, line);
  AddFires(stage, node, line);
  node.Stop();
  ProveDoneAmong(stage, options.Int("fires"));
  line.Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(
      argc, argv, {{"jobs", "10000"}, {"seconds", "60"}, {"settle", "150"}, {"fires", "100"}});
  matins::bench::Run(options);
}
