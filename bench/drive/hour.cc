#include "bench/drive/hour.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "bench/drive/node_process.h"

namespace matins::bench {
namespace {

constexpr int kJobs = 1000;
constexpr int kMinutes = 60;

constexpr char kTicksAndLooks[] = R"(do $$ begin
  for i in 1 .. 3600 loop
    update matins.matins_meta set value = value where key = 'clock_hwm';
    update matins.job_node set seen_at = seen_at;
    commit;
    if i % 60 = 0 then
      update matins.job set next_look = now() - (60 - i / 60) * interval '1 minute'
        where name like 'hour-%';
      commit;
    end if;
  end loop;
  update matins.job set next_look = now() + interval '300 days' where name like 'hour-%';
end $$)";

}  // namespace

void ApplyHour(Stage& stage) {
  const absl::CivilDay day = absl::ToCivilDay(absl::Now(), absl::UTCTimeZone()) - 1;
  std::string yaml = "jobs:\n";
  for (int i = 0; i < kJobs; ++i) {
    absl::StrAppend(&yaml, "  - { name: hour-", i, ", schedule: \"* 12 ", day.day(), " ",
                    day.month(), " *\", misfire: each, overlap: allow, ",
                    "history: { succeeded: 1000000 }, backfill: { start: ", FormatDay(day),
                    ", order: none, max_periods: unlimited, max_parallel: unlimited }, ",
                    "run: { handler: noop } }\n");
  }
  stage.Apply(yaml, "bench/hour");
}

int64_t LiveAnHour(Stage& stage) {
  constexpr int64_t kRuns = int64_t{kJobs} * kMinutes;
  stage.Plan();
  NodeProcesses node(stage.options());
  node.Go();
  node.Await([](const Shared& shared) { return shared.finished >= kRuns; }, absl::Minutes(4));
  node.Stop();
  stage.Query(kTicksAndLooks);
  return kRuns;
}

int64_t DeadRows(Stage& stage) {
  return stage.Count(
      "select sum(n_dead_tup)::bigint from pg_stat_user_tables where schemaname = 'matins'");
}

}  // namespace matins::bench
