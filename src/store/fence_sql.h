// The business fence (docs/fencing.md): what a job's own database needs so that an owner who woke
// up too late cannot write, and a step that was done is not done again. `matins fence sql` prints
// it; the demo and the examples run it.
//
// The order counts. A new owner raises the fence, and commits that, before it reads anything:
// refusing lower fences alone lets an old owner write between the new one's read and its first
// write. Then each step's transaction carries the fence and the step's number beside the effect. A
// new generation starts at step 0 again; the idempotency key has no generation, so that money is
// not paid twice.
#ifndef MATINS_STORE_FENCE_SQL_H_
#define MATINS_STORE_FENCE_SQL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace matins {

enum class FenceDialect { kSqlite, kPostgresql, kMariadb };

// '?' marks a parameter; the comment gives their order.
struct FenceStatements {
  std::string tables;  // several statements; made once, where they are missing
  // job, period, generation, fence. One row: the last step committed in this generation (0: none).
  // No row: a newer owner was here; stop. In a transaction of its own, committed before anything is
  // read.
  std::string raise;
  // MariaDB alone, empty else: job, period, generation, fence. After `raise`, in its transaction;
  // its answer, because there `raise` has none.
  std::string raised;
  // step, job, period, fence, step - 1. First in the step's transaction. One row changed: go on.
  // None: roll back and stop.
  std::string step;
  // job, period, step, fence. In the step's transaction, for an effect that must never happen
  // again, whatever the generation. One row inserted: do it. None: it was done before; leave it
  // out.
  std::string once;

  // The same database as the store, with `commit: job`: the job's own transaction ends with these,
  // its own writes before them, COMMIT at once after them (the fence first would starve the run's
  // own heartbeats). All in one transaction, each with job, period, generation, fence.
  std::string lock;    // the row, so that the clock is read behind the lock (I4)
  std::string commit;  // DONE. One row changed: go on. None: roll back and stop, another owns it
  std::string record;  // the attempt's row, so that each accepted result has one (J)
};

// The store's own database, as a job's own transaction has to address it: PostgreSQL's schema,
// MariaDB's database. SQLite has neither.
struct CommitPlace {
  FenceDialect dialect = FenceDialect::kSqlite;
  std::string schema;
};

const FenceStatements& FenceSql(FenceDialect dialect);

// All of it as a script with comments and named parameters. InvalidArgument for a dialect that is
// not known.
absl::StatusOr<std::string> FenceSqlText(absl::string_view dialect);

}  // namespace matins

#endif  // MATINS_STORE_FENCE_SQL_H_
