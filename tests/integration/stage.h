// A store on any URL with one job and its plans, and the verbs for one row.
#ifndef MATINS_TESTS_INTEGRATION_STAGE_H_
#define MATINS_TESTS_INTEGRATION_STAGE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "store/database.h"
#include "tests/support/assert_ok.h"

namespace matins::testing {

// Of period n; keys sort as numbers do.
PeriodKey KeyOf(absl::string_view job, int n);

struct Stage {
  std::unique_ptr<Database> database;
  std::unique_ptr<Store> store;
  std::unique_ptr<ActStore> acts;

  // Migrates, and opens both stores.
  static absl::StatusOr<Stage> Open(const std::string& url,
                                    absl::Duration deadline = absl::Seconds(10));
  // Overlap allow, no lock: any number of its periods run at a time.
  absl::Status Apply(absl::string_view job, absl::Duration lease = absl::Minutes(10));
  // Periods `from` up to `to`, due so long from now.
  absl::Status Plan(absl::string_view job, int from, int to, absl::Duration in = -absl::Hours(1));
  absl::StatusOr<Claim> Claimed(const PeriodKey& key, absl::string_view node = "n1");
  absl::StatusOr<PeriodRow> Row(const PeriodKey& key);
};

FinishRequest DoneOf(const Claim& claim);

#if MATINS_LAB
// A person suspends a job while a START of a row of it, that nobody had held, has read the job and
// stands before its commit. Answers whether the act was through before the START was: then the job
// is started after a person was told that it starts no more. `blocked`: whether somebody waits for
// a lock in the store at `url`.
absl::StatusOr<bool> SuspendOvertakesStart(const std::string& url,
                                           const std::function<bool()>& blocked);
#endif

}  // namespace matins::testing

#endif  // MATINS_TESTS_INTEGRATION_STAGE_H_
