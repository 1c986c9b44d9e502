// The runner of one call of `matins exec`: what a claim of it runs is what the call was given.
#ifndef MATINS_OPS_EXEC_RUNNER_H_
#define MATINS_OPS_EXEC_RUNNER_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "execute/runner.h"

namespace matins {

struct ExecProgram {
  std::vector<std::string> command;  // with templates, as `run.command`
  std::string dir;                   // where the job names none: the caller's own
  int umask = 022;                   // the same
  bool pass_streams = true;          // its streams are the caller's, beside what the store keeps
};

// Around the runner of processes, which is opened when there is likely to be something to run: a
// call that finds another at work costs no threads and no guard. Thread-safe as a Runner is, once
// it is ready.
class ExecRunner final : public Runner {
 public:
  explicit ExecRunner(ExecProgram program) : program_(std::move(program)) {}

  ~ExecRunner() override;

  // Begins to open what runs, on a thread of its own, while this one talks to the store.
  void BeginGettingReady();
  // Opens what runs, or waits until it is open; before the first START. Does nothing the second
  // time.
  absl::Status GetReady();

  // How the newest run of the command ended, and that it could not be started; a check's end is not
  // told. Of Poll's thread.
  const std::optional<RunEnded>& ended() const { return ended_; }
  const std::optional<RunNotStarted>& not_started() const { return not_started_; }

  void Start(RunRequest request) override;
  void Stop(int64_t run, StopReason reason, absl::Duration grace) override;
  void StopBySignal(int64_t run, StopReason reason, absl::Duration grace, int signal) override;
  void PassSignal(int64_t run, int signal) override;
  void MoveDeadlines(absl::Span<const DeadlineMove> moves) override;
  void Reply(int64_t run, int64_t ask, RunAnswer answer) override;
  std::vector<RunnerEvent> Poll() override;
  void SetWakeUp(std::function<void()> wake_up) override;

 private:
  const ExecProgram program_;
  std::function<void()> wake_up_;
  std::thread opening_;
  // Of the opening thread, until it has been joined.
  absl::StatusOr<std::unique_ptr<Runner>> opened_ = absl::UnknownError("not begun");
  std::unique_ptr<Runner> processes_;
  std::optional<RunEnded> ended_;
  std::optional<RunNotStarted> not_started_;
};

}  // namespace matins

#endif  // MATINS_OPS_EXEC_RUNNER_H_
