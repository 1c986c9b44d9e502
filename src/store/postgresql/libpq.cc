#include "store/postgresql/libpq.h"

#include "base/client_library.h"

namespace matins::postgresql {
namespace {

absl::Status Fill(Libpq& library) {
#define MATINS_LIBPQ_FUNCTION(name) {#name, reinterpret_cast<void**>(&library.name)},
  return LoadClientLibrary("libpq.so.5", "libpq5", {MATINS_LIBPQ_FUNCTIONS(MATINS_LIBPQ_FUNCTION)});
#undef MATINS_LIBPQ_FUNCTION
}

struct Loaded {
  Libpq library;
  absl::Status status = Fill(library);
};

const Loaded& Load() {
  static const Loaded* const loaded = new Loaded;
  return *loaded;
}

}  // namespace

absl::Status LoadLibpq() { return Load().status; }
const Libpq& Pq() { return Load().library; }

}  // namespace matins::postgresql
