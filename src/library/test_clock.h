#ifndef MATINS_LIBRARY_TEST_CLOCK_H_
#define MATINS_LIBRARY_TEST_CLOCK_H_

#include "base/clock.h"
#include "matins/testing.h"

namespace matins {
inline namespace api {

struct TestClock::Impl {
  explicit Impl(absl::Time now) : clock(now) {}
  ManualClock clock;
};

}  // namespace api
}  // namespace matins

#endif  // MATINS_LIBRARY_TEST_CLOCK_H_
