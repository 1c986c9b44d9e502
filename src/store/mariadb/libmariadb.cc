#include "store/mariadb/libmariadb.h"

#include "base/client_library.h"

namespace matins::mariadb {
namespace {

struct Loaded {
  Loaded()
      : status(LoadClientLibrary("libmariadb.so.3", "libmariadb3",
                                 {
#define MATINS_LIBMARIADB_FUNCTION(name) {#name, reinterpret_cast<void**>(&library.name)},
                                     MATINS_LIBMARIADB_FUNCTIONS(MATINS_LIBMARIADB_FUNCTION)
#undef MATINS_LIBMARIADB_FUNCTION
                                 })) {
  }
  Libmariadb library;
  absl::Status status;
};

const Loaded& Load() {
  static const Loaded* const loaded = new Loaded;
  return *loaded;
}

}  // namespace

absl::Status LoadLibmariadb() { return Load().status; }
const Libmariadb& Client() { return Load().library; }

}  // namespace matins::mariadb
