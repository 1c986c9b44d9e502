// The engine under a virtual clock and seeded faults. One seed picks nodes, jobs and faults; the
// same seed is the same run, event by event. First trouble, then peace, in which everything must
// converge (I20). What is stepped are the very lanes that ship, over a real store with the SQL that
// ships; the store's clock is the only thing that is replaced.
#ifndef MATINS_LAB_SIMULATOR_H_
#define MATINS_LAB_SIMULATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "job/values.h"
#include "store/database.h"

namespace matins {

// A fresh database for one simulation.
class SimDatabase {
 public:
  virtual ~SimDatabase() = default;
  virtual Database& database() = 0;
  // As another program would that did the work itself: a DONE row, past all verbs.
  virtual absl::Status InsertDoneRow(const PeriodKey& key) = 0;
  // As a person would: DELETE FROM job_watermark WHERE ..., past all verbs.
  virtual absl::Status DeleteRow(const PeriodKey& key) = 0;
  // As a run with `commit: job` does: DONE in a transaction of its own, with the SQL that is
  // printed for users (store/fence_sql.h). False: another owns the period, and nothing was written.
  virtual absl::StatusOr<bool> CommitByJob(const PeriodKey& key, int generation, int64_t fence) = 0;
  // Where another store, asked the same beside it, answered otherwise. Each breaks the simulation.
  virtual std::vector<std::string> Differences() { return {}; }
};
// `clock` is what the store's clock reads.
using SimDatabaseMaker =
    std::function<absl::StatusOr<std::unique_ptr<SimDatabase>>(std::function<absl::Time()> clock)>;

struct SimulationOptions {
  uint64_t seed = 1;
  absl::Duration trouble = absl::Minutes(4);  // of virtual time
  absl::Duration peace = absl::Minutes(6);    // at most: it ends when all has converged
  bool deaf = false;   // where there are three nodes, one hears no answer any more, peace or not
  bool story = false;  // prints what happens
};

struct SimulationReport {
  std::vector<std::string> broken;      // promises, in words; empty: all held
  std::map<std::string, int64_t> seen;  // how often each thing happened
  // What the checker reads beside the database, as tools/checker/export.py wants it.
  std::string testimony;  // witness W1, a JSON line each
  std::string effects;    // the business table at the end
  std::string jobs;       // job_def lines
  std::string world;      // one JSON object: the cut, and the rows written or deleted by others
};

// Errors: the store cannot be opened or migrated.
absl::StatusOr<SimulationReport> Simulate(const SimulationOptions& options,
                                          const SimDatabaseMaker& maker);

}  // namespace matins

#endif  // MATINS_LAB_SIMULATOR_H_
