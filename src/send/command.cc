#include "send/command.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr int kLookMs = 100;  // how soon a stop is noticed
constexpr int kNoProgram = 127;

// A file in memory, so that a program which does not read its input holds up nobody.
absl::StatusOr<int> InputOf(const std::string& text) {
  const int fd = memfd_create("matins-alert", MFD_CLOEXEC);
  if (fd < 0) return absl::InternalError(absl::StrCat("memfd_create: ", strerror(errno)));
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(fd, text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      close(fd);
      return absl::InternalError("the message could not be written to memory");
    }
    written += static_cast<size_t>(n);
  }
  lseek(fd, 0, SEEK_SET);
  return fd;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec: nothing that takes a lock or memory.
[[noreturn]] void BecomeProgram(int input, char** argv, char** envp) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_DFL);
  const int null = open("/dev/null", O_RDWR);
  dup2(input, 0);
  dup2(null, 1);
  dup2(null, 2);
  syscall(SYS_close_range, 3, ~0U, 0);
  execvpe(argv[0], argv, envp);
  _exit(kNoProgram);
}

std::string EndText(int status) {
  if (WIFSIGNALED(status)) {
    return absl::StrCat("the command was killed by signal ", WTERMSIG(status));
  }
  if (WEXITSTATUS(status) == kNoProgram) return "the command is not there, or cannot be run";
  return absl::StrCat("the command ended with exit code ", WEXITSTATUS(status));
}

}  // namespace

absl::Status RunCommand(const Channel& channel, const AlertMessage& message,
                        const std::atomic<bool>& stop) {
  std::vector<std::string> words = channel.command;
  std::vector<std::string> variables = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:"
      "/sbin:/bin"};
  for (const auto& [name, secret] : channel.env) {
    ASSIGN_OR_RETURN(const std::string value, ReadSecret(secret));
    variables.push_back(absl::StrCat(name, "=", value));
  }
  std::vector<char*> argv = Pointers(words), envp = Pointers(variables);
  ASSIGN_OR_RETURN(const int input, InputOf(MessageJson(message)));
  const pid_t pid = fork();
  if (pid == 0) BecomeProgram(input, argv.data(), envp.data());
  close(input);
  if (pid < 0) return absl::UnavailableError(absl::StrCat("fork: ", strerror(errno)));
  const absl::Duration until = SystemClock().BootNow() + channel.timeout;
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  bool ended = false;
  while (!ended && !stop.load() && SystemClock().BootNow() < until) {
    pollfd asked{handle, POLLIN, 0};
    ended = poll(&asked, 1, kLookMs) > 0;
  }
  if (handle >= 0) close(handle);
  if (!ended) kill(-pid, SIGKILL);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) {
    return stop.load() ? absl::CancelledError("the node is stopping")
                       : absl::DeadlineExceededError("the command took longer than its time-out");
  }
  if (status == 0) return absl::OkStatus();
  return absl::UnavailableError(EndText(status));
}

}  // namespace matins
