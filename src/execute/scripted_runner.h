// Runs that only pretend: each does what its script says, by the clock that it is given. For tests,
// users' tests and the simulator; the same calls at the same instants give the same events.
#ifndef MATINS_EXECUTE_SCRIPTED_RUNNER_H_
#define MATINS_EXECUTE_SCRIPTED_RUNNER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "execute/runner.h"
#include "execute/stop_plan.h"

namespace matins {

struct ScriptStep {
  enum class Kind { kCheckpoint, kResult, kFence, kOutput };
  absl::Duration after;  // since the step before, or since that one's answer
  Kind kind = Kind::kOutput;
  int64_t number = -1;
  std::string payload;
};

struct Script {
  absl::Status not_started;       // not OK: RunNotStarted, and nothing else below matters
  std::vector<ScriptStep> steps;  // a step that asks waits for its answer
  absl::Duration then;            // from the last step to the end; InfiniteDuration: hangs
  int exit_code = 0;
  int signal = 0;
  bool ends_when_refused = true;  // a refused ask ends it at once with code 1
  bool ignores_term = false;      // only SIGKILL ends it
};

// Thread-safe. What is due is worked out when somebody asks, at the instant at which it was due: a
// run whose node is not polled for an hour has still ended at its deadline.
class ScriptedRunner final : public Runner {
 public:
  using Writer = std::function<Script(const RunRequest&)>;
  ScriptedRunner(Clock& clock, Writer writer) : clock_(clock), writer_(std::move(writer)) {}

  void Start(RunRequest request) override;
  void Stop(int64_t run, StopReason reason, absl::Duration grace) override;
  void MoveDeadlines(absl::Span<const DeadlineMove> moves) override;
  void Reply(int64_t run, int64_t ask, RunAnswer answer) override;
  std::vector<RunnerEvent> Poll() override;
  // Called by verbs that make events at once; for those that time brings, see NextAt.
  void SetWakeUp(std::function<void()> wake_up) override;

  // The boot instant at which the next event comes by itself; InfiniteDuration: none will.
  absl::Duration NextAt();
  // The runs that are alive now, with their fences in rising order.
  std::vector<int64_t> Alive();
  // The node dies: every run dies at this instant with no event, and what has not been polled is
  // lost. Returns the requests of the runs that were alive, for what their guards would give back.
  std::vector<RunRequest> KillNode();

 private:
  struct Run {
    RunRequest request;
    Script script;
    StopPlan plan;
    size_t step = 0;
    int64_t asked = 0;     // how many asks so far
    bool waiting = false;  // for the answer to the last one
    absl::Duration due;    // of the next step, or of the end
    int64_t output = 0;
    std::string printed;
  };
  struct Timed {
    absl::Duration at;
    RunnerEvent event;
  };

  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Carries `run` on to `now`; true when it has ended.
  bool AdvanceRun(Run& run, absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TakeStep(Run& run) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End(Run& run, absl::Duration at, int exit_code, int signal)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WakeUp();

  Clock& clock_;
  const Writer writer_;
  absl::Mutex mutex_;
  std::function<void()> wake_up_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Run> runs_ ABSL_GUARDED_BY(mutex_);
  std::vector<Timed> events_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace matins

#endif  // MATINS_EXECUTE_SCRIPTED_RUNNER_H_
