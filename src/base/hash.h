// A hash that is the same on every host and in every version: what is derived from it may be
// stored.
#ifndef MATINS_BASE_HASH_H_
#define MATINS_BASE_HASH_H_

#include <cstdint>

#include "absl/strings/string_view.h"

namespace matins {

// FNV-1a, 64 bits. Its high bits are alike for texts that differ at the end.
inline uint64_t Fnv1a(absl::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace matins

#endif  // MATINS_BASE_HASH_H_
