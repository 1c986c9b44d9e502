// People's acts and reads on SQLite.
#ifndef MATINS_STORE_SQLITE_SQLITE_ACTS_H_
#define MATINS_STORE_SQLITE_SQLITE_ACTS_H_

#include <memory>
#include <string>
#include <vector>

#include "store/act_store.h"
#include "store/sqlite/connection.h"
#include "store/sqlite/rows.h"
#include "store/turns.h"

namespace matins::sqlite {

class SqliteActs final : public ActStore {
 public:
  explicit SqliteActs(std::unique_ptr<Connection> db) : db_(std::move(db)) {}

  // apply.cc
  absl::StatusOr<ApplyAnswer> Apply(const ApplyRequest& request) override;
  // acts.cc
  absl::Status Suspend(absl::string_view job, const Act& act) override;
  absl::Status Resume(absl::string_view job, const std::optional<PlanWrite>& skip,
                      const Act& act) override;
  absl::Status Rename(absl::string_view from, absl::string_view to, const Act& act) override;
  absl::Status Delete(absl::string_view job, bool force, const Act& act) override;
  absl::Status Reopen(const PeriodKey& key, absl::string_view params, const Act& act) override;
  absl::Status Skip(absl::Span<const PeriodKey> keys, const Act& act) override;
  absl::Status Cancel(int64_t fence, const Act& act) override;
  absl::Status TriggerNow(absl::string_view job, const Act& act) override;
  absl::Status AcceptClock(const Act& act) override;
  absl::StatusOr<int64_t> BumpEpoch(const Act& act) override;
  absl::Status SetJournal(bool full) override;
  // backfills.cc
  absl::StatusOr<int64_t> OpenBackfill(const OpenBackfillRequest& request) override;
  absl::Status SetBackfill(int64_t id, BackfillState state, const Act& act) override;
  absl::StatusOr<std::vector<BackfillRow>> ReadBackfills(int64_t id,
                                                         absl::string_view job) override;
  // limits.cc
  absl::StatusOr<bool> SetLimits(const SetLimitsRequest& request) override;
  absl::StatusOr<LimitsView> ReadLimits() override;
  // reads.cc
  absl::StatusOr<std::vector<JobRow>> ReadJobs(absl::string_view name) override;
  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitionsAfter(absl::string_view after,
                                                                  int limit) override;
  absl::StatusOr<std::vector<PeriodRow>> ReadRows(const RowFilter& filter) override;
  absl::StatusOr<std::vector<SkipSpan>> ReadSpans(absl::string_view job) override;
  absl::StatusOr<std::vector<RunRow>> ReadRuns(const RunFilter& filter) override;
  absl::StatusOr<std::vector<EventRow>> ReadEvents(absl::string_view job, int limit) override;
  absl::StatusOr<std::vector<NodeRow>> ReadNodes() override;
  absl::StatusOr<std::vector<LockRow>> ReadLocks() override;
  absl::StatusOr<OutputRow> ReadOutput(int64_t fence) override;
  absl::StatusOr<StoreStatus> ReadStatus() override;
  // audit.cc
  absl::StatusOr<AuditFacts> ReadAuditFacts(absl::string_view job) override;
  absl::StatusOr<int64_t> BeginAudit(absl::string_view beat, absl::Time due,
                                     absl::string_view by) override;
  absl::Status EndAudit(const AuditRow& row) override;
  absl::StatusOr<std::vector<AuditRow>> ReadAudits(absl::string_view beat, int limit) override;
  // drill.cc
  absl::StatusOr<int64_t> BeginDrill(const BeginDrillRequest& request) override;
  absl::Status ExtendDrill(int64_t id, absl::Duration lease) override;
  absl::StatusOr<EndDrillAnswer> EndDrill(const EndDrillRequest& request) override;
  absl::StatusOr<std::vector<DrillRow>> ReadDrills(absl::string_view job, int limit) override;
  absl::StatusOr<std::vector<FigureRow>> ReadFigures(const PeriodKey& key) override;
  // alerts.cc
  absl::StatusOr<AlertFacts> ReadAlertFacts(const AlertLook& look) override;
  absl::StatusOr<AlertCounts> PutAlerts(const AlertChanges& changes) override;
  absl::StatusOr<AlertClaimed> ClaimAlerts(const AlertClaim& claim) override;
  absl::StatusOr<std::vector<bool>> EndAlerts(absl::string_view by,
                                              absl::Span<const AlertSent> sent) override;
  absl::StatusOr<std::vector<AlertRow>> ReadAlerts(const AlertFilter& filter) override;
  absl::Status AckAlert(int64_t id, const Act& act) override;
  absl::StatusOr<int64_t> Silence(absl::string_view job, absl::Duration length,
                                  const Act& act) override;
  absl::Status Unsilence(int64_t id, const Act& act) override;
  absl::StatusOr<std::vector<SilenceRow>> ReadSilences() override;
  absl::Status Record(absl::string_view kind, const PeriodKey& key, const Act& act,
                      absl::string_view detail) override;

 private:
  std::unique_ptr<Connection> db_;
};

// Shared by Apply and the acts, inside their transactions.
void SuspendJob(Connection& db, absl::Time now, absl::string_view job, const Act& act);
void ResumeJob(Connection& db, absl::Time now, absl::string_view job, bool trigger, const Act& act);
absl::Status DeleteJob(Connection& db, absl::Time now, absl::string_view job, bool force,
                       const Act& act);
// As the acts, within a transaction. `turns`: TurnsOfRows of all that are opened.
absl::Status ReopenRow(Connection& db, absl::Time now, const PeriodKey& key,
                       absl::string_view params, const Act& act, Turns& turns);
absl::Status SkipRows(Connection& db, absl::Time now, absl::Span<const PeriodKey> keys,
                      const Act& act);
// What is held or planned ahead goes back, so that planning judges it anew.
void TakeBackHeld(Connection& db, absl::string_view job);
// What was planned beyond this moment and never started is as though it had never been; it goes
// with its journal, and opens no gap.
void Withdraw(Connection& db, absl::Time now, absl::string_view job);
// What waits, or would get new attempts, becomes SKIPPED(deleted): a job of that name that comes
// later is another one. Answers how many.
int SkipForDeleted(Connection& db, absl::Time now, absl::string_view job, absl::string_view who);

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_SQLITE_ACTS_H_
