// A clock for your tests: nothing waits, nothing sleeps, and a month passes in a second.
//
//   matins::TestClock clock(absl::FromCivil(absl::CivilSecond(2026, 10, 1), zone));
//   matins::SchedulerOptions options;
//   options.clock = &clock;                    // and no store: a file of its own
//   ... Open, AddHandler, Apply, Start ...
//   clock.AdvanceTo(one_in_the_morning);
//   scheduler->Step();                         // the handler has run when it returns
//
// The SQL, the lanes and the leases are those that ship; only the clock is another.
#ifndef MATINS_TESTING_H_
#define MATINS_TESTING_H_

#include <memory>

#include "absl/time/time.h"

namespace matins {
inline namespace api {

// Thread-safe.
class TestClock {
 public:
  explicit TestClock(absl::Time now);
  ~TestClock();
  TestClock(const TestClock&) = delete;
  TestClock& operator=(const TestClock&) = delete;

  absl::Time Now() const;
  // Not negative. What came due on the way is done by the next Step, late: to see a job start on
  // time, move to its instant.
  void Advance(absl::Duration d);
  void AdvanceTo(absl::Time t);

  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  const std::unique_ptr<Impl> impl_;
};

}  // namespace api
}  // namespace matins

#endif  // MATINS_TESTING_H_
