// What fate and people do to the nodes, the rows and the jobs while there is trouble.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/time.h"
#include "lab/simulation.h"

namespace matins {
namespace {

const Act kPerson = {"cli:somebody@somewhere", "the seed says so"};

}  // namespace

void Simulation::Trouble() {
  while (elapsed_ < options_.trouble) {
    RunUntil(std::min(options_.trouble, elapsed_ + absl::Milliseconds(500 + random_.Below(6'000))));
    Mischief();
    if (limits_ && limit_random_.OneIn(3)) ChangeSomeLimit();
  }
}

void Simulation::Mischief() {
  if (clock_steps_ && random_.OneIn(8)) return StepTheClock();
  switch (random_.Below(16)) {
    case 0:
    case 1:
    case 2:
      return CrashSomeNode();
    case 3:
    case 4:
    case 5:
    case 6:
      return PauseSomeNode();
    case 7:
      return random_.OneIn(3) ? LongOutage() : DrainSomeNode();
    case 8:
    case 9:
      return DeleteSomeRow();
    case 10:
    case 11:
      return ReopenSomeRow();
    case 12:
      return SuspendSomeJob();
    case 13:
      return ChangeSomeJob();
    case 14:
      return CancelSomeRun();
    default:
      return DoneByAnother();
  }
}

// ---- nodes
// ----------------------------------------------------------------------------------------

void Simulation::Crash(SimNode& node, bool power) {
  Tell(absl::StrCat("crash", power ? ", power lost" : ""));
  node.Crash();
  if (power) {
    node.host.PowerLost();
    return;
  }
  for (const SimHost::Orphan& orphan : node.host.NodeDied()) {
    if (random_.OneIn(2))
      In(absl::Milliseconds(60 + random_.Below(200)), [this, orphan] { GiveBack(orphan); });
  }
}

// What a guard does for a node that died: the one statement, once its tree is dead.
void Simulation::GiveBack(const SimHost::Orphan& orphan) {
  absl::StatusOr<std::unique_ptr<Store>> store = database_->database().Open();
  if (!store.ok()) return;
  FinishRequest request;
  request.ticket = {{orphan.values.job, orphan.values.period},
                    orphan.values.generation,
                    orphan.run,
                    orphan.nonce};
  request.outcome.kind = Outcome::Kind::kReturned;
  request.outcome.reason = reason::kHandedOver;
  request.node = "guard";
  const auto answers = (*store)->Finish({request});
  if (answers.ok()) referee_.Finished({request}, *answers);
}

void Simulation::Boot(SimNode& node) {
  const bool first = &node == nodes_.front().get();
  const absl::Status status = node.Boot(random_.Next(), MakeLabels(first, random_));
  if (!status.ok()) {
    referee_.Broken("lab", absl::StrCat("a node does not start: ", status.message()));
  }
}

void Simulation::CrashSomeNode() {
  SimNode& node = *nodes_[random_.Below(nodes_.size())];
  if (!node.alive() || node.inside) return;
  Crash(node, random_.OneIn(2));
  In(absl::Milliseconds(200 + random_.Below(20'000)), [this, &node] {
    if (!node.alive()) Boot(node);
  });
}

void Simulation::PauseSomeNode() {
  SimNode& node = *nodes_[random_.Below(nodes_.size())];
  if (!node.alive() || node.inside) return;
  bool& paused = random_.OneIn(2) ? node.machine_paused : node.node_paused;
  if (paused) return;
  paused = true;
  Tell("pause");
  In(absl::Milliseconds(300 + random_.Below(16'000)), [this, &node, &paused] {
    if (&paused == &node.machine_paused && paused) {
      paused = false;
      node.host.Advance(/*guards_first=*/random_.OneIn(2));
    }
    paused = false;
  });
}

// Nobody is alive for many periods.
void Simulation::LongOutage() {
  for (auto& node : nodes_) {
    if (node->inside) return;
  }
  Tell("everybody is down");
  for (auto& node : nodes_) {
    if (node->alive()) Crash(*node, /*power=*/true);
  }
  Advance(absl::Seconds(60 + random_.Below(400)));
  for (auto& node : nodes_) {
    if (!node->alive()) Boot(*node);
  }
}

// A release: the node leaves in order and comes back.
void Simulation::DrainSomeNode() {
  SimNode& node = *nodes_[random_.Below(nodes_.size())];
  if (!node.alive() || node.inside) return;
  Tell("drain");
  node.lanes().BeginDrain();
  In(absl::Seconds(1), [&node] {
    if (node.alive()) node.lanes().StopRuns();
  });
  In(absl::Seconds(4), [this, &node] { EndDrain(node); });
}

void Simulation::EndDrain(SimNode& node) {
  if (!node.alive() || !node.lanes().node().draining) return;  // crashed meanwhile, and is back
  if (node.inside) return In(absl::Seconds(1), [this, &node] { EndDrain(node); });
  if (node.lanes().Drained()) (void)node.lanes().Leave();
  Crash(node, /*power=*/false);
  Boot(node);
}

// ---- people
// ---------------------------------------------------------------------------------------

std::string Simulation::Dated(const PeriodKey& key) const {
  return absl::StrFormat(R"({"job":"%s","period":"%s","db":%.6f})", key.job, key.period,
                         ToMicros(StoreNow()) / 1e6);
}

// Another program did the work of a period that is not planned yet, and says so in the table.
void Simulation::DoneByAnother() {
  const SimJob& job = jobs_[random_.Below(jobs_.size())];
  // A cap counts what is owed, and planning learns of such a row only when it meets it.
  if (job.job.misfire == Misfire::kEach) return;
  const absl::Time due = NextDue(job.versions, StoreNow() + absl::Seconds(6));
  const PeriodKey key = {job.job.name, FormatInstant(due)};
  if (!database_->InsertDoneRow(key).ok()) return;
  Tell(absl::StrCat("done by another program: ", key.job, " ", key.period));
  referee_.DoneByAnother(key, due);
  foreign_.insert(key);
  foreign_dated_.push_back(Dated(key));
}

void Simulation::DeleteSomeRow() {
  RowFilter filter;
  filter.newest_first = true;
  filter.limit = 12;
  const auto rows = acts_->ReadRows(filter);
  if (!rows.ok() || rows->empty()) return;
  const PeriodRow& row = (*rows)[random_.Below(rows->size())];
  if (foreign_.contains(row.key)) return;
  if (!database_->DeleteRow(row.key).ok()) return;
  Tell(absl::StrCat("deleted by hand: ", row.key.job, " ", row.key.period));
  referee_.Deleted(row.key);
  deleted_.push_back(Dated(row.key));
}

void Simulation::ReopenSomeRow() {
  RowFilter filter;
  filter.newest_first = true;
  filter.limit = 12;
  filter.status = random_.OneIn(3) ? PeriodStatus::kSkipped : PeriodStatus::kDone;
  const auto rows = acts_->ReadRows(filter);
  if (!rows.ok() || rows->empty()) return;
  const PeriodRow& row = (*rows)[random_.Below(rows->size())];
  if (foreign_.contains(row.key)) return;
  if (!acts_->Reopen(row.key, "", kPerson).ok()) return;
  Tell(absl::StrCat("run again by hand: ", row.key.job, " ", row.key.period));
  referee_.Reopened(row.key);
}

void Simulation::SuspendSomeJob() {
  const std::string name = jobs_[random_.Below(jobs_.size())].job.name;
  if (!acts_->Suspend(name, kPerson).ok()) return;
  Tell(absl::StrCat("suspended: ", name));
  In(absl::Seconds(1 + random_.Below(40)),
     [this, name] { (void)acts_->Resume(name, std::nullopt, kPerson); });
}

void Simulation::ChangeSomeJob() {
  std::vector<Job> jobs;
  const size_t changed = random_.Below(jobs_.size());
  ChangeJob(jobs_[changed], FromMicros(ToMicros(referee_.Now())), random_);
  for (const SimJob& job : jobs_) jobs.push_back(job.job);
  Tell(absl::StrCat("changed: ", jobs_[changed].job.name, " ", jobs_[changed].job.schedule));
  const absl::Status applied = ApplyJobs(jobs);
  if (!applied.ok()) return referee_.Broken("lab", std::string(applied.message()));
  referee_.Changed(jobs_[changed]);
}

// A share of back-fill without a global limit is refused.
void Simulation::ChangeSomeLimit() { (void)SetLimits(ChangeLimits(limit_random_)); }

// Nodes see it by themselves, and settle it when the clock has been steady; or somebody accepts it.
void Simulation::StepTheClock() {
  const bool forward = !jumped_ && random_.OneIn(3);
  const absl::Duration back = absl::Seconds(3 + static_cast<int>(random_.Below(90)));
  // Before first sight nothing is owed, whatever was planned there by a clock that was wrong.
  if (!forward && StoreNow() - back < start_ + absl::Seconds(5)) return;
  jumped_ = jumped_ || forward;
  const absl::Duration step =
      forward ? absl::Minutes(65 + static_cast<int>(random_.Below(60))) : -back;
  stepped_ += step;
  Tell(absl::StrCat("the store's clock steps by ", absl::FormatDuration(step)));
  if (random_.OneIn(2)) return;
  In(absl::Seconds(1 + random_.Below(15)), [this] {
    const auto status = acts_->ReadStatus();
    if (!status.ok() || !status->frozen || !acts_->AcceptClock(kPerson).ok()) return;
    Tell("the clock is accepted");
    referee_.ClockSettled();
  });
}

void Simulation::CancelSomeRun() {
  RowFilter filter;
  filter.status = PeriodStatus::kRunning;
  const auto rows = acts_->ReadRows(filter);
  if (!rows.ok() || rows->empty()) return;
  (void)acts_->Cancel((*rows)[random_.Below(rows->size())].fence, kPerson);
}

}  // namespace matins
