// A program that this one carries, as a file in memory that nobody can change.
#ifndef MATINS_BASE_SEALED_MEMORY_H_
#define MATINS_BASE_SEALED_MEMORY_H_

#include "absl/strings/string_view.h"

namespace matins {

// All of it, however many write(2) that takes. False: errno says why not.
bool WriteAll(int fd, absl::string_view bytes);

// A memfd with these bytes, sealed against every change, close-on-exec; -1: errno says why not.
int SealedMemory(const char* name, absl::string_view bytes);

}  // namespace matins

#endif  // MATINS_BASE_SEALED_MEMORY_H_
