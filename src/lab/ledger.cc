#include "lab/ledger.h"

namespace matins {

std::optional<int64_t> Ledger::Raise(const PeriodKey& key, int generation, int64_t fence) {
  Mark& mark = marks_[key];
  if (fence < mark.fence) {
    ++refused_;
    return std::nullopt;
  }
  mark.fence = fence;
  if (generation > mark.generation) mark = {fence, 0, generation};
  return mark.step;
}

bool Ledger::Step(const PeriodKey& key, int64_t fence, int64_t step, absl::Time at) {
  Mark& mark = marks_[key];
  if (fence != mark.fence || step != mark.step + 1) {
    ++refused_;
    return false;
  }
  mark.step = step;
  Book(key, fence, step, at);
  return true;
}

void Ledger::Book(const PeriodKey& key, int64_t fence, int64_t step, absl::Time at) {
  // The idempotency key has no generation: a re-run does not pay twice.
  if (done_.emplace(std::pair(key, step), fence).second) effects_.push_back({key, step, fence, at});
}

}  // namespace matins
