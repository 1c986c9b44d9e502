#include "ops/exec_runner.h"

#include <utility>

#include "base/status.h"
#include "execute/process_runner.h"

namespace matins {

ExecRunner::~ExecRunner() {
  if (opening_.joinable()) opening_.join();
}

void ExecRunner::BeginGettingReady() {
  if (processes_ != nullptr || opening_.joinable()) return;
  opening_ = std::thread([this] { opened_ = OpenProcessRunner({}); });
}

absl::Status ExecRunner::GetReady() {
  if (processes_ != nullptr) return absl::OkStatus();
  BeginGettingReady();
  opening_.join();
  ASSIGN_OR_RETURN(processes_, std::move(opened_));
  processes_->SetWakeUp(wake_up_);
  return absl::OkStatus();
}

void ExecRunner::SetWakeUp(std::function<void()> wake_up) {
  wake_up_ = std::move(wake_up);
  if (processes_ != nullptr) processes_->SetWakeUp(wake_up_);
}

void ExecRunner::Start(RunRequest request) {
  // Else it is the job's check, a program of its own.
  if (request.run > 0) {
    ended_.reset();
    not_started_.reset();
    request.program = {.argv = program_.command};
    request.inherit_environment = true;
    request.pass_streams = program_.pass_streams;
  }
  if (request.dir.empty()) request.dir = program_.dir;
  if (!request.umask) request.umask = program_.umask;
  processes_->Start(std::move(request));
}

void ExecRunner::Stop(int64_t run, StopReason reason, absl::Duration grace) {
  processes_->Stop(run, reason, grace);
}

void ExecRunner::StopBySignal(int64_t run, StopReason reason, absl::Duration grace, int signal) {
  processes_->StopBySignal(run, reason, grace, signal);
}

void ExecRunner::PassSignal(int64_t run, int signal) { processes_->PassSignal(run, signal); }

void ExecRunner::MoveDeadlines(absl::Span<const DeadlineMove> moves) {
  if (processes_ != nullptr) processes_->MoveDeadlines(moves);
}

void ExecRunner::Reply(int64_t run, int64_t ask, RunAnswer answer) {
  processes_->Reply(run, ask, std::move(answer));
}

std::vector<RunnerEvent> ExecRunner::Poll() {
  if (processes_ == nullptr) return {};
  std::vector<RunnerEvent> events = processes_->Poll();
  for (const RunnerEvent& event : events) {
    if (event.run < 0) continue;
    if (const auto* ended = std::get_if<RunEnded>(&event.what)) ended_ = *ended;
    if (const auto* failed = std::get_if<RunNotStarted>(&event.what)) not_started_ = *failed;
  }
  return events;
}

}  // namespace matins
