// Peace, and what must be true after it.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "lab/simulation.h"

namespace matins {
namespace {

const Act kPerson = {"cli:somebody@somewhere", "peace"};
constexpr absl::Duration kLook = absl::Seconds(10);
// What fell due only just now need not be done yet.
constexpr absl::Duration kJustDue = absl::Seconds(45);

std::string SecondsOf(absl::Time at) { return absl::StrFormat("%.6f", ToMicros(at) / 1e6); }

}  // namespace

void Simulation::Peace() {
  trouble_ = false;
  Tell("peace");
  // The last of what was already under way: restarts, wakes, late calls, resumptions.
  RunUntil(elapsed_ + absl::Seconds(60));
  for (auto& node : nodes_) {
    node->node_paused = false;
    node->machine_paused = false;
    if (!node->alive()) Boot(*node);
  }
  const absl::Duration end = elapsed_ + options_.peace;
  while (elapsed_ < end) {
    ReleaseHeld();
    RunUntil(elapsed_ + kLook);
    if (Unsettled().empty()) break;
  }
  for (const std::string& what : Unsettled()) referee_.Broken("I20", what);
}

void Simulation::ReleaseHeld() {
  RowFilter filter;
  filter.status = PeriodStatus::kFailed;
  const auto rows = acts_->ReadRows(filter);
  if (!rows.ok()) return;
  for (const PeriodRow& row : *rows) {
    if (row.held && acts_->Reopen(row.key, "", kPerson).ok()) referee_.Reopened(row.key);
    // What is due once a day has no fire that would give it new attempts.
    if (!row.held && IsDaily(row.key.job)) (void)acts_->TriggerNow(row.key.job, kPerson);
  }
}

std::vector<std::string> Simulation::Unsettled() {
  std::vector<std::string> open;
  const absl::Time until = StoreNow() - kJustDue;
  for (const SimJob& job : jobs_) {
    RowFilter filter;
    filter.job = job.job.name;
    filter.limit = 100'000;
    const auto rows = acts_->ReadRows(filter);
    const auto spans = acts_->ReadSpans(job.job.name);
    if (!rows.ok() || !spans.ok()) return {"the store does not answer"};
    std::set<std::string> there;
    for (const PeriodRow& row : *rows) {
      there.insert(row.key.period);
      if (row.due > until || row.status == PeriodStatus::kDone ||
          row.status == PeriodStatus::kSkipped) {
        continue;
      }
      open.push_back(absl::StrCat(row.key.job, " ", row.key.period, " is still ", Word(row.status),
                                  " ", row.reason));
    }
    for (absl::Time due = NextDue(job.versions, start_ - absl::Seconds(1)); due <= until;
         due = NextDue(job.versions, due)) {
      const bool spanned = std::any_of(spans->begin(), spans->end(), [&](const SkipSpan& span) {
        return span.from <= due && due <= span.to;
      });
      if (!spanned && !there.contains(FormatInstant(due))) {
        open.push_back(absl::StrCat(job.job.name, " ", FormatInstant(due), " has no row"));
      }
    }
  }
  return open;
}

std::string Simulation::JobLines() const {
  std::string lines;
  for (const SimJob& sim : jobs_) {
    std::vector<std::string> versions;
    for (const SimVersion& version : sim.versions) {
      const absl::Time from = std::max(version.from, start_);
      versions.push_back(absl::StrCat("{\"from\":", SecondsOf(from),
                                      ",\"start\":", SecondsOf(start_ + version.offset),
                                      ",\"every\":", absl::ToInt64Seconds(version.every), "}"));
    }
    absl::StrAppend(&lines, "{\"job\":\"", sim.job.name,
                    "\",\"start\":", absl::ToUnixSeconds(start_), ",\"versions\":[",
                    absl::StrJoin(versions, ","), "],\"steps\":", StepsOf(sim.job.name), "}\n");
  }
  return lines;
}

std::string Simulation::EffectLines() const {
  std::string lines;
  for (const Ledger::Effect& effect : ledger_.effects()) {
    absl::StrAppend(&lines, "{\"job\":\"", effect.key.job, "\",\"period\":\"", effect.key.period,
                    "\",\"step\":", effect.step - 1, ",\"token\":\"", effect.fence,
                    "\",\"db\":", SecondsOf(effect.at), "}\n");
  }
  return lines;
}

SimulationReport Simulation::Report() {
  SimulationReport report;
  for (std::string& what : database_->Differences()) referee_.Broken("prediction", std::move(what));
  report.broken = referee_.broken();
  report.seen = referee_.seen();
  report.seen["turns"] = turns_;
  report.seen["effects"] = static_cast<int64_t>(ledger_.effects().size());
  report.seen["effects refused"] = ledger_.refused();
  report.testimony = std::move(testimony_);
  report.effects = EffectLines();
  report.jobs = JobLines();
  report.world = absl::StrCat("{\"cut\":", SecondsOf(StoreNow()),
                              ",\"stepped\":", clock_steps_ ? "true" : "false", ",\"deleted\":[",
                              absl::StrJoin(deleted_, ","), "],\"foreign\":[",
                              absl::StrJoin(foreign_dated_, ","), "]}\n");
  return report;
}

absl::StatusOr<SimulationReport> Simulate(const SimulationOptions& options,
                                          const SimDatabaseMaker& maker) {
  Simulation simulation(options);
  RETURN_IF_ERROR(simulation.Open(maker));
  simulation.Trouble();
  simulation.Peace();
  return simulation.Report();
}

}  // namespace matins
