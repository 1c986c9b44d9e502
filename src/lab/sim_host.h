// A simulated machine: the processes of one node, their guards, and what becomes of them when the
// node is stopped, killed, or the whole machine is paused. It outlives the node.
#ifndef MATINS_LAB_SIM_HOST_H_
#define MATINS_LAB_SIM_HOST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "base/clock.h"
#include "base/random.h"
#include "execute/runner.h"
#include "lab/ledger.h"

namespace matins {

// What a simulated run will do, whatever happens to it.
struct Fate {
  int steps = 2;
  absl::Duration step = absl::Seconds(1);  // each takes so long
  bool hangs = false;                      // after its steps, until it is killed
  bool ignores_term = false;
  int exit_code = 0;
  // commit: job. What the steps do is kept in its own transaction, and stands with DONE, which is
  // written last of all, whatever the exit code; or forgotten.
  bool by_job = false;
  absl::Duration before_commit;  // how long it is at work on it
  bool forgets = false;
};

class SimHost final : public Runner {
 public:
  using Prophet = std::function<Fate(const RunRequest&)>;
  // A run's own commit of its period; false: refused.
  using Commit = std::function<bool(const RunRequest&)>;
  struct Parts {
    Prophet prophet;
    Commit commit;
    std::function<absl::Time()> store_now;  // effects are written to the ledger at it
  };
  // All outlive it.
  SimHost(Clock& clock, Ledger& ledger, Parts parts)
      : clock_(clock), ledger_(ledger), parts_(std::move(parts)) {}

  void Start(RunRequest request) override;
  void Stop(int64_t run, StopReason reason, absl::Duration grace) override;
  void MoveDeadlines(absl::Span<const DeadlineMove> moves) override;
  void Reply(int64_t run, int64_t ask, RunAnswer answer) override;
  std::vector<RunnerEvent> Poll() override;
  void SetWakeUp(std::function<void()> wake_up) override { wake_up_ = std::move(wake_up); }

  // Carries every process on to now, guards first where `guards_first`; else what was due is done
  // before anybody is killed, as may happen when a paused machine wakes.
  void Advance(bool guards_first);
  // The boot instant of the next thing that happens by itself.
  absl::Duration NextAt() const;

  // The node is dead. Its guards see it: each tree is killed a moment later. Answers what their
  // guards give back then.
  struct Orphan {
    int64_t run = 0;
    RunValues values;
    int64_t nonce = 0;
  };
  std::vector<Orphan> NodeDied();
  // The machine is gone, with all that ran.
  void PowerLost();
  size_t alive() const { return processes_.size(); }

 private:
  struct Process {
    RunRequest request;
    Fate fate;
    bool raised = false;   // the ledger's fence
    int64_t done = 0;      // steps
    bool waiting = false;  // for an answer to its checkpoint
    bool orphan = false;   // nobody hears of it
    int64_t asked = 0;
    absl::Duration due;
    absl::Duration told = absl::InfiniteDuration();       // SIGTERM by Stop
    absl::Duration told_kill = absl::InfiniteDuration();  // SIGKILL by Stop
    StopReason told_why = StopReason::kNone;
  };

  absl::Duration TermAt(const Process& process) const;
  absl::Duration KillAt(const Process& process) const;
  StopReason WhyAt(const Process& process, absl::Duration at) const;
  // True when it ended.
  bool Guard(Process& process, absl::Duration now);
  bool Act(Process& process);
  // The next step is done, or already is. False: another owns the period now.
  bool Work(Process& process);
  bool CommitItself(Process& process);
  void End(Process& process, int exit_code, int signal, StopReason why);
  void Say(const Process& process, decltype(RunnerEvent::what) what);

  Clock& clock_;
  Ledger& ledger_;
  const Parts parts_;
  std::function<void()> wake_up_;
  std::map<int64_t, Process> processes_;
  std::vector<RunnerEvent> events_;
};

}  // namespace matins

#endif  // MATINS_LAB_SIM_HOST_H_
