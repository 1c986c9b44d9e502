// Memory that has been freed, as the system sees it.
#ifndef MATINS_BASE_MEMORY_H_
#define MATINS_BASE_MEMORY_H_

namespace matins {

// Gives back to the system what the allocator keeps of what was freed: after work that needed much
// and does not come again soon. Some milliseconds for hundreds of MiB; nothing where the C library
// has no such call. Thread-safe.
void ReturnFreedMemory();

}  // namespace matins

#endif  // MATINS_BASE_MEMORY_H_
