#include "execute/guard_link.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "execute/guard/wire.h"

namespace matins {
namespace {

static_assert(static_cast<int>(StopReason::kNodeDied) == GUARD_NODE_DIED);
static_assert(static_cast<int>(StopReason::kLeaseLost) == GUARD_LEASE_LOST);

int64_t Nanos(absl::Duration d) {
  return d == absl::InfiniteDuration() ? GUARD_NEVER : absl::ToInt64Nanoseconds(d);
}

guard_deadline Wire(Deadline deadline) { return {Nanos(deadline.stop), Nanos(deadline.kill)}; }

template <typename T>
std::string Bytes(const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

template <typename T>
T FromBytes(absl::string_view bytes) {
  T value{};
  memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof(value)));
  return value;
}

std::string String(const std::string& text) {
  std::string wire = Bytes(static_cast<uint32_t>(text.size()));
  wire.append(text).push_back('\0');
  return wire;
}

RunEnded Ended(absl::string_view payload) {
  const auto wire = FromBytes<guard_ended>(payload);
  payload.remove_prefix(sizeof(wire));
  RunEnded ended{.stopped = static_cast<StopReason>(wire.reason),
                 .tree_dead = wire.tree_dead != 0,
                 .cpu = absl::Microseconds(wire.cpu_us),
                 .max_rss_bytes = wire.max_rss_bytes};
  if (WIFSIGNALED(wire.wait_status)) {
    ended.signal = WTERMSIG(wire.wait_status);
  } else {
    ended.exit_code = WEXITSTATUS(wire.wait_status);
  }
  ended.output.head = std::string(payload.substr(0, wire.head_bytes));
  ended.output.tail = std::string(payload.substr(wire.head_bytes, wire.tail_bytes));
  ended.output.total_bytes = wire.total_bytes;
  return ended;
}

std::optional<GuardMessage> Parse(char type, absl::string_view payload) {
  switch (type) {
    case 'P':
      return RunStarted{.pid = FromBytes<int32_t>(payload)};
    case 'O':
      return RunOutput{.offset = FromBytes<int64_t>(payload),
                       .bytes = std::string(payload.substr(sizeof(int64_t)))};
    case 'X':
      return Ended(payload);
    case 'N': {
      const auto failure = FromBytes<guard_failure>(payload);
      payload.remove_prefix(sizeof(failure));
      const auto length = FromBytes<uint32_t>(payload);
      return GuardFailure{.stage = failure.stage,
                          .error = failure.error,
                          .file = std::string(payload.substr(sizeof(length), length))};
    }
  }
  return std::nullopt;
}

absl::StatusOr<pid_t> SpawnGuard(const std::string& path, const std::string& label, int fd,
                                 bool pass_streams) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!pass_streams) {
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
  }
  posix_spawn_file_actions_adddup2(&actions, fd, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
  std::string name = absl::StrCat(kGuardName, " ", label);
  std::replace(name.begin(), name.end(), '\0', ' ');
  char* argv[] = {name.data(), nullptr};
  char* envp[] = {nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, path.c_str(), &actions, &attributes, argv, envp);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot start a guard process: ", strerror(error),
                     "; look at the limits of processes and "
                     "memory"));
  }
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GuardLink>> GuardLink::Spawn(const GuardImage& image,
                                                            const std::string& label,
                                                            bool pass_streams) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cannot make a socket for a guard: ", strerror(errno), "; raise the limit of open files"));
  }
  for (int& fd : fds) {
    // A program that was started without standard files gets numbers that the guard's would hit.
    if (fd > 3) continue;
    const int high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    close(fd);
    fd = high;
  }
  absl::StatusOr<pid_t> pid = SpawnGuard(image.path(), label, fds[1], pass_streams);
  close(fds[1]);
  if (!pid.ok()) {
    close(fds[0]);
    return pid.status();
  }
  return absl::WrapUnique(new GuardLink(fds[0], *pid));
}

GuardLink::~GuardLink() { close(fd_); }

void GuardLink::Queue(char type, const std::string& payload) {
  out_ += Bytes(static_cast<uint32_t>(1 + payload.size()));
  out_ += type;
  out_ += payload;
}

void GuardLink::SendPlan(const GuardPlan& plan, Deadline lease, Deadline time_out) {
  if (IsMutant(Mutant::kNoGuardDeadline)) lease = time_out = Deadline{};
  guard_config config{.lease = Wire(lease),
                      .time_out = Wire(time_out),
                      .node_pid = getpid(),
                      .umask = plan.umask,
                      .head_bytes = static_cast<uint32_t>(plan.output.head_bytes),
                      .tail_bytes = static_cast<uint32_t>(plan.output.tail_bytes),
                      .change_user = plan.become.has_value(),
                      .n_argv = static_cast<uint32_t>(plan.argv.size()),
                      .n_env = static_cast<uint32_t>(plan.env.size()),
                      .n_groups = 0,
                      .pass_streams = plan.pass_streams};
  if (plan.become) {
    config.uid = plan.become->uid;
    config.gid = plan.become->gid;
    config.n_groups = static_cast<uint32_t>(plan.become->groups.size());
  }
  std::string payload = Bytes(config) + String(plan.dir);
  for (const std::string& word : plan.argv) payload += String(word);
  for (const std::string& variable : plan.env) payload += String(variable);
  if (plan.become) {
    for (uint32_t group : plan.become->groups) payload += Bytes(group);
  }
  payload += String(plan.return_program) + String(plan.return_message) + String(plan.record);
  Queue('C', payload);
}

void GuardLink::SendLease(Deadline lease) {
  if (!IsMutant(Mutant::kNoGuardDeadline)) Queue('D', Bytes(Wire(lease)));
}

void GuardLink::SendSignal(int signal) { Queue('K', Bytes(static_cast<int32_t>(signal))); }

void GuardLink::SendStop(StopReason reason, absl::Duration grace, int signal) {
  const int64_t ns = std::min<int64_t>(Nanos(grace), absl::ToInt64Nanoseconds(absl::Hours(24)));
  Queue('S', Bytes(guard_stop{.grace = std::max<int64_t>(ns, 0),
                              .reason = static_cast<int32_t>(reason),
                              .signal = signal}));
}

bool GuardLink::Flush() {
  while (!out_.empty()) {
    const ssize_t n = send(fd_, out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return false;
    if (n < 0) out_.clear();  // it has gone; Receive says so
    if (n > 0) out_.erase(0, static_cast<size_t>(n));
  }
  return true;
}

std::vector<GuardMessage> GuardLink::Receive() {
  std::vector<GuardMessage> messages;
  char bytes[65536];
  bool closed = false;
  while (!closed) {
    const ssize_t n = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    closed = n <= 0;
    if (!closed) in_.append(bytes, static_cast<size_t>(n));
  }
  absl::string_view rest = in_;
  while (rest.size() >= sizeof(uint32_t)) {
    const auto length = FromBytes<uint32_t>(rest);
    if (rest.size() < sizeof(length) + length || length == 0) break;
    rest.remove_prefix(sizeof(length));
    std::optional<GuardMessage> message = Parse(rest[0], rest.substr(1, length - 1));
    if (message) messages.push_back(*std::move(message));
    rest.remove_prefix(length);
  }
  in_ = std::string(rest);
  if (closed) messages.push_back(GuardClosed{});
  return messages;
}

}  // namespace matins
