#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status.h"
#include "job/json.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/backfill_rules.h"
#include "store/limit_rules.h"
#include "store/model/model_reads.h"
#include "store/model/state.h"
#include "store/rules.h"

namespace matins::model {
namespace {

absl::Status NoJob(absl::string_view job) {
  return absl::NotFoundError(absl::StrCat("there is no job ", job));
}

class ModelActs final : public ModelReads {
 public:
  explicit ModelActs(std::shared_ptr<State> state) : ModelReads(std::move(state)) {}

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
    TurnsBefore turns = TurnsOf({&key, 1});
    ReopenRow(key, params, act, turns);
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
    TurnsBefore turns = TurnsOf(request.reopen);
    for (const PeriodKey& key : request.reopen) ReopenRow(key, "", request.act, turns);
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
      row.cancel_asked = true;
      row.cancel_why = act.why;
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

  TurnsBefore TurnsOf(absl::Span<const PeriodKey> keys) {
    std::set<std::string> tenants;
    for (const PeriodKey& key : keys) tenants.insert(s_.FindRow(key)->tenant);
    return s_.TurnsNow(tenants);
  }

  void ReopenRow(const PeriodKey& key, absl::string_view params, const Act& act,
                 TurnsBefore& turns) {
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
    fresh.start_tag = turns.Take(row->tenant);
    fresh.number = row->number;
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
        if (key.job != name || row.status != PeriodStatus::kPlanned) continue;
        row.look_at = row.not_before;
        row.waits_for.clear();
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
      if (key.job != job.row.name || row.status != PeriodStatus::kPlanned) continue;
      if (row.look_at <= row.not_before) continue;
      row.look_at = row.not_before;
      row.waits_for.clear();
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
};

}  // namespace

std::unique_ptr<ActStore> NewActs(std::shared_ptr<State> state) {
  return std::make_unique<ModelActs>(std::move(state));
}

}  // namespace matins::model
