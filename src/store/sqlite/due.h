// What is due: read in the order of its indexes, a bounded part of it (store/set_aside.h).
#ifndef MATINS_STORE_SQLITE_DUE_H_
#define MATINS_STORE_SQLITE_DUE_H_

#include <set>
#include <string>
#include <vector>

#include "store/set_aside.h"
#include "store/sqlite/rows.h"
#include "store/sqlite/sqlite_store.h"

namespace matins::sqlite {

// Of rows `w` and jobs `j`: held by nobody at ?2, and this node (labels ?3) may run them.
extern const char kMayRun[];

struct DueRequest {
  const NodeId& node;
  absl::Time now;
  int wanted = 0;
  const std::set<PeriodKey>& without;
  DueOrder order;
  absl::Duration soon;  // labels that are too long are waited for no longer
};

// Those that the node may run, the most urgent of them first: a few more than are wanted, for those
// that will be refused (they are put off), and more again where jobs have priorities. Where tenants
// are served in turn the index is that of the turns; rows from before there were tenants come
// behind it.
class Due {
 public:
  Due(Connection& db, Jobs& jobs, const DueRequest& request);
  const std::vector<Row>& rows() const { return rows_; }
  // Rows of others stood in the way, and were set aside: there may be more behind them.
  bool more() const { return more_; }

 private:
  void Read(Statement rows);
  void ReadAside(bool tagged);
  void SetAside();

  Connection& db_;
  Jobs& jobs_;
  const DueRequest request_;
  const size_t limit_;
  std::vector<Row> rows_;
  std::set<PeriodKey> seen_;
  std::vector<Row> others_;
  bool more_ = false;
};

// The lists of rows that were set aside and wait for a node with no other labels than these.
std::vector<std::string> AsideLists(Connection& db, const std::vector<std::string>& labels);

// Whether something is due that nobody holds and that a START by this node would take, or would set
// aside.
bool AnyDue(Connection& db, const NodeId& node, absl::Time now);

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_DUE_H_
