// A TCP connection whose every wait has an end.
#ifndef MATINS_LEASE_SOCKET_H_
#define MATINS_LEASE_SOCKET_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"

struct addrinfo;

namespace matins {

class TlsSession;

// Which TLS, where there is any.
struct TlsFiles {
  bool on = false;
  std::string ca, cert, key;  // files; no CA: the system's
};

// Not thread-safe. Every `until` is an instant of clock.BootNow(); what has not come by then is
// Unavailable, and the connection is of no use any more. A peer that has gone never raises SIGPIPE.
class Socket {
 public:
  // Tries each address of `host` in turn. With TLS the server's certificate has to be of `host` and
  // of a CA that is trusted. (A name service that hangs is not held to `until`.)
  static absl::StatusOr<std::unique_ptr<Socket>> Connect(Clock& clock, const std::string& host,
                                                         int port, const TlsFiles& tls,
                                                         absl::Duration until);
  ~Socket();

  absl::Status Send(absl::string_view bytes, absl::Duration until);
  // At least one byte, appended to `bytes`.
  absl::Status Receive(std::string& bytes, absl::Duration until);

 private:
  explicit Socket(Clock& clock);

  absl::Status ConnectTo(const addrinfo& address, absl::Duration until);
  absl::Status Handshake(const std::string& host, const TlsFiles& tls, absl::Duration until);
  // Returns once the descriptor is ready for `events` of poll(2).
  absl::Status Await(short events, absl::Duration until);
  absl::Status SendRaw(absl::string_view bytes, absl::Duration until);
  absl::Status ReceiveRaw(std::string& bytes, absl::Duration until);

  Clock& clock_;
  int fd_ = -1;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace matins

#endif  // MATINS_LEASE_SOCKET_H_
