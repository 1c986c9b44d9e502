// Values that one lane hands to another.
#ifndef MATINS_ENGINE_MAILBOX_H_
#define MATINS_ENGINE_MAILBOX_H_

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace matins {

// Thread-safe; in order. What lies here is a hint or a copy of what the store knows: losing it in a
// crash loses nothing.
template <typename T>
class Mailbox {
 public:
  void Put(T value) {
    absl::MutexLock lock(&mutex_);
    values_.push_back(std::move(value));
  }
  std::vector<T> TakeAll() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(values_, {});
  }
  bool empty() const {
    absl::MutexLock lock(&mutex_);
    return values_.empty();
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<T> values_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace matins

#endif  // MATINS_ENGINE_MAILBOX_H_
