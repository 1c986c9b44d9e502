// One act of a person, as a transaction.
#ifndef MATINS_STORE_MARIADB_PERFORM_H_
#define MATINS_STORE_MARIADB_PERFORM_H_

#include <vector>

#include "base/fault.h"
#include "base/status.h"
#include "store/mariadb/session.h"
#include "store/mariadb/ticket.h"

namespace matins::mariadb {

// What is locked first, the clock behind it (the last of `rows`), what is
// then decided, what is written.
template <typename Decide>
absl::Status Perform(Session& session, std::vector<Statement> locks, Decide decide) {
  locks.push_back(ReadClock());
  const auto once = [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const std::vector<Rows> rows, session.connection.Begin(locks));
    const absl::StatusOr<std::vector<Statement>> writes = decide(rows, ClockOf(rows.back()));
    if (!writes.ok()) {
      session.connection.Rollback();
      return writes.status();
    }
    RETURN_IF_ERROR(CommitAt(session, "act.before_commit", *writes).status());
    MATINS_FAULT_POINT("act.after_commit");  // crash here: it stands, and is recorded
    return true;
  };
  return session.Retried(once).status();
}

using Writes = absl::StatusOr<std::vector<Statement>>;

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_PERFORM_H_
