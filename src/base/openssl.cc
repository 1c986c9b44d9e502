#include "base/openssl.h"

#include "base/client_library.h"
#include "base/status.h"

// The version whose headers these are: 3 is libssl.so.3, of Debian's package libssl3 or libssl3t64.
#define MATINS_TEXT_OF(number) #number
#define MATINS_TEXT(number) MATINS_TEXT_OF(number)
#define MATINS_OPENSSL_VERSION MATINS_TEXT(OPENSSL_SHLIB_VERSION)

namespace matins {
namespace {

#define MATINS_OPENSSL_FUNCTION(name) {#name, reinterpret_cast<void**>(&openssl.name)},

absl::Status Fill(Openssl& openssl) {
  RETURN_IF_ERROR(LoadClientLibrary("libcrypto.so." MATINS_OPENSSL_VERSION,
                                    "libssl" MATINS_OPENSSL_VERSION,
                                    {MATINS_LIBCRYPTO_FUNCTIONS(MATINS_OPENSSL_FUNCTION)}));
  return LoadClientLibrary("libssl.so." MATINS_OPENSSL_VERSION, "libssl" MATINS_OPENSSL_VERSION,
                           {MATINS_LIBSSL_FUNCTIONS(MATINS_OPENSSL_FUNCTION)});
}

#undef MATINS_OPENSSL_FUNCTION

using Loaded = LoadedOnce<Openssl, Fill>;

}  // namespace

absl::Status LoadOpenssl() { return Loaded::Get().status; }
const Openssl& Ossl() { return Loaded::Get().library; }

}  // namespace matins
