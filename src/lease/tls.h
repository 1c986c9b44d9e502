// TLS between memory and memory: whoever has the socket moves the bytes.
#ifndef MATINS_LEASE_TLS_H_
#define MATINS_LEASE_TLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "lease/socket.h"

struct ssl_st;
struct ssl_ctx_st;

namespace matins {

// A client's session, TLS 1.2 or newer. Not thread-safe.
class TlsSession {
 public:
  // InvalidArgument where a file of `files` cannot be used.
  static absl::StatusOr<std::unique_ptr<TlsSession>> Open(const std::string& host,
                                                          const TlsFiles& files);
  ~TlsSession();

  // Goes on with it; true: done. PermissionDenied, with the reason, where the certificate is not
  // the server's or not trusted.
  absl::StatusOr<bool> Handshake();
  absl::Status Encrypt(absl::string_view bytes);
  // Appends what has come in whole; true: something had.
  absl::StatusOr<bool> Decrypt(std::string& bytes);
  void PutIncoming(absl::string_view raw);
  std::string TakeOutgoing();

 private:
  TlsSession() = default;
  ssl_ctx_st* context_ = nullptr;
  ssl_st* ssl_ = nullptr;
};

}  // namespace matins

#endif  // MATINS_LEASE_TLS_H_
