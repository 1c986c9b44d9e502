#include "base/openssl.h"

#include "base/client_library.h"

// The version whose headers these are: 3 is libssl.so.3, of Debian's package libssl3 or libssl3t64.
#define MATINS_TEXT_OF(number) #number
#define MATINS_TEXT(number) MATINS_TEXT_OF(number)
#define MATINS_OPENSSL_VERSION MATINS_TEXT(OPENSSL_SHLIB_VERSION)

namespace matins {
namespace {

#define MATINS_OPENSSL_FUNCTION(name) {#name, reinterpret_cast<void**>(&openssl.name)},

absl::Status Fill(Openssl& openssl) {
  const absl::Status status =
      LoadClientLibrary("libcrypto.so." MATINS_OPENSSL_VERSION, "libssl" MATINS_OPENSSL_VERSION,
                        {MATINS_LIBCRYPTO_FUNCTIONS(MATINS_OPENSSL_FUNCTION)});
  if (!status.ok()) return status;
  return LoadClientLibrary("libssl.so." MATINS_OPENSSL_VERSION, "libssl" MATINS_OPENSSL_VERSION,
                           {MATINS_LIBSSL_FUNCTIONS(MATINS_OPENSSL_FUNCTION)});
}

#undef MATINS_OPENSSL_FUNCTION

struct Loaded {
  Openssl library;
  absl::Status status = Fill(library);
};

const Loaded& Load() {
  static const Loaded* const loaded = new Loaded;
  return *loaded;
}

}  // namespace

absl::Status LoadOpenssl() { return Load().status; }
const Openssl& Ossl() { return Load().library; }

}  // namespace matins
