// A running job's output as it comes, its first and last bytes, for those who follow it.
#ifndef MATINS_ENGINE_LIVE_OUTPUT_H_
#define MATINS_ENGINE_LIVE_OUTPUT_H_

#include <algorithm>
#include <cstdint>
#include <string>

#include "execute/runner.h"

namespace matins {

class LiveOutput {
 public:
  explicit LiveOutput(OutputLimits limits) : limits_(limits) {}

  void Append(const RunOutput& part) {
    changed_ = true;
    bytes_ = std::max(bytes_, part.offset + static_cast<int64_t>(part.bytes.size()));
    size_t used = 0;
    if (part.offset == static_cast<int64_t>(head_.size()) && tail_.empty()) {
      used = std::min(part.bytes.size(), static_cast<size_t>(limits_.head_bytes) - head_.size());
      head_.append(part.bytes, 0, used);
    }
    tail_.append(part.bytes, used, std::string::npos);
    if (tail_.size() > static_cast<size_t>(limits_.tail_bytes)) {
      tail_.erase(0, tail_.size() - static_cast<size_t>(limits_.tail_bytes));
    }
  }
  // Whether there is anything new since it was last asked.
  bool TakeChanged() { return std::exchange(changed_, false); }
  bool changed() const { return changed_; }
  const std::string& head() const { return head_; }
  const std::string& tail() const { return tail_; }
  int64_t bytes() const { return bytes_; }

 private:
  OutputLimits limits_;
  std::string head_;
  std::string tail_;
  int64_t bytes_ = 0;
  bool changed_ = false;
};

}  // namespace matins

#endif  // MATINS_ENGINE_LIVE_OUTPUT_H_
