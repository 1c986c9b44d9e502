// Planning after a day without any node: one pass over many jobs, each of which owes a period; by
// the plan lane alone, in this process.
//
// `--live running`: the pass of a node in a process of its own, which has had other jobs to run for
// some seconds already, one fire each 20 ms; how late those are, before, during and after the pass.
// What the jobs owe is for other nodes, so that the fires meet the planning alone. `--live
// returning`: the same, but the pass begins with the node's start, just before the first of those
// fires.
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

constexpr absl::Duration kApart = absl::Milliseconds(20);

void ApplyOwing(Stage& stage, int64_t jobs) {
  const absl::CivilDay day = absl::ToCivilDay(absl::Now(), absl::UTCTimeZone()) - 1;
  constexpr int64_t kJobsAText = 4000;
  for (int64_t begin = 0; begin < jobs; begin += kJobsAText) {
    std::string yaml = "jobs:\n";
    for (int64_t i = begin; i < std::min(jobs, begin + kJobsAText); ++i) {
      absl::StrAppend(&yaml, "  - { name: owing-", i, ", schedule: \"", i % 60, " ", i / 60 % 24,
                      " * * *\", misfire: latest, backfill: { start: ", FormatDay(day),
                      " }, nodes: [elsewhere], run: { handler: noop } }\n");
    }
    stage.Apply(yaml, absl::StrCat("bench/", begin));
  }
}

void DieUnlessPlanned(Stage& stage, int64_t jobs) {
  const int64_t rows =
      stage.Count(absl::StrCat("SELECT count(DISTINCT job_name) FROM ",
                               stage.Table("job_watermark"), " WHERE job_name LIKE 'owing-%'"));
  if (rows != jobs) Die(absl::StrCat(rows, " jobs have a planned period instead of ", jobs));
}

void PlanAlone(Stage& stage) {
  const int64_t jobs = stage.options().Int("jobs");
  const int self = getpid();
  const double before_mib = ResidentMib(self);
  const double cpu = OwnCpuSeconds(), store_cpu = StoreCpuSeconds();
  const absl::Time begin = absl::Now();
  stage.Plan();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  const double planned = OwnCpuSeconds() - cpu + StoreCpuSeconds() - store_cpu;
  DieUnlessPlanned(stage, jobs);
  Line("outage", stage.options())
      .Add("jobs", jobs)
      .Add("seconds", seconds)
      .Add("cpu_seconds", planned)
      .Add("resident_mib", MostResidentMib(self))
      .Add("before_resident_mib", before_mib)
      .Print();
}

// Waits until no look that was due at `begin` is left; answers how long that took.
absl::Duration AwaitPass(Stage& stage, absl::Time begin) {
  // The looks were set to the store's own instant, which may be a little later.
  const absl::Time last = begin + absl::Seconds(1);
  const auto left = [&] {
    return stage.Count(absl::StrCat("SELECT count(*) FROM (SELECT 1 FROM ", stage.Table("job"),
                                    " WHERE next_look <= ", stage.Instant(last - absl::Now()),
                                    " LIMIT 1) j"));
  };
  while (left() > 0) {
    if (absl::Now() > begin + absl::Minutes(5)) Die("the pass does not end");
    absl::SleepFor(absl::Milliseconds(100));
  }
  return absl::Now() - begin;
}

void PlanBesideFires(Stage& stage, bool returning) {
  const Options& options = stage.options();
  const int64_t jobs = options.Int("jobs");
  const int64_t fires = options.Int("fires");
  // The audits of so many jobs take a while, and are made once.
  stage.Rest();
  // Time enough to apply the fires and to analyse the tables; and where the node is there before
  // the pass, for that too.
  const absl::Time first = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 45);
  const absl::Time pass = returning ? first - absl::Milliseconds(200) : first + absl::Seconds(3);
  stage.ApplySpread(fires, first, kApart);
  if (!returning) {
    stage.Query(absl::StrCat("UPDATE ", stage.Table("job"), " SET next_look = ",
                             stage.Instant(pass - absl::Now()), " WHERE name LIKE 'owing-%'"));
  }
  stage.Rest();
  NodeProcesses node(options, {.latenesses = fires});
  if (returning) absl::SleepFor(pass - absl::Now());
  if (absl::Now() > first) Die("making the jobs took too long");
  node.Go();
  absl::SleepFor(pass + absl::Milliseconds(50) - absl::Now());
  const double seconds = absl::ToDoubleSeconds(AwaitPass(stage, pass));
  node.Await([&](const Shared& shared) { return shared.finished >= fires; },
             kApart * fires + absl::Minutes(2));
  DieUnlessPlanned(stage, jobs);
  Line line("outage", options);
  line.Add("jobs", jobs).Add("live", options.Text("live")).Add("fires", fires);
  line.Add("seconds", seconds).Add("resident_mib", MostResidentMib(node.pids()[0]));
  line.AddLatencies("", node.Latenesses());
  node.Stop();
  ProveDoneAmong(stage, fires);
  line.Print();
}

void Run(const Options& options) {
  Stage stage(options);
  ApplyOwing(stage, options.Int("jobs"));
  const std::string& live = options.Text("live");
  if (live == "none") {
    stage.Rest();
    PlanAlone(stage);
  } else {
    PlanBesideFires(stage, live == "returning");
  }
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv,
                                       {{"jobs", "100000"}, {"live", "none"}, {"fires", "600"}});
  matins::bench::Run(options);
}
