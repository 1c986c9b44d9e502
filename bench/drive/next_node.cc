// How soon the next node works after one that held what is due was drained: each time some runs
// that the first node holds for their instant. By default the next one is started when the first
// has gone and they are due: from its start to its handler's first instruction. `--standby`: it is
// there already, and the first is told to drain just before that instant: from then to the last of
// them.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

constexpr int64_t kRuns = 20;  // held by the first node each time
constexpr absl::Duration kJustBefore = absl::Milliseconds(20);

absl::Time ApplyHeld(Stage& stage, int64_t time) {
  const absl::Time at = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 4);
  std::string yaml = "jobs:\n";
  for (int64_t i = 0; i < kRuns; ++i) {
    absl::StrAppend(&yaml, "  - { name: job-", time, "-", i, ", at: ", FormatInstant(at),
                    ", misfire: latest, run: { handler: noop } }\n");
  }
  stage.Apply(yaml, absl::StrCat("bench/", time));
  return at;
}

// The held rows are all of the one node that is there.
void AwaitHeld(Stage& stage, absl::Time at) {
  const std::string sql = absl::StrCat("SELECT count(*) FROM ", stage.Table("job_watermark"),
                                       " WHERE status = 'PLANNED' AND held_by <> ''");
  while (stage.Count(sql) < kRuns) {
    if (absl::Now() > at - absl::Milliseconds(500)) Die("the first node holds nothing");
    absl::SleepFor(absl::Milliseconds(50));
  }
}

bool AllDone(const Shared& shared) { return shared.finished >= kRuns; }

absl::Duration AfterItsStart(Stage& stage, const Options& options, int64_t time) {
  NodeProcesses first(options);
  first.Go();
  const absl::Time at = ApplyHeld(stage, time);
  AwaitHeld(stage, at);
  first.Stop();
  absl::SleepFor(at + absl::Milliseconds(5) - absl::Now());
  const absl::Time begin = absl::Now();
  NodeProcesses next(options, {.at_once = true});
  next.Await(AllDone, absl::Minutes(1));
  const absl::Time entered = absl::FromUnixMicros(next.shared().first_entered_us);
  next.Stop();
  return entered - begin;
}

absl::Duration OnStandby(Stage& stage, const Options& options, int64_t time) {
  NodeProcesses first(options);
  first.Go();
  const absl::Time at = ApplyHeld(stage, time);
  AwaitHeld(stage, at);
  NodeProcesses next(options, {.latenesses = kRuns});
  next.Go();
  absl::SleepFor(at - kJustBefore - absl::Now());
  const absl::Time begin = absl::Now();
  first.BeginStop();
  next.Await(
      [&](const Shared& shared) { return shared.finished + first.shared().finished >= kRuns; },
      absl::Minutes(1));
  first.Stop();
  const std::vector<absl::Duration> late = next.Latenesses();
  next.Stop();
  if (late.empty()) Die("the first node ran all, though it was drained before their instant");
  return at + *std::max_element(late.begin(), late.end()) - begin;
}

void Run(const Options& options) {
  const int64_t times = options.Int("times");
  const bool standby = options.Flag("standby");
  Stage stage(options);
  std::vector<absl::Duration> took;
  for (int64_t i = 0; i < times; ++i) {
    took.push_back(standby ? OnStandby(stage, options, i) : AfterItsStart(stage, options, i));
  }
  ProveDone(stage, times * kRuns);
  Line("next_node", options)
      .Add("times", times)
      .Add("standby", standby)
      .AddLatencies("", took)
      .Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv, {{"times", "7"}, {"standby", "false"}});
  matins::bench::Run(options);
}
