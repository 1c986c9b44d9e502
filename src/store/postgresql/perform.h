// One act of a person, as a transaction.
#ifndef MATINS_STORE_POSTGRESQL_PERFORM_H_
#define MATINS_STORE_POSTGRESQL_PERFORM_H_

#include <vector>

#include "base/fault.h"
#include "base/status.h"
#include "store/postgresql/session.h"

namespace matins::postgresql {

// What is locked first, what is then decided, what is written.
template <typename Decide>
absl::Status Perform(Session& session, const std::vector<Statement>& locks, Decide decide) {
  const auto once = [&]() -> absl::StatusOr<bool> {
    Connection& connection = session.connection;
    ASSIGN_OR_RETURN(const std::vector<Rows> rows, connection.Begin(locks));
    absl::StatusOr<std::vector<Statement>> writes = decide(rows);
    if (writes.ok()) {
      if (absl::Status fault = Reach("act.before_commit"); !fault.ok()) writes = fault;
    }
    if (!writes.ok()) {
      connection.Rollback();
      return writes.status();
    }
    RETURN_IF_ERROR(connection.Commit(*writes).status());
    MATINS_FAULT_POINT("act.after_commit");  // crash here: it stands, and is recorded
    return true;
  };
  RETURN_IF_ERROR(session.Retried(once).status());
  session.Notify();
  return absl::OkStatus();
}

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_PERFORM_H_
