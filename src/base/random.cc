#include "base/random.h"

#include <sys/random.h>

#include <cstdlib>

#include "absl/strings/str_format.h"

namespace matins {

uint64_t Random::Below(uint64_t below) {
  const uint64_t limit = UINT64_MAX - UINT64_MAX % below;
  uint64_t x = Next();
  while (x >= limit) x = Next();
  return x % below;
}

std::string Random::Hex128() {
  const uint64_t high = Next(), low = Next();
  return absl::StrFormat("%016x%016x", high, low);
}

uint64_t SystemRandom::Next() {
  uint64_t x = 0;
  // At most 256 bytes never come short once the pool is ready; without it there is no safe way on.
  if (getrandom(&x, sizeof x, 0) != sizeof x) std::abort();
  return x;
}

}  // namespace matins
