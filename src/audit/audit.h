// An audit: reads a store, asks what its schedules demanded, and says what is not DONE (I13). Reads
// alone; whoever makes it writes its row (MakeAuditRow, ActStore::EndAudit).
#ifndef MATINS_AUDIT_AUDIT_H_
#define MATINS_AUDIT_AUDIT_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "audit/findings.h"
#include "store/act_store.h"

namespace matins {

// How far back an audit looks where no dates are given: a month and what belongs to it. What is
// still open is found however old it is.
inline constexpr int kAuditDays = 35;

struct AuditScope {
  std::string job;                            // one job; empty: all, or `jobs`
  std::optional<std::set<std::string>> jobs;  // these
  std::optional<absl::CivilDay> from, to;     // biz_dates, both included; unset: kAuditDays to now
};

struct AuditReport {
  absl::Time now;
  absl::CivilDay from, to;
  int jobs = 0;
  AuditTally total;
  std::vector<AuditFinding> findings;  // by job, then by due; those of the store last
  int64_t alarms = 0;
  bool canary = false;  // the miss that was planted for it was found
  std::map<std::pair<absl::CivilMonth, std::string>, AuditTally> months;  // by month and job
};

// NotFound where `job` is none.
absl::StatusOr<AuditReport> Audit(ActStore& acts, const AuditScope& scope);
void AddFinding(AuditFinding finding, AuditReport& report);

// "recon 2026-10-29 absent: there is no row at all ..., due ..., by ...".
std::string FindingText(const AuditFinding& finding);
// The report as JSON; at most `limit` findings.
std::string ReportJson(const AuditReport& report, size_t limit);
// What `report` comes to, for EndAudit.
AuditRow MakeAuditRow(const AuditReport& report, int64_t id, const std::string& by);

}  // namespace matins

#endif  // MATINS_AUDIT_AUDIT_H_
