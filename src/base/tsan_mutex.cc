// For thread-sanitizer builds alone. The system's Abseil was built without it, so that it sees a
// lock taken and given back nowhere, and reports every value behind one as a race. These stand
// before the library's own, call them, and tell the sanitizer what orders what.
#include <dlfcn.h>
#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/mutex.h"

extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}

namespace {

// The library's function behind `ours`: the next one of the same, mangled name.
template <typename Ours>
Ours Next(Ours ours) {
  Dl_info info;
  if (dladdr(reinterpret_cast<void*>(ours), &info) == 0 || info.dli_sname == nullptr) {
    __builtin_trap();
  }
  return reinterpret_cast<Ours>(dlsym(RTLD_NEXT, info.dli_sname));
}

// Its own search for deadlocks would be reported as well.
[[maybe_unused]] const bool kNoSearch = [] {
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  return true;
}();

}  // namespace

// A member function is called as a plain one whose first argument is the object.
#pragma GCC diagnostic ignored "-Wpmf-conversions"
#define MATINS_NEXT(type, member) static const auto next = Next((type)(member))

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() {
  MATINS_NEXT(void (*)(Mutex*), &Mutex::Lock);
  next(this);
  __tsan_acquire(this);
}

void Mutex::Unlock() {
  MATINS_NEXT(void (*)(Mutex*), &Mutex::Unlock);
  __tsan_release(this);
  next(this);
}

bool Mutex::AwaitCommon(const Condition& cond, synchronization_internal::KernelTimeout t) {
  MATINS_NEXT(bool (*)(Mutex*, const Condition&, synchronization_internal::KernelTimeout),
              &Mutex::AwaitCommon);
  __tsan_release(this);
  const bool met = next(this, cond, t);
  __tsan_acquire(this);
  return met;
}

bool CondVar::WaitCommon(Mutex* mutex, synchronization_internal::KernelTimeout t) {
  MATINS_NEXT(bool (*)(CondVar*, Mutex*, synchronization_internal::KernelTimeout),
              &CondVar::WaitCommon);
  __tsan_release(mutex);
  const bool timed_out = next(this, mutex, t);
  __tsan_acquire(mutex);
  return timed_out;
}

// Conditions are looked at by whoever gives the lock back, after it was told to the sanitizer.
bool Condition::Eval() const {
  MATINS_NEXT(bool (*)(const Condition*), &Condition::Eval);
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  const bool met = next(this);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  return met;
}

ABSL_NAMESPACE_END
}  // namespace absl
