// Audits: one by hand, and those that a node makes by itself.
#ifndef MATINS_OPS_AUDIT_H_
#define MATINS_OPS_AUDIT_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "audit/audit.h"
#include "audit/beats.h"
#include "engine/events.h"
#include "ops/session.h"
#include "store/database.h"

namespace matins {

// An audit now, which leaves its own row like any other. NotFound where the job is none.
absl::StatusOr<AuditReport> AuditNow(Session& session, const AuditScope& scope);

// What drills that died have left undone is put back (docs/drill.md); said as `drill_restored`.
absl::Status RestoreDrillsOnNode(ActStore& acts, EngineEvents& events, absl::string_view node);

// A node's two beats (audit/beats.h), on a thread and a connection of their own: what stops
// planning does not stop it. Looks for drills that died, too. Each audit is an event `audited`,
// each alarm of it `audit_finding`. Thread-safe.
class AuditThread {
 public:
  // What is called on its thread when an audit begins, and when it is made (whether it has alarms).
  // Neither may wait for anything.
  struct Watchers {
    std::function<void()> begun;
    std::function<void(bool alarms)> made;
  };
  // `database` and `events` outlive it. `acts`: of that database, what it asks.
  AuditThread(Database& database, std::unique_ptr<ActStore> acts, EngineEvents& events,
              std::string node, std::string schedule, Watchers watchers = {});
  ~AuditThread();  // ends an audit that is under way only after it has been written

 private:
  void Run();
  absl::Duration Turn();

  Database& database_;
  EngineEvents& events_;
  const std::string node_, schedule_;
  const Watchers watchers_;
  std::unique_ptr<ActStore> acts_;
  std::unique_ptr<AuditBeats> beats_;
  bool away_ = false;
  absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace matins

#endif  // MATINS_OPS_AUDIT_H_
