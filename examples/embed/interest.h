// The handler of the example: the interest of each account, by business date, one step an account
// and a checkpoint after each.
#ifndef EXAMPLES_EMBED_INTEREST_H_
#define EXAMPLES_EMBED_INTEREST_H_

#include "absl/time/civil_time.h"
#include "matins/scheduler.h"

inline constexpr int kAccounts = 5;

class Interest {
 public:
  // The first attempt fails once at account `crash_at`; 0: none does.
  explicit Interest(int crash_at) : crash_at_(crash_at) {}
  absl::Status Run(matins::RunContext& run);

 private:
  int crash_at_;
};

// Nightly at one o'clock for the day before, owed from the business date `first` on.
matins::Job NightlyInterest(absl::CivilDay first);

#endif  // EXAMPLES_EMBED_INTEREST_H_
