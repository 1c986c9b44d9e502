// The inside of the simulator.
#ifndef MATINS_LAB_SIMULATION_H_
#define MATINS_LAB_SIMULATION_H_

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/history.h"
#include "base/random.h"
#include "engine/events.h"
#include "lab/faulty_store.h"
#include "lab/ledger.h"
#include "lab/lying_door.h"
#include "lab/referee.h"
#include "lab/sim_node.h"
#include "lab/simulator.h"
#include "lab/workload.h"
#include "store/act_store.h"

namespace matins {

class Simulation final : public History, public EngineEvents {
 public:
  explicit Simulation(const SimulationOptions& options);
  ~Simulation() override;

  absl::Status Open(const SimDatabaseMaker& maker);
  void Trouble();
  void Peace();
  SimulationReport Report();

  // The nodes' testimony, and what they say.
  void Record(const HistoryEvent& event) override;
  void OnEvent(const EngineEvent& event) override;

 private:
  // Steps one lane that is due, or moves time on. `until` bounds the time.
  void Turn(absl::Duration until);
  void RunUntil(absl::Duration until);
  void Advance(absl::Duration d);
  absl::Duration NextAt();
  absl::Duration elapsed() const { return elapsed_; }
  // What the store's clock reads.
  absl::Time StoreNow() const { return start_ + elapsed_ + stepped_; }

  // Faults.
  absl::Status AtFaultPoint(absl::string_view point);
  CallFate FateOf(absl::string_view verb);
  void Mischief();
  void CrashSomeNode();
  void PauseSomeNode();
  void LongOutage();
  void DrainSomeNode();
  void EndDrain(SimNode& node);
  void DeleteSomeRow();
  void ReopenSomeRow();
  void DoneByAnother();
  void SuspendSomeJob();
  void ChangeSomeJob();
  void ChangeSomeLimit();
  absl::Status SetLimits(const SetLimitsRequest& request);
  void CancelSomeRun();
  void StepTheClock();
  void Crash(SimNode& node, bool power);
  void Boot(SimNode& node);
  void GiveBack(const SimHost::Orphan& orphan);
  void In(absl::Duration delay, std::function<void()> action);

  const SimJob& JobOf(const std::string& name) const;
  bool IsDaily(const std::string& job) const;
  Fate FateOfRun(const RunRequest& request);
  bool CommitByJob(const RunRequest& request);
  absl::Status ApplyJobs(const std::vector<Job>& jobs);
  void ReleaseHeld();
  // What is not settled though it is due; empty: everything has converged.
  std::vector<std::string> Unsettled();
  void Tell(const std::string& text);
  std::string JobLines() const;
  std::string EffectLines() const;

  const SimulationOptions options_;
  SeededRandom random_;
  SeededRandom fate_random_;
  SeededRandom limit_random_;
  LyingDoor door_;
  const absl::Time start_;
  absl::Duration elapsed_;  // since start_
  absl::Duration stepped_;  // by how much somebody has set the store's clock
  const bool clock_steps_;  // whether anybody does, in this seed
  const bool limits_;       // whether there are limits beside the jobs' own, in this seed
  bool jumped_ = false;     // forward; once is enough
  bool trouble_ = true;
  int depth_ = 0;
  SimNode* stepping_ = nullptr;

  std::unique_ptr<SimDatabase> database_;
  std::unique_ptr<ActStore> acts_;
  Ledger ledger_;
  Referee referee_;
  Network network_;
  std::vector<SimJob> jobs_;
  std::vector<std::unique_ptr<SimNode>> nodes_;
  struct Later {
    absl::Duration at;
    std::function<void()> action;
  };
  std::vector<Later> later_;
  int digest_ = 0;
  int64_t turns_ = 0;
  std::string testimony_;
  std::vector<std::string> deleted_;  // rows deleted by hand, as JSON
  std::set<PeriodKey> foreign_;       // rows that another program wrote
  std::string Dated(const PeriodKey& key) const;
  std::vector<std::string> foreign_dated_;
};

}  // namespace matins

#endif  // MATINS_LAB_SIMULATION_H_
