#include <algorithm>

#include "job/deadline.h"
#include "simulate/simulate.h"

namespace matins {
namespace {

// Stretches in which two or more periods were due and had not begun.
void FindPiles(const std::string& job, std::vector<std::pair<absl::Time, int>> changes,
               std::vector<Pile>& piles) {
  // Of one instant, what leaves goes first.
  std::sort(changes.begin(), changes.end());
  int waiting = 0;
  Pile pile;
  for (const auto& [at, by] : changes) {
    waiting += by;
    if (waiting >= 2 && pile.most == 0) pile = {job, at, at, waiting};
    pile.most = pile.most == 0 ? 0 : std::max(pile.most, waiting);
    if (waiting < 2 && pile.most > 0) {
      pile.to = at;
      if (pile.to > pile.from) piles.push_back(pile);
      pile = {};
    }
  }
}

}  // namespace

void SummariseSimulation(const std::map<std::string, ResolvedJob>& jobs, absl::Time end,
                         SimulateReport* report) {
  std::map<std::string, SimulatedJob> by_name;
  std::map<std::string, std::vector<std::pair<absl::Time, int>>> changes;
  for (const SimulatedJob& job : report->jobs) by_name[job.name] = job;
  for (SimulatedPeriod& period : report->periods) {
    SimulatedJob& job = by_name[period.key.job];
    const absl::Time deadline = DoneByInstant(jobs.at(period.key.job), period.due);
    const bool done = period.status == PeriodStatus::kDone;
    ++job.due;
    job.done += done;
    job.backfilled += done && period.backfill;
    job.failed += period.status == PeriodStatus::kFailed;
    job.lost += period.lost;
    job.open += period.status == PeriodStatus::kPlanned || period.status == PeriodStatus::kRunning;
    if (period.status == PeriodStatus::kSkipped) ++job.skipped[period.reason];
    period.late =
        period.status != PeriodStatus::kSkipped && (done ? period.finished : end) > deadline;
    job.late += period.late;
    const absl::Time begun = period.started != absl::InfinitePast()    ? period.started
                             : period.finished != absl::InfinitePast() ? period.finished
                                                                       : end;
    job.longest_wait = std::max(job.longest_wait, begun - period.due);
    if (begun > period.due) {
      changes[period.key.job].emplace_back(period.due, 1);
      changes[period.key.job].emplace_back(begun, -1);
    }
  }
  for (const SimulatedSpan& span : report->spans) {
    by_name[span.job].due += span.count;
    by_name[span.job].skipped[span.reason] += span.count;
  }
  report->jobs.clear();
  for (auto& [name, job] : by_name) report->jobs.push_back(std::move(job));
  for (auto& [name, of] : changes) FindPiles(name, std::move(of), report->piles);
  std::sort(report->piles.begin(), report->piles.end(), [](const Pile& a, const Pile& b) {
    return std::tie(a.from, a.job) < std::tie(b.from, b.job);
  });
}

}  // namespace matins
