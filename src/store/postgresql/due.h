// What is due: the statements by which START takes it, and sets aside what stands in its way
// (store/set_aside.h).
#ifndef MATINS_STORE_POSTGRESQL_DUE_H_
#define MATINS_STORE_POSTGRESQL_DUE_H_

#include <string>

namespace matins::postgresql {

// What START reads of a row `r` and its job `j`, in the order that StartRules read.
extern const char kStartColumns[];
// Where the last event stands among what is read.
inline constexpr int kEventColumn = 26;

// Whether any row is set aside, for whomever.
inline constexpr char kAnyAside[] =
    "exists (select from @.job_watermark where status = 'PLANNED' and waits_for is not null and "
    "waits_for >= 'with/')";

// What `also_due` takes: due rows in the order of their index, past those that another node has
// locked. A few more than are wanted, for those that will be refused; and where jobs have
// priorities more again, of which the most urgent are taken. Where tenants are served in turn the
// index is that of the turns.
// $1: so many; $2: this node's labels; $3, $4: the newest event by which it was known whether jobs
// have priorities, and whether they had; behind another event they may have.
std::string AlsoDue(bool in_turn);
// The same where many rows are due for other nodes, or some are set aside: of a part of the index
// that is no longer than is wanted, and a few more, and of the lists of what is set aside.
std::string AlsoDueInACrowd(bool in_turn);
// And what fills that part, locked: job, period, the job's labels (null: it is suspended), start
// tag.
std::string DueForOthers(bool in_turn);

// Whether any row is set aside for a node with no other labels than $1.
std::string AsideForLabels();

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_DUE_H_
