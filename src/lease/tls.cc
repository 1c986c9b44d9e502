#include "lease/tls.h"

#include <arpa/inet.h>

#include "absl/strings/str_cat.h"
#include "base/openssl.h"
#include "base/status.h"

namespace matins {
namespace {

std::string Reason() {
  char text[256] = "no reason given";
  if (const unsigned long code = Ossl().ERR_get_error(); code != 0) {  // NOLINT: the library's type
    Ossl().ERR_error_string_n(code, text, sizeof text);
  }
  Ossl().ERR_clear_error();
  return text;
}

absl::Status UseFiles(SSL_CTX* context, const TlsFiles& files) {
  if (files.ca.empty()) {
    Ossl().SSL_CTX_set_default_verify_paths(context);
  } else if (Ossl().SSL_CTX_load_verify_locations(context, files.ca.c_str(), nullptr) != 1) {
    return BadInput("tls_ca", absl::StrCat(files.ca, ": ", Reason()), "name a PEM file of the CA");
  }
  if (files.cert.empty()) return absl::OkStatus();
  if (Ossl().SSL_CTX_use_certificate_chain_file(context, files.cert.c_str()) != 1) {
    return BadInput("tls_cert", absl::StrCat(files.cert, ": ", Reason()), "name a PEM file");
  }
  if (Ossl().SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return BadInput("tls_key", absl::StrCat(files.key, ": ", Reason()),
                    "name the PEM file of the certificate's key");
  }
  return absl::OkStatus();
}

// A name, or an address as such certificates have it.
void ExpectHost(SSL* ssl, const std::string& host) {
  unsigned char address[16];
  if (inet_pton(AF_INET, host.c_str(), address) == 1 ||
      inet_pton(AF_INET6, host.c_str(), address) == 1) {
    Ossl().X509_VERIFY_PARAM_set1_ip_asc(Ossl().SSL_get0_param(ssl), host.c_str());
    return;
  }
  Ossl().SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
                  const_cast<char*>(host.c_str()));
  Ossl().SSL_set1_host(ssl, host.c_str());
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsSession>> TlsSession::Open(const std::string& host,
                                                             const TlsFiles& files) {
  RETURN_IF_ERROR(LoadOpenssl());
  std::unique_ptr<TlsSession> session(new TlsSession);
  session->context_ = Ossl().SSL_CTX_new(Ossl().TLS_client_method());
  if (session->context_ == nullptr) return absl::InternalError(absl::StrCat("TLS: ", Reason()));
  Ossl().SSL_CTX_ctrl(session->context_, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, nullptr);
  Ossl().SSL_CTX_set_verify(session->context_, SSL_VERIFY_PEER, nullptr);
  RETURN_IF_ERROR(UseFiles(session->context_, files));
  session->ssl_ = Ossl().SSL_new(session->context_);
  if (session->ssl_ == nullptr) return absl::InternalError(absl::StrCat("TLS: ", Reason()));
  Ossl().SSL_set_bio(session->ssl_, Ossl().BIO_new(Ossl().BIO_s_mem()),
                     Ossl().BIO_new(Ossl().BIO_s_mem()));
  Ossl().SSL_set_connect_state(session->ssl_);
  ExpectHost(session->ssl_, host);
  return session;
}

TlsSession::~TlsSession() {
  Ossl().SSL_free(ssl_);
  Ossl().SSL_CTX_free(context_);
}

absl::StatusOr<bool> TlsSession::Handshake() {
  const int done = Ossl().SSL_do_handshake(ssl_);
  if (done == 1) return true;
  if (Ossl().SSL_get_error(ssl_, done) == SSL_ERROR_WANT_READ) return false;
  if (const long verdict = Ossl().SSL_get_verify_result(ssl_); verdict != X509_V_OK) {  // NOLINT
    Ossl().ERR_clear_error();
    return absl::PermissionDeniedError(absl::StrCat(
        "its certificate is not to be trusted: ", Ossl().X509_verify_cert_error_string(verdict),
        "; name the CA with tls_ca=FILE, and the server as its certificate does"));
  }
  return StoreAwayError(absl::StrCat("TLS: ", Reason()));
}

absl::Status TlsSession::Encrypt(absl::string_view bytes) {
  if (bytes.empty()) return absl::OkStatus();
  const int written = Ossl().SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
  return written > 0 ? absl::OkStatus() : StoreAwayError(absl::StrCat("TLS: ", Reason()));
}

absl::StatusOr<bool> TlsSession::Decrypt(std::string& bytes) {
  char buffer[16 << 10];
  bool some = false;
  for (;;) {
    const int got = Ossl().SSL_read(ssl_, buffer, sizeof buffer);
    if (got > 0) {
      bytes.append(buffer, static_cast<size_t>(got));
      some = true;
      continue;
    }
    const int why = Ossl().SSL_get_error(ssl_, got);
    if (some || why == SSL_ERROR_WANT_READ) return some;
    if (why == SSL_ERROR_ZERO_RETURN) return StoreAwayError("the server closed the connection");
    return StoreAwayError(absl::StrCat("TLS: ", Reason()));
  }
}

void TlsSession::PutIncoming(absl::string_view raw) {
  Ossl().BIO_write(Ossl().SSL_get_rbio(ssl_), raw.data(), static_cast<int>(raw.size()));
}

std::string TlsSession::TakeOutgoing() {
  BIO* const bio = Ossl().SSL_get_wbio(ssl_);
  std::string out(Ossl().BIO_ctrl_pending(bio), '\0');
  if (!out.empty()) Ossl().BIO_read(bio, out.data(), static_cast<int>(out.size()));
  return out;
}

}  // namespace matins
