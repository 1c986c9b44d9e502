#include "simulator/twin_simulation.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "simulator/answer_text.h"

namespace matins {
namespace {

// One difference makes more: the first few say it all.
constexpr size_t kMostDifferences = 3;

class Predictions {
 public:
  explicit Predictions(std::function<absl::Time()> clock) : clock_(std::move(clock)) {}

  template <typename Answer>
  Answer Compare(absl::string_view verb, Answer asked, const Answer& predicted) {
    if (differences_.size() >= kMostDifferences) return asked;
    const std::string right = Text(predicted), given = Text(asked);
    if (right != given) {
      differences_.push_back(absl::StrCat(verb, " at ", FormatInstant(clock_()), " answered ",
                                          given, "\nwhere the model says ", right));
    }
    return asked;
  }
  const std::vector<std::string>& differences() const { return differences_; }

 private:
  const std::function<absl::Time()> clock_;
  std::vector<std::string> differences_;
};

absl::StatusOr<std::vector<StaleRun>> InOrder(absl::StatusOr<std::vector<StaleRun>> stale) {
  if (!stale.ok()) return stale;
  std::sort(stale->begin(), stale->end(), [](const StaleRun& a, const StaleRun& b) {
    return std::tie(b.stale_for, a.row.key) < std::tie(a.stale_for, b.row.key);
  });
  return stale;
}

// The store is asked first: it may stand at its lock for a while, and what others do meanwhile
// comes before this call.
template <typename Asked>
class Twin : public Asked {
 public:
  Twin(std::unique_ptr<Asked> asked, std::unique_ptr<Asked> model, Predictions& predictions)
      : asked_(std::move(asked)), model_(std::move(model)), predictions_(predictions) {}

 protected:
  template <typename Call>
  auto Both(absl::string_view verb, Call call) {
    auto answer = call(*asked_);
    return predictions_.Compare(verb, std::move(answer), call(*model_));
  }

  const std::unique_ptr<Asked> asked_, model_;
  Predictions& predictions_;
};

class TwinStore final : public Twin<Store> {
 public:
  using Twin::Twin;

  absl::StatusOr<DueJobs> ReadDue(const ReadDueRequest& request) override {
    return Both("ReadDue", [&](Store& store) { return store.ReadDue(request); });
  }
  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitions(
      const std::vector<std::string>& jobs) override {
    return Both("ReadDefinitions", [&](Store& store) { return store.ReadDefinitions(jobs); });
  }
  absl::StatusOr<PlanAnswers> Plan(const PlanRequest& request) override {
    return Both("Plan", [&](Store& store) { return store.Plan(request); });
  }
  absl::StatusOr<HoldAnswer> Hold(const HoldRequest& request) override {
    return Both("Hold", [&](Store& store) { return store.Hold(request); });
  }
  absl::StatusOr<StartAnswers> Start(const StartRequest& request) override {
    return Both("Start", [&](Store& store) { return store.Start(request); });
  }
  absl::StatusOr<std::vector<Ticket>> Replace(absl::Span<const PeriodKey> newcomers) override {
    return Both("Replace", [&](Store& store) { return store.Replace(newcomers); });
  }
  absl::StatusOr<std::vector<ExtendAnswer>> Extend(
      absl::Span<const ExtendRequest> requests) override {
    return Both("Extend", [&](Store& store) { return store.Extend(requests); });
  }
  absl::StatusOr<std::vector<Refusal>> Checkpoint(
      absl::Span<const CheckpointRequest> requests) override {
    return Both("Checkpoint", [&](Store& store) { return store.Checkpoint(requests); });
  }
  absl::StatusOr<std::vector<Refusal>> Finish(absl::Span<const FinishRequest> requests) override {
    return Both("Finish", [&](Store& store) { return store.Finish(requests); });
  }
  absl::StatusOr<std::vector<ResolveAnswer>> Resolve(
      absl::Span<const FinishRequest> requests) override {
    return Both("Resolve", [&](Store& store) { return store.Resolve(requests); });
  }
  // Leases that end at one instant may come in any order. The store's own stands: what the model
  // says beside it changes nothing.
  absl::StatusOr<std::vector<StaleRun>> ReadStale(int limit) override {
    absl::StatusOr<std::vector<StaleRun>> stale = asked_->ReadStale(limit);
    (void)predictions_.Compare("ReadStale", InOrder(stale), InOrder(model_->ReadStale(limit)));
    return stale;
  }
  absl::StatusOr<std::vector<bool>> Reap(absl::Span<const ReapRequest> requests) override {
    return Both("Reap", [&](Store& store) { return store.Reap(requests); });
  }
  absl::Status ReportDead(absl::Span<const Ticket> tickets) override {
    return Both("ReportDead", [&](Store& store) { return store.ReportDead(tickets); });
  }
  absl::Status Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) override {
    return Both("Unhold", [&](Store& store) { return store.Unhold(node, keys); });
  }
  absl::StatusOr<TickAnswer> Tick(const TickRequest& request) override {
    return Both("Tick", [&](Store& store) { return store.Tick(request); });
  }
  absl::Status Leave(const NodeId& node) override {
    return Both("Leave", [&](Store& store) { return store.Leave(node); });
  }
  absl::StatusOr<int64_t> Purge(int limit) override {
    // How many went says when to call again, no more: a database counts what hangs on a row by
    // itself. What is left is seen by every later answer.
    absl::StatusOr<int64_t> gone = asked_->Purge(limit);
    RETURN_IF_ERROR(predictions_.Compare("Purge", gone.status(), model_->Purge(limit).status()));
    return gone;
  }
  absl::Status PutOutput(const Ticket& ticket, absl::string_view head, absl::string_view tail,
                         int64_t bytes) override {
    return Both("PutOutput",
                [&](Store& store) { return store.PutOutput(ticket, head, tail, bytes); });
  }
  Heard AwaitChange(absl::Duration at_most) override { return asked_->AwaitChange(at_most); }
  void Interrupt() override { asked_->Interrupt(); }
};

class TwinActs final : public Twin<ActStore> {
 public:
  using Twin::Twin;

  absl::StatusOr<ApplyAnswer> Apply(const ApplyRequest& request) override {
    return Both("Apply", [&](ActStore& store) { return store.Apply(request); });
  }
  absl::Status Suspend(absl::string_view job, const Act& act) override {
    return Both("Suspend", [&](ActStore& store) { return store.Suspend(job, act); });
  }
  absl::Status Resume(absl::string_view job, const std::optional<PlanWrite>& skip,
                      const Act& act) override {
    return Both("Resume", [&](ActStore& store) { return store.Resume(job, skip, act); });
  }
  absl::Status Rename(absl::string_view from, absl::string_view to, const Act& act) override {
    return Both("Rename", [&](ActStore& store) { return store.Rename(from, to, act); });
  }
  absl::Status Delete(absl::string_view job, bool force, const Act& act) override {
    return Both("Delete", [&](ActStore& store) { return store.Delete(job, force, act); });
  }
  absl::Status Reopen(const PeriodKey& key, absl::string_view params, const Act& act) override {
    return Both("Reopen", [&](ActStore& store) { return store.Reopen(key, params, act); });
  }
  absl::Status Skip(absl::Span<const PeriodKey> keys, const Act& act) override {
    return Both("Skip", [&](ActStore& store) { return store.Skip(keys, act); });
  }
  absl::Status Cancel(int64_t fence, const Act& act) override {
    return Both("Cancel", [&](ActStore& store) { return store.Cancel(fence, act); });
  }
  absl::Status TriggerNow(absl::string_view job, const Act& act) override {
    return Both("TriggerNow", [&](ActStore& store) { return store.TriggerNow(job, act); });
  }
  absl::Status AcceptClock(const Act& act) override {
    return Both("AcceptClock", [&](ActStore& store) { return store.AcceptClock(act); });
  }
  absl::StatusOr<int64_t> BumpEpoch(const Act& act) override {
    return Both("BumpEpoch", [&](ActStore& store) { return store.BumpEpoch(act); });
  }
  absl::Status SetJournal(bool full) override {
    return Both("SetJournal", [&](ActStore& store) { return store.SetJournal(full); });
  }
  absl::StatusOr<int64_t> OpenBackfill(const OpenBackfillRequest& request) override {
    return Both("OpenBackfill", [&](ActStore& store) { return store.OpenBackfill(request); });
  }
  absl::Status SetBackfill(int64_t id, BackfillState state, const Act& act) override {
    return Both("SetBackfill", [&](ActStore& store) { return store.SetBackfill(id, state, act); });
  }
  absl::StatusOr<std::vector<BackfillRow>> ReadBackfills(int64_t id,
                                                         absl::string_view job) override {
    return asked_->ReadBackfills(id, job);
  }
  absl::StatusOr<bool> SetLimits(const SetLimitsRequest& request) override {
    return Both("SetLimits", [&](ActStore& store) { return store.SetLimits(request); });
  }
  absl::StatusOr<LimitsView> ReadLimits() override { return asked_->ReadLimits(); }
  absl::StatusOr<std::vector<JobRow>> ReadJobs(absl::string_view name) override {
    return Both("ReadJobs", [&](ActStore& store) { return store.ReadJobs(name); });
  }
  absl::StatusOr<std::vector<JobDefinition>> ReadDefinitionsAfter(absl::string_view after,
                                                                  int limit) override {
    return Both("ReadDefinitionsAfter",
                [&](ActStore& store) { return store.ReadDefinitionsAfter(after, limit); });
  }
  absl::StatusOr<std::vector<PeriodRow>> ReadRows(const RowFilter& filter) override {
    return Both("ReadRows", [&](ActStore& store) { return store.ReadRows(filter); });
  }
  absl::StatusOr<std::vector<SkipSpan>> ReadSpans(absl::string_view job) override {
    return Both("ReadSpans", [&](ActStore& store) { return store.ReadSpans(job); });
  }
  absl::StatusOr<std::vector<RunRow>> ReadRuns(const RunFilter& filter) override {
    return Both("ReadRuns", [&](ActStore& store) { return store.ReadRuns(filter); });
  }
  // What is for people alone.
  absl::StatusOr<std::vector<EventRow>> ReadEvents(absl::string_view job, int limit) override {
    return asked_->ReadEvents(job, limit);
  }
  absl::StatusOr<std::vector<NodeRow>> ReadNodes() override { return asked_->ReadNodes(); }
  absl::StatusOr<OutputRow> ReadOutput(int64_t fence) override { return asked_->ReadOutput(fence); }
  absl::StatusOr<StoreStatus> ReadStatus() override { return asked_->ReadStatus(); }
  absl::StatusOr<std::vector<LockRow>> ReadLocks() override { return asked_->ReadLocks(); }
  absl::StatusOr<AuditFacts> ReadAuditFacts(absl::string_view job) override {
    return asked_->ReadAuditFacts(job);
  }
  absl::StatusOr<int64_t> BeginAudit(absl::string_view beat, absl::Time due,
                                     absl::string_view by) override {
    return asked_->BeginAudit(beat, due, by);
  }
  absl::Status EndAudit(const AuditRow& row) override { return asked_->EndAudit(row); }
  absl::StatusOr<std::vector<AuditRow>> ReadAudits(absl::string_view beat, int limit) override {
    return asked_->ReadAudits(beat, limit);
  }
  // No simulation drills or sends alerts.
  absl::StatusOr<int64_t> BeginDrill(const BeginDrillRequest& request) override {
    return asked_->BeginDrill(request);
  }
  absl::Status ExtendDrill(int64_t id, absl::Duration lease) override {
    return asked_->ExtendDrill(id, lease);
  }
  absl::StatusOr<EndDrillAnswer> EndDrill(const EndDrillRequest& request) override {
    return asked_->EndDrill(request);
  }
  absl::StatusOr<std::vector<DrillRow>> ReadDrills(absl::string_view job, int limit) override {
    return asked_->ReadDrills(job, limit);
  }
  absl::StatusOr<std::vector<FigureRow>> ReadFigures(const PeriodKey& key) override {
    return asked_->ReadFigures(key);
  }
  absl::StatusOr<AlertFacts> ReadAlertFacts(const AlertLook& look) override {
    return asked_->ReadAlertFacts(look);
  }
  absl::StatusOr<AlertCounts> PutAlerts(const AlertChanges& changes) override {
    return asked_->PutAlerts(changes);
  }
  absl::StatusOr<AlertClaimed> ClaimAlerts(const AlertClaim& claim) override {
    return asked_->ClaimAlerts(claim);
  }
  absl::StatusOr<std::vector<bool>> EndAlerts(absl::string_view by,
                                              absl::Span<const AlertSent> sent) override {
    return asked_->EndAlerts(by, sent);
  }
  absl::StatusOr<std::vector<AlertRow>> ReadAlerts(const AlertFilter& filter) override {
    return asked_->ReadAlerts(filter);
  }
  absl::Status AckAlert(int64_t id, const Act& act) override { return asked_->AckAlert(id, act); }
  absl::StatusOr<int64_t> Silence(absl::string_view job, absl::Duration length,
                                  const Act& act) override {
    return asked_->Silence(job, length, act);
  }
  absl::Status Unsilence(int64_t id, const Act& act) override { return asked_->Unsilence(id, act); }
  absl::StatusOr<std::vector<SilenceRow>> ReadSilences() override { return asked_->ReadSilences(); }
  absl::Status Record(absl::string_view kind, const PeriodKey& key, const Act& act,
                      absl::string_view detail) override {
    return Both("Record", [&](ActStore& store) { return store.Record(kind, key, act, detail); });
  }
};

class TwinDatabase final : public Database {
 public:
  TwinDatabase(Database& asked, Database& model, Predictions& predictions)
      : asked_(asked), model_(model), predictions_(predictions) {}

  absl::Status Migrate() override {
    RETURN_IF_ERROR(model_.Migrate());
    return asked_.Migrate();
  }
  absl::StatusOr<std::unique_ptr<Store>> Open() override {
    ASSIGN_OR_RETURN(std::unique_ptr<Store> asked, asked_.Open());
    ASSIGN_OR_RETURN(std::unique_ptr<Store> model, model_.Open());
    return std::make_unique<TwinStore>(std::move(asked), std::move(model), predictions_);
  }
  absl::StatusOr<std::unique_ptr<ActStore>> OpenActs() override {
    ASSIGN_OR_RETURN(std::unique_ptr<ActStore> asked, asked_.OpenActs());
    ASSIGN_OR_RETURN(std::unique_ptr<ActStore> model, model_.OpenActs());
    return std::make_unique<TwinActs>(std::move(asked), std::move(model), predictions_);
  }
  absl::StatusOr<absl::Duration> ShortestLease() override { return asked_.ShortestLease(); }
  absl::StatusOr<SchemaCheck> Check() override { return asked_.Check(); }
  absl::Status Backup(const std::string& path) override { return asked_.Backup(path); }
  absl::Status Restore(const std::string& path) override { return asked_.Restore(path); }
  std::string Describe() const override { return asked_.Describe(); }

 private:
  Database& asked_;
  Database& model_;
  Predictions& predictions_;
};

class TwinSimulation final : public SimDatabase {
 public:
  TwinSimulation(std::unique_ptr<SimDatabase> asked, std::unique_ptr<SimDatabase> model,
                 std::function<absl::Time()> clock)
      : asked_(std::move(asked)), model_(std::move(model)), predictions_(std::move(clock)) {}

  Database& database() override { return twin_; }
  absl::Status InsertDoneRow(const PeriodKey& key) override {
    const absl::Status predicted = model_->InsertDoneRow(key);
    const absl::Status status = asked_->InsertDoneRow(key);
    (void)predictions_.Compare("a row of another program", status.ok(), predicted.ok());
    return status;
  }
  absl::Status DeleteRow(const PeriodKey& key) override {
    RETURN_IF_ERROR(model_->DeleteRow(key));
    return asked_->DeleteRow(key);
  }
  absl::StatusOr<bool> CommitByJob(const PeriodKey& key, int generation, int64_t fence) override {
    auto done = asked_->CommitByJob(key, generation, fence);
    return predictions_.Compare("a job's own commit", std::move(done),
                                model_->CommitByJob(key, generation, fence));
  }
  // All that is there at the end counts too.
  std::vector<std::string> Differences() override {
    const auto acts = twin_.OpenActs();
    if (!acts.ok()) return {std::string(acts.status().message())};
    RowFilter rows;
    rows.limit = 1'000'000;
    RunFilter runs;
    runs.limit = rows.limit;
    (void)(*acts)->ReadRows(rows);
    (void)(*acts)->ReadRuns(runs);
    (void)(*acts)->ReadJobs("");
    (void)(*acts)->ReadDefinitionsAfter("", 1'000);
    return predictions_.differences();
  }

 private:
  const std::unique_ptr<SimDatabase> asked_, model_;
  Predictions predictions_;
  TwinDatabase twin_{asked_->database(), model_->database(), predictions_};
};

}  // namespace

SimDatabaseMaker WithPrediction(SimDatabaseMaker asked, SimDatabaseMaker model) {
  return [asked = std::move(asked), model = std::move(model)](
             std::function<absl::Time()> clock) -> absl::StatusOr<std::unique_ptr<SimDatabase>> {
    ASSIGN_OR_RETURN(std::unique_ptr<SimDatabase> first, asked(clock));
    ASSIGN_OR_RETURN(std::unique_ptr<SimDatabase> second, model(clock));
    return std::make_unique<TwinSimulation>(std::move(first), std::move(second), std::move(clock));
  };
}

}  // namespace matins
