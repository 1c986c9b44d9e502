// Waits for something that others bring about.
#ifndef MATINS_TESTS_SUPPORT_EVENTUALLY_H_
#define MATINS_TESTS_SUPPORT_EVENTUALLY_H_

#include "absl/functional/function_ref.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace matins::testing {

// Whether it held within a minute, asked each millisecond.
inline bool Eventually(absl::FunctionRef<bool()> holds) {
  const absl::Time until = absl::Now() + absl::Seconds(60);
  while (!holds() && absl::Now() < until) absl::SleepFor(absl::Milliseconds(1));
  return holds();
}

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_EVENTUALLY_H_
