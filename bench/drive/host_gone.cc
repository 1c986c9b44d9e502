// From the death of a whole host to the claim of its run by a node elsewhere: nothing is left there
// that could give the lease back, so it has to end. A host is a node with one run of a program; the
// node, its guards and their programs are stopped, then killed, all together. In waves, since many
// hosts at a time would wait for one another's processor here.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

constexpr int64_t kHostsAWave = 10;
constexpr absl::Duration kApart = absl::Milliseconds(370);

std::string JobOf(int64_t wave, int64_t host) { return absl::StrCat("wave-", wave, "-", host); }

// The row of a job that runs, once its claim is another than `fence`.
PeriodRow AwaitRunning(Stage& stage, const std::string& job, int64_t fence) {
  RowFilter filter;
  filter.job = job;
  const absl::Time until = absl::Now() + absl::Minutes(2);
  while (absl::Now() < until) {
    const auto rows = stage.acts().ReadRows(filter);
    DieUnlessOk(rows.status(), "reading the periods");
    for (const PeriodRow& row : *rows) {
      if (row.status == PeriodStatus::kRunning && row.fence != fence) return row;
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  Die(absl::StrCat(job, " does not run after two minutes"));
}

struct Took {
  std::vector<absl::Duration> after_death, after_lease;
};

void Wave(Stage& stage, const Options& options, int64_t wave, int64_t hosts, Took& took) {
  const std::string label = absl::StrCat("wave-", wave);
  std::string yaml = "jobs:\n";
  std::vector<std::string> survivor_has;
  for (int64_t i = 0; i < hosts; ++i) {
    survivor_has.push_back(absl::StrCat(label, "-", i));
    absl::StrAppend(&yaml, "  - { name: ", JobOf(wave, i), ", nodes: [", label, "-", i,
                    "], at: ", FormatInstant(absl::Now() + absl::Seconds(1)),
                    ", misfire: latest, lock: { ttl: ", options.Int("lease_s"),
                    "s }, run: { command: [sleep, \"600\"] } }\n");
  }
  stage.Apply(yaml, absl::StrCat("bench/", wave));
  NodeProcesses victims(
      options,
      {.count = static_cast<int>(hosts), .slots = 8, .labels = {absl::StrCat(label, "-*")}});
  victims.Go();
  std::vector<int64_t> fences;
  for (int64_t i = 0; i < hosts; ++i) {
    fences.push_back(AwaitRunning(stage, JobOf(wave, i), 0).fence);
  }
  NodeProcesses survivor(options, {.slots = 64, .labels = survivor_has});
  survivor.Go();
  // It has looked at everything once by then, and the hosts have extended their leases.
  absl::SleepFor(absl::Seconds(options.Int("lease_s")) / 2);
  std::vector<absl::Time> died, lease_ended;
  for (int64_t i = 0; i < hosts; ++i) {
    if (ChildrenOf(victims.pids()[0]).empty()) Die("a host's run has no guard");
    died.push_back(victims.KillOneWithGuards());
    const PeriodRow row = AwaitRunning(stage, JobOf(wave, i), 0);
    lease_ended.push_back(row.fence == fences[i] ? row.lease_until : died.back());
    absl::SleepFor(kApart);
  }
  for (int64_t i = 0; i < hosts; ++i) {
    const absl::Time claimed = AwaitRunning(stage, JobOf(wave, i), fences[i]).claimed_at;
    took.after_death.push_back(claimed - died[i]);
    took.after_lease.push_back(claimed - lease_ended[i]);
  }
  // What it runs goes with it.
  survivor.KillOneWithGuards();
}

void Run(const Options& options) {
  const int64_t times = options.Int("times");
  Stage stage(options);
  Took took;
  for (int64_t done = 0; done < times; done += kHostsAWave) {
    Wave(stage, options, done / kHostsAWave, std::min(kHostsAWave, times - done), took);
  }
  Line("host_gone", options)
      .Add("times", times)
      .Add("lease_s", options.Int("lease_s"))
      .AddLatencies("", took.after_death)
      .AddLatencies("after_lease_", took.after_lease)
      .Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv, {{"times", "30"}, {"lease_s", "5"}});
  matins::bench::Run(options);
}
