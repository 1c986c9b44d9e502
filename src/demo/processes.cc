#include "demo/processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace matins::demo {
namespace {

int CodeOf(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

}  // namespace

absl::StatusOr<Process> Process::Start(
    const std::vector<std::string>& argv, const std::string& log,
    const std::vector<std::pair<std::string, std::string>>& env) {
  if (argv.empty() || argv[0].empty()) {
    return absl::FailedPreconditionError(
        "this program's own file is not known, so no node can be started; mount /proc");
  }
  std::vector<char*> words;
  for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (output < 0)
    return BadInput(log, absl::StrCat("cannot be written: ", std::strerror(errno)),
                    "name another --dir");
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) {
    close(output);
    return absl::ResourceExhaustedError(
        absl::StrCat("no process could be made: ", std::strerror(errno)));
  }
  if (pid == 0) {
    // A demo that is killed leaves no nodes behind.
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    setpgid(0, 0);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    for (const auto& [name, value] : env) setenv(name.c_str(), value.c_str(), 1);
    execv(words[0], words.data());
    _exit(127);
  }
  close(output);
  Process process;
  process.pid_ = pid;
  return process;
}

Process& Process::operator=(Process&& other) noexcept {
  if (this != &other) {
    Kill();
    pid_ = std::exchange(other.pid_, 0);
    code_ = other.code_;
  }
  return *this;
}

void Process::Signal(int signal) const {
  if (pid_ > 0) kill(pid_, signal);
}

int Process::Wait() {
  if (pid_ > 0) {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    code_ = CodeOf(status);
    pid_ = 0;
  }
  return code_;
}

bool Process::Running() {
  if (pid_ <= 0) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  code_ = CodeOf(status);
  pid_ = 0;
  return false;
}

int Process::Stop() {
  Signal(SIGTERM);
  return Wait();
}

void Process::Kill() {
  if (pid_ <= 0) return;
  Signal(SIGKILL);
  Signal(SIGCONT);
  Wait();
}

}  // namespace matins::demo
