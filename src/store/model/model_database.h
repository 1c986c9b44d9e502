// The store in memory: it answers what every store must answer, by the plainest means there are. It
// predicts the right answer in tests, in the simulator and for `matins simulate`; no promise counts
// as proved on it.
#ifndef MATINS_STORE_MODEL_MODEL_DATABASE_H_
#define MATINS_STORE_MODEL_MODEL_DATABASE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "job/values.h"
#include "store/database.h"

namespace matins::model {

struct State;

class ModelDatabase final : public Database {
 public:
  explicit ModelDatabase(DatabaseOptions options);
  ~ModelDatabase() override;
  absl::Status Migrate() override;
  absl::StatusOr<std::unique_ptr<Store>> Open() override;
  absl::StatusOr<std::unique_ptr<ActStore>> OpenActs() override;
  absl::StatusOr<absl::Duration> ShortestLease() override;
  absl::StatusOr<SchemaCheck> Check() override;
  absl::Status Backup(const std::string& path) override;   // FailedPrecondition: nothing to copy
  absl::Status Restore(const std::string& path) override;  // the same
  std::string Describe() const override;

  // As a person deletes a watermark row: a reopened event, a gap, and a lock that outlasts the row.
  absl::Status DeleteRow(const PeriodKey& key);
  // As another program writes one that did the work itself: a DONE row of the four well-known
  // columns, its day the first ten characters of the period. AlreadyExists where there is a row.
  absl::Status InsertDoneRow(const PeriodKey& key);

  // As a run with `commit: job` writes its DONE: with what plain SQL reads off the clock, `instant`
  // in whole milliseconds for the lease and `finished` for the row. False: refused.
  bool CommitByJob(const PeriodKey& key, int generation, int64_t fence, absl::Time instant,
                   absl::Time finished);
  // Takes out DONE and SKIPPED rows of the job, all but the newest `keep`, as though their history
  // had been removed: for long simulations, since the model looks at all that it has.
  std::vector<PeriodRow> TakeSettled(const std::string& job, size_t keep);

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace matins::model

#endif  // MATINS_STORE_MODEL_MODEL_DATABASE_H_
