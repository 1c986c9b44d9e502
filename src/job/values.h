// The values that flow through the house, one way: Fire -> Intent -> Claim{fence} -> Outcome ->
// Commit -> Event. plan makes intents, store makes claims, execute makes outcomes; the engine alone
// joins them.
#ifndef MATINS_JOB_VALUES_H_
#define MATINS_JOB_VALUES_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace matins {

// A period's identity; unique in every store (I0). Compared as bytes.
struct PeriodKey {
  std::string job;
  std::string period;
  auto operator<=>(const PeriodKey&) const = default;
  bool operator==(const PeriodKey&) const = default;
};

// DONE and SKIPPED are final, and so is FAILED where `held` is set beside it (I2).
enum class PeriodStatus { kPlanned, kRunning, kDone, kFailed, kSkipped };

// What a person wants of a back-fill that was asked for: go on; start nothing more for now; no more.
enum class BackfillState { kActive, kPaused, kCancelled };

// Why a period was not run, or how its attempt ended; the words stand in columns, JSON and messages
// alike.
namespace reason {
inline constexpr char kMissed[] = "missed";
inline constexpr char kSuperseded[] = "superseded";
inline constexpr char kCap[] = "cap";
inline constexpr char kExpired[] = "expired";        // older than backfill.max_age
inline constexpr char kUnfillable[] = "unfillable";  // older than backfill.source_window
inline constexpr char kReplaced[] = "replaced";
inline constexpr char kChanged[] =
    "changed";  // planned ahead; the schedule in force when it was due does not contain it
inline constexpr char kSuspended[] =
    "suspended";                               // resumed with --missed skip: a person's decision
inline constexpr char kDeleted[] = "deleted";  // its job was, before it had ended
inline constexpr char kHeld[] = "held";
inline constexpr char kLost[] = "lost";
inline constexpr char kTimeout[] = "timeout";
inline constexpr char kNoCommit[] = "no_commit";
inline constexpr char kExit[] = "exit";  // a bad exit code
inline constexpr char kSignal[] = "signal";
inline constexpr char kCancelled[] = "cancelled";
inline constexpr char kStartFailed[] = "start_failed";
inline constexpr char kStale[] = "stale";  // RUNNING without a lease past stale_after
inline constexpr char kHandedOver[] =
    "handed_over";  // given back by a node that drains; no retry used
}  // namespace reason

// Whose word it is. `who` is "policy", "node:NAME", or a person ("cli:alice@host").
struct Act {
  std::string who;
  std::string why;
};

// What planning wants written for one period.
struct Intent {
  enum class Kind {
    kInsert,     // a new row, PLANNED; or SKIPPED at once where `skip_reason` is set
    kSkip,       // an existing row that is neither running nor final becomes SKIPPED(skip_reason)
    kReattempt,  // an existing FAILED row (not held) becomes PLANNED again, same generation,
                 // attempts from 0
    kJudge,      // an existing PLANNED row stays: it has been judged; start_by and backfill are set
                 // anew
  };
  Kind kind = Kind::kInsert;
  PeriodKey key;
  absl::CivilDay biz_date;
  absl::Time window_start;
  absl::Time window_end;
  absl::Time due;  // the fire
  absl::CivilSecond nominal;
  absl::Time not_before;  // due + spread; nothing starts before it (I15)
  // START refuses the row after this instant and asks for a judgement; InfiniteFuture: it waits as
  // long as it takes.
  absl::Time start_by = absl::InfiniteFuture();
  int version = 0;        // the version in force when it was due
  bool backfill = false;  // it was missed: counts against max_parallel
  bool manual = false;
  std::string params;    // a JSON object given by a person, or empty
  std::string lock_key;  // "job/NAME" or the expanded template; empty: the row itself is the lock
  // Whom the run counts against (I24); empty: nobody. A tenant's runs are also served in turn.
  std::string tenant, limit_key;
  int priority = 0;
  std::string skip_reason;
  std::string by = "policy";
  // kInsert of a period due at or below the floor, where all is settled and rows are gone: recorded
  // as reopened, in a generation above any that is known of it (I2). A store takes no row there
  // without it.
  bool reopens = false;
  bool operator==(const Intent&) const = default;
};

// A row of job_watermark as it stands.
struct PeriodRow {
  PeriodKey key;
  absl::CivilDay biz_date;
  PeriodStatus status = PeriodStatus::kPlanned;
  bool held = false;
  int generation = 1;
  int64_t change = 0;  // rises by one with each accepted change of the generation (column ver)
  absl::Time due;
  absl::Time window_start;
  absl::Time window_end;
  absl::CivilSecond nominal;
  absl::Time not_before;
  absl::Time start_by = absl::InfiniteFuture();
  int version = 0;
  bool backfill = false;
  bool manual = false;
  int64_t backfill_id = 0;  // the back-fill that a person asked for and it belongs to; 0: none
  std::string params;
  std::string reason;
  std::string by;
  int attempts = 0;        // used up at this trigger
  int attempts_total = 0;  // claims of this generation
  int losses = 0;          // lost leases of this generation
  int64_t fence = 0;       // the current one; 0: never claimed
  int64_t nonce = 0;
  std::string node;     // owner, or the last one
  std::string held_by;  // dispatched to this node until held_until
  absl::Time held_until = absl::InfinitePast();
  absl::Time claimed_at = absl::InfinitePast();
  absl::Time lease_until = absl::InfinitePast();
  absl::Time run_until = absl::InfinitePast();
  absl::Time wait_until = absl::InfinitePast();  // the end of a lease whose row was deleted (I7)
  int64_t checkpoint = 0;                        // 0: none accepted in this generation
  absl::Time finished_at = absl::InfinitePast();
  absl::Time changed_at = absl::InfinitePast();
};

// Ownership of one attempt, as granted by START. The fence is the run's id in every command and
// variable.
struct Claim {
  PeriodKey key;
  int generation = 1;
  int64_t fence = 0;
  int64_t nonce = 0;
  int attempt = 1;  // of this trigger, from 1
  int attempt_total = 1;
  int losses = 0;
  int version = 0;          // judged by
  int current_version = 0;  // run with
  absl::CivilDay biz_date;
  absl::Time window_start;
  absl::Time window_end;
  absl::Time due;
  absl::CivilSecond nominal;
  bool backfill = false;
  bool manual = false;
  std::string params;
  absl::Time claimed_at;  // the store's clock, as the next two
  absl::Time lease_until;
  absl::Time run_until;
  int64_t checkpoint = 0;  // the last accepted one, offered to this attempt; 0: none
  std::string checkpoint_data;
};

// What proves that one speaks for an attempt (I3).
struct Ticket {
  PeriodKey key;
  int generation = 1;
  int64_t fence = 0;
  int64_t nonce = 0;
};
inline Ticket TicketOf(const Claim& claim) {
  return {claim.key, claim.generation, claim.fence, claim.nonce};
}

// How an attempt ended, as the node wants it written.
struct Outcome {
  enum class Kind {
    kDone,       // DONE
    kDoneByJob,  // the job wrote DONE itself (commit: job); only the attempt's row is completed
    kRetry,      // PLANNED again, not before now + `backoff`; uses up an attempt
    kFailed,     // FAILED; the next trigger gives new attempts
    kHeld,       // FAILED(held): final until a person acts
    kReturned,   // PLANNED again at once, uses up nothing (drain; or, with reason `lost`, a dead
                 // node's guard that gives the lease back: a loss)
  };
  Kind kind = Kind::kDone;
  std::string reason;   // one of reason::, or empty for kDone
  std::string message;  // for people: "exit code 3", with the mend where there is one
  absl::Duration backoff = absl::ZeroDuration();
  std::optional<int> exit_code;
  std::optional<int> signal;
  std::string result;  // JSON the run gave by `matins result`, or empty
  // When the child existed or the handler was entered, by the store's clock as the node estimates
  // it.
  absl::Time started_at = absl::InfinitePast();
  std::string output_head;  // bytes, any content
  std::string output_tail;
  int64_t output_bytes = 0;                             // in all, before cutting
  std::vector<std::pair<std::string, double>> figures;  // check's, kept outside all history limits
};

}  // namespace matins

#endif  // MATINS_JOB_VALUES_H_
