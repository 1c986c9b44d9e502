// Alerts of a node, and what people do about alerts.
#ifndef MATINS_OPS_ALERTS_H_
#define MATINS_OPS_ALERTS_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "alert/beats.h"
#include "engine/events.h"
#include "ops/session.h"
#include "store/database.h"

namespace matins {

// A node's alerts (alert/beats.h), on a thread and a connection of their own. It stands between the
// engine and whoever listens, so that an alarm is looked for at once, and a refused old owner,
// which leaves no trace of itself in the store, is recorded there. Thread-safe.
class AlertThread final : public EngineEvents {
 public:
  // `database`, `events` and `sender` outlive it. Without a sender or channels nothing is told.
  AlertThread(Database& database, EngineEvents& events, std::string node, AlertConfig config,
              AlertSender* sender);
  ~AlertThread() override;

  void OnEvent(const EngineEvent& event) override;
  bool Listens() const override { return events_.Listens(); }
  // Called on the thread as soon as it has a moment.
  void Ping(AlertBeats::PingKind kind);
  void SetConfig(AlertConfig config);
  // Ends a message that is under way: it is tried again by another node, or by the next.
  void Stop();

 private:
  struct Zombie {
    PeriodKey key;
    int64_t fence = 0;
    std::string why;
  };
  struct Todo {
    std::vector<Zombie> zombies;
    std::vector<AlertBeats::PingKind> pings;
    bool look = false, stop = false;
    std::unique_ptr<AlertConfig> config;
  };
  void Run();
  absl::StatusOr<absl::Duration> Turn(Todo& todo);
  bool Awaited() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Database& database_;
  EngineEvents& events_;
  const std::string node_;
  AlertConfig config_;  // the thread's
  AlertSender* const sender_;
  std::unique_ptr<AlertSender> nobody_;
  std::unique_ptr<AlertBeats> beats_;
  bool away_ = false;
  absl::Mutex mutex_;
  Todo todo_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

struct SilenceArgs {
  std::string job;  // empty: all
  absl::Duration length;
  std::string reason;
};
absl::StatusOr<int64_t> SilenceAlerts(Session& session, const SilenceArgs& args);

// Sends a message that says that it is a test, now, once.
absl::Status TestChannel(const AlertConfig& config, absl::string_view channel,
                         absl::string_view who, AlertSender& sender);
// Makes the audits that are due, looks and sends as a node does, once: for where no node runs.
// `store_schedule`: of the audit of all jobs, as AuditBeatsOptions has it.
absl::Status SendAlertsOnce(Session& session, const AlertConfig& config,
                            const std::string& store_schedule, AlertSender& sender,
                            std::function<void(const AlertTold&)> tell);

}  // namespace matins

#endif  // MATINS_OPS_ALERTS_H_
