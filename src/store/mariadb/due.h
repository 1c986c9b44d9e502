// What is due: the statements by which START takes it, and sets aside what stands in its way
// (store/set_aside.h).
#ifndef MATINS_STORE_MARIADB_DUE_H_
#define MATINS_STORE_MARIADB_DUE_H_

#include <map>
#include <string>
#include <vector>

#include "store/mariadb/session.h"
#include "store/mariadb/store.h"

namespace matins::mariadb {

// A few more than are wanted, for those that will be refused.
inline constexpr int kSpare = 24;
inline constexpr int kMostReach = 8;

// Whether any row is set aside, for whomever.
inline constexpr char kAnyAside[] =
    "EXISTS (SELECT 1 FROM job_watermark FORCE INDEX (job_watermark_waiting) WHERE "
    "waits_for >= 'with/' AND status = 'PLANNED')";

// The lists of what is set aside for nodes with no other labels than these (JSON).
absl::StatusOr<std::vector<std::string>> AsideLists(Session& session, const std::string& labels);

struct DueWindow {
  const std::string& labels;
  int look = 0;          // rows that this node may run
  bool in_turn = false;  // by the index of the turns
  // Many rows are due for other nodes, or some are set aside: no more of the index is read than
  // that and a few; and of the lists.
  bool crowded = false;
  const std::vector<std::string>& lists;
};
// Where some job has a priority, the most urgent of so many more are taken.
int DueLookOf(const StartRequest& request, const StartMemory& memory);

// What `also_due` takes: due rows in the order of their index, which is that of the turns where
// tenants are served in turn, past those that another START has locked. Chosen by a SELECT of its
// own, because one that locks would lock all that it reads on its way. The last two answers: the
// rows; how many were chosen, and the newest event.
std::vector<Statement> AlsoDue(const DueWindow& window, const StartRequest& request,
                               const StartMemory& memory);

struct OfOther {
  std::string labels;  // of its job; empty: the job is suspended
  int64_t tag;
};
// What fills that part of the index, where this node may not run it. Nothing is locked.
std::vector<Statement> DueForOthers(const DueWindow& window);
std::map<PeriodKey, OfOther> OthersOf(const std::vector<Rows>& rows);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_DUE_H_
