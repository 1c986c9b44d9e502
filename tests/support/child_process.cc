#include "tests/support/child_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"

namespace matins::testing {
namespace {

namespace fs = std::filesystem;

// Looked up before the fork: the child of a program with threads may not allocate.
struct Credentials {
  bool change = false;
  uid_t user = 0;
  gid_t group = 0;
};

Credentials ServerCredentials() {
  const std::string user = ServerUser();
  const passwd* entry = user.empty() ? nullptr : getpwnam(user.c_str());
  return entry == nullptr ? Credentials{} : Credentials{true, entry->pw_uid, entry->pw_gid};
}

// In the child, before exec.
void Prepare(const Credentials& as, pid_t starter) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  // The starter's working folder may be closed to the other user.
  if (as.change && (setgroups(1, &as.group) != 0 || setgid(as.group) != 0 || setuid(as.user) != 0 ||
                    chdir("/") != 0)) {
    _exit(126);
  }
  // After setuid, which would clear it.
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  if (getppid() != starter) _exit(126);
}

std::string Tail(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return text.size() > 2000 ? text.substr(text.size() - 2000) : text;
}

// PostgreSQL's versions as numbers, so that 9 does not come after 15.
int VersionOf(const fs::path& folder) {
  int version = 0;
  return absl::SimpleAtoi(folder.filename().string(), &version) ? version : 0;
}

// What killed programs left: PREFIX.PID.random, where no PID lives.
void RemoveOrphans(const fs::path& folder, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::vector<std::string> parts = absl::StrSplit(entry.path().filename().string(), '.');
    pid_t pid = 0;
    if (parts.size() == 3 && parts[0] == prefix && absl::SimpleAtoi(parts[1], &pid) &&
        kill(pid, 0) != 0 && errno == ESRCH) {
      std::ignore = fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace

absl::StatusOr<ChildProcess> ChildProcess::Start(const Options& options) {
  const pid_t starter = getpid();
  const int output = open(options.output.empty() ? "/dev/null" : options.output.c_str(),
                          O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (output < 0) return absl::ErrnoToStatus(errno, absl::StrCat("opening ", options.output));
  const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
  std::vector<char*> argv;
  for (const std::string& arg : options.argv) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  const Credentials as = options.as_server_user ? ServerCredentials() : Credentials{};
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(input, 0);
    dup2(output, 1);
    dup2(output, 2);
    syscall(SYS_close_range, 3, ~0U, 0);
    Prepare(as, starter);
    execv(argv[0], argv.data());
    _exit(127);
  }
  const int error = errno;
  close(input);
  close(output);
  if (pid < 0) return absl::ErrnoToStatus(error, "fork");
  ChildProcess child;
  child.pid_ = pid;
  return child;
}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this != &other) {
    Kill();
    pid_ = other.pid_;
    other.pid_ = 0;
  }
  return *this;
}

bool ChildProcess::Running() {
  if (pid_ == 0) return false;
  if (waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = 0;
  return false;
}

void ChildProcess::Signal(int signal) const {
  if (pid_ != 0) kill(pid_, signal);
}

int ChildProcess::Wait() {
  if (pid_ == 0) return 0;
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = 0;
  return status;
}

int ChildProcess::Stop(int signal, absl::Duration patience) {
  if (pid_ == 0) return 0;
  const int handle = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  Signal(signal);
  if (handle >= 0) {
    pollfd ended{handle, POLLIN, 0};
    if (poll(&ended, 1, static_cast<int>(absl::ToInt64Milliseconds(patience))) == 0) {
      Signal(SIGKILL);
    }
    close(handle);
  }
  return Wait();
}

void ChildProcess::Kill() {
  if (pid_ == 0) return;
  Signal(SIGKILL);
  Wait();
}

absl::Status RunProgram(const ChildProcess::Options& options) {
  ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start(options));
  const int status = child.Wait();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(absl::StrJoin(options.argv, " "), " ended with status ",
                                          status, ": ", Tail(options.output)));
}

std::string ServerUser() {
  if (geteuid() != 0) return "";
  return getpwnam("postgres") != nullptr ? "postgres" : "nobody";
}

absl::StatusOr<std::string> MakeServerDirectory(const std::string& prefix) {
  const char* base = getenv("TMPDIR");
  const fs::path folder = base != nullptr ? base : "/tmp";
  RemoveOrphans(folder, prefix);
  std::string path = (folder / absl::StrCat(prefix, ".", getpid(), ".XXXXXX")).string();
  if (mkdtemp(path.data()) == nullptr) return absl::ErrnoToStatus(errno, path);
  const Credentials owner = ServerCredentials();
  if (owner.change && chown(path.c_str(), owner.user, owner.group) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("changing the owner of ", path));
  }
  return path;
}

void RemoveDirectory(const std::string& path) {
  std::error_code ignored;
  std::ignore = fs::remove_all(path, ignored);
}

absl::StatusOr<std::string> FindServerProgram(absl::string_view program) {
  std::vector<fs::path> versions;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("/usr/lib/postgresql", ignored)) {
    versions.push_back(entry.path());
  }
  std::sort(versions.begin(), versions.end(),
            [](const fs::path& a, const fs::path& b) { return VersionOf(a) > VersionOf(b); });
  for (const fs::path& version : versions) {
    fs::path path = version / "bin" / std::string(program);
    if (access(path.c_str(), X_OK) == 0) return path.string();
  }
  const char* search = getenv("PATH");
  for (absl::string_view folder :
       absl::StrSplit(absl::StrCat(search != nullptr ? search : "", ":/usr/sbin:/sbin"), ':')) {
    std::string path = absl::StrCat(folder, "/", program);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return absl::NotFoundError(
      absl::StrCat("no program ", program, " here; ./dev setup installs it"));
}

int FreePort() {
  constexpr uint16_t kLowest = 10'000;
  thread_local std::mt19937 random{std::random_device{}()};
  uint16_t clients = 0;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> clients;
  const bool below = clients > 2 * kLowest;
  while (true) {
    const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port =
        htons(below ? std::uniform_int_distribution<uint16_t>(kLowest, clients - 1)(random) : 0);
    socklen_t size = sizeof address;
    const bool is_free = bind(probe, reinterpret_cast<sockaddr*>(&address), size) == 0;
    getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
    close(probe);
    if (is_free) return ntohs(address.sin_port);
  }
}

}  // namespace matins::testing
