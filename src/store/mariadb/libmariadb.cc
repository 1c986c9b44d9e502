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

using Loaded = LoadedOnce<Libmariadb, Fill>;

}  // namespace

absl::Status LoadLibmariadb() { return Loaded::Get().status; }
const Libmariadb& Client() { return Loaded::Get().library; }

}  // namespace matins::mariadb
