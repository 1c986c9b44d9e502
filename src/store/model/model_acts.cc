#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "job/json.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/backfill_rules.h"
#include "store/limit_rules.h"
#include "store/model/alerts.h"
#include "store/model/model_drill.h"
#include "store/model/state.h"
#include "store/rules.h"

namespace matins::model {
namespace {

absl::Status NoJob(absl::string_view job) {
  return absl::NotFoundError(absl::StrCat("there is no job ", job));
}

class ModelActs final : public ActStore {
 public:
  explicit ModelActs(std::shared_ptr<State> state) : state_(std::move(state)), s_(*state_) {}

  absl::StatusOr<ApplyAnswer> Apply(const ApplyRequest& request) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    const std::pair<std::string, std::string> content(request.source, request.digest);
    if (!request.force && !request.digest.empty() && s_.sources.contains(content) &&
        s_.current[request.source] != request.digest) {
      return absl::FailedPreconditionError("this content was superseded by a newer one");
    }
    std::map<std::string, KnownJob> known;
    for (const auto& [name, job] : s_.jobs) {
      known[name].source = job.row.source;
      known[name].deleted = job.deleted || job.row.version == 0;
    }
    RETURN_IF_ERROR(RefuseJobsOfOthers(request.source, JobsOfOthers(request, known)));
    ApplyAnswer answer;
    std::set<std::string> named;
    for (const Definition& definition : request.jobs) {
      named.insert(definition.job.name);
      ApplyOne(definition, request, &answer);
    }
    for (auto& [name, job] : s_.jobs) {
      if (job.deleted || job.row.source != request.source || named.contains(name)) continue;
      (request.prune ? answer.pruned : answer.missing).push_back(name);
    }
    for (const std::string& name : answer.pruned) DeleteJob(name, request.act);
    if (!request.digest.empty()) {
      s_.sources.insert(content);
      s_.current[request.source] = request.digest;
    }
    return answer;
  }

  absl::Status Suspend(absl::string_view name, const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    ModelJob* job = s_.FindJob(name);
    if (job == nullptr) return NoJob(name);
    if (job->row.suspension) return absl::FailedPreconditionError("it is suspended already");
    SuspendJob(*job, act);
    return absl::OkStatus();
  }

  absl::Status Resume(absl::string_view name, const std::optional<PlanWrite>& skip,
                      const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    ModelJob* job = s_.FindJob(name);
    if (job == nullptr) return NoJob(name);
    if (!job->row.suspension) return absl::FailedPreconditionError("it is not suspended");
    if (skip) {
      int room = 0;
      std::vector<HeldRow> held;
      if (!s_.WritePlan(*skip, nullptr, absl::ZeroDuration(), &room, &held)) {
        return absl::AbortedError("it changed since it was looked at");
      }
    }
    ResumeJob(*job, !skip, act);
    return absl::OkStatus();
  }

  absl::Status Rename(absl::string_view from_view, absl::string_view to_view,
                      const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    const std::string from(from_view), to(to_view);
    if (s_.FindJob(from) == nullptr) return NoJob(from);
    bool taken = s_.jobs.contains(to);
    for (const auto& [key, row] : s_.rows) {
      taken = taken || key.job == to;
      if (key.job == from && row.status == PeriodStatus::kRunning) {
        return absl::FailedPreconditionError("it is running");
      }
    }
    if (taken) return absl::AlreadyExistsError("there is, or was, a job of that name");
    s_.TakeBackHeld(from);
    ModelJob job = s_.jobs[from];
    s_.jobs.erase(from);
    for (AlertRow& alert : s_.alerts) {
      if (alert.key.job == from) alert.key.job = to;
    }
    for (SilenceRow& silence : s_.silences) {
      if (silence.job == from) silence.job = to;
    }
    job.row.name = job.job.name = to;
    job.row.definition = RenamedJson(job.row.definition, to);
    for (JobVersion& version : job.versions) {
      version.definition = RenamedJson(version.definition, to);
    }
    ++job.row.revision;
    s_.jobs[to] = job;
    std::vector<ModelRow> moved;
    for (const auto& [key, row] : s_.rows) {
      if (key.job == from) moved.push_back(row);
    }
    for (ModelRow& row : moved) {
      s_.rows.erase(row.key);
      row.key.job = to;
      if (row.lock_key == absl::StrCat("job/", from)) row.lock_key = absl::StrCat("job/", to);
      s_.rows[row.key] = row;
    }
    if (auto left_over = s_.locks.extract(absl::StrCat("job/", from)); !left_over.empty()) {
      left_over.key() = absl::StrCat("job/", to);
      s_.locks.insert(std::move(left_over));
    }
    for (auto& [fence, run] : s_.runs) {
      if (run.key.job == from) run.key.job = to;
    }
    for (auto& [fence, slot] : s_.slots) {
      if (slot.key.job == from) slot.key.job = to;
    }
    for (EventRow& event : s_.events) {
      if (event.job == from) event.job = to;
    }
    for (Drill& drill : s_.drills) {
      if (drill.row.job == from) drill.row.job = to;
    }
    for (FigureRow& figure : s_.figures) {
      if (figure.key.job == from) figure.key.job = to;
    }
    for (auto& [id, backfill] : s_.backfills) {
      if (backfill.terms.job == from) backfill.terms.job = to;
    }
    s_.AddEvent({.kind = "renamed", .job = to, .who = act.who, .why = act.why});
    return absl::OkStatus();
  }

  absl::Status Delete(absl::string_view name, bool force, const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    if (s_.FindJob(name) == nullptr) return NoJob(name);
    for (const auto& [key, row] : s_.rows) {
      if (!force && key.job == name && row.status == PeriodStatus::kRunning) {
        return absl::FailedPreconditionError("it is running");
      }
    }
    DeleteJob(std::string(name), act);
    return absl::OkStatus();
  }

  absl::Status Reopen(const PeriodKey& key, absl::string_view params, const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    RETURN_IF_ERROR(MayReopen(key));
    ReopenRow(key, params, act);
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> OpenBackfill(const OpenBackfillRequest& request) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    const ModelJob* job = s_.FindJob(request.terms.job);
    if (s_.Frozen() || job == nullptr || job->row.revision != request.write.expected_revision) {
      return 0;
    }
    for (const PeriodKey& key : request.reopen) RETURN_IF_ERROR(MayReopen(key));
    PlanWrite write = request.write;
    write.act = request.act;
    write.act_told = true;
    int room = 0;
    std::vector<HeldRow> held;
    if (!s_.WritePlan(write, nullptr, absl::ZeroDuration(), &room, &held)) return 0;
    for (const PeriodKey& key : request.reopen) ReopenRow(key, "", request.act);
    BackfillRow row;
    row.id = static_cast<int64_t>(s_.backfills.size()) + 1;
    row.terms = request.terms;
    row.act = request.act;
    row.opened_at = s_.Now();
    row.periods = PeriodsOf(request);
    s_.backfills[row.id] = row;
    for (const PeriodKey& key : KeysOf(request)) {
      ModelRow* one = s_.FindRow(key);
      if (one == nullptr || one->status != PeriodStatus::kPlanned) continue;
      one->backfill_id = row.id;
      one->backfill = true;
    }
    s_.AddEvent({.kind = "backfill",
                 .job = request.terms.job,
                 .who = request.act.who,
                 .why = request.act.why,
                 .detail = BackfillDetail(row.id, request.terms, row.periods)});
    return row.id;
  }

  absl::Status SetBackfill(int64_t id, BackfillState state, const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    const auto found = s_.backfills.find(id);
    if (found == s_.backfills.end()) return NoBackfill(id);
    RETURN_IF_ERROR(MaySetBackfill(Counted(found->second), state));
    BackfillRow& row = found->second;
    row.state = state;
    row.changed = act;
    row.changed_at = s_.Now();
    for (auto& [key, one] : s_.rows) {
      if (one.backfill_id != id) continue;
      const bool waits = one.status == PeriodStatus::kPlanned;
      if (state == BackfillState::kActive && waits) {
        one.look_at = one.not_before;
        one.waits_for.clear();
      }
      if (state == BackfillState::kCancelled && (waits || one.status == PeriodStatus::kFailed)) {
        SkipRow(one, {act.who, CancelledReason(id, act)});
      }
    }
    s_.AddEvent({.kind = std::string(BackfillEvent(state)),
                 .job = row.terms.job,
                 .who = act.who,
                 .why = act.why,
                 .detail = BackfillDetail(id, row.terms, row.periods)});
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<BackfillRow>> ReadBackfills(int64_t id,
                                                         absl::string_view job) override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<BackfillRow> rows;
    for (auto it = s_.backfills.rbegin(); it != s_.backfills.rend(); ++it) {
      if ((id == 0 || it->first == id) && (job.empty() || it->second.terms.job == job)) {
        rows.push_back(Counted(it->second));
      }
    }
    return rows;
  }

  absl::Status Skip(absl::Span<const PeriodKey> keys, const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    for (const PeriodKey& key : keys) {
      const ModelRow* row = s_.FindRow(key);
      if (row == nullptr) return absl::NotFoundError("no such period");
      if (row->status != PeriodStatus::kPlanned && row->status != PeriodStatus::kFailed) {
        return absl::FailedPreconditionError("only PLANNED or FAILED can be skipped");
      }
    }
    for (const PeriodKey& key : keys) SkipRow(*s_.FindRow(key), act);
    return absl::OkStatus();
  }

  absl::Status Cancel(int64_t fence, const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    for (auto& [key, row] : s_.rows) {
      if (row.status != PeriodStatus::kRunning || row.fence != fence ||
          row.lease_until <= s_.Now()) {
        continue;
      }
      row.cancel = act;
      s_.AddEvent({.kind = "cancel",
                   .job = key.job,
                   .period = key.period,
                   .generation = row.generation,
                   .who = act.who,
                   .why = act.why});
      return absl::OkStatus();
    }
    return absl::NotFoundError("no such run is alive");
  }

  absl::Status TriggerNow(absl::string_view name, const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    ModelJob* job = s_.FindJob(name);
    if (job == nullptr) return NoJob(name);
    job->pending = Trigger::kPerson;
    job->row.next_look = absl::UnixEpoch();
    ++job->row.revision;
    s_.AddEvent({.kind = "trigger", .job = std::string(name), .who = act.who, .why = act.why});
    return absl::OkStatus();
  }

  absl::Status AcceptClock(const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    if (s_.FrozenToNodes()) s_.SettleClock(act);
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> BumpEpoch(const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    s_.AddEvent({.kind = "epoch", .who = act.who, .why = act.why});
    s_.fences = std::max(s_.fences, FirstNumber(s_.Now()));
    return s_.epoch = NextEpoch(s_.epoch, s_.Now());
  }

  absl::Status SetJournal(bool full) override {
    absl::MutexLock lock(&s_.mutex);
    s_.journal_full = full;
    return absl::OkStatus();
  }

  absl::StatusOr<bool> SetLimits(const SetLimitsRequest& request) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    std::vector<LimitRow> rows;
    for (const auto& [key, row] : s_.limits) rows.push_back(row);
    std::optional<std::string> said;
    if (auto it = s_.limits_said.find(request.source); it != s_.limits_said.end())
      said = it->second;
    ASSIGN_OR_RETURN(const LimitChange change, ChangeLimits(rows, said, request));
    if (!request.source.empty()) s_.limits_said[request.source] = change.said;
    if (change.empty()) return false;
    for (const LimitRule& rule : change.gone) s_.limits.erase({rule.kind, rule.name});
    for (const LimitRule& rule : change.put) {
      s_.limits[{rule.kind, rule.name}] = {rule, request.source, request.act.who, s_.Now()};
    }
    for (auto& [key, row] : s_.rows) {
      if (row.status != PeriodStatus::kPlanned || row.waits_for.empty()) continue;
      row.look_at = row.not_before;
      row.waits_for.clear();
    }
    s_.AddEvent({.kind = "limits",
                 .who = request.act.who,
                 .why = request.act.why,
                 .detail = change.detail});
    return true;
  }

  absl::StatusOr<LimitsView> ReadLimits() override {
    absl::MutexLock lock(&s_.mutex);
    std::map<std::pair<LimitKind, std::string>, LimitUse> uses;
    const auto use = [&](LimitKind kind, const std::string& name) -> LimitUse& {
      LimitUse& found = uses[{kind, name}];
      found.kind = kind;
      found.name = name;
      return found;
    };
    const auto add = [&](const auto& run, int64_t left) {
      std::vector<LimitUse*> of = {&use(LimitKind::kGlobal, "")};
      if (!run.tenant.empty()) of.push_back(&use(LimitKind::kTenant, run.tenant));
      if (!run.limit_key.empty()) of.push_back(&use(LimitKind::kKey, run.limit_key));
      if (run.backfill) of.push_back(&use(LimitKind::kBackfillShare, ""));
      for (LimitUse* one : of) {
        ++one->taken;
        one->left += left;
      }
    };
    for (const auto& [key, row] : s_.rows) {
      if (row.status == PeriodStatus::kRunning) add(row, 0);
      if (row.status != PeriodStatus::kPlanned || row.waits_for.empty()) continue;
      const size_t slash = row.waits_for.find('/');
      const auto kind = FromWord<LimitKind>(row.waits_for.substr(0, slash));
      if (!kind) continue;
      ++use(*kind, slash == std::string::npos ? "" : row.waits_for.substr(slash + 1)).waiting;
    }
    for (const auto& [fence, slot] : s_.slots) {
      if (slot.until > s_.Now()) add(slot, 1);
    }
    std::vector<LimitRow> rules;
    std::vector<LimitUse> all;
    for (const auto& [key, row] : s_.limits) rules.push_back(row);
    for (const auto& [key, one] : uses) all.push_back(one);
    return ViewOf(std::move(rules), std::move(all));
  }

  absl::StatusOr<std::vector<JobRow>> ReadJobs(absl::string_view name) override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<JobRow> rows;
    for (const auto& [key, job] : s_.jobs) {
      if (!job.deleted && (name.empty() || name == key)) rows.push_back(job.row);
    }
    return rows;
  }

  absl::StatusOr<std::vector<PeriodRow>> ReadRows(const RowFilter& filter) override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<PeriodRow> rows;
    for (const auto& [key, row] : s_.rows) {
      if (!filter.job.empty() && key.job != filter.job) continue;
      if (filter.period && key.period != *filter.period) continue;
      if (filter.from && row.biz_date < *filter.from) continue;
      if (filter.to && row.biz_date > *filter.to) continue;
      if (filter.status && row.status != *filter.status) continue;
      rows.push_back(row);
    }
    std::sort(rows.begin(), rows.end(), [](const PeriodRow& a, const PeriodRow& b) {
      return std::tie(a.biz_date, a.due, a.key) < std::tie(b.biz_date, b.due, b.key);
    });
    if (filter.newest_first) std::reverse(rows.begin(), rows.end());
    if (rows.size() > static_cast<size_t>(filter.limit)) rows.resize(filter.limit);
    return rows;
  }

  absl::StatusOr<std::vector<SkipSpan>> ReadSpans(absl::string_view name) override {
    absl::MutexLock lock(&s_.mutex);
    const ModelJob* job = s_.FindJob(name);
    return job == nullptr ? std::vector<SkipSpan>() : job->spans;
  }

  absl::StatusOr<std::vector<RunRow>> ReadRuns(const RunFilter& filter) override {
    absl::MutexLock lock(&s_.mutex);
    std::map<int64_t, RunRow> all = s_.runs;
    for (auto& [fence, run] : all) {
      if (auto it = s_.outputs.find(fence); it != s_.outputs.end()) {
        run.output_bytes = it->second.bytes;
      }
    }
    for (const auto& [key, row] : s_.rows) {
      if (row.status != PeriodStatus::kRunning) continue;
      RunRow run;
      run.key = key;
      run.generation = row.generation;
      run.fence = row.fence;
      run.attempt = row.attempts;
      run.node = row.node;
      run.status = "RUNNING";
      run.due = row.due;
      run.planned_at = row.planned_at;
      run.dispatched_at = row.dispatched_at;
      run.claimed_at = row.claimed_at;
      run.started_at = run.finished_at = kPast;
      run.checkpointed_at = row.checkpointed_at;
      run.backfill = row.backfill;
      run.manual = row.manual;
      all[row.fence] = run;
    }
    std::vector<RunRow> runs;
    for (auto it = all.rbegin(); it != all.rend(); ++it) {
      const RunRow& run = it->second;
      if (!filter.job.empty() && run.key.job != filter.job) continue;
      if (filter.period && run.key.period != *filter.period) continue;
      if (filter.fence && run.fence != *filter.fence) continue;
      if (runs.size() < static_cast<size_t>(filter.limit)) runs.push_back(run);
    }
    return runs;
  }

  absl::StatusOr<std::vector<EventRow>> ReadEvents(absl::string_view job, int limit) override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<EventRow> events;
    for (auto it = s_.events.rbegin(); it != s_.events.rend(); ++it) {
      if (!job.empty() && it->job != job) continue;
      if (events.size() < static_cast<size_t>(limit)) events.push_back(*it);
    }
    return events;
  }

  absl::StatusOr<std::vector<NodeRow>> ReadNodes() override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<NodeRow> nodes;
    for (const auto& [name, node] : s_.nodes) {
      NodeRow row = node.row;
      for (const auto& [key, period] : s_.rows) {
        row.running += period.status == PeriodStatus::kRunning && period.node == name;
      }
      nodes.push_back(std::move(row));
    }
    return nodes;
  }
  absl::StatusOr<std::vector<LockRow>> ReadLocks() override {
    absl::MutexLock lock(&s_.mutex);
    const absl::Time now = s_.Now();
    std::vector<LockRow> locks;
    for (const auto& [key, row] : s_.rows) {
      if (row.status != PeriodStatus::kRunning || row.lease_until <= now) continue;
      const std::string name =
          row.lock_key.empty() ? absl::StrCat("period/", key.job, "/", key.period) : row.lock_key;
      locks.push_back({name, key, row.fence, row.node, row.claimed_at, row.lease_until, false});
    }
    for (const auto& [name, left] : s_.locks) {
      if (left.until <= now) continue;
      locks.push_back({name, left.key, left.fence, "", kPast, left.until, true});
    }
    std::sort(locks.begin(), locks.end(), [](const LockRow& a, const LockRow& b) {
      return std::tie(a.key, a.leftover) < std::tie(b.key, b.leftover);
    });
    return locks;
  }

  absl::StatusOr<OutputRow> ReadOutput(int64_t fence) override {
    absl::MutexLock lock(&s_.mutex);
    bool running = false;
    for (const auto& [key, row] : s_.rows) {
      running = running || (row.status == PeriodStatus::kRunning && row.fence == fence);
    }
    const auto it = s_.outputs.find(fence);
    if (it == s_.outputs.end() && !running && !s_.runs.contains(fence)) {
      return absl::NotFoundError("no such run");
    }
    OutputRow output = it == s_.outputs.end() ? OutputRow{} : it->second;
    output.running = running;
    return output;
  }

  absl::StatusOr<StoreStatus> ReadStatus() override {
    absl::MutexLock lock(&s_.mutex);
    StoreStatus status;
    status.kind = "model";
    status.schema = kSchemaVersion;
    status.now = s_.Now();
    status.epoch = s_.epoch;
    status.frozen = s_.Frozen();
    status.frozen_why = s_.frozen_why;
    status.journal = s_.journal_full ? "full" : "runs";
    for (const auto& [name, job] : s_.jobs) status.jobs += !job.deleted;
    for (const auto& [key, row] : s_.rows) {
      status.planned += row.status == PeriodStatus::kPlanned;
      status.running += row.status == PeriodStatus::kRunning;
      status.failed += row.status == PeriodStatus::kFailed && !row.held;
      status.held += row.held;
    }
    return status;
  }

  absl::StatusOr<AuditFacts> ReadAuditFacts(absl::string_view name) override {
    absl::MutexLock lock(&s_.mutex);
    AuditFacts facts;
    facts.now = s_.Now();
    for (const auto& [job_name, job] : s_.jobs) {
      if (job.deleted || (!name.empty() && job_name != name)) continue;
      facts.versions[job_name] = job.versions;
      if (!job.suspended.empty()) facts.suspended[job_name] = job.suspended;
      if (!job.spans.empty()) facts.spans[job_name] = job.spans;
    }
    for (const auto& [lock_key, left] : s_.locks) {
      if (!name.empty() && left.key.job != name) continue;
      facts.locks.push_back({lock_key, left.key, left.fence, left.until});
    }
    std::map<std::pair<PeriodKey, int>, int> done;
    for (const auto& [fence, run] : s_.runs) {
      if (name.empty() || run.key.job == name) {
        done[{run.key, run.generation}] += run.status == "DONE";
      }
    }
    for (const auto& [of, count] : done) {
      if (count > 1) facts.doubles.push_back({of.first, of.second, count});
    }
    return facts;
  }

  absl::StatusOr<int64_t> BeginAudit(absl::string_view beat, absl::Time due,
                                     absl::string_view by) override {
    absl::MutexLock lock(&s_.mutex);
    const absl::Time now = s_.Now();
    for (AuditRow& row : s_.audits) {
      if (row.beat != beat || row.due != due) continue;
      if (row.finished_at != kPast || now - row.started_at < kAuditGone) return 0;
      row.by = std::string(by);
      row.started_at = now;
      return row.id;
    }
    AuditRow row;
    row.id = static_cast<int64_t>(s_.audits.size()) + 1;
    row.beat = std::string(beat);
    row.due = due;
    row.by = std::string(by);
    row.started_at = now;
    s_.audits.push_back(row);
    return row.id;
  }

  absl::Status EndAudit(const AuditRow& ended) override {
    absl::MutexLock lock(&s_.mutex);
    for (AuditRow& row : s_.audits) {
      if (row.id != ended.id || row.by != ended.by || row.finished_at != kPast) continue;
      const absl::Time started = row.started_at, due = row.due;
      const std::string beat = row.beat;
      row = ended;
      row.beat = beat;
      row.due = due;
      row.started_at = started;
      row.finished_at = s_.Now();
      return absl::OkStatus();
    }
    return absl::NotFoundError("this audit is another's");
  }

  absl::StatusOr<std::vector<AuditRow>> ReadAudits(absl::string_view beat, int limit) override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<AuditRow> audits;
    for (const AuditRow& row : s_.audits) {
      if (beat.empty() || row.beat == beat) audits.push_back(row);
    }
    std::sort(audits.begin(), audits.end(), [](const AuditRow& a, const AuditRow& b) {
      return std::tie(a.due, a.id) > std::tie(b.due, b.id);
    });
    if (audits.size() > static_cast<size_t>(limit)) audits.resize(limit);
    return audits;
  }

  absl::StatusOr<int64_t> BeginDrill(const BeginDrillRequest& request) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    return model::BeginDrill(s_, request);
  }
  absl::Status ExtendDrill(int64_t id, absl::Duration lease) override {
    absl::MutexLock lock(&s_.mutex);
    return model::ExtendDrill(s_, id, lease);
  }
  absl::StatusOr<EndDrillAnswer> EndDrill(const EndDrillRequest& request) override {
    absl::MutexLock lock(&s_.mutex);
    ++s_.changes;
    return model::EndDrill(s_, request);
  }
  absl::StatusOr<std::vector<DrillRow>> ReadDrills(absl::string_view job, int limit) override {
    absl::MutexLock lock(&s_.mutex);
    return model::ReadDrills(s_, job, limit);
  }
  absl::StatusOr<std::vector<FigureRow>> ReadFigures(const PeriodKey& key) override {
    absl::MutexLock lock(&s_.mutex);
    std::vector<FigureRow> figures;
    for (const FigureRow& figure : s_.figures) {
      if (figure.key == key) figures.push_back(figure);
    }
    std::sort(figures.begin(), figures.end(), [](const FigureRow& a, const FigureRow& b) {
      return std::tie(a.fence, a.name) < std::tie(b.fence, b.name);
    });
    return figures;
  }

  absl::StatusOr<AlertFacts> ReadAlertFacts(const AlertLook& look) override {
    absl::MutexLock lock(&s_.mutex);
    return model::ReadAlertFacts(s_, look);
  }
  absl::StatusOr<AlertCounts> PutAlerts(const AlertChanges& changes) override {
    absl::MutexLock lock(&s_.mutex);
    return model::PutAlerts(s_, changes);
  }
  absl::StatusOr<AlertClaimed> ClaimAlerts(const AlertClaim& claim) override {
    absl::MutexLock lock(&s_.mutex);
    return model::ClaimAlerts(s_, claim);
  }
  absl::StatusOr<std::vector<bool>> EndAlerts(absl::string_view by,
                                              absl::Span<const AlertSent> sent) override {
    absl::MutexLock lock(&s_.mutex);
    return model::EndAlerts(s_, by, sent);
  }
  absl::StatusOr<std::vector<AlertRow>> ReadAlerts(const AlertFilter& filter) override {
    absl::MutexLock lock(&s_.mutex);
    return model::ReadAlerts(s_, filter);
  }
  absl::Status AckAlert(int64_t id, const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    return AcknowledgeAlert(s_, id, act);
  }
  absl::StatusOr<int64_t> Silence(absl::string_view job, absl::Duration length,
                                  const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    return model::Silence(s_, job, length, act);
  }
  absl::Status Unsilence(int64_t id, const Act& act) override {
    absl::MutexLock lock(&s_.mutex);
    return model::Unsilence(s_, id, act);
  }
  absl::StatusOr<std::vector<SilenceRow>> ReadSilences() override {
    absl::MutexLock lock(&s_.mutex);
    return s_.silences;
  }
  absl::Status Record(absl::string_view kind, const PeriodKey& key, const Act& act,
                      absl::string_view detail) override {
    absl::MutexLock lock(&s_.mutex);
    s_.AddEvent({.kind = std::string(kind),
                 .job = key.job,
                 .period = key.period,
                 .who = act.who,
                 .why = act.why,
                 .detail = std::string(detail)});
    return absl::OkStatus();
  }

 private:
  // The act may follow without another look.
  absl::Status MayReopen(const PeriodKey& key) {
    const ModelRow* row = s_.FindRow(key);
    if (row == nullptr) return absl::NotFoundError("no such period");
    if (s_.FindJob(key.job) == nullptr) return NoJob(key.job);
    if (row->status == PeriodStatus::kRunning || row->status == PeriodStatus::kPlanned ||
        (row->status == PeriodStatus::kFailed && !row->held)) {
      return absl::FailedPreconditionError("it is not final");
    }
    return absl::OkStatus();
  }

  void ReopenRow(const PeriodKey& key, absl::string_view params, const Act& act) {
    ModelRow* row = s_.FindRow(key);
    ModelJob* job = s_.FindJob(key.job);
    ModelRow fresh;
    fresh.key = row->key;
    fresh.biz_date = row->biz_date;
    fresh.generation = row->generation + 1;
    fresh.change = 1;
    fresh.due = row->due;
    fresh.window_start = row->window_start;
    fresh.window_end = row->window_end;
    fresh.nominal = row->nominal;
    fresh.not_before = fresh.look_at = row->not_before;
    fresh.version = row->version;
    fresh.manual = true;
    fresh.params = std::string(params);
    fresh.by = act.who;
    fresh.wait_until = row->wait_until;
    fresh.fence = row->fence;
    fresh.nonce = row->nonce;
    fresh.node = row->node;
    fresh.claimed_at = row->claimed_at;
    fresh.priority = row->priority;
    fresh.lock_key = row->lock_key;
    fresh.tenant = row->tenant;
    fresh.limit_key = row->limit_key;
    fresh.planned_at = fresh.changed_at = s_.Now();
    *row = fresh;
    s_.reopened[key] = {fresh.generation, fresh.fence, fresh.wait_until};
    ++job->row.revision;
    s_.AddEvent({.kind = "reopened",
                 .job = key.job,
                 .period = key.period,
                 .generation = fresh.generation,
                 .who = act.who,
                 .why = act.why});
  }

  void SkipRow(ModelRow& row, const Act& act) {
    row.status = PeriodStatus::kSkipped;
    row.held = false;
    row.reason = act.why.empty() ? "by hand" : act.why;
    row.by = act.who;
    row.finished_at = row.changed_at = s_.Now();
    ++row.change;
    row.held_by.clear();
    row.held_until = kPast;
    if (ModelJob* job = s_.FindJob(row.key.job)) ++job->row.revision;
    s_.Wake(row.key.job, row.biz_date, row.lock_key, false);
    s_.AddEvent({.kind = "skip",
                 .job = row.key.job,
                 .period = row.key.period,
                 .generation = row.generation,
                 .who = act.who,
                 .why = act.why});
  }

  BackfillRow Counted(BackfillRow row) const {
    for (const auto& [key, one] : s_.rows) {
      if (one.backfill_id != row.id) continue;
      switch (one.status) {
        case PeriodStatus::kPlanned:
          ++row.planned;
          break;
        case PeriodStatus::kRunning:
          ++row.running;
          break;
        case PeriodStatus::kDone:
          ++row.done;
          break;
        case PeriodStatus::kFailed:
          ++row.failed;
          break;
        case PeriodStatus::kSkipped:
          ++row.skipped;
          break;
      }
    }
    return row;
  }

  void ApplyOne(const Definition& definition, const ApplyRequest& request, ApplyAnswer* answer) {
    const std::string& name = definition.job.name;
    ModelJob& job = s_.jobs[name];
    const bool added = job.row.version == 0 || job.deleted;
    const int number = job.row.version + 1;
    const absl::Time now = s_.Now();
    if (added) {
      if (job.deleted) SkipForDeleted(name, request.act.who);
      const int64_t revision = job.row.revision + 1;
      job = ModelJob();
      job.row.name = name;
      job.row.first_sight = now;
      job.row.revision = revision;
      job.versions = {{number, kPast, definition.json}};
      for (auto& [key, row] : s_.rows) {
        if (key.job == name && row.status == PeriodStatus::kPlanned) row.look_at = row.not_before;
      }
      answer->added.push_back(name);
    } else if (job.row.definition != definition.json) {
      Withdraw(name);
      s_.TakeBackHeld(name);
      job.row.cursor = std::min(job.row.cursor, JustBefore(now));
      ++job.row.revision;
      job.versions.push_back({number, now, definition.json});
      answer->changed.push_back(name);
    } else {
      job.row.source = request.source;
      answer->unchanged.push_back(name);
      return;
    }
    job.job = definition.job;
    job.row.version = number;
    job.row.definition = definition.json;
    job.row.source = request.source;
    job.row.next_look = absl::UnixEpoch();
    if (definition.job.suspend && !job.row.suspension) SuspendJob(job, {"file", "suspend: true"});
    if (!definition.job.suspend && job.row.suspension && job.row.suspension->by == "file") {
      ResumeJob(job, true, {"file", "suspend: false"});
    }
    s_.AddEvent({.kind = "applied", .job = name, .who = request.act.who, .why = request.act.why});
  }

  void SuspendJob(ModelJob& job, const Act& act) {
    s_.TakeBackHeld(job.row.name);
    job.row.suspension = Suspension{s_.Now(), kNever, act.who, act.why};
    job.suspended.push_back(*job.row.suspension);
    job.row.next_look = absl::UnixEpoch();
    ++job.row.revision;
    s_.AddEvent({.kind = "suspended", .job = job.row.name, .who = act.who, .why = act.why});
  }

  void ResumeJob(ModelJob& job, bool trigger, const Act& act) {
    job.row.suspension.reset();
    job.suspended.back().to = s_.Now();
    job.row.next_look = absl::UnixEpoch();
    ++job.row.revision;
    if (trigger) job.pending = Trigger::kPerson;
    for (auto& [key, row] : s_.rows) {
      if (key.job == job.row.name && row.status == PeriodStatus::kPlanned) {
        row.look_at = std::min(row.look_at, row.not_before);
      }
    }
    s_.AddEvent({.kind = "resumed", .job = job.row.name, .who = act.who, .why = act.why});
  }

  void Withdraw(const std::string& name) {
    const absl::Time now = s_.Now();
    for (auto it = s_.rows.begin(); it != s_.rows.end();) {
      const ModelRow& row = it->second;
      const bool withdrawn = it->first.job == name && row.status == PeriodStatus::kPlanned &&
                             row.due > now && row.generation == 1 && row.attempts_total == 0 &&
                             !row.manual;
      it = withdrawn ? s_.rows.erase(it) : std::next(it);
    }
  }

  void SkipForDeleted(const std::string& name, const std::string& who) {
    for (auto& [key, row] : s_.rows) {
      const bool waits =
          row.status == PeriodStatus::kPlanned || row.status == PeriodStatus::kFailed;
      if (key.job != name || !waits || row.held) continue;
      row.status = PeriodStatus::kSkipped;
      row.reason = reason::kDeleted;
      row.by = who;
      row.finished_at = row.changed_at = s_.Now();
      row.held_by.clear();
      row.held_until = kPast;
      ++row.change;
    }
  }

  void DeleteJob(const std::string& name, const Act& act) {
    Withdraw(name);
    SkipForDeleted(name, act.who);
    ModelJob& job = s_.jobs[name];
    job.deleted = true;
    job.pending.reset();
    ++job.row.revision;
    s_.AddEvent({.kind = "deleted", .job = name, .who = act.who, .why = act.why});
  }

  const std::shared_ptr<State> state_;
  State& s_;
};

}  // namespace

std::unique_ptr<ActStore> NewActs(std::shared_ptr<State> state) {
  return std::make_unique<ModelActs>(std::move(state));
}

}  // namespace matins::model
