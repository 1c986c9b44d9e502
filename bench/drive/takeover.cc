// From the SIGKILL of a node to the claim of its run by another that is there: each time a run of a
// program, under its guard, on the node that has been there for longer.
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

// The newest attempt of a job that runs; or none.
std::optional<RunRow> Running(Stage& stage, const std::string& job) {
  RunFilter filter;
  filter.job = job;
  filter.limit = 10;
  const auto runs = stage.acts().ReadRuns(filter);
  DieUnlessOk(runs.status(), "reading the runs");
  for (const RunRow& run : *runs) {
    if (run.status == "RUNNING") return run;
  }
  return std::nullopt;
}

RunRow AwaitRunning(Stage& stage, const std::string& job, int64_t other_than) {
  const absl::Time until = absl::Now() + absl::Minutes(2);
  while (absl::Now() < until) {
    const std::optional<RunRow> run = Running(stage, job);
    if (run && run->fence != other_than) return *run;
    absl::SleepFor(absl::Milliseconds(20));
  }
  Die(absl::StrCat(job, " does not run after two minutes"));
}

std::unique_ptr<NodeProcesses> OneMore(const Options& options) {
  auto node = std::make_unique<NodeProcesses>(options, NodeSetup{.slots = 64});
  node->Go();
  return node;
}

void Run(const Options& options) {
  const int64_t times = options.Int("times");
  Stage stage(options);
  std::unique_ptr<NodeProcesses> old = OneMore(options);
  std::vector<absl::Duration> took;
  for (int64_t i = 0; i < times; ++i) {
    const std::string job = absl::StrCat("job-", i);
    stage.Apply(absl::StrCat("jobs:\n  - { name: ", job,
                             ", at: ", FormatInstant(absl::Now() + absl::Milliseconds(300)),
                             ", misfire: latest, run: { command: [sleep, \"6\"] } }\n"),
                absl::StrCat("bench/", i));
    const RunRow first = AwaitRunning(stage, job, 0);
    std::unique_ptr<NodeProcesses> next = OneMore(options);
    // It has looked at everything once by then.
    absl::SleepFor(absl::Milliseconds(1500));
    const absl::Time killed = old->KillOne();
    took.push_back(AwaitRunning(stage, job, first.fence).claimed_at - killed);
    old = std::move(next);
  }
  Line("takeover", options).Add("times", times).AddLatencies("", took).Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv, {{"times", "30"}});
  matins::bench::Run(options);
}
