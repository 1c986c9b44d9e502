// Named fault points at the crash windows, and mutant switches that take one protection out. Both
// exist only in a build with MATINS_LAB; elsewhere they cost nothing and cannot be switched on.
//
// A crash window in the code reads:
//   MATINS_FAULT_POINT("finish.before_commit");  // crash here: the row is still ours; the lease
//   ends, reap takes it
//
// Points are armed by MATINS_FAULTS in the environment, "point=action[@hit],...", e.g.
//   MATINS_FAULTS="finish.before_commit=kill@3,start.after_commit=stop"
// with the actions kill (SIGKILL to the own process), stop (SIGSTOP), exit (_exit 70), error (the
// point's status) and doubt (the same, as of a call whose answer was lost), at the given hit of
// that point, counted from 1, or at each where none is given; or by a hook in-process.
#ifndef MATINS_BASE_FAULT_H_
#define MATINS_BASE_FAULT_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace matins {

// The protections that the lab can take out, one at a time. Each store's SQL asks for them where it
// stands.
enum class Mutant {
  kNone,
  kNoFenceCheck,     // start/extend/checkpoint/finish do not compare fence and nonce (I3)
  kNoLeaseCheck,     // they do not ask whether the lease is alive (I4, I5)
  kClockBeforeLock,  // the clock is read before the row is locked (I4)
  kNoUniqueKey,      // planning does not mind an existing row of the period (I0)
  kBlindReap,        // reap updates by key alone, its condition not repeated (I1, I2)
  kNoOrder,          // START does not look at older periods (I16)
  kNoCap,            // the planner keeps all that is owed (I17)
  kNoSourceWindow,   // and what the source no longer has (I17)
  kNoFirstSight,     // and owes what was due before the job was first seen (I17)
  kNoFenceBump,      // a claim or reap reuses the old fence (I6)
  kNaiveResolve,     // resolve reads without locking and burns nothing (I9)
  kReviveLease,      // a heartbeat extends a dead lease (I5)
  kBeatShortens,     // a heartbeat sets the lease, though it was longer before (I5)
  kBeatPastTimeOut,  // a heartbeat extends beyond run_until (I5, I21)
  kNoOldLease,       // START does not wait for the lease of a row that was deleted or burnt (I7)
  kNoClockMark,      // matins_now() goes back with the clock (I8)
  kNoStepBack,       // a step back of the clock freezes nothing (I8)
  kNoStepForward,    // nor does one forward (I8)
  kNoWitnessWait,  // a new node takes a jump for its own to judge, though another saw the mark (I8)
  kNoSettleBurn,   // the freeze ends without burning what was alive in it (I8)
  kResolveBurnsNothing,  // resolve locks the row, but its no leaves the fence (I9)
  kCheckpointBack,       // a checkpoint is taken whatever the last one was (I10)
  kNoCheckpointOffer,    // START does not hand over the last checkpoint (I10)
  kNoFlush,              // a COMMIT is answered before it is on the disk (I11)
  kUnfencedCommit,       // the job's own commit asks for no fence (I12)
  kUnfencedStep,      // a step in a business database asks for neither fence nor checkpoint (I12)
  kExitIsDone,        // with `commit: job` a good exit is DONE without the job's commit (I12)
  kSilentSkip,        // the planner leaves out what it will not run, and records nothing (I14)
  kNewestVersion,     // the newest version judges all time, that before it too (I15)
  kLeaseFromAnswer,   // a node counts its lease from the answer, not from the sending (I19)
  kMonotonicClock,    // a node's clock stands still while the machine sleeps (I19)
  kNoGuardDeadline,   // the guard is told no deadline; its node alone stops the run (I19)
  kNoReap,            // nobody takes back what was lost (I20)
  kBeatMovesTimeOut,  // a beat moves the run's time-out as well (I21)
  kNoDueCheck,        // START does not ask whether the row is due (I15)
  kNodeClock,         // Tick takes a node's wall clock for the store's (I23)
  kSilentBeat,        // a heartbeat is not journaled (J)
  kNoRunRow,          // a lost attempt leaves no row in job_run (J)
  kNoLimit,           // START counts no limit (I24)
  kDoorIsTheLock,     // where Redis is asked first, the store holds no lock (I22)
  kNoAbsent,          // the audit passes over expected periods that have no row (I13)
  kAuditNewest,       // the audit judges all time by the newest version (I13)
  kNoCanary,          // the audit does not ask whether its planted miss was found (I18)
  kNoWatch,           // an audit does not look for the other beat's last (I18)
  kNoTenantLimit,     // START counts no tenant's runs (I24)
  kNoKeyLimit,        // nor those of a key (I24)
  kNoLimitLock,       // and counts them without the lock of the limit's row (I24)
  kNoLeftSlot,        // a run that was burnt or deleted alive gives its slot back at once (I24)
  kNoTurns,           // tenants are not served in turn (I24)
  kNoAlertClaim,      // a message is sent by each node that sees it, claimed or not
  kNoBackfillTerms,   // START does not ask what a back-fill was asked for with (I24)
  kNoBackfillLock,    // and counts its runs without the lock of its row (I24)
};

#if MATINS_LAB
// The mutant of this process: MATINS_MUTANT in the environment (the enumerator's name without k, in
// snake case: "no_fence_check"), or what SetMutant said. A wrong name in the environment ends the
// process.
Mutant ActiveMutant();
void SetMutant(Mutant mutant);
inline bool IsMutant(Mutant mutant) { return ActiveMutant() == mutant; }

// In-process hook, asked before the environment: a non-OK answer is returned by the point. Nullptr
// to clear.
void SetFaultHook(std::function<absl::Status(absl::string_view point)> hook);
absl::Status ReachFaultPoint(absl::string_view point);

#define MATINS_FAULT_POINT(name)                                                            \
  do {                                                                                      \
    if (absl::Status fault_ = ::matins::ReachFaultPoint(name); !fault_.ok()) return fault_; \
  } while (false)
// Where no status can be returned: the actions kill, stop and exit alone.
#define MATINS_FAULT_POINT_VOID(name) ::matins::ReachFaultPoint(name).IgnoreError()
// Whether what follows is broken: the action error.
#define MATINS_BROKEN_AT(name) (!::matins::ReachFaultPoint(name).ok())
#else
constexpr bool IsMutant(Mutant) { return false; }
#define MATINS_FAULT_POINT(name) \
  do {                           \
  } while (false)
#define MATINS_FAULT_POINT_VOID(name) \
  do {                                \
  } while (false)
#define MATINS_BROKEN_AT(name) false
#endif

}  // namespace matins

#endif  // MATINS_BASE_FAULT_H_
