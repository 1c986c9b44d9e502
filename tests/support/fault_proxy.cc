#include "tests/support/fault_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace matins::testing {
namespace {

// PostgreSQL's ReadyForQuery, its status byte aside; MariaDB's OK outside a transaction with
// nothing to follow it.
const std::string& Ready(FaultProxy::Wire wire) {
  static const std::string* const postgresql = new std::string("Z\0\0\0\5", 5);
  static const std::string* const mariadb = new std::string("\0\0\0\2\0\0\0", 7);
  return wire == FaultProxy::Wire::kMariadb ? *mariadb : *postgresql;
}
constexpr size_t kMostPending = 1 << 20;

sockaddr_in Loopback(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

void CloseAndForget(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

// RST instead of FIN.
void ResetAndForget(int& fd) {
  if (fd < 0) return;
  const linger at_once{1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  CloseAndForget(fd);
}

// Bytes of `fd`; empty: it has ended. Only called when poll said that there is something.
std::string ReadSome(int fd) {
  std::string bytes(65536, '\0');
  const ssize_t size = recv(fd, bytes.data(), bytes.size(), 0);
  bytes.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return bytes;
}

// Writes what the socket takes, and keeps the rest. False when the peer has gone.
bool WriteSome(int fd, std::string& pending) {
  if (pending.empty()) return true;
  const ssize_t size = send(fd, pending.data(), pending.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  pending.erase(0, static_cast<size_t>(size));
  return true;
}

// Looks for `pattern` in the stream of which `bytes` come next; `tail` is what the stream ended in.
bool Found(std::string& tail, const std::string& bytes, const std::string& pattern) {
  tail.append(bytes);
  const bool found = tail.find(pattern) != std::string::npos;
  const size_t keep = std::min(tail.size(), pattern.size() - 1);
  tail = found ? "" : tail.substr(tail.size() - keep);
  return found;
}

}  // namespace

struct FaultProxy::Connection {
  int client = -1;
  int server = -1;
  std::string to_client;
  std::string to_server;
  std::string request_tail;
  std::string reply_tail;
  std::string held;    // waits for Release()
  bool holds = false;  // Release() has not been called, or the server has not answered yet
  bool drops_reply = false;

  void Close() {
    CloseAndForget(client);
    CloseAndForget(server);
    holds = false;
  }
  bool Closed() const { return client < 0 && server < 0; }
};

absl::StatusOr<std::unique_ptr<FaultProxy>> FaultProxy::Start(int server_port, int listen_port,
                                                              Wire wire) {
  std::unique_ptr<FaultProxy> proxy(new FaultProxy());
  proxy->wire_ = wire;
  proxy->server_port_ = server_port;
  proxy->listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  proxy->wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  const int on = 1;
  setsockopt(proxy->listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address = Loopback(listen_port);
  socklen_t size = sizeof address;
  if (bind(proxy->listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(proxy->listener_, 512) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("listening on 127.0.0.1:", listen_port));
  }
  getsockname(proxy->listener_, reinterpret_cast<sockaddr*>(&address), &size);
  proxy->port_ = ntohs(address.sin_port);
  proxy->thread_ = std::thread([p = proxy.get()] { p->Serve(); });
  return proxy;
}

FaultProxy::~FaultProxy() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
  }
  Wake();
  if (thread_.joinable()) thread_.join();
  for (Connection& connection : connections_) connection.Close();
  CloseAndForget(listener_);
  CloseAndForget(wake_);
}

void FaultProxy::Set(Mode mode, const std::string& pattern, int times) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    mode_ = mode;
    pattern_ = pattern;
    times_ = times;
    for (Connection& connection : connections_) connection.request_tail.clear();
    if (mode == Mode::kRefuse) ResetLocked();
  }
  Wake();
}

void FaultProxy::Pass() { Set(Mode::kPass, "", 0); }
void FaultProxy::DropReply(const std::string& pattern, int times) {
  Set(Mode::kDropReply, pattern, times);
}
void FaultProxy::DropRequest(const std::string& pattern, int times) {
  Set(Mode::kDropRequest, pattern, times);
}
void FaultProxy::Hold(const std::string& pattern, int times) { Set(Mode::kHold, pattern, times); }
void FaultProxy::Blackhole() { Set(Mode::kBlackhole, "", 0); }
void FaultProxy::Refuse() { Set(Mode::kRefuse, "", 0); }

void FaultProxy::Reset() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ResetLocked();
  }
  Wake();
}

void FaultProxy::Release() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (Connection& connection : connections_) {
    connection.to_server.append(std::exchange(connection.held, ""));
  }
  Wake();
  changed_.wait(lock, [this] {
    return ending_ || std::none_of(connections_.begin(), connections_.end(),
                                   [](const Connection& c) { return c.holds; });
  });
}

int FaultProxy::hits() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return hits_;
}

bool FaultProxy::AwaitHits(int count, absl::Duration patience) const {
  std::unique_lock<std::mutex> lock(mutex_);
  return changed_.wait_for(lock, absl::ToChronoMilliseconds(patience),
                           [&] { return hits_ >= count; });
}

void FaultProxy::Wake() const {
  const uint64_t one = 1;
  // Full means that a wake-up is pending already.
  if (write(wake_, &one, sizeof one) < 0) return;
}

void FaultProxy::Hit() {
  ++hits_;
  changed_.notify_all();
}

void FaultProxy::ResetLocked() {
  for (Connection& connection : connections_) {
    ResetAndForget(connection.client);
    ResetAndForget(connection.server);
    connection.holds = false;
  }
  changed_.notify_all();
}

void FaultProxy::RemoveClosed() {
  connections_.remove_if([](const Connection& connection) { return connection.Closed(); });
  changed_.notify_all();
}

void FaultProxy::Accept() {
  Connection connection;
  connection.client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  if (connection.client < 0) return;
  if (mode_ == Mode::kRefuse) return ResetAndForget(connection.client);
  connection.server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = Loopback(server_port_);
  if (connect(connection.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
      0) {
    ResetAndForget(connection.client);
    return CloseAndForget(connection.server);
  }
  connections_.push_back(std::move(connection));
}

void FaultProxy::ReadClient(Connection& connection) {
  const std::string bytes = ReadSome(connection.client);
  if (bytes.empty()) return connection.Close();
  const bool looks = times_ != 0 && !pattern_.empty() && !connection.drops_reply;
  if (looks && Found(connection.request_tail, bytes, pattern_)) {
    if (times_ > 0) --times_;
    return OnMatch(connection, bytes);
  }
  connection.to_server.append(bytes);
}

void FaultProxy::OnMatch(Connection& connection, const std::string& bytes) {
  switch (mode_) {
    case Mode::kDropReply:
      connection.drops_reply = true;
      connection.to_server.append(bytes);
      return;
    case Mode::kDropRequest:
      ResetAndForget(connection.client);
      CloseAndForget(connection.server);
      return Hit();
    case Mode::kHold:
      ResetAndForget(connection.client);
      connection.held = bytes;
      connection.holds = true;
      return Hit();
    case Mode::kPass:
    case Mode::kBlackhole:
    case Mode::kRefuse:
      connection.to_server.append(bytes);
      return;
  }
}

void FaultProxy::ReadServer(Connection& connection) {
  const std::string bytes = ReadSome(connection.server);
  const bool answered = bytes.empty() || Found(connection.reply_tail, bytes, Ready(wire_));
  if (connection.drops_reply || connection.holds) {
    if (!answered) return;
    if (connection.drops_reply) Hit();
    ResetAndForget(connection.client);
    return connection.Close();
  }
  if (bytes.empty()) return connection.Close();
  connection.to_client.append(bytes);
}

// One round: waits for something to do, then does it under the lock.
void FaultProxy::Serve() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ending_) {
    RemoveClosed();
    std::vector<pollfd> waits{{wake_, POLLIN, 0}, {listener_, POLLIN, 0}};
    std::vector<Connection*> order;
    for (Connection& c : connections_) {
      const bool quiet = mode_ == Mode::kBlackhole;
      const auto wants = [quiet](const std::string& in, const std::string& out) {
        return static_cast<short>(
            quiet ? 0 : (in.size() < kMostPending ? POLLIN : 0) | (out.empty() ? 0 : POLLOUT));
      };
      // A negative descriptor is passed over by poll; a silent one must not report its end.
      waits.push_back({quiet ? -1 : c.client, wants(c.to_server, c.to_client), 0});
      waits.push_back({quiet ? -1 : c.server, wants(c.to_client, c.to_server), 0});
      order.push_back(&c);
    }
    lock.unlock();
    poll(waits.data(), waits.size(), -1);
    lock.lock();
    uint64_t ignored = 0;
    while (read(wake_, &ignored, sizeof ignored) > 0) {
    }
    for (size_t i = 0; i < order.size(); ++i) {
      Connection& c = *order[i];
      // Descriptors may have been closed, or the mode changed, while the lock was away.
      const pollfd& client = waits[2 + 2 * i];
      const pollfd& server = waits[3 + 2 * i];
      const bool quiet = mode_ == Mode::kBlackhole;
      if (!quiet && c.server >= 0 && c.server == server.fd && server.revents & ~POLLOUT) {
        ReadServer(c);
      }
      if (!quiet && c.client >= 0 && c.client == client.fd && client.revents & ~POLLOUT) {
        ReadClient(c);
      }
      if (!quiet && c.client >= 0 && !WriteSome(c.client, c.to_client)) c.Close();
      if (!quiet && c.server >= 0 && !WriteSome(c.server, c.to_server)) c.Close();
    }
    if (waits[1].revents != 0) Accept();
  }
}

}  // namespace matins::testing
