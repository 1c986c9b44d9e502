// OpenSSL's functions, loaded when the first of them is needed (base/client_library.h): most
// commands speak no TLS and sign nothing. For sources only: it brings OpenSSL's headers.
#ifndef MATINS_BASE_OPENSSL_H_
#define MATINS_BASE_OPENSSL_H_

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "absl/status/status.h"

// clang-format off
#define MATINS_LIBCRYPTO_FUNCTIONS(F)                                                          \
  F(BIO_ctrl_pending) F(BIO_new) F(BIO_read) F(BIO_s_mem) F(BIO_write) F(ERR_clear_error)      \
  F(ERR_error_string_n) F(ERR_get_error) F(EVP_sha256) F(HMAC)                                 \
  F(X509_VERIFY_PARAM_set1_ip_asc) F(X509_verify_cert_error_string)
#define MATINS_LIBSSL_FUNCTIONS(F)                                                             \
  F(SSL_CTX_ctrl) F(SSL_CTX_free) F(SSL_CTX_load_verify_locations) F(SSL_CTX_new)              \
  F(SSL_CTX_set_default_verify_paths) F(SSL_CTX_set_verify) F(SSL_CTX_use_PrivateKey_file)     \
  F(SSL_CTX_use_certificate_chain_file) F(SSL_ctrl) F(SSL_do_handshake) F(SSL_free)            \
  F(SSL_get0_param) F(SSL_get_error) F(SSL_get_rbio) F(SSL_get_verify_result) F(SSL_get_wbio)  \
  F(SSL_new) F(SSL_read) F(SSL_set1_host) F(SSL_set_bio) F(SSL_set_connect_state)              \
  F(SSL_write) F(TLS_client_method)
// clang-format on

namespace matins {

struct Openssl {
#define MATINS_OPENSSL_MEMBER(name) decltype(&::name) name = nullptr;
  MATINS_LIBCRYPTO_FUNCTIONS(MATINS_OPENSSL_MEMBER)
  MATINS_LIBSSL_FUNCTIONS(MATINS_OPENSSL_MEMBER)
#undef MATINS_OPENSSL_MEMBER
};

// Loads it, once a process; asked before the first use of Ossl(). Errors: as LoadClientLibrary's.
absl::Status LoadOpenssl();
const Openssl& Ossl();

}  // namespace matins

#endif  // MATINS_BASE_OPENSSL_H_
