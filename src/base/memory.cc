#include "base/memory.h"

#include <features.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace matins {

void ReturnFreedMemory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace matins
