#include "store/mariadb/libmariadb.h"

#include "base/client_library.h"

namespace matins::mariadb {
namespace {

absl::Status Fill(Libmariadb& library) {
#define MATINS_LIBMARIADB_FUNCTION(name) {#name, reinterpret_cast<void**>(&library.name)},
  return LoadClientLibrary("libmariadb.so.3", "libmariadb3",
                           {MATINS_LIBMARIADB_FUNCTIONS(MATINS_LIBMARIADB_FUNCTION)});
#undef MATINS_LIBMARIADB_FUNCTION
}

struct Loaded {
  Libmariadb library;
  absl::Status status = Fill(library);
};

const Loaded& Load() {
  static const Loaded* const loaded = new Loaded;
  return *loaded;
}

}  // namespace

absl::Status LoadLibmariadb() { return Load().status; }
const Libmariadb& Client() { return Load().library; }

}  // namespace matins::mariadb
