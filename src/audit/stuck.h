// States that nobody will move by itself, found beside what is missing: by the time that a period's
// deadline tells it, hours may have gone.
#ifndef MATINS_AUDIT_STUCK_H_
#define MATINS_AUDIT_STUCK_H_

#include <vector>

#include "audit/findings.h"

namespace matins {

// Of a job: runs whose lease has ended and that nobody took back, RUNNING without a lease past
// stale_after, rows held by a dead node, rows planned in the past that nobody judged, and a cursor
// that lies in the future. A minute is left to those who move such things.
std::vector<AuditFinding> FindStuck(const AuditJob& job, const AuditQuestion& question);

// How long a lock of the job may go on after a run of it is nobody's.
absl::Duration LongestLock(const AuditJob& job);

// Of the store: locks that outlast any lease (`longest_lock` of all jobs) and that nobody owns;
// more than one accepted result of a generation; more live owners of a job than its overlap allows.
// `jobs`, those that have several runs, by any order.
std::vector<AuditFinding> FindOwnership(const AuditFacts& facts, absl::Span<const AuditJob> jobs,
                                        absl::Duration longest_lock);

}  // namespace matins

#endif  // MATINS_AUDIT_STUCK_H_
