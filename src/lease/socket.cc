#include "lease/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "lease/tls.h"

namespace matins {
namespace {

absl::Status Away(absl::string_view what, int error) {
  return StoreAwayError(absl::StrCat(what, ": ", std::strerror(error)));
}

bool WouldBlock(int error) { return error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Socket::Socket(Clock& clock) : clock_(clock) {}

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<Socket>> Socket::Connect(Clock& clock, const std::string& host,
                                                        int port, const TlsFiles& tls,
                                                        absl::Duration until) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), absl::StrCat(port).c_str(), &hints, &found);
  if (failed != 0) return StoreAwayError(absl::StrCat(host, ": ", gai_strerror(failed)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, freeaddrinfo);
  absl::Status last = StoreAwayError(absl::StrCat(host, " has no address"));
  for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
    std::unique_ptr<Socket> socket(new Socket(clock));
    last = socket->ConnectTo(*address, until);
    if (last.ok() && tls.on) last = socket->Handshake(host, tls, until);
    if (last.ok()) return socket;
  }
  return last;
}

absl::Status Socket::ConnectTo(const addrinfo& address, absl::Duration until) {
  fd_ = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return Away("no socket", errno);
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (connect(fd_, address.ai_addr, address.ai_addrlen) == 0) return absl::OkStatus();
  if (errno != EINPROGRESS) return Away("cannot connect", errno);
  RETURN_IF_ERROR(Await(POLLOUT, until));
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(fd_, SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 ? absl::OkStatus() : Away("cannot connect", error);
}

absl::Status Socket::Handshake(const std::string& host, const TlsFiles& tls, absl::Duration until) {
  ASSIGN_OR_RETURN(tls_, TlsSession::Open(host, tls));
  for (;;) {
    const absl::StatusOr<bool> done = tls_->Handshake();
    RETURN_IF_ERROR(SendRaw(tls_->TakeOutgoing(), until));
    RETURN_IF_ERROR(done.status());
    if (*done) return absl::OkStatus();
    std::string bytes;
    RETURN_IF_ERROR(ReceiveRaw(bytes, until));
    tls_->PutIncoming(bytes);
  }
}

absl::Status Socket::Await(short events, absl::Duration until) {
  for (;;) {
    const absl::Duration left = until - clock_.BootNow();
    if (left <= absl::ZeroDuration()) return StoreAwayError("no answer in time");
    pollfd asked{fd_, events, 0};
    const int64_t ms = absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)));
    const int ready = poll(&asked, 1, static_cast<int>(std::min<int64_t>(ms, 60'000)));
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return Away("poll", errno);
  }
}

absl::Status Socket::SendRaw(absl::string_view bytes, absl::Duration until) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (WouldBlock(errno)) {
      RETURN_IF_ERROR(Await(POLLOUT, until));
    } else if (errno != EINTR) {
      return Away("the connection broke", errno);
    }
  }
  return absl::OkStatus();
}

absl::Status Socket::ReceiveRaw(std::string& bytes, absl::Duration until) {
  char buffer[16 << 10];
  for (;;) {
    const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
    if (got > 0) {
      bytes.append(buffer, static_cast<size_t>(got));
      return absl::OkStatus();
    }
    if (got == 0) return StoreAwayError("the server closed the connection");
    if (WouldBlock(errno)) {
      RETURN_IF_ERROR(Await(POLLIN, until));
    } else if (errno != EINTR) {
      return Away("the connection broke", errno);
    }
  }
}

absl::Status Socket::Send(absl::string_view bytes, absl::Duration until) {
  if (tls_ == nullptr) return SendRaw(bytes, until);
  RETURN_IF_ERROR(tls_->Encrypt(bytes));
  return SendRaw(tls_->TakeOutgoing(), until);
}

absl::Status Socket::Receive(std::string& bytes, absl::Duration until) {
  if (tls_ == nullptr) return ReceiveRaw(bytes, until);
  for (;;) {
    ASSIGN_OR_RETURN(const bool some, tls_->Decrypt(bytes));
    if (some) return absl::OkStatus();
    std::string raw;
    RETURN_IF_ERROR(ReceiveRaw(raw, until));
    tls_->PutIncoming(raw);
  }
}

}  // namespace matins
