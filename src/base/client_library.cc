#include "base/client_library.h"

#include <dlfcn.h>

#include "absl/strings/str_cat.h"

namespace matins {

absl::Status LoadClientLibrary(const char* file, absl::string_view package,
                               absl::Span<const LibraryFunction> functions) {
  // A program that has the library already, as an embedding one may, shares its copy.
  void* const library = dlopen(file, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(dlerror(), "; install the package ", package));
  }
  for (const LibraryFunction& function : functions) {
    *function.at = dlsym(library, function.name);
    if (*function.at == nullptr) {
      return absl::FailedPreconditionError(absl::StrCat(
          file, " has no ", function.name, "; install a newer version of the package ", package));
    }
  }
  return absl::OkStatus();
}

}  // namespace matins
