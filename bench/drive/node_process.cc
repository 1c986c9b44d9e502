#include "bench/drive/node_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"

namespace matins::bench {
namespace {

// Seldom enough that who waits here takes nothing from whom it waits for.
constexpr absl::Duration kLook = absl::Milliseconds(2);

// The program `node` lies beside this one.
std::string NodeProgram() {
  char path[4096];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) Die("no /proc");
  const std::string self(path, static_cast<size_t>(length));
  return self.substr(0, self.rfind('/')) + "/node";
}

}  // namespace

NodeProcesses::NodeProcesses(const Options& options, const NodeSetup& setup)
    : options_(options), setup_(setup) {
  const size_t bytes = SharedBytes(setup.latenesses);
  memory_ = memfd_create("matins-bench", MFD_CLOEXEC);
  if (memory_ < 0 || ftruncate(memory_, static_cast<off_t>(bytes)) != 0) Die("no shared memory");
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_, 0);
  if (memory == MAP_FAILED) Die("no shared memory");
  shared_ = new (memory) Shared;
  shared_->go = setup.at_once;
  for (int i = 0; i < setup.count; ++i) StartOne(i);
}

void NodeProcesses::StartOne(int number) {
  const std::string program = NodeProgram();
  const std::string memory = absl::StrCat(memory_);
  const std::string room = absl::StrCat(setup_.latenesses), slots = absl::StrCat(setup_.slots);
  const std::string labels =
      absl::StrReplaceAll(absl::StrJoin(setup_.labels, ","), {{"*", absl::StrCat(number)}});
  const std::string& store = options_.Text("store");
  const char* const argv[] = {program.c_str(), memory.c_str(), room.c_str(), slots.c_str(),
                              labels.c_str(),  store.c_str(),  nullptr};
  int control[2];
  if (pipe2(control, O_CLOEXEC) != 0) Die("no pipe");
  const pid_t pid = fork();
  if (pid < 0) Die("fork failed");
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(control[0], STDIN_FILENO);
    fcntl(memory_, F_SETFD, 0);
    execv(program.c_str(), const_cast<char* const*>(argv));
    Die(absl::StrCat(program, " is not there: build all of bench/drive"));
  }
  close(control[0]);
  pids_.push_back(pid);
  controls_.push_back(control[1]);
}

NodeProcesses::~NodeProcesses() {
  for (const pid_t pid : pids_) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  for (const int control : controls_) close(control);
  munmap(shared_, SharedBytes(setup_.latenesses));
  close(memory_);
}

std::vector<absl::Duration> NodeProcesses::Latenesses() const {
  const int64_t kept = std::min<int64_t>(shared_->latenesses, setup_.latenesses);
  std::vector<absl::Duration> late;
  for (int64_t i = 0; i < kept; ++i) {
    late.push_back(absl::Microseconds(LatenessesOf(shared_)[i].load()));
  }
  return late;
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
    absl::SleepFor(kLook);
  }
}

double NodeProcesses::CpuSeconds() {
  const auto wanted = shared_->cpu_told + static_cast<int64_t>(controls_.size());
  for (const int control : controls_) {
    if (write(control, &kTellCpu, 1) != 1) Die("a node has ended");
  }
  Await([&](const Shared& shared) { return shared.cpu_told >= wanted; }, absl::Seconds(10));
  return static_cast<double>(shared_->cpu_us) / 1e6;
}

absl::Time NodeProcesses::KillOne() {
  const pid_t pid = pids_.front();
  pids_.erase(pids_.begin());
  close(controls_.front());
  controls_.erase(controls_.begin());
  const absl::Time at = absl::Now();
  kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  return at;
}

absl::Time NodeProcesses::KillOneWithGuards() {
  std::vector<pid_t> tree = {pids_.front()};
  kill(tree[0], SIGSTOP);
  for (size_t i = 0; i < tree.size(); ++i) {
    for (const pid_t child : ChildrenOf(tree[i])) {
      kill(child, SIGSTOP);
      tree.push_back(child);
    }
  }
  const absl::Time at = absl::Now();
  for (const pid_t pid : tree) kill(pid, SIGKILL);
  KillOne();
  return at;
}

void NodeProcesses::BeginStop() {
  for (const int control : controls_) close(control);
  controls_.clear();
}

void NodeProcesses::Stop() {
  BeginStop();
  for (const pid_t pid : pids_) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) Die("a node has failed");
  }
  pids_.clear();
}

}  // namespace matins::bench
