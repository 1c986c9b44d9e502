#include "store/postgresql/libpq.h"

#include "base/client_library.h"

namespace matins::postgresql {
namespace {

absl::Status Fill(Libpq& library) {
#define MATINS_LIBPQ_FUNCTION(name) {#name, reinterpret_cast<void**>(&library.name)},
  return LoadClientLibrary("libpq.so.5", "libpq5", {MATINS_LIBPQ_FUNCTIONS(MATINS_LIBPQ_FUNCTION)});
#undef MATINS_LIBPQ_FUNCTION
}

using Loaded = LoadedOnce<Libpq, Fill>;

}  // namespace

absl::Status LoadLibpq() { return Loaded::Get().status; }
const Libpq& Pq() { return Loaded::Get().library; }

}  // namespace matins::postgresql
