#include "execute/process_runner.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "base/status.h"
#include "execute/dead_nodes.h"
#include "execute/event_loop.h"
#include "execute/event_queue.h"
#include "execute/guard/wire.h"
#include "execute/guard_image.h"
#include "execute/guard_link.h"
#include "execute/process_tree.h"
#include "execute/run_folder.h"
#include "execute/run_plan.h"
#include "execute/stop_plan.h"

namespace matins {
namespace {

// How much later than the guard's deadline the node looks whether the guard is at work.
constexpr absl::Duration kGuardSlack = absl::Milliseconds(500);

// What the starting thread hands to the listening one.
struct Prepared {
  int64_t run = 0;
  absl::Status error;  // not OK: the rest is empty
  RunPlan plan;
  std::unique_ptr<GuardLink> link;
};

struct ProcessRun {
  ProcessRun(Deadline lease, Deadline time_out)
      : lease(lease), time_out(time_out), stop(lease, time_out) {}

  Deadline lease;
  Deadline time_out;
  StopPlan stop;  // a copy of the guard's; for the case that the guard itself is stopped
  // A wish that came before there was a guard to tell.
  StopReason early_stop = StopReason::kNone;
  absl::Duration early_kill;
  int early_signal = 0;
  bool told_ended = false;
  std::string folder;
  std::unique_ptr<RunSocket> socket;
  std::unique_ptr<GuardLink> link;  // none: still in the hands of the starting thread
};

int ShellCodeOf(const absl::Status& error) { return absl::IsNotFound(error) ? 127 : 126; }

absl::Status ErrorOf(const GuardFailure& failure, const std::string& user) {
  const char* const why = strerror(failure.error);
  switch (failure.stage) {
    case GUARD_AT_FORK:
      return absl::ResourceExhaustedError(
          absl::StrCat("cannot start a process: ", why, "; look at the limits of processes"));
    case GUARD_AT_USER:
      return absl::PermissionDeniedError(absl::StrCat(
          "user: cannot become '", user, "' for good: ", why, "; the node has to be real root"));
    case GUARD_AT_DIR:
      return absl::NotFoundError(absl::StrCat("dir: cannot enter ", failure.file, ": ", why,
                                              "; create it, or change the job's dir"));
    default:
      break;
  }
  const std::string what = absl::StrCat("run.command: cannot run ", failure.file, ": ", why);
  if (failure.error == ENOENT) {
    return absl::NotFoundError(absl::StrCat(
        what,
        "; it, or the interpreter in its first line, is not there: look at the name, the "
        "job's dir and its PATH"));
  }
  if (failure.error == ENOEXEC) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, "; give the script a first line such as #!/bin/sh"));
  }
  if (failure.error == E2BIG) {
    return absl::InvalidArgumentError(absl::StrCat(what, "; hand large values over in a file"));
  }
  return absl::FailedPreconditionError(absl::StrCat(what, "; chmod +x may be what is missing"));
}

class ProcessRunner final : public Runner {
 public:
  ProcessRunner(ProcessRunnerOptions options, DeadNodes dead_nodes,
                std::unique_ptr<NodeFolder> folder, std::unique_ptr<GuardImage> image,
                std::unique_ptr<EventLoop> loop)
      : lookup_(std::move(options.lookup)),
        folder_(std::move(folder)),
        image_(std::move(image)),
        loop_(std::move(loop)),
        dead_nodes_(std::move(dead_nodes)),
        starter_([this] { StartLoop(); }),
        listener_([this] { ListenLoop(); }) {}

  ~ProcessRunner() override {
    {
      absl::MutexLock lock(&mutex_);
      closing_ = true;
    }
    loop_->Wake();
    starter_.join();
    listener_.join();
    Abandon();
  }

  void Start(RunRequest request) override {
    absl::MutexLock lock(&mutex_);
    // Known from here on, so that a Stop that comes at once is not lost.
    commands_.push_back([this, run = request.run, lease = request.lease,
                         time_out = request.time_out, user = request.user] {
      runs_.try_emplace(run, lease, time_out);
      users_[run] = user;
    });
    to_start_.push_back(std::move(request));
    loop_->Wake();
  }

  void Stop(int64_t run, StopReason reason, absl::Duration grace) override {
    StopBySignal(run, reason, grace, SIGTERM);
  }

  void StopBySignal(int64_t run, StopReason reason, absl::Duration grace, int signal) override {
    Command([this, run, reason, grace, signal] { DoStop(run, reason, grace, signal); });
  }

  // One that comes before there is anybody to get it is lost, as it would be to a program that has
  // not set up its handlers yet.
  void PassSignal(int64_t run, int signal) override {
    Command([this, run, signal] {
      auto it = runs_.find(run);
      if (it == runs_.end() || !it->second.link) return;
      it->second.link->SendSignal(signal);
      Flush(it->second);
    });
  }

  void MoveDeadlines(absl::Span<const DeadlineMove> moves) override {
    Command([this, moves = std::vector<DeadlineMove>(moves.begin(), moves.end())] {
      for (const DeadlineMove& move : moves) DoMove(move);
    });
  }

  void Reply(int64_t run, int64_t ask, RunAnswer answer) override {
    Command([this, run, ask, answer = std::move(answer)] {
      auto it = runs_.find(run);
      if (it != runs_.end() && it->second.socket) it->second.socket->Reply(ask, answer);
    });
  }

  std::vector<RunnerEvent> Poll() override { return events_.TakeAll(); }
  void SetWakeUp(std::function<void()> wake_up) override { events_.SetWakeUp(std::move(wake_up)); }

 private:
  void Command(std::function<void()> command) {
    absl::MutexLock lock(&mutex_);
    commands_.push_back(std::move(command));
    loop_->Wake();
  }

  // ---- the starting thread ----

  void StartLoop() {
    while (true) {
      RunRequest request;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(
            +[](ProcessRunner* self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(self->mutex_) {
              return self->closing_ || !self->to_start_.empty();
            },
            this));
        if (closing_) return;
        request = std::move(to_start_.front());
        to_start_.pop_front();
      }
      auto prepared = std::make_shared<Prepared>(Prepare(request));
      Command([this, prepared] { TakeOver(std::move(*prepared)); });
    }
  }

  Prepared Prepare(const RunRequest& request) {
    Prepared prepared{.run = request.run};
    absl::StatusOr<RunPlan> plan = PlanRun(request, *folder_, lookup_);
    if (!plan.ok()) {
      prepared.error = plan.status();
      return prepared;
    }
    prepared.plan = *std::move(plan);
    absl::StatusOr<std::unique_ptr<GuardLink>> link =
        GuardLink::Spawn(*image_, absl::StrCat(request.values.job, " ", request.values.period),
                         request.pass_streams);
    if (link.ok()) {
      prepared.link = *std::move(link);
    } else {
      prepared.error = link.status();
      prepared.plan.socket.reset();
      folder_->RemoveRun(prepared.plan.folder);
    }
    return prepared;
  }

  // ---- the listening thread ----

  void ListenLoop() {
    while (true) {
      std::vector<std::function<void()>> commands;
      {
        absl::MutexLock lock(&mutex_);
        if (closing_) return;
        commands.swap(commands_);
      }
      for (auto& command : commands) command();
      loop_->RunOnce(std::min(WatchGuards(), LookAtDeadNodes()));
    }
  }

  void TakeOver(Prepared prepared) {
    auto it = runs_.find(prepared.run);
    if (it == runs_.end()) return;
    if (!prepared.error.ok()) {
      const int code = ShellCodeOf(prepared.error);
      runs_.erase(it);
      users_.erase(prepared.run);
      events_.Push(
          {prepared.run, RunNotStarted{.error = std::move(prepared.error), .exit_code = code}});
      return;
    }
    ProcessRun& run = it->second;
    run.folder = std::move(prepared.plan.folder);
    run.socket = std::move(prepared.plan.socket);
    run.link = std::move(prepared.link);
    const int64_t id = prepared.run;
    run.socket->Serve(*loop_, [this, id](RunAsked asked) { events_.Push({id, std::move(asked)}); });
    loop_->Add(run.link->fd(), EPOLLIN, [this, id](uint32_t) { OnGuard(id); });
    run.link->SendPlan(prepared.plan.guard, run.lease, run.time_out);
    if (run.early_stop != StopReason::kNone) {
      run.link->SendStop(run.early_stop, run.early_kill - SystemClock().BootNow(),
                         run.early_signal);
    }
    Flush(run);
  }

  void Flush(ProcessRun& run) {
    const bool done = run.link->Flush();
    loop_->Change(run.link->fd(), done ? EPOLLIN : EPOLLIN | EPOLLOUT);
  }

  void DoStop(int64_t id, StopReason reason, absl::Duration grace, int signal) {
    auto it = runs_.find(id);
    if (it == runs_.end()) return;
    ProcessRun& run = it->second;
    const absl::Duration now = SystemClock().BootNow();
    run.stop.Ask(reason, now, grace);
    if (run.link) {
      run.link->SendStop(reason, grace, signal);
      Flush(run);
      return;
    }
    run.early_kill =
        run.early_stop == StopReason::kNone ? now + grace : std::min(run.early_kill, now + grace);
    if (run.early_stop != StopReason::kNone) return;
    run.early_stop = reason;
    run.early_signal = signal;
  }

  void DoMove(const DeadlineMove& move) {
    auto it = runs_.find(move.run);
    if (it == runs_.end()) return;
    it->second.stop.MoveLease(move.lease);
    if (it->second.link) {
      it->second.link->SendLease(move.lease);
      Flush(it->second);
    } else {
      it->second.lease = move.lease;
    }
  }

  void OnGuard(int64_t id) {
    ProcessRun& run = runs_.at(id);
    std::vector<GuardMessage> messages = run.link->Receive();
    for (GuardMessage& message : messages) {
      if (auto* started = std::get_if<RunStarted>(&message)) {
        events_.Push({id, *started});
      } else if (auto* output = std::get_if<RunOutput>(&message)) {
        events_.Push({id, std::move(*output)});
      } else if (auto* ended = std::get_if<RunEnded>(&message)) {
        TellEnded(id, run, std::move(*ended));
      } else if (auto* failure = std::get_if<GuardFailure>(&message)) {
        TellFailure(id, run, *failure);
      } else {
        GuardGone(id, run);
        return;
      }
    }
    Flush(run);
  }

  void TellEnded(int64_t id, ProcessRun& run, RunEnded ended) {
    run.told_ended = true;
    run.socket.reset();
    events_.Push({id, std::move(ended)});
  }

  void TellFailure(int64_t id, ProcessRun& run, const GuardFailure& failure) {
    run.told_ended = true;
    absl::Status error = ErrorOf(failure, users_[id]);
    // As a shell shows it: a missing folder or user is no "command not found".
    const int code = failure.stage == GUARD_AT_EXEC ? ShellCodeOf(error) : 126;
    events_.Push({id, RunNotStarted{.error = std::move(error), .exit_code = code}});
  }

  void GuardGone(int64_t id, ProcessRun& run) {
    loop_->Remove(run.link->fd());
    // Its end is closed, so it is on its last steps: by its pid alone, and nobody else's child.
    while (waitpid(run.link->pid(), nullptr, 0) < 0 && errno == EINTR) {
    }
    if (!run.told_ended) {
      // Somebody killed the guard. Its program died with it; the rest is hunted by its environment,
      // which proves nothing.
      if (run.socket) {
        const std::string entry = absl::StrCat("MATINS_SOCKET=", run.socket->Address());
        for (int round = 0; round < 100 && KillByEnvironment(entry) > 0; ++round) {
        }
      }
      TellEnded(id, run,
                RunEnded{.signal = SIGKILL,
                         .stopped = run.stop.reason(),
                         .tree_dead = false,
                         .status = absl::AbortedError(
                             "the run's guard process was killed from outside")});
    }
    folder_->RemoveRun(run.folder);
    runs_.erase(id);
    users_.erase(id);
  }

  // A guard that is past its deadline and has not said so is stopped itself, by somebody. Its tree
  // still hangs below it: kill that from here, and let the guard go on. Returns how long until the
  // next look is due.
  absl::Duration WatchGuards() {
    const absl::Duration now = SystemClock().BootNow();
    absl::Duration next = absl::InfiniteDuration();
    for (auto& [id, run] : runs_) {
      if (!run.link || run.told_ended) continue;
      run.stop.Due(now - kGuardSlack);
      const bool late =
          run.stop.NextAt() == absl::InfiniteDuration() && run.stop.reason() != StopReason::kNone;
      if (late) {
        // First the reason: when it goes on it finds its tree dead, and has to know by whom.
        run.link->SendStop(run.stop.reason(), absl::ZeroDuration(), SIGTERM);
        Flush(run);
        KillBelow(run.link->pid());
        kill(run.link->pid(), SIGCONT);
      }
      next = std::min(next, late ? absl::Seconds(1) : run.stop.NextAt() + kGuardSlack - now);
    }
    return std::max(next, absl::ZeroDuration());
  }

  // Returns how long until the next look is due.
  absl::Duration LookAtDeadNodes() {
    const absl::Duration now = SystemClock().BootNow();
    if (next_look_ <= now) next_look_ = now + dead_nodes_.Look(now);
    return next_look_ - now;
  }

  // After the threads have gone. The guards see the end of their sockets and do the rest; they are
  // waited for, so that nothing of the runs outlives the runner.
  void Abandon() {
    std::vector<pid_t> guards;
    for (auto& [id, run] : runs_) {
      if (run.link) guards.push_back(run.link->pid());
    }
    runs_.clear();
    commands_.clear();
    for (pid_t guard : guards) {
      kill(guard, SIGCONT);
      while (waitpid(guard, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }

  const UserLookup lookup_;
  const std::unique_ptr<NodeFolder> folder_;
  const std::unique_ptr<GuardImage> image_;
  const std::unique_ptr<EventLoop> loop_;
  EventQueue events_;

  absl::Mutex mutex_;
  bool closing_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<RunRequest> to_start_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::function<void()>> commands_ ABSL_GUARDED_BY(mutex_);

  // The listening thread's alone.
  DeadNodes dead_nodes_;
  absl::Duration next_look_;  // the first one at once
  absl::flat_hash_map<int64_t, ProcessRun> runs_;
  absl::flat_hash_map<int64_t, std::string> users_;

  std::thread starter_;
  std::thread listener_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Runner>> OpenProcessRunner(ProcessRunnerOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<NodeFolder> folder, NodeFolder::Open(options.folder));
  DeadNodes dead_nodes(folder->parent());
  // Before this node can take a period of which a tree is still alive.
  dead_nodes.Look(SystemClock().BootNow());
  ASSIGN_OR_RETURN(std::unique_ptr<GuardImage> image, GuardImage::Open(folder->path()));
  ASSIGN_OR_RETURN(std::unique_ptr<EventLoop> loop, EventLoop::Open());
  return std::make_unique<ProcessRunner>(std::move(options), std::move(dead_nodes),
                                         std::move(folder), std::move(image), std::move(loop));
}

}  // namespace matins
