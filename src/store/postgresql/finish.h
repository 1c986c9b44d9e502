// The end of attempts, as statements that several verbs share.
#ifndef MATINS_STORE_POSTGRESQL_FINISH_H_
#define MATINS_STORE_POSTGRESQL_FINISH_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "store/postgresql/session.h"

namespace matins::postgresql {

// Pulls back to their time what waits for one of the jobs or lock keys of the rows in `rows` (a
// query of job and period; by default of JSON objects in $1), or for a free slot. Skips what is
// locked: it is looked at again by itself. Costs next to nothing where nobody waits for anything.
std::string WakeWaiting(
    absl::string_view rows =
        "select x.job, x.period from json_to_recordset($1::json) as x(job text, period text)");

// The SQL of what becomes of a period whose attempt is taken from it by the store (a lost lease, a
// resolved no, a clock step), from row `l` and its job `b`: 'PLANNED', 'HELD' or 'FAILED'.
extern const char kLossVerdict[];

// The SQL of a status where an attempt of row `r` ends and would be tried again, unless a person
// has asked to cancel it; and of the reason of one that the store took back with verdict
// `j.verdict`.
extern const char kAgainStatus[];
extern const char kBurntReason[];

// The columns and values of a job_run row for an attempt that ends without its node's word, from
// row `l` and clock `c`; the caller adds status, reason, message.
extern const char kRunColumns[];
extern const char kRunValues[];

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_FINISH_H_
