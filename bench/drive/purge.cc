// How late fires are while old history goes as fast as it can: runs of one job, far more than it
// keeps.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

void FillHistory(Stage& stage, int64_t rows) {
  stage.Apply(
      "jobs:\n  - { name: old, at: 2099-01-01T00:00:00Z, misfire: latest, "
      "run: { handler: noop } }\n",
      "bench/old");
  const std::string at = stage.Instant(-absl::Hours(48));
  stage.Query(absl::StrCat(
      "INSERT INTO ", stage.Table("job_run"),
      " (fence, job_name, period, biz_date, generation, attempt, attempts_total, node, status, "
      "claimed_at, finished_at, version) SELECT n.i, 'old', 'old-' || n.i, '2026-01-01', 1, 1, 1, "
      "'bench', 'DONE', ",
      at, ", ", at,
      stage.options().IsPostgres() ? " - n.i * interval '1 second'" : " - n.i * 1000000",
      ", 1 FROM ", stage.Numbers(rows)));
}

void Run(const Options& options) {
  const int64_t rows = options.Int("rows");
  const int64_t seconds = options.Int("seconds");
  const int64_t runs = 50 * seconds;
  Stage stage(options);
  FillHistory(stage, rows);
  const absl::Time first =
      absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 15 + runs / 500);
  stage.ApplySpread(runs, first, absl::Milliseconds(20));
  stage.Rest();
  NodeProcesses nodes(options, {.latenesses = runs});
  nodes.Go();
  if (absl::Now() > first - absl::Seconds(6)) Die("applying the jobs took too long");
  auto store = stage.database().Open();
  DieUnlessOk(store.status(), "opening the store");
  absl::SleepFor(first - absl::Now());
  std::vector<absl::Duration> calls;
  int64_t gone = 0;
  const absl::Time begin = absl::Now();
  while (absl::Now() < begin + absl::Seconds(seconds) && gone < rows - 1000) {
    const absl::Time sent = absl::Now();
    const auto purged = (*store)->Purge(500);
    DieUnlessOk(purged.status(), "the purge");
    calls.push_back(absl::Now() - sent);
    gone += *purged;
  }
  const double took = absl::ToDoubleSeconds(absl::Now() - begin);
  nodes.Await([&](const Shared& shared) { return shared.finished >= runs; }, absl::Minutes(2));
  const std::vector<absl::Duration> late = nodes.Latenesses();
  nodes.Stop();
  if (gone == 0) Die("nothing was purged");
  Line("purge", options)
      .Add("rows", rows)
      .Add("seconds", seconds)
      .Add("purged_per_second", static_cast<double>(gone) / took)
      .AddLatencies("call_", calls)
      .AddLatencies("", late)
      .Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv, {{"rows", "1000000"}, {"seconds", "20"}});
  matins::bench::Run(options);
}
