// Planning after a day without any node: one pass over many jobs, each of which owes a period.
#include <sys/resource.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

double MostResidentMib() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void Run(const Options& options) {
  const int64_t jobs = options.Int("jobs");
  Stage stage(options);
  const absl::CivilDay day = absl::ToCivilDay(absl::Now(), absl::UTCTimeZone()) - 1;
  constexpr int64_t kJobsAText = 4000;
  for (int64_t begin = 0; begin < jobs; begin += kJobsAText) {
    std::string yaml = "jobs:\n";
    for (int64_t i = begin; i < std::min(jobs, begin + kJobsAText); ++i) {
      absl::StrAppend(&yaml, "  - { name: job-", i, ", schedule: \"", i % 60, " ", i / 60 % 24,
                      " * * *\", misfire: latest, backfill: { start: ", FormatDay(day),
                      " }, run: { handler: noop } }\n");
    }
    stage.Apply(yaml, absl::StrCat("bench/", begin));
  }
  stage.Rest();
  const double before_mib = MostResidentMib();
  const double cpu = OwnCpuSeconds(), store_cpu = StoreCpuSeconds();
  const absl::Time begin = absl::Now();
  stage.Plan();
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  const double planned = OwnCpuSeconds() - cpu + StoreCpuSeconds() - store_cpu;
  int64_t rows = 0;
  if (!absl::SimpleAtoi(
          stage.Query("SELECT count(DISTINCT job_name) FROM " + stage.Table("job_watermark")),
          &rows) ||
      rows != jobs) {
    Die(absl::StrCat(rows, " jobs have a planned period instead of ", jobs));
  }
  Line("outage", options)
      .Add("jobs", jobs)
      .Add("seconds", seconds)
      .Add("cpu_seconds", planned)
      .Add("resident_mib", MostResidentMib())
      .Add("before_resident_mib", before_mib)
      .Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv, {{"jobs", "100000"}});
  matins::bench::Run(options);
}
