#include "cli/exec_host.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "view/table.h"

namespace matins {
namespace {

// The machine may sleep, and the kernel's timer with it.
constexpr absl::Duration kLongestWait = absl::Seconds(10);

bool IsIgnored(int signal) {
  struct sigaction action;
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// A descriptor that is opened later must not become a standard file.
void FillStandardFiles() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      [[maybe_unused]] const int opened = open("/dev/null", fd == 0 ? O_RDONLY : O_WRONLY);
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<TerminalHost>> TerminalHost::Open(bool quiet) {
  FillStandardFiles();
  signal(SIGPIPE, SIG_IGN);  // whoever reads our lines may go; the run goes on
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2}) {
    if (!IsIgnored(signal)) sigaddset(&set, signal);
  }
  if (pthread_sigmask(SIG_BLOCK, &set, nullptr) != 0) {
    return absl::InternalError("signals could not be blocked");
  }
  const int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  auto host = absl::WrapUnique(new TerminalHost(signals, quiet));
  if (signals < 0 || !host->wake_.ok()) {
    return absl::InternalError(absl::StrCat("signalfd: errno ", errno));
  }
  return host;
}

TerminalHost::~TerminalHost() {
  if (signals_ >= 0) close(signals_);
}

void TerminalHost::Tell(absl::string_view line, bool news) {
  if (news && quiet_) return;
  const std::string text = absl::StrCat("matins: ", Harmless(line, true), "\n");
  [[maybe_unused]] const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
}

int TerminalHost::Wait(absl::Duration until) {
  const absl::Duration left =
      std::clamp(until - SystemClock().BootNow(), absl::ZeroDuration(), kLongestWait);
  pollfd fds[] = {{signals_, POLLIN, 0}, {wake_.fd(), POLLIN, 0}};
  const timespec timeout = absl::ToTimespec(left);
  if (ppoll(fds, 2, &timeout, nullptr) <= 0) return 0;
  wake_.Take();
  signalfd_siginfo info;
  return read(signals_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

void TerminalHost::WakeUp() { wake_.Ring(); }

}  // namespace matins
