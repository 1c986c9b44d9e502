#include "execute/run_socket.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"

namespace matins {
namespace {

constexpr size_t kMaxConnections = 16;
constexpr int kMaxWaiting = 64;
constexpr int64_t kRefusedHere = 0;  // the ask of a line that never reached the store

// Takes as long for a wrong key as for the right one.
bool SameKey(absl::string_view a, absl::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned char differ = 0;
  for (size_t i = 0; i < a.size(); ++i) differ |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differ == 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunSocket>> RunSocket::Listen(
    const std::string& folder, std::string key, const std::optional<UserAccount>& owner) {
  const std::string path = absl::StrCat(folder, "/socket");
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.size() >= sizeof(address.sun_path)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the run's socket ", path, " has a path of over 107 bytes; choose a shorter run folder"));
  }
  memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  // Nobody connects before listen; until then the mode is as narrow as it gets.
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path.c_str(), 0600) != 0 ||
      (owner && chown(path.c_str(), owner->uid, owner->gid) != 0) ||
      listen(fd, static_cast<int>(kMaxConnections)) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return absl::ResourceExhaustedError(absl::StrCat("cannot open the run's socket ", path, ": ",
                                                     strerror(error),
                                                     "; look at the limit of open files"));
  }
  return absl::WrapUnique(new RunSocket(fd, path, std::move(key)));
}

RunSocket::~RunSocket() {
  for (auto& [fd, connection] : connections_) {
    loop_->Remove(fd);
    close(fd);
  }
  if (loop_ != nullptr) loop_->Remove(fd_);
  close(fd_);
  unlink(path_.c_str());
}

std::string RunSocket::Address() const { return absl::StrCat(path_, "?key=", key_); }

void RunSocket::Serve(EventLoop& loop, OnAsk on_ask) {
  loop_ = &loop;
  on_ask_ = std::move(on_ask);
  loop.Add(fd_, EPOLLIN, [this](uint32_t) { Accept(); });
}

void RunSocket::Accept() {
  while (connections_.size() < kMaxConnections) {
    const int fd = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    connections_[fd].fd = fd;
    loop_->Add(fd, EPOLLIN, [this, fd](uint32_t events) { OnReady(connections_.at(fd), events); });
  }
  loop_->Change(fd_, 0);  // who comes now waits until another goes
}

void RunSocket::OnReady(Connection& connection, uint32_t events) {
  char bytes[16384];
  while (!connection.closing) {
    const ssize_t n = recv(connection.fd, bytes, sizeof(bytes), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n <= 0) {
      // No more questions; who still listens gets the answers that are owed.
      connection.closing = true;
      break;
    }
    connection.in.append(bytes, static_cast<size_t>(n));
    size_t end;
    while (!connection.closing && (end = connection.in.find('\n')) != std::string::npos) {
      const std::string line = connection.in.substr(0, end);
      connection.in.erase(0, end + 1);
      TakeLine(connection, line);
    }
    if (connection.in.size() > kMaxRunLine) {
      TakeLine(connection, "");
      connection.closing = true;
    }
  }
  // Who asks and goes does not learn the answer; the store still gets the question.
  if (events & (EPOLLHUP | EPOLLERR)) return Close(connection.fd);
  Settle(connection);
}

void RunSocket::TakeLine(Connection& connection, absl::string_view line) {
  auto refuse = [&](absl::Status status) {
    connection.asked.emplace_back(kRefusedHere, AnswerLine({.status = std::move(status)}));
  };
  absl::StatusOr<RunQuestion> question = ParseQuestion(line);
  if (!question.ok()) return refuse(question.status());
  if (!SameKey(question->key, key_)) {
    connection.closing = true;
    return refuse(absl::PermissionDeniedError(
        "the key is not this run's; take MATINS_SOCKET from the run's own environment"));
  }
  if (waiting_ >= kMaxWaiting) {
    return refuse(
        absl::ResourceExhaustedError("64 asks of this run wait already; ask again later"));
  }
  ++waiting_;
  connection.asked.emplace_back(++last_ask_, std::nullopt);
  on_ask_({.ask = last_ask_,
           .kind = question->kind,
           .number = question->number,
           .payload = std::move(question->payload)});
}

void RunSocket::Reply(int64_t ask, const RunAnswer& answer) {
  if (ask <= 0 || ask > last_ask_) return;
  for (auto& [fd, connection] : connections_) {
    for (auto& [number, line] : connection.asked) {
      if (number != ask || line) continue;
      --waiting_;
      line = AnswerLine(answer);
      Settle(connection);
      return;
    }
  }
}

void RunSocket::Settle(Connection& connection) {
  while (!connection.asked.empty() && connection.asked.front().second) {
    absl::StrAppend(&connection.out, *connection.asked.front().second, "\n");
    connection.asked.pop_front();
  }
  while (!connection.out.empty()) {
    const ssize_t n =
        send(connection.fd, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) break;
    if (n < 0) return Close(connection.fd);
    connection.out.erase(0, static_cast<size_t>(n));
  }
  if (connection.closing && connection.out.empty() && connection.asked.empty())
    return Close(connection.fd);
  loop_->Change(connection.fd, (connection.closing ? 0u : static_cast<uint32_t>(EPOLLIN)) |
                                   (connection.out.empty() ? 0u : static_cast<uint32_t>(EPOLLOUT)));
}

void RunSocket::Close(int fd) {
  auto it = connections_.find(fd);
  for (const auto& [number, line] : it->second.asked) {
    if (!line) --waiting_;
  }
  loop_->Remove(fd);
  connections_.erase(it);
  close(fd);
  loop_->Change(fd_, EPOLLIN);
}

}  // namespace matins
