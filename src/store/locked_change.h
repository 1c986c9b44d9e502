// A server's transaction that reads rows under their locks, decides, and writes; the same on every
// server, whose sessions and statements differ.
#ifndef MATINS_STORE_LOCKED_CHANGE_H_
#define MATINS_STORE_LOCKED_CHANGE_H_

#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status.h"

namespace matins {

// `decide` gets the rows of each of `locks` and what `clock`, read after the last of them, says; it
// answers the call's answer and what is written, or an error, with which nothing is.
template <typename Session, typename Statement, typename Decide>
auto ChangeUnderLocks(Session& session, std::vector<Statement> locks, Statement clock,
                      Decide decide) {
  using Rows = typename std::decay_t<decltype(*session.connection.Begin(locks))>;
  using Decided = std::decay_t<decltype(*decide(std::declval<const Rows&>(), absl::Time()))>;
  using Answer = typename Decided::first_type;
  locks.push_back(std::move(clock));
  return session.Retried([&]() -> absl::StatusOr<Answer> {
    ASSIGN_OR_RETURN(const Rows rows, session.connection.Begin(locks));
    absl::StatusOr<Decided> decided = decide(rows, rows.back().Time(0, 0));
    if (!decided.ok()) {
      session.connection.Rollback();
      return decided.status();
    }
    RETURN_IF_ERROR(session.connection.Commit(decided->second).status());
    return std::move(decided->first);
  });
}

}  // namespace matins

#endif  // MATINS_STORE_LOCKED_CHANGE_H_
