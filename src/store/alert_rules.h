// Alerts as every store keeps them: one row for each thing that is wrong and each channel that it
// is told in. Values, and the rules of a row's life: pure, and the same in every store.
//
// A row is raised, told, reminded of, resolved when it is made good, and told so once. What is said
// of it comes with the instant at which that was true in the store (`seen_at`), so that a node that
// read long ago cannot undo what was read since.
#ifndef MATINS_STORE_ALERT_RULES_H_
#define MATINS_STORE_ALERT_RULES_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/values.h"

namespace matins {

// Whoever has claimed an alert and neither told it nor given it up in this time is taken for dead,
// and another sends it.
inline constexpr absl::Duration kAlertLease = absl::Minutes(2);
// After a failed attempt: from the first, doubling, to the second.
inline constexpr absl::Duration kAlertBackoffMin = absl::Seconds(30);
inline constexpr absl::Duration kAlertBackoffMax = absl::Hours(1);
// How long the row of an alert that is over is kept.
inline constexpr absl::Duration kAlertKept = absl::Hours(24 * 90);
// The most that one look reads of each kind of trouble, and of the newest acts and audits: what is
// older has been read.
inline constexpr int kMostTroubles = 5000;

// What is wrong: whatever sees it, however often, it is one alert a channel.
struct AlertKey {
  std::string topic;  // "gap", "stuck", ... (alert/raise.h)
  std::string job;    // empty: the store
  std::string about;  // a period, an audit's beat, a run; or empty
  friend auto operator<=>(const AlertKey&, const AlertKey&) = default;
};

struct AlertRow {
  int64_t id = 0;  // 0: not in the store
  AlertKey key;
  std::string channel;
  int episode = 1;     // one more each time it comes back after it was over
  std::string kind;    // "failed", "absent", ...: for people
  int level = 0;       // of an episode it only rises, and is told again when it does
  std::string period;  // of an alert of a whole job the newest
  absl::Time due = absl::InfinitePast();
  int64_t count = 1;  // periods of an alert of a whole job
  std::string text;
  bool by_job = false;     // of a whole job, whose periods come and go
  bool by_audit = false;   // an audit saw it, so an audit that does not may resolve it
  bool momentary = false;  // is over once it has been told
  absl::Time opened_at = absl::InfinitePast();
  absl::Time seen_at = absl::InfinitePast();
  absl::Time resolved_at = absl::InfinitePast();  // InfinitePast: it stands
  std::string resolution;
  absl::Time told_at = absl::InfinitePast();          // InfinitePast: not yet
  absl::Time resolve_told_at = absl::InfinitePast();  // InfinitePast: not yet
  absl::Time next_at = absl::InfiniteFuture();        // of the next message; InfiniteFuture: none
  int attempts = 0;                                   // of the next message
  std::string claimed_by;
  std::string last_error;
  absl::Time acked_at = absl::InfinitePast();
  std::string acked_by, acked_why;
  absl::Duration remind = absl::InfiniteDuration();

  bool open() const { return resolved_at == absl::InfinitePast(); }
  bool told() const { return told_at != absl::InfinitePast(); }
  bool claimed() const { return !claimed_by.empty(); }
};

struct AlertRaise {
  AlertKey key;
  std::string channel, kind;
  int level = 0;
  std::string period;
  absl::Time due = absl::InfinitePast();
  std::string text;
  bool by_job = false, by_audit = false, momentary = false;
  absl::Time seen_at;
  absl::Duration remind = absl::InfiniteDuration();
};

struct AlertResolve {
  AlertKey key;  // in every channel
  absl::Time seen_at;
  std::string resolution;
};

// The message that a row waits for.
enum class AlertStep { kFire, kRemind, kResolve };
AlertStep NextStep(const AlertRow& row);

// Each answers whether the row has changed and is to be written.
bool RaiseAlert(const AlertRaise& raise, absl::Time now, AlertRow& row);
// `silenced`: nobody is told of one that came and went in silence.
bool ResolveAlert(const AlertResolve& resolve, absl::Time now, bool silenced, AlertRow& row);
void ClaimAlert(absl::string_view by, absl::Time now, AlertRow& row);

// What became of a message; `step` as it was when the row was claimed.
struct AlertSent {
  int64_t id = 0;
  AlertStep step = AlertStep::kFire;
  std::string error;  // empty: it was delivered
};
// False: another has it by now.
bool EndAlert(const AlertSent& sent, absl::string_view by, absl::Time now, AlertRow& row);
bool AckAlert(const Act& act, absl::Time now, AlertRow& row);

absl::Duration AlertBackoff(int attempts);

// A time in which nothing is told of a job; it is told afterwards, where it still stands.
struct SilenceRow {
  int64_t id = 0;
  std::string job;  // empty: all
  absl::Time from, until;
  std::string who, why;
  absl::Time ended_at = absl::InfinitePast();  // taken back before `until`
  std::string ended_by;
  bool Covers(absl::string_view of, absl::Time now) const {
    return ended_at == absl::InfinitePast() && from <= now && now < until &&
           (job.empty() || job == of);
  }
};

// ---- what a look at the store finds ----

struct AlertTrouble {
  enum class Kind { kFailed, kLost, kZombie, kClock };
  Kind kind = Kind::kFailed;
  PeriodKey key;
  absl::Time due = absl::InfinitePast();
  absl::Time at;      // when it became so
  bool held = false;  // kFailed
  int64_t fence = 0;  // of the run; 0: none
  std::string node;
  std::string why;         // reason or message, for people
  std::string definition;  // of its job, as JSON; empty: there is none
};

struct AlertLook {
  absl::Time since;                   // what became so since; earlier troubles are known
  std::vector<int64_t> known_audits;  // that the caller has read
};

struct AlertMadeGood {
  AlertKey key;
  std::string resolution;
};

struct AlertMessageDue {
  std::string channel;
  absl::Time next_at;
};

struct AlertChanges {
  std::vector<AlertRaise> raise;
  std::vector<AlertResolve> resolve;
  absl::Time looked = absl::InfinitePast();  // up to which all is raised; InfinitePast: as it was
};
struct AlertCounts {
  int raised = 0;  // new ones, and those that were told to be worse
  int resolved = 0;
};

struct AlertFilter {
  bool open_only = true;
  std::string job;  // empty: all
  int limit = 1000;
};

}  // namespace matins

#endif  // MATINS_STORE_ALERT_RULES_H_
