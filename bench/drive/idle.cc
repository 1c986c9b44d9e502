// What a node costs while nothing is due for months: memory, and per second the CPU time of node
// and store and the store's transactions.
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

double ResidentMib(pid_t pid) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/statm"));
  double total = 0, resident = 0;
  in >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Those of this database, but for the one that asks.
int64_t Transactions(Stage& stage) {
  int64_t count = 0;
  const std::string text = stage.Query(
      "select xact_commit + xact_rollback from pg_stat_database where datname = "
      "current_database()");
  return absl::SimpleAtoi(text, &count) ? count : 0;
}

void ApplyYearly(Stage& stage, int64_t count) {
  constexpr int64_t kJobsAText = 4000;
  for (int64_t begin = 0; begin < count; begin += kJobsAText) {
    std::string yaml = "jobs:\n";
    for (int64_t i = begin; i < std::min(count, begin + kJobsAText); ++i) {
      absl::StrAppend(&yaml, "  - { name: job-", i, ", schedule: \"0 0 ", 1 + i % 28,
                      " 6 *\", misfire: latest, run: { handler: noop } }\n");
    }
    stage.Apply(yaml, absl::StrCat("bench/", begin));
  }
}

void Run(const Options& options) {
  const int64_t jobs = options.Int("jobs");
  const int64_t seconds = options.Int("seconds");
  Stage stage(options);
  ApplyYearly(stage, jobs);
  stage.Plan();
  stage.Rest();
  NodeProcesses nodes(options, 1);
  nodes.Go();
  // The node is the first one there: it looks at every job once.
  absl::SleepFor(absl::Seconds(options.Int("settle")));
  const bool postgres = options.IsPostgres();
  const pid_t pid = nodes.pids()[0];
  const int64_t transactions = postgres ? Transactions(stage) : 0;
  const double node = CpuSeconds(pid), store = StoreCpuSeconds();
  absl::SleepFor(absl::Seconds(seconds));
  const double took = static_cast<double>(seconds);
  const double node_ms = (CpuSeconds(pid) - node) * 1000 / took;
  const double store_ms = (StoreCpuSeconds() - store) * 1000 / took;
  Line line("idle", options);
  line.Add("jobs", jobs).Add("seconds", seconds).Add("resident_mib", ResidentMib(pid));
  line.Add("node_cpu_ms_per_second", node_ms).Add("store_cpu_ms_per_second", store_ms);
  if (postgres) {
    line.Add("transactions_per_second",
             static_cast<double>(Transactions(stage) - transactions - 1) / took);
  }
  nodes.Stop();
  line.Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv,
                                       {{"jobs", "10000"}, {"seconds", "60"}, {"settle", "30"}});
  matins::bench::Run(options);
}
