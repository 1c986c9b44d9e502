// What a node says of itself while it works: for logs, for the page, for tests. Whoever listens
// decides nothing. The names are the log's names, and ARCHITECTURE.md's arrows.
#ifndef MATINS_ENGINE_EVENTS_H_
#define MATINS_ENGINE_EVENTS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "job/values.h"

namespace matins {

namespace event {
// plan lane
inline constexpr char kPlanned[] = "planned";         // a job's plan was written
inline constexpr char kPlanStale[] = "plan_stale";    // the job had moved; it is read again
inline constexpr char kPlanFailed[] = "plan_failed";  // alarm: the job cannot be planned
// start lane
inline constexpr char kStartRefused[] = "start_refused";    // the store said why
inline constexpr char kStartPutOff[] = "start_put_off";     // a quick door is held; asked again
inline constexpr char kStartInDoubt[] = "start_in_doubt";   // owns nothing; reap finds what was
inline constexpr char kClaimed[] = "claimed";               // START accepted: fence and lease
inline constexpr char kReplaced[] = "replaced";             // overlap: replace took an old run
inline constexpr char kHoldsReturned[] = "holds_returned";  // unstarted holds given back
// finish lane
inline constexpr char kRunStarted[] = "run_started";  // the child exists
inline constexpr char kRunEnded[] = "run_ended";      // it has ended; the result is not written yet
inline constexpr char kCheckpoint[] = "checkpoint";   // accepted
inline constexpr char kFinished[] = "finished";       // the store accepted the result
inline constexpr char kFinishInDoubt[] = "finish_in_doubt";  // no answer came; it is resolved
inline constexpr char kResolved[] = "resolved";              // yes or no, for ever
inline constexpr char kZombieRefused[] = "zombie_refused";   // alarm: an old owner spoke
// beat lane
inline constexpr char kLeaseLost[] = "lease_lost";  // alarm: a beat was refused
inline constexpr char kCancelAsked[] = "cancel_asked";
// reap lane
inline constexpr char kReaped[] = "reaped";  // alarm: a run was lost
// tick lane
inline constexpr char kClockFrozen[] = "clock_frozen";  // alarm: the store's clock stepped
inline constexpr char kClockThawed[] = "clock_thawed";
inline constexpr char kSchemaNewer[] = "schema_newer";  // alarm: a newer program has been here
inline constexpr char kReturned[] = "returned";         // first node, or the store is back
// the audit's own thread (ops/audit.h)
inline constexpr char kAudited[] = "audited";               // an audit was made; its row stands
inline constexpr char kAuditFinding[] = "audit_finding";    // alarm: something is missing
inline constexpr char kAuditFailed[] = "audit_failed";      // alarm: it could not be made; once
inline constexpr char kDrillRestored[] = "drill_restored";  // what a dead drill left is put back
// the alerts' own thread (ops/alerts.h)
inline constexpr char kAlertSent[] = "alert_sent";      // a channel has taken a message
inline constexpr char kAlertFailed[] = "alert_failed";  // alarm: it has not; it is tried again
// every lane
inline constexpr char kStoreAway[] = "store_away";  // once, until it is back
inline constexpr char kStoreBack[] = "store_back";
inline constexpr char kDrainBegun[] = "drain_begun";
inline constexpr char kDrained[] = "drained";
}  // namespace event

struct EngineEvent {
  absl::string_view name;  // one of event::
  bool alarm = false;      // a person should know at once
  PeriodKey key;           // empty where it is about no period
  int64_t fence = 0;
  std::string detail;
  const Outcome* outcome = nullptr;  // kFinished: what the store accepted
};

class EngineEvents {
 public:
  virtual ~EngineEvents() = default;
  // From any lane's thread, many at a time; quick, and never back into the engine.
  virtual void OnEvent(const EngineEvent& event) = 0;
  // False: nobody would hear it. Does not change.
  virtual bool Listens() const { return true; }
};

// Hears nothing.
EngineEvents& NoEvents();

}  // namespace matins

#endif  // MATINS_ENGINE_EVENTS_H_
