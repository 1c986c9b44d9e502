#include "library/test_clock.h"

#include <algorithm>

namespace matins {
inline namespace api {

TestClock::TestClock(absl::Time now) : impl_(std::make_unique<Impl>(now)) {}
TestClock::~TestClock() = default;

absl::Time TestClock::Now() const { return impl_->clock.WallNow(); }
void TestClock::Advance(absl::Duration d) {
  impl_->clock.Advance(std::max(d, absl::ZeroDuration()));
}
void TestClock::AdvanceTo(absl::Time t) { Advance(t - Now()); }

}  // namespace api
}  // namespace matins
