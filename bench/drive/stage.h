// A store as a measurement wants it: schema, jobs, planned rows, and at rest.
#ifndef MATINS_BENCH_DRIVE_STAGE_H_
#define MATINS_BENCH_DRIVE_STAGE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "bench/drive/line.h"
#include "store/database.h"

namespace matins::bench {

class Stage {
 public:
  // Makes the schema.
  explicit Stage(const Options& options);

  // The text of a job file; `source` is what this set of jobs is called.
  void Apply(const std::string& yaml, absl::string_view source = "bench");
  // `count` one-offs of the handler `noop` that are due at `at`, in one go; `more` are keys of each
  // job, "misfire: latest, run: { handler: noop }".
  void ApplyOneOffs(int64_t count, absl::Time at, absl::string_view more);
  // One job whose schedule has exactly `count` fires, all on the day before today; `more` as above.
  void ApplyPeriods(int64_t count, absl::string_view more);

  // Writes the plans of what is due and held by nobody, by the plan lane itself.
  void Plan();
  // The audits that are due are made. PostgreSQL: vacuum analyze, and a checkpoint.
  void Rest();

  // SQL for the store itself, past Matins, in its own dialect; tables of PostgreSQL are those of
  // schema "matins". Answers the first value of the first row, or "".
  std::string Query(const std::string& sql);
  // The first `count` numbers as rows `n.i`, for an INSERT ... SELECT.
  std::string Numbers(int64_t count) const;
  std::string Table(absl::string_view name) const;  // as Query takes it
  // The store's text for an instant so far from now.
  std::string Instant(absl::Duration from_now) const;
  // Inserts rows of job_watermark for the jobs fill-0 to fill-999, which are applied: PLANNED, and
  // due `from_now`.
  void FillPlanned(int64_t count, absl::Duration from_now);

  const Options& options() const { return options_; }
  Database& database() { return *database_; }
  ActStore& acts() { return *acts_; }
  absl::Time Now();  // the store's

 private:
  const Options& options_;
  std::unique_ptr<Database> database_;
  std::unique_ptr<ActStore> acts_;
};

// Ends the program unless each of `runs` periods is DONE, once, by one attempt that has its row in
// the history.
void ProveDone(Stage& stage, int64_t runs);

}  // namespace matins::bench

#endif  // MATINS_BENCH_DRIVE_STAGE_H_
