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
#include "bench/drive/sql.h"
#include "store/database.h"

namespace matins::bench {

class Stage {
 public:
  // Makes the schema.
  explicit Stage(const Options& options);

  // The text of a job file; `source` is what this set of jobs is called.
  void Apply(const std::string& yaml, absl::string_view source = "bench");
  // `count` one-offs of the handler `noop` that are due at `at`, in one go; `more` are keys of each
  // job, "misfire: latest, run: { handler: noop }". They are called NAME-0, NAME-1, ...
  void ApplyOneOffs(int64_t count, absl::Time at, absl::string_view more,
                    absl::string_view name = "job");
  // One-offs of the handler `noop`, `count` of them, that are due one after another, `apart`.
  void ApplySpread(int64_t count, absl::Time first, absl::Duration apart);
  // One job whose schedule has exactly `count` fires, all on the day before today; `more` as above.
  void ApplyPeriods(int64_t count, absl::string_view more);

  // Writes the plans of what is due and held by nobody, by the plan lane itself.
  void Plan();
  // The audits that are due are made. PostgreSQL: vacuum analyze, and a checkpoint. MariaDB:
  // analyze.
  void Rest();

  std::string Query(const std::string& sql) { return QueryStore(options_, sql); }
  int64_t Count(const std::string& sql);  // a query that answers a number
  // The first `count` numbers as rows `n.i`, for an INSERT ... SELECT. These are for PostgreSQL and
  // SQLite alone.
  std::string Numbers(int64_t count) const;
  std::string Table(absl::string_view name) const;  // as Query takes it
  // The store's text for an instant so far from now.
  std::string Instant(absl::Duration from_now) const;
  // Jobs as if so many had been applied, whose next fire, and look, are in a year.
  void FillJobs(int64_t count);
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
// the history; and there is no other.
void ProveDone(Stage& stage, int64_t runs);
// The same of those that are DONE, among others that are not.
void ProveDoneAmong(Stage& stage, int64_t runs);

}  // namespace matins::bench

#endif  // MATINS_BENCH_DRIVE_STAGE_H_
