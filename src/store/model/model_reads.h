// What is asked of the model, and what has rules of its own elsewhere: drills, audits, alerts.
#ifndef MATINS_STORE_MODEL_MODEL_READS_H_
#define MATINS_STORE_MODEL_MODEL_READS_H_

#include <memory>
#include <utility>
#include <vector>

#include "store/model/state.h"

namespace matins::model {

// Each call under the state's lock.
class ModelReads : public ActStore {
 public:
  absl::StatusOr<LimitsView> ReadLimits() override;
  absl::StatusOr<std::vector<JobRow>> ReadJobs(absl::string_view name) override;
  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitionsAfter(absl::string_view after,
                                                                  int limit) override;
  absl::StatusOr<std::vector<PeriodRow>> ReadRows(const RowFilter& filter) override;
  absl::StatusOr<std::vector<SkipSpan>> ReadSpans(absl::string_view name) override;
  absl::StatusOr<std::vector<RunRow>> ReadRuns(const RunFilter& filter) override;
  absl::StatusOr<std::vector<EventRow>> ReadEvents(absl::string_view job, int limit) override;
  absl::StatusOr<std::vector<NodeRow>> ReadNodes() override;
  absl::StatusOr<std::vector<LockRow>> ReadLocks() override;
  absl::StatusOr<OutputRow> ReadOutput(int64_t fence) override;
  absl::StatusOr<StoreStatus> ReadStatus() override;
  absl::StatusOr<AuditFacts> ReadAuditFacts(absl::string_view name) override;
  absl::StatusOr<int64_t> BeginAudit(absl::string_view beat, absl::Time due,
                                     absl::string_view by) override;
  absl::Status EndAudit(const AuditRow& ended) override;
  absl::StatusOr<std::vector<AuditRow>> ReadAudits(absl::string_view beat, int limit) override;
  absl::StatusOr<int64_t> BeginDrill(const BeginDrillRequest& request) override;
  absl::Status ExtendDrill(int64_t id, absl::Duration lease) override;
  absl::StatusOr<EndDrillAnswer> EndDrill(const EndDrillRequest& request) override;
  absl::StatusOr<std::vector<DrillRow>> ReadDrills(absl::string_view job, int limit) override;
  absl::StatusOr<std::vector<FigureRow>> ReadFigures(const PeriodKey& key) override;
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

 protected:
  explicit ModelReads(std::shared_ptr<State> state) : state_(std::move(state)), s_(*state_) {}

  const std::shared_ptr<State> state_;
  State& s_;
};

}  // namespace matins::model

#endif  // MATINS_STORE_MODEL_MODEL_READS_H_
