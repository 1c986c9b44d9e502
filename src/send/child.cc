#include "send/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr int kLookMs = 100;  // how soon a stop is noticed
constexpr size_t kMostOutput = 64 * 1024;
constexpr int kProgramFd = 3;

// Closed when it goes.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

// A file in memory, so that a program which does not read its input holds up nobody.
absl::StatusOr<Descriptor> InMemory(const std::string& text) {
  Descriptor fd(memfd_create("matins-message", MFD_CLOEXEC));
  if (fd.get() < 0) return absl::InternalError(absl::StrCat("memfd_create: ", strerror(errno)));
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t n = write(fd.get(), text.data() + written, text.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::InternalError("the message could not be written to memory");
    written += static_cast<size_t>(n);
  }
  lseek(fd.get(), 0, SEEK_SET);
  return fd;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Between fork and exec: nothing that takes a lock or memory. What it is given are descriptors
// above kProgramFd.
[[noreturn]] void Become(int input, int output, int program, char** argv, char** envp) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGPIPE, SIGTERM, SIGINT, SIGHUP}) ::signal(signal, SIG_DFL);
  dup2(input, 0);
  dup2(output, 1);
  dup2(output, 2);
  if (program >= 0) {
    dup2(program, kProgramFd);
    fcntl(kProgramFd, F_SETFD, FD_CLOEXEC);
    syscall(SYS_close_range, kProgramFd + 1, ~0U, 0);
    syscall(SYS_execveat, kProgramFd, "", argv, envp, AT_EMPTY_PATH);
  } else {
    syscall(SYS_close_range, kProgramFd, ~0U, 0);
    execvpe(argv[0], argv, envp);
  }
  _exit(kNoProgram);
}

int Above(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, kProgramFd + 7); }

// Reads what is there; false: the other end is closed.
bool Take(int fd, std::string& output) {
  char bytes[4096];
  const ssize_t n = read(fd, bytes, sizeof bytes);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (output.size() < kMostOutput) output.append(bytes, static_cast<size_t>(n));
  return n > 0;
}

}  // namespace

absl::StatusOr<ChildEnd> RunChild(const ChildCall& call) {
  std::vector<std::string> words = call.words, variables = call.variables;
  std::vector<char*> argv = Pointers(words), envp = Pointers(variables);
  ASSIGN_OR_RETURN(const Descriptor message, InMemory(call.input));
  int ends[2] = {-1, -1};
  if (call.output ? pipe2(ends, O_CLOEXEC) != 0
                  : (ends[1] = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0) {
    return absl::UnavailableError(absl::StrCat("pipe: ", strerror(errno)));
  }
  const Descriptor from(ends[0]);
  ChildEnd end;
  pid_t pid = -1;
  {
    const Descriptor to(ends[1]);
    const Descriptor input(Above(message.get())), output(Above(to.get()));
    const Descriptor program(call.program < 0 ? -1 : Above(call.program));
    pid = fork();
    if (pid == 0) {
      Become(input.get(), output.get(), program.get(), argv.data(), envp.data());
    }
  }
  if (pid < 0) return absl::UnavailableError(absl::StrCat("fork: ", strerror(errno)));
  const Descriptor handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  const absl::Duration until = SystemClock().BootNow() + call.timeout;
  bool ended = false, stopped = false, open = call.output;
  while (!ended && !stopped && SystemClock().BootNow() < until) {
    pollfd asked[] = {{handle.get(), POLLIN, 0}, {open ? from.get() : -1, POLLIN, 0}};
    poll(asked, 2, kLookMs);
    if (open && asked[1].revents != 0) open = Take(from.get(), end.output);
    ended = asked[0].revents != 0 && !open;
    // One that has closed its output goes on until it ends; one that ended may have left some.
    if (asked[0].revents != 0 && open && asked[1].revents == 0) ended = true;
    stopped = call.stop != nullptr && call.stop->load();
  }
  if (!ended) kill(-pid, SIGKILL);
  while (waitpid(pid, &end.status, 0) < 0 && errno == EINTR) {
  }
  if (ended) return end;
  if (stopped) return absl::CancelledError("the node is stopping");
  return absl::DeadlineExceededError("it took longer than its time-out");
}

}  // namespace matins
