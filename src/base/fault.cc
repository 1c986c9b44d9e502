#include "base/fault.h"

#if MATINS_LAB

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr std::pair<absl::string_view, Mutant> kMutants[] = {
    {"none", Mutant::kNone},
    {"no_fence_check", Mutant::kNoFenceCheck},
    {"no_lease_check", Mutant::kNoLeaseCheck},
    {"clock_before_lock", Mutant::kClockBeforeLock},
    {"no_unique_key", Mutant::kNoUniqueKey},
    {"blind_reap", Mutant::kBlindReap},
    {"no_order", Mutant::kNoOrder},
    {"no_cap", Mutant::kNoCap},
    {"no_source_window", Mutant::kNoSourceWindow},
    {"no_first_sight", Mutant::kNoFirstSight},
    {"no_fence_bump", Mutant::kNoFenceBump},
    {"naive_resolve", Mutant::kNaiveResolve},
    {"revive_lease", Mutant::kReviveLease},
    {"beat_shortens", Mutant::kBeatShortens},
    {"beat_past_time_out", Mutant::kBeatPastTimeOut},
    {"no_old_lease", Mutant::kNoOldLease},
    {"no_clock_mark", Mutant::kNoClockMark},
    {"no_step_back", Mutant::kNoStepBack},
    {"no_step_forward", Mutant::kNoStepForward},
    {"no_witness_wait", Mutant::kNoWitnessWait},
    {"no_settle_burn", Mutant::kNoSettleBurn},
    {"resolve_burns_nothing", Mutant::kResolveBurnsNothing},
    {"checkpoint_back", Mutant::kCheckpointBack},
    {"no_checkpoint_offer", Mutant::kNoCheckpointOffer},
    {"no_flush", Mutant::kNoFlush},
    {"unfenced_commit", Mutant::kUnfencedCommit},
    {"unfenced_step", Mutant::kUnfencedStep},
    {"exit_is_done", Mutant::kExitIsDone},
    {"silent_skip", Mutant::kSilentSkip},
    {"newest_version", Mutant::kNewestVersion},
    {"lease_from_answer", Mutant::kLeaseFromAnswer},
    {"monotonic_clock", Mutant::kMonotonicClock},
    {"no_guard_deadline", Mutant::kNoGuardDeadline},
    {"no_reap", Mutant::kNoReap},
    {"beat_moves_time_out", Mutant::kBeatMovesTimeOut},
    {"no_due_check", Mutant::kNoDueCheck},
    {"node_clock", Mutant::kNodeClock},
    {"silent_beat", Mutant::kSilentBeat},
    {"no_run_row", Mutant::kNoRunRow},
    {"no_limit", Mutant::kNoLimit},
    {"door_is_the_lock", Mutant::kDoorIsTheLock},
    {"no_absent", Mutant::kNoAbsent},
    {"audit_newest", Mutant::kAuditNewest},
    {"no_canary", Mutant::kNoCanary},
    {"no_watch", Mutant::kNoWatch},
    {"no_tenant_limit", Mutant::kNoTenantLimit},
    {"no_key_limit", Mutant::kNoKeyLimit},
    {"no_limit_lock", Mutant::kNoLimitLock},
    {"no_left_slot", Mutant::kNoLeftSlot},
    {"no_turns", Mutant::kNoTurns},
    {"no_alert_claim", Mutant::kNoAlertClaim},
    {"no_backfill_terms", Mutant::kNoBackfillTerms},
    {"no_backfill_lock", Mutant::kNoBackfillLock},
};

[[noreturn]] void Refuse(absl::string_view what) {
  std::fprintf(stderr, "matins: %.*s\n", static_cast<int>(what.size()), what.data());
  _exit(64);
}

Mutant MutantFromEnvironment() {
  const char* name = std::getenv("MATINS_MUTANT");
  if (name == nullptr) return Mutant::kNone;
  for (const auto& [text, mutant] : kMutants) {
    if (text == name) return mutant;
  }
  Refuse(absl::StrCat("MATINS_MUTANT: no mutant '", name, "'"));
}

std::atomic<Mutant>& Active() {
  static std::atomic<Mutant> active{MutantFromEnvironment()};
  return active;
}

enum class Action { kKill, kStop, kExit, kError, kDoubt };

struct Armed {
  std::string point;
  Action action;
  int64_t hit;  // 0: each
};

Action ParseAction(absl::string_view text) {
  if (text == "kill") return Action::kKill;
  if (text == "stop") return Action::kStop;
  if (text == "exit") return Action::kExit;
  if (text == "error") return Action::kError;
  if (text == "doubt") return Action::kDoubt;
  Refuse(absl::StrCat("MATINS_FAULTS: no action '", text, "'; kill, stop, exit, error or doubt"));
}

class Points {
 public:
  Points() {
    const char* text = std::getenv("MATINS_FAULTS");
    if (text == nullptr) return;
    for (absl::string_view item : absl::StrSplit(text, ',', absl::SkipEmpty())) {
      const std::pair<absl::string_view, absl::string_view> sides =
          absl::StrSplit(item, absl::MaxSplits('=', 1));
      const std::pair<absl::string_view, absl::string_view> how =
          absl::StrSplit(sides.second, absl::MaxSplits('@', 1));
      Armed armed{std::string(sides.first), ParseAction(how.first), 0};
      if (!how.second.empty() && !absl::SimpleAtoi(how.second, &armed.hit)) {
        Refuse(absl::StrCat("MATINS_FAULTS: no number in '", item, "'"));
      }
      armed_.push_back(std::move(armed));
    }
  }

  absl::Status Reach(absl::string_view point) {
    std::function<absl::Status(absl::string_view)> hook;
    {
      absl::MutexLock lock(&mutex_);
      hook = hook_;
    }
    if (hook) {
      if (absl::Status status = hook(point); !status.ok()) return status;
    }
    return armed_.empty() ? absl::OkStatus() : Act(point);
  }

  void SetHook(std::function<absl::Status(absl::string_view)> hook) {
    absl::MutexLock lock(&mutex_);
    hook_ = std::move(hook);
  }

 private:
  absl::Status Act(absl::string_view point) {
    int64_t hit;
    {
      absl::MutexLock lock(&mutex_);
      hit = ++hits_[point];
    }
    for (const Armed& armed : armed_) {
      if (armed.point != point || (armed.hit != 0 && armed.hit != hit)) continue;
      switch (armed.action) {
        case Action::kKill:
          raise(SIGKILL);
          break;
        case Action::kStop:
          // To this thread: one to the process may be taken by another, and this one goes on a bit.
          raise(SIGSTOP);
          break;
        case Action::kExit:
          _exit(70);
        case Action::kError:
          return absl::UnavailableError(absl::StrCat("fault point ", point));
        case Action::kDoubt:
          return InDoubtError(absl::StrCat("fault point ", point, ": the answer is lost"));
      }
    }
    return absl::OkStatus();
  }

  std::vector<Armed> armed_;
  absl::Mutex mutex_;
  std::function<absl::Status(absl::string_view)> hook_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, int64_t> hits_ ABSL_GUARDED_BY(mutex_);
};

Points& AllPoints() {
  static Points* const points = new Points;
  return *points;
}

}  // namespace

Mutant ActiveMutant() { return Active().load(std::memory_order_relaxed); }
void SetMutant(Mutant mutant) { Active().store(mutant, std::memory_order_relaxed); }
void SetFaultHook(std::function<absl::Status(absl::string_view)> hook) {
  AllPoints().SetHook(std::move(hook));
}
absl::Status ReachFaultPoint(absl::string_view point) { return AllPoints().Reach(point); }

}  // namespace matins

#endif  // MATINS_LAB
