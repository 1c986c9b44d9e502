// A node's alerts: what is wrong is looked for in the store, raised there, and what is due is
// claimed and sent. Any number of nodes do so; the store decides who sends a message.
//
// Nothing is held here that the store does not have: a node that dies at any instant loses nothing,
// and costs at most a repetition of the message that it was sending, with the same id
// (docs/alerts.md).
#ifndef MATINS_ALERT_BEATS_H_
#define MATINS_ALERT_BEATS_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "alert/message.h"
#include "alert/raise.h"
#include "alert/sender.h"
#include "job/alerts.h"
#include "store/act_store.h"

namespace matins {

// How often a node looks by itself.
inline constexpr absl::Duration kAlertLook = absl::Seconds(5);
// How far back each look reads: a transaction that has written is seen by all within this.
inline constexpr absl::Duration kAlertOverlap = absl::Minutes(2);

// One attempt at a message.
struct AlertTold {
  std::string channel;
  const AlertMessage& message;
  absl::Status status;
};

struct AlertBeatsOptions {
  std::string by;  // "node:NAME"
  AlertConfig config;
  std::function<void(const AlertTold&)> tell;
};

// Not thread-safe. The store's clock is its only one.
class AlertBeats {
 public:
  // `sender` outlives it.
  AlertBeats(std::unique_ptr<ActStore> acts, AlertSender& sender, AlertBeatsOptions options);

  // Looks, raises, sends what is due in the channels that this node knows. Answers how long until
  // it should be asked again, at most kAlertLook. An error: the store is away, ask again.
  absl::StatusOr<absl::Duration> Step();
  // A run whose result or beat was refused because it was no longer the owner: recorded, so that
  // any node tells of it.
  absl::Status RecordZombie(const PeriodKey& key, int64_t fence, const std::string& why);
  enum class PingKind { kStart, kSuccess, kFail };
  // Calls the address that there is for it. One that fails is an alert, until one succeeds.
  absl::Status Ping(PingKind kind);
  // Another file was read.
  void SetConfig(AlertConfig config);

 private:
  absl::StatusOr<AlertFacts> Look();
  absl::StatusOr<AlertChanges> Changes(const AlertFacts& facts);
  absl::Status Put(AlertChanges changes, absl::Time now);
  absl::Status SendAll(const AlertFacts& facts, bool changed);
  // Answers whether there may be more to send in it now.
  absl::StatusOr<bool> SendSome(const Channel& channel);

  const std::unique_ptr<ActStore> acts_;
  AlertSender& sender_;
  AlertBeatsOptions options_;
  std::unique_ptr<JobsTold> jobs_;
  absl::Time last_now_ = absl::InfinitePast();
  absl::Time since_ = absl::InfinitePast();
  absl::Time kept_ = absl::InfinitePast();  // AlertChanges::looked as this node last wrote it
  std::map<int64_t, absl::Time> audits_;    // read, and when they ended
  std::map<std::string, absl::Time> put_;   // what has been raised, by what it says
  int64_t claims_ = 0;
  const std::string life_;  // of this object, so that no claim is another's
};

}  // namespace matins

#endif  // MATINS_ALERT_BEATS_H_
