// A server's client library, loaded when the first connection asks for it. Linked in, those of
// PostgreSQL and MariaDB bring two dozen libraries (TLS twice, Kerberos, LDAP) with them, and cost
// each command on a SQLite store 7 ms.
#ifndef MATINS_BASE_CLIENT_LIBRARY_H_
#define MATINS_BASE_CLIENT_LIBRARY_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace matins {

struct LibraryFunction {
  const char* name;
  void** at;  // becomes its address
};

// Loads `file` (its soname: "libpq.so.5") for good, and finds the functions in it. `package` names
// what to install. Any thread. Errors: FailedPrecondition, with the loader's reason and the mend;
// then addresses may be missing.
absl::Status LoadClientLibrary(const char* file, absl::string_view package,
                               absl::Span<const LibraryFunction> functions);

// The functions of a library, and what kFill, which loads them, said; once a process.
template <typename Library, absl::Status (*kFill)(Library&)>
struct LoadedOnce {
  static const LoadedOnce& Get() {
    static const LoadedOnce* const loaded = new LoadedOnce;
    return *loaded;
  }
  Library library;
  absl::Status status = kFill(library);
};

}  // namespace matins

#endif  // MATINS_BASE_CLIENT_LIBRARY_H_
