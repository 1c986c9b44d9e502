// What an audit says of a job: what its schedules demanded, less what is DONE, with each way of not
// being done told apart (I13). A pure function of what was read; no planning has a part in it.
#ifndef MATINS_AUDIT_FINDINGS_H_
#define MATINS_AUDIT_FINDINGS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "expect/expect.h"
#include "store/act_store.h"

namespace matins {

enum class AuditKind {
  kAbsent,          // past its deadline, and there is no row at all
  kUnfinished,      // past its deadline, PLANNED or RUNNING
  kFailed,          // FAILED, held or not
  kLate,            // DONE after its deadline
  kSkipped,         // by policy or by a person; shown, not alarmed
  kSuspended,       // due while its job was suspended; not alarmed for the first week
  kUnfillable,      // the source no longer has it
  kSoonUnfillable,  // and soon will not: a fifth of the window is left
  kTooMany,         // two accepted results of one generation, or two owners alive
  kStuck,           // a state that nobody will move
  kUnknown,    // nobody can say what was expected: a calendar ended, a definition is unreadable
  kUnwatched,  // an audit of the other beat, or the one before, was not made in time
  kBlind,      // the miss that was planted for this audit was not found
};
// "absent", "unfinished", ...: in tables, JSON and log events alike.
absl::string_view AuditWord(AuditKind kind);

struct AuditFinding {
  AuditKind kind = AuditKind::kAbsent;
  bool alarm = true;                 // a person should act; false: told, so that nothing is silent
  std::string job;                   // empty: of the store
  std::string period, last_period;   // the same where it is one
  int64_t count = 1;                 // periods from the first to the last
  std::vector<std::string> periods;  // each of them, the first kMostPeriodsNamed
  absl::Time due = absl::InfinitePast();       // of the first; InfinitePast: of no period
  absl::Time deadline = absl::InfinitePast();  // of the first
  std::string why;
};

// A finding of more periods than these names no more of them.
inline constexpr size_t kMostPeriodsNamed = 100;

// A week: then a suspension is reminded of.
inline constexpr absl::Duration kSuspendedTooLong = absl::Hours(24 * 7);

// All that is read of one job.
struct AuditJob {
  JobRow row;
  std::vector<std::unique_ptr<ResolvedJob>> meanings;  // of `versions`
  std::vector<DatedVersion> versions;                  // ascending
  std::vector<Suspension> suspended;
  std::vector<SkipSpan> spans;
  std::vector<PeriodRow>
      rows;  // those of the biz_dates asked for, and, where `open`, all not final
};

struct AuditQuestion {
  absl::CivilDay from, to;  // biz_dates, both included
  bool open = true;         // what is not final is judged whatever its date
  absl::Time now;           // the store's
  absl::Span<const NodeRow> nodes;
};

struct AuditTally {
  int64_t expected = 0, done = 0, late = 0, skipped = 0, suspended = 0, unfillable = 0;
  int64_t missing = 0;  // absent, unfinished or FAILED
  int64_t open = 0;     // not yet past its deadline
};

struct AuditVerdict {
  std::vector<AuditFinding> findings;  // in order of due; neighbours of one kind and reason are one
  std::map<absl::CivilMonth, AuditTally> months;  // by biz_date
};

AuditVerdict JudgeJob(const AuditJob& job, const AuditQuestion& question);

// A job of the audit's own with one miss planted, judged as any other. Answers whether exactly that
// miss was found (I18).
struct Canary {
  AuditJob job;
  std::string missing;  // the period without a row
};
Canary PlantCanary(absl::Time now);
bool CanaryFound(const Canary& canary, const AuditVerdict& verdict);

}  // namespace matins

#endif  // MATINS_AUDIT_FINDINGS_H_
