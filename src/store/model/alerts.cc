#include "store/model/alerts.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "store/act_rules.h"
#include "store/alert_text.h"

namespace matins::model {
namespace {

std::string DefinitionOf(const State& s, const std::string& name) {
  const auto job = s.jobs.find(name);
  return job == s.jobs.end() || job->second.deleted ? "" : job->second.row.definition;
}

void ReadTroubles(const State& s, absl::Time since, AlertFacts& facts) {
  for (const auto& [key, row] : s.rows) {
    if (row.status != PeriodStatus::kFailed || row.changed_at < since) continue;
    const std::string definition = DefinitionOf(s, key.job);
    if (definition.empty()) continue;
    const auto run = s.runs.find(row.fence);
    facts.troubles.push_back(
        {.kind = AlertTrouble::Kind::kFailed,
         .key = key,
         .due = row.due,
         .at = row.changed_at,
         .held = row.held,
         .fence = row.fence,
         .node = row.node,
         .why = TroubleWhy(row.reason, run == s.runs.end() ? "" : run->second.message),
         .definition = definition});
  }
  const auto by_time = [](const AlertTrouble& a, const AlertTrouble& b) { return a.at < b.at; };
  std::stable_sort(facts.troubles.begin(), facts.troubles.end(), by_time);
  const size_t failed = facts.troubles.size();
  for (const auto& [fence, run] : s.runs) {
    if (run.status != "LOST" || run.finished_at < since) continue;
    const std::string definition = DefinitionOf(s, run.key.job);
    if (definition.empty()) continue;
    facts.troubles.push_back({.kind = AlertTrouble::Kind::kLost,
                              .key = run.key,
                              .due = run.due,
                              .at = run.finished_at,
                              .fence = fence,
                              .node = run.node,
                              .why = TroubleWhy(run.reason, run.message),
                              .definition = definition});
  }
  std::stable_sort(facts.troubles.begin() + static_cast<ptrdiff_t>(failed), facts.troubles.end(),
                   by_time);
  for (const EventRow& event : s.events) {
    if (event.at < since) continue;
    if (auto trouble = TroubleOfEvent(event, DefinitionOf(s, event.job))) {
      facts.troubles.push_back(*std::move(trouble));
    }
  }
}

std::string ResolutionOf(const State& s, const AlertRow& row) {
  if (row.key.topic == "clock") return s.frozen ? "" : ResolutionText("STEADY", "", "", kPast);
  if (!row.key.job.empty() && DefinitionOf(s, row.key.job).empty()) {
    return ResolutionText("GONE", "", "", kPast);
  }
  if (row.key.topic != "gap") return "";
  absl::Time done_at = kPast;
  for (const auto& [key, period] : s.rows) {
    if (key.job != row.key.job) continue;
    if (row.by_job) {
      if (period.status == PeriodStatus::kDone && period.due >= row.due) {
        done_at = std::max(done_at, period.finished_at);
      }
    } else if (key.period == row.period &&
               (period.status == PeriodStatus::kDone || period.status == PeriodStatus::kSkipped)) {
      const bool done = period.status == PeriodStatus::kDone;
      return ResolutionText(done ? "DONE" : "SKIPPED", period.reason, period.by,
                            period.finished_at);
    }
  }
  return done_at == kPast ? "" : ResolutionText("DONE", "", "", done_at);
}

void Save(State& s, const AlertRow& row) {
  if (row.id == 0) {
    s.alerts.push_back(row);
    s.alerts.back().id = ++s.alert_ids;
    return;
  }
  for (AlertRow& known : s.alerts) {
    if (known.id == row.id) known = row;
  }
}

}  // namespace

AlertFacts ReadAlertFacts(const State& s, const AlertLook& look) {
  AlertFacts facts;
  facts.now = s.Now();
  facts.looked = s.alerts_looked;
  facts.frozen_why = s.frozen ? s.frozen_why : "";
  ReadTroubles(s, look.since, facts);
  const std::set<int64_t> known(look.known_audits.begin(), look.known_audits.end());
  for (const AuditRow& audit : s.audits) {
    if (audit.finished_at != kPast && audit.finished_at >= look.since && audit.beat != "hand" &&
        !known.contains(audit.id)) {
      facts.audits.push_back(audit);
    }
  }
  std::stable_sort(facts.audits.begin(), facts.audits.end(),
                   [](const AuditRow& a, const AuditRow& b) {
                     return std::tie(a.finished_at, a.id) < std::tie(b.finished_at, b.id);
                   });
  std::set<AlertKey> good;
  std::map<std::string, absl::Time> due;
  for (const AlertRow& row : s.alerts) {
    if (row.open()) {
      const std::string resolution = ResolutionOf(s, row);
      if (!resolution.empty() && good.insert(row.key).second) {
        facts.made_good.push_back({row.key, resolution});
      }
    }
    if (row.next_at == kNever || IsSilenced(s.silences, row.key.job, facts.now)) continue;
    const auto [at, fresh] = due.emplace(row.channel, row.next_at);
    at->second = std::min(at->second, row.next_at);
  }
  for (const auto& [channel, at] : due) facts.due.push_back({channel, at});
  return facts;
}

AlertCounts PutAlerts(State& s, const AlertChanges& changes) {
  AlertBatch batch(s.alerts, s.silences, s.Now());
  const AlertCounts counts = batch.Put(changes);
  for (const AlertRow* row : batch.Changed()) Save(s, *row);
  if (changes.looked != kPast) s.alerts_looked = changes.looked;
  return counts;
}

AlertClaimed ClaimAlerts(State& s, const AlertClaim& claim) {
  AlertClaimed claimed{s.Now(), {}};
  std::vector<AlertRow*> due;
  for (AlertRow& row : s.alerts) {
    if (row.channel == claim.channel && row.next_at <= claimed.now &&
        !IsSilenced(s.silences, row.key.job, claimed.now)) {
      due.push_back(&row);
    }
  }
  std::stable_sort(due.begin(), due.end(), [](const AlertRow* a, const AlertRow* b) {
    return std::tie(a->next_at, a->id) < std::tie(b->next_at, b->id);
  });
  if (due.size() > static_cast<size_t>(claim.limit)) due.resize(claim.limit);
  for (AlertRow* row : due) {
    ClaimAlert(claim.by, claimed.now, *row);
    claimed.rows.push_back(*row);
  }
  return claimed;
}

std::vector<bool> EndAlerts(State& s, absl::string_view by, absl::Span<const AlertSent> sent) {
  AlertBatch batch(s.alerts, {}, s.Now());
  std::vector<bool> ended = batch.End(by, sent);
  for (const AlertRow* row : batch.Changed()) Save(s, *row);
  const absl::Time kept = s.Now() - kAlertKept;
  std::erase_if(s.alerts, [&](const AlertRow& row) {
    return row.next_at == kNever && !row.open() && row.resolved_at < kept;
  });
  std::erase_if(s.silences, [&](const SilenceRow& row) { return row.until < kept; });
  return ended;
}

std::vector<AlertRow> ReadAlerts(const State& s, const AlertFilter& filter) {
  std::vector<AlertRow> rows;
  for (const AlertRow& row : s.alerts) {
    if (filter.open_only && !row.open()) continue;
    if (filter.job.empty() || row.key.job == filter.job) rows.push_back(row);
  }
  std::stable_sort(rows.begin(), rows.end(), [](const AlertRow& a, const AlertRow& b) {
    return std::make_tuple(a.open(), a.opened_at, a.id) >
           std::make_tuple(b.open(), b.opened_at, b.id);
  });
  if (rows.size() > static_cast<size_t>(filter.limit)) rows.resize(filter.limit);
  return rows;
}

absl::Status AcknowledgeAlert(State& s, int64_t id, const Act& act) {
  std::vector<AlertRow> same;
  for (const AlertRow& named : s.alerts) {
    if (named.id != id) continue;
    std::copy_if(s.alerts.begin(), s.alerts.end(), std::back_inserter(same),
                 [&](const AlertRow& row) { return row.key == named.key; });
  }
  AlertBatch batch(std::move(same), {}, s.Now());
  const absl::StatusOr<const AlertRow*> named = batch.Ack(id, act);
  if (!named.ok()) return named.status();
  for (const AlertRow* row : batch.Changed()) Save(s, *row);
  s.AddEvent({.kind = "acked",
              .job = (*named)->key.job,
              .period = (*named)->period,
              .who = act.who,
              .why = act.why,
              .detail = AlertDetail(**named)});
  return absl::OkStatus();
}

absl::StatusOr<int64_t> Silence(State& s, absl::string_view job, absl::Duration length,
                                const Act& act) {
  if (!job.empty() && s.FindJob(job) == nullptr) return NoJob(job);
  SilenceRow row;
  row.id = ++s.silence_ids;
  row.job = std::string(job);
  row.from = s.Now();
  row.until = row.from + length;
  row.who = act.who;
  row.why = act.why;
  s.silences.insert(s.silences.begin(), row);
  s.AddEvent({.kind = "silenced",
              .job = row.job,
              .who = act.who,
              .why = act.why,
              .detail = SilenceDetail(row.id, row.until)});
  return row.id;
}

absl::Status Unsilence(State& s, int64_t id, const Act& act) {
  for (SilenceRow& row : s.silences) {
    if (row.id != id || row.ended_at != kPast || row.until <= s.Now()) continue;
    row.ended_at = s.Now();
    row.ended_by = act.who;
    s.AddEvent({.kind = "unsilenced",
                .job = row.job,
                .who = act.who,
                .why = act.why,
                .detail = SilenceDetail(id, row.until)});
    return absl::OkStatus();
  }
  return NoSilence(id);
}

}  // namespace matins::model
