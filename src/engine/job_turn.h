// A node of one job, for as long as one call lasts: what `matins exec` is. The lanes of a node that
// serves find work; here the work is known, and PLAN and START are asked for it alone. What runs is
// beaten, finished and judged by the very lanes that do so in a node (lanes.h).
#ifndef MATINS_ENGINE_JOB_TURN_H_
#define MATINS_ENGINE_JOB_TURN_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/random.h"
#include "engine/lanes.h"
#include "job/job_state.h"
#include "store/store.h"

namespace matins {

// All but the options and the store outlive it.
struct JobTurnParts {
  NodeOptions options;  // `id` has kExecLabel or what else the job asks for
  std::string job;
  Clock* clock = nullptr;
  Runner* runner = nullptr;
  History* history = nullptr;      // null: none
  EngineEvents* events = nullptr;  // null: none
  std::shared_ptr<Store> store;    // its calls' deadline: at most a sixth of the job's lease
  std::unique_ptr<Random> random;  // for nonces
  std::function<void()> wake_up;   // from any thread: there is something to Step for
  // Called when PLAN is about to be asked for: a START is likely to come next. Null: nobody is.
  std::function<void()> get_ready;
};

// Not thread-safe, but for `wake_up`. Nothing is held beforehand: other calls that come for the
// same period see it PLANNED, and of their STARTs one is granted. What it leaves in its midst, when
// the process dies, is what a node leaves (lanes.h).
class JobTurn {
 public:
  static absl::StatusOr<std::unique_ptr<JobTurn>> Open(JobTurnParts parts);
  ~JobTurn();

  struct Seen {
    absl::Time now;                 // the store's
    absl::Duration received;        // boot: when that was known
    bool frozen = false;            // the clock stepped, or nobody has judged a jump of it (I8)
    std::optional<JobState> state;  // nothing: no such job
    // When the store's clock has reached `t`, by the boot clock; never early.
    absl::Duration BootAt(absl::Time t) const;
  };
  // The job as the store has it. Changes nothing.
  absl::StatusOr<Seen> Read();
  // Judges what is owed by now and planned by now + `ahead`, and writes that down; answers what
  // stands there then. `trigger`: FAILED periods get new attempts. Aborted where other planners
  // were quicker too often; InvalidArgument where the job cannot be planned (its calendar has
  // ended).
  absl::StatusOr<Seen> Plan(absl::Duration ahead, std::optional<Trigger> trigger);
  // The same for a state that Read has just answered.
  absl::StatusOr<Seen> Plan(Seen seen, absl::Duration ahead, std::optional<Trigger> trigger);
  // START of one period, which Plan has judged; what is granted is launched.
  absl::StatusOr<StartAnswer> Start(const PeriodKey& key);
  // Whether a run is alive, or its end not yet answered by the store.
  bool running() const;
  // Beats what is due to be beaten, takes what the run said to the store; answers the boot instant
  // at which it wants to be stepped again. Store errors are said, and tried again.
  absl::Duration Step();
  // Asks the run to end by this signal, SIGKILL after its grace: its period is handed over.
  void StopBySignal(int signal);
  void PassSignal(int signal);
  // Runs whose lease has ended are taken back, this job's and others'.
  absl::Status Reap();
  // One sign of life, by which a jump of the store's clock is judged, and what is due of the
  // removal of history. Answers whether the clock is still frozen.
  bool Tick();
  // Removes what history is still too much, and leaves, where it ticked.
  absl::Status Leave();

  EngineNode& node() { return lanes_->node(); }
  Store& store() { return *store_; }

 private:
  JobTurn(std::string job, std::shared_ptr<Store> store, std::unique_ptr<Random> random);
  absl::StatusOr<PlanWrite> Judge(const Seen& seen, absl::Duration ahead,
                                  std::optional<Trigger> trigger);
  absl::Status Take(const StartAnswers& answers, absl::Duration sent);

  const std::string job_;
  const std::shared_ptr<Store> store_;
  const std::unique_ptr<Random> random_;
  std::function<void()> get_ready_;
  std::unique_ptr<Lanes> lanes_;
  absl::Time judged_until_ = absl::InfinitePast();
  absl::Duration next_finish_ = absl::ZeroDuration(), next_beat_ = absl::ZeroDuration();
  bool ticked_ = false;
};

}  // namespace matins

#endif  // MATINS_ENGINE_JOB_TURN_H_
