#include "bench/drive/node_process.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "matins/scheduler.h"

namespace matins::bench {
namespace {

void RaiseTo(std::atomic<int64_t>& most, int64_t value) {
  int64_t seen = most.load();
  while (seen < value && !most.compare_exchange_weak(seen, value)) {
  }
}

void NoteEvent(Shared& shared, const SchedulerEvent& event) {
  if (event.alarm) ++shared.alarms;
  if (event.name != "finished") return;
  if (event.detail != "done") ++shared.failed;
  RaiseTo(shared.last_finished_us, absl::ToUnixMicros(absl::Now()));
  ++shared.finished;
}

}  // namespace

NodeProcesses::NodeProcesses(const Options& options, int count, int64_t latenesses, int slots)
    : options_(options), room_(latenesses), slots_(slots) {
  bytes_ = sizeof(Shared) + static_cast<size_t>(room_) * sizeof(std::atomic<int64_t>);
  void* const memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Die("no shared memory");
  shared_ = new (memory) Shared;
  lateness_us_ = reinterpret_cast<std::atomic<int64_t>*>(shared_ + 1);
  for (int i = 0; i < count; ++i) {
    const pid_t pid = fork();
    if (pid < 0) Die("fork failed");
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Child();
      _exit(0);
    }
    pids_.push_back(pid);
  }
}

NodeProcesses::~NodeProcesses() {
  for (const pid_t pid : pids_) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  munmap(shared_, bytes_);
}

void NodeProcesses::Child() {
  Shared& shared = *shared_;
  SchedulerOptions options;
  options.store = options_.Text("store");
  if (slots_ > 0) options.slots = slots_;
  // The guard of a command gives its lease back by this.
  if (const char* program = getenv("MATINS_BINARY")) options.matins_program = program;
  options.on_event = [&shared](const SchedulerEvent& event) { NoteEvent(shared, event); };
  auto scheduler = Scheduler::Open(options);
  DieUnlessOk(scheduler.status(), "a node");
  DieUnlessOk((*scheduler)
                  ->AddHandler("noop",
                               [this, &shared](RunContext& run) {
                                 if (room_ > 0) {
                                   const absl::Duration late = absl::Now() - run.scheduled_for();
                                   const int64_t i = shared.latenesses++;
                                   if (i < room_) {
                                     lateness_us_[i] = absl::ToInt64Microseconds(late);
                                   }
                                 }
                                 if (++shared.entered == 1) {
                                   shared.first_entered_us = absl::ToUnixMicros(absl::Now());
                                 }
                                 return absl::OkStatus();
                               }),
              "a handler");
  ++shared.ready;
  while (!shared.go) absl::SleepFor(absl::Microseconds(200));
  const double before = OwnCpuSeconds();
  DieUnlessOk((*scheduler)->Start(), "starting a node");
  while (!shared.stop) absl::SleepFor(absl::Milliseconds(1));
  shared.cpu_us += static_cast<int64_t>((OwnCpuSeconds() - before) * 1e6);
  DieUnlessOk((*scheduler)->Drain(absl::Seconds(10)), "draining a node");
}

void NodeProcesses::Go() {
  Await([&](const Shared& shared) { return shared.ready == static_cast<int>(pids_.size()); },
        absl::Minutes(1));
  shared_->go = true;
}

void NodeProcesses::Await(const std::function<bool(const Shared&)>& done, absl::Duration patience) {
  const absl::Time until = absl::Now() + patience;
  while (!done(*shared_)) {
    if (absl::Now() > until) {
      Die(absl::StrCat("given up: ", shared_->entered.load(), " entered, ",
                       shared_->finished.load(), " finished, ", shared_->failed.load(), " failed"));
    }
    for (const pid_t pid : pids_) {
      if (waitpid(pid, nullptr, WNOHANG) == pid) Die("a node has ended");
    }
    absl::SleepFor(absl::Milliseconds(1));
  }
}

absl::Time NodeProcesses::KillOne() {
  const pid_t pid = pids_.front();
  pids_.erase(pids_.begin());
  const absl::Time at = absl::Now();
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return at;
}

void NodeProcesses::Stop() {
  shared_->stop = true;
  for (const pid_t pid : pids_) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Die("a node has failed");
  }
  pids_.clear();
}

}  // namespace matins::bench
