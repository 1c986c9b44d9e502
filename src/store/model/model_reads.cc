#include "store/model/model_reads.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "job/words.h"
#include "store/limit_rules.h"
#include "store/model/alerts.h"
#include "store/model/model_drill.h"
#include "store/rules.h"

namespace matins::model {

absl::StatusOr<LimitsView> ModelReads::ReadLimits() {
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

absl::StatusOr<std::vector<JobRow>> ModelReads::ReadJobs(absl::string_view name) {
  absl::MutexLock lock(&s_.mutex);
  std::vector<JobRow> rows;
  for (const auto& [key, job] : s_.jobs) {
    if (!job.deleted && (name.empty() || name == key)) rows.push_back(job.row);
  }
  return rows;
}

absl::StatusOr<std::vector<JobDefinition>> ModelReads::ReadDefinitionsAfter(absl::string_view after,
                                                                            int limit) {
  absl::MutexLock lock(&s_.mutex);
  std::vector<JobDefinition> jobs;
  for (auto it = s_.jobs.upper_bound(std::string(after)); it != s_.jobs.end(); ++it) {
    if (it->second.deleted) continue;
    if (jobs.size() == static_cast<size_t>(limit)) break;
    const JobVersion& newest = it->second.versions.back();
    jobs.push_back({it->first, newest.number, newest.definition});
  }
  return jobs;
}

absl::StatusOr<std::vector<PeriodRow>> ModelReads::ReadRows(const RowFilter& filter) {
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

absl::StatusOr<std::vector<SkipSpan>> ModelReads::ReadSpans(absl::string_view name) {
  absl::MutexLock lock(&s_.mutex);
  const ModelJob* job = s_.FindJob(name);
  return job == nullptr ? std::vector<SkipSpan>() : job->spans;
}

absl::StatusOr<std::vector<RunRow>> ModelReads::ReadRuns(const RunFilter& filter) {
  absl::MutexLock lock(&s_.mutex);
  std::map<int64_t, RunRow> all = s_.runs;
  for (auto& [fence, run] : all) {
    if (auto it = s_.outputs.find(fence); it != s_.outputs.end()) {
      run.output_bytes = it->second.bytes;
    }
  }
  for (const auto& [key, row] : s_.rows) {
    if (row.status != PeriodStatus::kRunning) continue;
    all[row.fence] = RunOf(row);
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

absl::StatusOr<std::vector<EventRow>> ModelReads::ReadEvents(absl::string_view job, int limit) {
  absl::MutexLock lock(&s_.mutex);
  std::vector<EventRow> events;
  for (auto it = s_.events.rbegin(); it != s_.events.rend(); ++it) {
    if (!job.empty() && it->job != job) continue;
    if (events.size() < static_cast<size_t>(limit)) events.push_back(*it);
  }
  return events;
}

absl::StatusOr<std::vector<NodeRow>> ModelReads::ReadNodes() {
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

absl::StatusOr<std::vector<LockRow>> ModelReads::ReadLocks() {
  absl::MutexLock lock(&s_.mutex);
  const absl::Time now = s_.Now();
  std::vector<LockRow> locks;
  for (const auto& [key, row] : s_.rows) {
    if (row.status != PeriodStatus::kRunning || row.lease_until <= now) continue;
    const std::string name =
        row.lock_key.empty() ? absl::StrCat("period/", key.job, "/", key.period) : row.lock_key;
    locks.push_back(
        {name, key, row.fence, row.node, row.claimed_at, row.lease_until, false, row.renewals});
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

absl::StatusOr<OutputRow> ModelReads::ReadOutput(int64_t fence) {
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

absl::StatusOr<StoreStatus> ModelReads::ReadStatus() {
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

absl::StatusOr<AuditFacts> ModelReads::ReadAuditFacts(absl::string_view name) {
  absl::MutexLock lock(&s_.mutex);
  AuditFacts facts;
  facts.now = s_.Now();
  if (!s_.events.empty()) facts.last_event = s_.events.back().id;
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

absl::StatusOr<int64_t> ModelReads::BeginAudit(absl::string_view beat, absl::Time due,
                                               absl::string_view by) {
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

absl::Status ModelReads::EndAudit(const AuditRow& ended) {
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

absl::StatusOr<std::vector<AuditRow>> ModelReads::ReadAudits(absl::string_view beat, int limit) {
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

absl::StatusOr<int64_t> ModelReads::BeginDrill(const BeginDrillRequest& request) {
  absl::MutexLock lock(&s_.mutex);
  ++s_.changes;
  return model::BeginDrill(s_, request);
}

absl::Status ModelReads::ExtendDrill(int64_t id, absl::Duration lease) {
  absl::MutexLock lock(&s_.mutex);
  return model::ExtendDrill(s_, id, lease);
}

absl::StatusOr<EndDrillAnswer> ModelReads::EndDrill(const EndDrillRequest& request) {
  absl::MutexLock lock(&s_.mutex);
  ++s_.changes;
  return model::EndDrill(s_, request);
}

absl::StatusOr<std::vector<DrillRow>> ModelReads::ReadDrills(absl::string_view job, int limit) {
  absl::MutexLock lock(&s_.mutex);
  return model::ReadDrills(s_, job, limit);
}

absl::StatusOr<std::vector<FigureRow>> ModelReads::ReadFigures(const PeriodKey& key) {
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

absl::StatusOr<AlertFacts> ModelReads::ReadAlertFacts(const AlertLook& look) {
  absl::MutexLock lock(&s_.mutex);
  return model::ReadAlertFacts(s_, look);
}

absl::StatusOr<AlertCounts> ModelReads::PutAlerts(const AlertChanges& changes) {
  absl::MutexLock lock(&s_.mutex);
  return model::PutAlerts(s_, changes);
}

absl::StatusOr<AlertClaimed> ModelReads::ClaimAlerts(const AlertClaim& claim) {
  absl::MutexLock lock(&s_.mutex);
  return model::ClaimAlerts(s_, claim);
}

absl::StatusOr<std::vector<bool>> ModelReads::EndAlerts(absl::string_view by,
                                                        absl::Span<const AlertSent> sent) {
  absl::MutexLock lock(&s_.mutex);
  return model::EndAlerts(s_, by, sent);
}

absl::StatusOr<std::vector<AlertRow>> ModelReads::ReadAlerts(const AlertFilter& filter) {
  absl::MutexLock lock(&s_.mutex);
  return model::ReadAlerts(s_, filter);
}

absl::Status ModelReads::AckAlert(int64_t id, const Act& act) {
  absl::MutexLock lock(&s_.mutex);
  return AcknowledgeAlert(s_, id, act);
}

absl::StatusOr<int64_t> ModelReads::Silence(absl::string_view job, absl::Duration length,
                                            const Act& act) {
  absl::MutexLock lock(&s_.mutex);
  return model::Silence(s_, job, length, act);
}

absl::Status ModelReads::Unsilence(int64_t id, const Act& act) {
  absl::MutexLock lock(&s_.mutex);
  return model::Unsilence(s_, id, act);
}

absl::StatusOr<std::vector<SilenceRow>> ModelReads::ReadSilences() {
  absl::MutexLock lock(&s_.mutex);
  return s_.silences;
}

absl::Status ModelReads::Record(absl::string_view kind, const PeriodKey& key, const Act& act,
                                absl::string_view detail) {
  absl::MutexLock lock(&s_.mutex);
  s_.AddEvent({.kind = std::string(kind),
               .job = key.job,
               .period = key.period,
               .who = act.who,
               .why = act.why,
               .detail = std::string(detail)});
  return absl::OkStatus();
}
}  // namespace matins::model
