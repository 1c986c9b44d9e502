#include "store/model/model_start.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "job/local_window.h"
#include "job/words.h"
#include "schedule/schedule.h"
#include "store/rules.h"

namespace matins::model {
std::vector<ModelRow*> Starts::Waiting(const NodeId& node, absl::Time until) {
  std::vector<ModelRow*> waiting;
  for (auto& [key, row] : s_.rows) {
    if (row.status != PeriodStatus::kPlanned || row.look_at > until) continue;
    const ModelJob* job = s_.FindJob(key.job);
    if (job == nullptr || job->row.suspension || !HasLabels(node.labels, job->job.nodes)) continue;
    if (!row.held_by.empty() && row.held_until > s_.Now()) continue;
    waiting.push_back(&row);
  }
  std::sort(waiting.begin(), waiting.end(), [](const ModelRow* a, const ModelRow* b) {
    return std::forward_as_tuple(-a->priority, a->due, a->key) <
           std::forward_as_tuple(-b->priority, b->due, b->key);
  });
  return waiting;
}

// A store looks at no more rows than it needs, with some to spare for those that it will refuse:
// the first of the index of turns, where there are turns, then of that of instants. In the order of
// an index equals stand as they were inserted.
std::vector<PeriodKey> Starts::AlsoDue(const StartRequest& request) {
  const std::vector<ModelRow*> waiting = Waiting(request.node, s_.Now());
  const bool turns = std::any_of(s_.rows.begin(), s_.rows.end(), [](const auto& row) {
    return row.second.status == PeriodStatus::kPlanned && row.second.start_tag > 0;
  });
  const bool priorities = std::any_of(s_.jobs.begin(), s_.jobs.end(),
                                      [](const auto& job) { return job.second.job.priority != 0; });
  const size_t most = request.also_due + request.keys.size() + (priorities ? 224 : 24);
  const std::set<PeriodKey> named(request.keys.begin(), request.keys.end());
  std::set<PeriodKey> seen = named;
  std::vector<ModelRow*> due;
  const auto read = [&](std::vector<ModelRow*> index, auto before) {
    std::sort(index.begin(), index.end(), before);
    if (index.size() > most) index.resize(most);
    for (ModelRow* row : index) {
      if (seen.insert(row->key).second) due.push_back(row);
    }
  };
  if (turns) {
    std::vector<ModelRow*> tagged = waiting;
    std::erase_if(tagged, [](const ModelRow* row) { return row->start_tag == 0; });
    read(std::move(tagged), [](const ModelRow* a, const ModelRow* b) {
      return std::tie(a->start_tag, a->look_at, a->number) <
             std::tie(b->start_tag, b->look_at, b->number);
    });
  }
  if (!turns || due.size() + named.size() < most) {
    read(waiting, [](const ModelRow* a, const ModelRow* b) {
      return std::tie(a->look_at, a->priority, a->number) <
             std::tie(b->look_at, b->priority, b->number);
    });
  }
  std::sort(due.begin(), due.end(), [](const ModelRow* a, const ModelRow* b) {
    return std::forward_as_tuple(-a->priority, a->start_tag, a->due, a->key) <
           std::forward_as_tuple(-b->priority, b->start_tag, b->due, b->key);
  });
  std::vector<PeriodKey> keys;
  for (const ModelRow* row : due) keys.push_back(row->key);
  return keys;
}

StartResult Starts::JudgeBackfill(const BackfillRow& backfill, const ModelRow& row,
                                  std::string* blocker, absl::Time* look_at) {
  const BackfillTerms& terms = backfill.terms;
  *blocker = absl::StrCat(Word(backfill.state), " by ", backfill.changed.who);
  if (backfill.state != BackfillState::kActive) return StartResult::kBackfill;
  blocker->clear();
  int running = 0;
  bool older = false;
  std::set<std::string> jobs;
  for (const auto& [key, other] : s_.rows) {
    if (other.backfill_id != backfill.id) continue;
    jobs.insert(key.job);
    if (other.status == PeriodStatus::kFailed) {
      *blocker = absl::StrCat(key.job, " ", key.period, " FAILED");
      return StartResult::kBackfill;
    }
    running += other.status == PeriodStatus::kRunning;
    older = older || (key.job == row.key.job && other.due < row.due && IsOpen(other));
  }
  if (!terms.window.empty()) {
    const auto window = LocalWindow::Parse(terms.window, *LoadZone(terms.zone));
    if (!window->Contains(s_.Now())) {
      *blocker = terms.window;
      *look_at = std::min(window->NextOpening(s_.Now()), s_.Now() + absl::Hours(25));
      return StartResult::kBackfill;
    }
  }
  if (terms.cascade && older) return StartResult::kBackfill;
  for (const auto& [fence, slot] : s_.slots) {
    running += slot.until > s_.Now() && slot.backfill && jobs.contains(slot.key.job);
  }
  if (terms.max_parallel && running >= *terms.max_parallel) return StartResult::kBackfill;
  return StartResult::kStarted;
}

StartResult Starts::Judge(const StartRequest& request, const ModelRow* row, std::string* blocker,
                          std::string* waits_for, absl::Time* look_at) {
  const absl::Time now = s_.Now();
  if (s_.FrozenToNodes()) return StartResult::kFrozen;
  if (row == nullptr || row->status != PeriodStatus::kPlanned) return StartResult::kTaken;
  if (!row->held_by.empty() && row->held_by != request.node.name && row->held_until > now) {
    return StartResult::kTaken;
  }
  const ModelJob* job = s_.FindJob(row->key.job);
  if (job == nullptr) return StartResult::kTaken;
  if (job->row.suspension) return StartResult::kSuspended;
  if (row->not_before > now) return StartResult::kNotDue;
  const bool tried = row->manual || row->attempts_total > 0;
  const bool asked = job->pending == Trigger::kPerson;
  if (asked && !tried) return StartResult::kGap;
  if (request.not_after < now &&
      (!request.looks_ahead || job->row.next_look + *request.looks_ahead <= now)) {
    return StartResult::kGap;
  }
  if (row->start_by < now && row->attempts_total == 0) return StartResult::kMissed;
  if (row->wait_until > now) return StartResult::kOldLease;
  if (!HasLabels(request.node.labels, job->job.nodes)) return StartResult::kLabels;
  if (job->job.backfill.order == Order::kStrict) {
    if (job->row.gap_from && *job->row.gap_from < row->due) return StartResult::kGap;
    if (job->row.cursor < row->due) return StartResult::kGap;
    for (const auto& [key, other] : s_.rows) {
      if (key.job == row->key.job && other.due < row->due && IsOpen(other)) {
        *blocker = key.period;
        return StartResult::kBlocked;
      }
    }
  }
  for (const After& after : job->job.after) {
    bool any = false, all = true;
    for (const auto& [key, other] : s_.rows) {
      if (key.job != after.job || other.biz_date != row->biz_date) continue;
      any = true;
      all = all && other.status == PeriodStatus::kDone;
    }
    if (!any || !all) return StartResult::kAfter;
  }
  if (!row->lock_key.empty()) {
    const auto lock = s_.locks.find(row->lock_key);
    if (lock != s_.locks.end() && lock->second.until > now) return StartResult::kBusy;
    for (const auto& [key, other] : s_.rows) {
      if (other.status == PeriodStatus::kRunning && other.lock_key == row->lock_key) {
        *blocker = absl::StrCat(key.job, " ", key.period);
        return StartResult::kBusy;
      }
    }
  }
  const auto backfill = s_.backfills.find(row->backfill_id);
  const bool asked_for = backfill != s_.backfills.end();
  if (asked_for) {
    const StartResult stop = JudgeBackfill(backfill->second, *row, blocker, look_at);
    if (stop != StartResult::kStarted) return stop;
  }
  const bool own_number = asked_for && backfill->second.terms.max_parallel;
  int of_job = 0, of_backfill = 0, in_all = 0, backfills = 0, of_tenant = 0, of_key = 0;
  const auto count = [&](const PeriodKey& key, const auto& other) {
    ++in_all;
    of_job += key.job == row->key.job;
    of_backfill += key.job == row->key.job && other.backfill;
    backfills += other.backfill;
    of_tenant += other.tenant == row->tenant;
    of_key += other.limit_key == row->limit_key;
  };
  for (const auto& [key, other] : s_.rows) {
    if (other.status == PeriodStatus::kRunning) count(key, other);
  }
  for (const auto& [fence, slot] : s_.slots) {
    if (slot.until > now) count(slot.key, slot);
  }
  const auto& most_back = job->job.backfill.max_parallel;
  const bool full = (job->job.limit && of_job >= *job->job.limit) ||
                    (row->backfill && !own_number && most_back && of_backfill >= *most_back);
  if (full) return StartResult::kFull;
  if (request.global_limit > 0 && in_all >= request.global_limit) {
    *waits_for = "global";
    return StartResult::kFull;
  }
  const auto global = MostOf(LimitKind::kGlobal, ""), share = MostOf(LimitKind::kBackfillShare, "");
  const auto tenant = MostOf(LimitKind::kTenant, row->tenant);
  const auto of_keys = MostOf(LimitKind::kKey, row->limit_key);
  if (tenant && !row->tenant.empty() && of_tenant >= *tenant) {
    *waits_for = absl::StrCat("tenant/", row->tenant);
  } else if (of_keys && !row->limit_key.empty() && of_key >= *of_keys) {
    *waits_for = absl::StrCat("key/", row->limit_key);
  } else if (row->backfill && global && share && backfills >= std::max(1, *global * *share / 100)) {
    *waits_for = "backfill_share";
  } else if (global && in_all >= *global) {
    *waits_for = "global";
  }
  return waits_for->empty() ? StartResult::kStarted : StartResult::kFull;
}

std::optional<int> Starts::MostOf(LimitKind kind, const std::string& name) const {
  if (auto own = s_.limits.find({kind, name}); own != s_.limits.end()) return own->second.rule.most;
  for (size_t length = name.size() + 1; length-- > 0;) {
    const auto found = s_.limits.find({kind, absl::StrCat(name.substr(0, length), "*")});
    if (found != s_.limits.end()) return found->second.rule.most;
  }
  return std::nullopt;
}

StartAnswer Starts::StartOne(const StartRequest& request, const PeriodKey& key) {
  StartAnswer answer;
  answer.key = key;
  ModelRow* row = s_.FindRow(key);
  std::string waits_for;
  absl::Time look_at = kPast;
  answer.result = Judge(request, row, &answer.blocker, &waits_for, &look_at);
  if (!waits_for.empty()) answer.blocker = waits_for;
  switch (answer.result) {
    case StartResult::kStarted:
      answer.claim = Grant(request, *row);
      break;
    case StartResult::kTaken:
    case StartResult::kNotDue:
    case StartResult::kLabels:
    case StartResult::kFrozen:
      break;
    default:
      row->look_at =
          answer.result == StartResult::kOldLease ? row->wait_until : s_.Now() + request.put_off;
      if (look_at != kPast) row->look_at = look_at;
      row->waits_for = waits_for;
      row->held_by.clear();
      row->held_until = kPast;
  }
  return answer;
}

Claim Starts::Grant(const StartRequest& request, ModelRow& row) {
  const ModelJob& job = *s_.FindJob(row.key.job);
  row.status = PeriodStatus::kRunning;
  ++row.change;
  ++row.attempts;
  ++row.attempts_total;
  row.fence = s_.NextFence();
  row.nonce = request.nonce;
  row.node = request.node.name;
  row.held_by.clear();
  row.held_until = kPast;
  row.claimed_at = row.changed_at = s_.Now();
  row.run_until = row.claimed_at + job.job.timeout + job.job.grace;
  row.lease_until = std::min(row.claimed_at + job.job.lock.ttl, row.run_until);
  row.wait_until = kPast;
  row.waits_for.clear();
  row.start_by = kNever;
  row.reason.clear();
  row.finished_at = row.checkpointed_at = kPast;
  row.renewals = 0;
  Claim claim = ClaimFrom(row);
  claim.fence = row.fence;
  claim.nonce = row.nonce;
  claim.attempt = row.attempts;
  claim.attempt_total = row.attempts_total;
  claim.current_version = job.row.version;
  claim.claimed_at = row.claimed_at;
  claim.lease_until = row.lease_until;
  claim.run_until = row.run_until;
  claim.checkpoint = row.checkpoint;
  claim.checkpoint_data = row.checkpoint_data;
  return claim;
}
}  // namespace matins::model
