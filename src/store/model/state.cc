#include "store/model/state.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "job/words.h"
#include "store/rules.h"

namespace matins::model {
namespace {

bool Before(const ModelRow& a, const ModelRow& b) {
  return std::tie(a.due, a.number) < std::tie(b.due, b.number);
}

}  // namespace

absl::Time State::Raw() const { return FromMicros(ToMicros(clock ? clock() : absl::Now())); }

bool State::Frozen() const { return frozen || (mark != kPast && Raw() < mark - kStepBack); }

bool State::FrozenToNodes() const { return Frozen() || IsUnjudged(Raw(), mark); }

int64_t State::NextFence() { return (epoch << kEpochShift) | ++fences; }

ModelJob* State::FindJob(absl::string_view name) {
  const auto it = jobs.find(std::string(name));
  return it == jobs.end() || it->second.deleted ? nullptr : &it->second;
}

ModelRow* State::FindRow(const PeriodKey& key) {
  const auto it = rows.find(key);
  return it == rows.end() ? nullptr : &it->second;
}

bool State::OwnedBy(const ModelRow& row, const Ticket& ticket) const {
  return row.status == PeriodStatus::kRunning && row.generation == ticket.generation &&
         row.fence == ticket.fence && row.nonce == ticket.nonce;
}

std::string State::RefusalOf(const ModelRow* row, const Ticket& ticket) const {
  if (row == nullptr) return "gone";
  if (!OwnedBy(*row, ticket)) return "fence";
  if (row->run_until <= Now()) return "deadline";
  if (row->lease_until <= Now()) return "lease";
  return "";
}

void State::EndAttempt(ModelRow& row, const Ending& ending) {
  const ModelRow ended = row;
  WriteRun(row, ending);
  row.held = false;
  row.reason = ending.outcome.reason;
  ++row.change;
  row.changed_at = Now();
  row.finished_at = kPast;
  if (ending.skip) {
    row.status = PeriodStatus::kSkipped;
    row.by = "policy";
  } else {
    switch (ending.outcome.kind) {
      case Outcome::Kind::kDone:
      case Outcome::Kind::kDoneByJob:
        row.status = PeriodStatus::kDone;
        break;
      case Outcome::Kind::kRetry:
        row.status = PeriodStatus::kPlanned;
        row.not_before = FromMicros(ToMicros(Now() + ending.outcome.backoff));
        break;
      case Outcome::Kind::kHeld:
        row.held = true;
        [[fallthrough]];
      case Outcome::Kind::kFailed:
        row.status = PeriodStatus::kFailed;
        break;
      case Outcome::Kind::kReturned:
        row.status = PeriodStatus::kPlanned;
        row.attempts = std::max(0, row.attempts - 1);
        break;
    }
  }
  if (row.cancel_asked && row.status == PeriodStatus::kPlanned) {
    row.status = PeriodStatus::kFailed;
    row.reason = reason::kCancelled;
  }
  if (row.status != PeriodStatus::kPlanned) row.finished_at = Now();
  row.look_at = row.not_before;
  if (ending.loss) ++row.losses;
  if (ending.burn) {
    row.fence = NextFence();
    row.nonce = 0;
  }
  row.lease_until = row.run_until = kPast;
  row.wait_until = ending.wait_until;
  row.cancel_asked = false;
  row.cancel_why.clear();
  if (ending.wait_until > Now()) LeaveSlot(ended, ending.wait_until);
  Wake(row.key.job, row.biz_date, row.lock_key, row.status == PeriodStatus::kDone);
  WakeForSlot(row.tenant, row.limit_key, row.backfill);
}

TurnsBefore State::TurnsNow(const std::set<std::string>& tenants) const {
  TurnsBefore turns;
  turns.used = std::any_of(tenants.begin(), tenants.end(),
                           [](const std::string& tenant) { return !tenant.empty(); });
  std::optional<int64_t> next;
  for (const auto& [key, row] : rows) {
    if (row.status != PeriodStatus::kPlanned || row.start_tag == 0) continue;
    turns.used = true;
    int64_t& last = turns.last[row.tenant];
    last = std::max(last, row.start_tag);
    if (!row.waits_for.empty() || row.look_at > Now() + absl::Seconds(5)) continue;
    next = std::min(next.value_or(row.start_tag), row.start_tag);
  }
  turns.next = next.value_or(1);
  return turns;
}

int64_t TurnsBefore::Take(const std::string& tenant) {
  if (!used) return 0;
  last[tenant] = std::max(next, last[tenant] + 1);
  return last[tenant];
}

void State::LeaveSlot(const ModelRow& row, absl::Time until) {
  if (row.fence != 0) slots[row.fence] = {row.key, row.tenant, row.limit_key, row.backfill, until};
}

void State::WakeForSlot(const std::string& tenant, const std::string& limit_key, bool backfill) {
  std::vector<std::string> freed = {"global"};
  if (!tenant.empty()) freed.push_back("tenant/" + tenant);
  if (!limit_key.empty()) freed.push_back("key/" + limit_key);
  if (backfill) freed.push_back("backfill_share");
  for (const std::string& waits_for : freed) {
    WakeOne([&](const ModelRow& row) { return row.waits_for == waits_for; });
  }
}

void State::WakeOne(const std::function<bool(const ModelRow&)>& waits) {
  std::vector<ModelRow*> waiting;
  for (auto& [key, row] : rows) {
    if (row.status == PeriodStatus::kPlanned && waits(row)) waiting.push_back(&row);
  }
  if (waiting.empty()) return;
  // Of equals the one that was planned first, as an index of SQLite's has them.
  std::sort(waiting.begin(), waiting.end(),
            [](const ModelRow* a, const ModelRow* b) { return Before(*a, *b); });
  if (waiting.size() > kWakeLook) waiting.resize(kWakeLook);
  const auto able = std::find_if(waiting.begin(), waiting.end(),
                                 [this](const ModelRow* row) { return AnyNodeFor(row->key.job); });
  ModelRow& woken = able == waiting.end() ? *waiting.front() : **able;
  woken.look_at = woken.not_before;
  woken.waits_for.clear();
}

bool State::AnyNodeFor(const std::string& name) {
  const ModelJob* const job = FindJob(name);
  if (job == nullptr || job->row.suspension) return false;
  return std::any_of(nodes.begin(), nodes.end(), [&](const auto& node) {
    const NodeRow& row = node.second.row;
    return !row.left && row.seen_at > Now() - kNodeGone && HasLabels(row.labels, job->job.nodes);
  });
}

void State::WriteRun(const ModelRow& row, const Ending& ending) {
  if (row.fence == 0) return;
  const Outcome& outcome = ending.outcome;
  RunRow run = RunOf(row);
  run.status = ending.run_word;
  run.reason = outcome.reason;
  run.message = outcome.message;
  run.result = outcome.result;
  run.exit_code = outcome.exit_code;
  run.signal = outcome.signal;
  if (outcome.started_at != kPast) {
    run.started_at = std::clamp(outcome.started_at, row.claimed_at, Now());
  }
  run.finished_at = Now();
  runs[row.fence] = run;
}

Ending State::TakenBack(const ModelRow& row) const {
  Ending ending;
  const auto it = jobs.find(row.key.job);
  ending.outcome.kind =
      it == jobs.end() || it->second.deleted
          ? Outcome::Kind::kReturned
          : LossOf({std::string(Word(it->second.job.recovery)), it->second.job.max_lost},
                   row.losses, row.checkpoint > 0);
  ending.outcome.reason =
      ending.outcome.kind == Outcome::Kind::kHeld ? reason::kHeld : reason::kLost;
  ending.run_word = "LOST";
  ending.loss = ending.burn = true;
  if (row.lease_until > Now()) ending.wait_until = row.lease_until;
  return ending;
}

void State::Wake(const std::string& job, absl::CivilDay day, const std::string& lock_key,
                 bool done) {
  WakeOne([&](const ModelRow& row) { return row.key.job == job && row.look_at > row.not_before; });
  if (!lock_key.empty() && lock_key != absl::StrCat("job/", job)) {
    WakeOne([&](const ModelRow& row) {
      return row.lock_key == lock_key && row.look_at > row.not_before;
    });
  }
  if (!done) return;
  for (auto& [key, row] : rows) {
    const ModelJob* waiting = FindJob(key.job);
    if (waiting == nullptr || row.biz_date != day || row.status != PeriodStatus::kPlanned) continue;
    for (const After& after : waiting->job.after) {
      if (after.job == job) row.look_at = std::min(row.look_at, row.not_before);
    }
  }
}

void State::AddEvent(EventRow event) {
  event.id = static_cast<int64_t>(events.size()) + 1;
  event.at = Now();
  events.push_back(std::move(event));
}

void State::TakeBackHeld(absl::string_view job) {
  for (auto& [key, row] : rows) {
    if (key.job != job || row.status != PeriodStatus::kPlanned) continue;
    row.held_by.clear();
    row.held_until = kPast;
  }
}

void State::SettleClock(const Act& act) {
  mark = Raw();
  frozen = false;
  frozen_why.clear();
  for (auto& [key, row] : rows) {
    if (row.status == PeriodStatus::kRunning && row.lease_until != kPast) {
      Ending ending = TakenBack(row);
      ending.wait_until = kPast;
      EndAttempt(row, ending);
    }
    row.wait_until = std::min(row.wait_until, Now() + absl::Minutes(5));
    if (row.status != PeriodStatus::kPlanned) continue;
    row.held_by.clear();
    row.held_until = kPast;
    if (row.look_at <= row.not_before) continue;
    row.look_at = row.not_before;
    row.waits_for.clear();
  }
  for (auto& [key, lock] : locks) lock.until = std::min(lock.until, Now() + absl::Minutes(5));
  for (auto& [fence, slot] : slots) slot.until = std::min(slot.until, Now() + absl::Minutes(5));
  for (auto& [name, node] : nodes) node.row.seen_at = std::min(node.row.seen_at, Now());
  return_last = kPast;
  return_due = kNever;
  return_wait = absl::ZeroDuration();
  return_planner.reset();
  AddEvent({.kind = "clock", .who = act.who, .why = act.why});
}

// ---- planning's half ----

namespace {

void InsertRow(State& state, const Intent& intent, const Act& act, const NodeId* hold_by,
               absl::Duration ahead, int* room, std::vector<HeldRow>* held, TurnsBefore& turns) {
  if (state.FindRow(intent.key) != nullptr) return;
  const absl::Time now = state.Now();
  if (intent.reopens) {
    Reopened& last = state.reopened[intent.key];
    last = {last.generation + 1, last.fence, kPast};
    state.AddEvent({.kind = "reopened",
                    .job = intent.key.job,
                    .period = intent.key.period,
                    .generation = last.generation,
                    .who = act.who,
                    .why = act.why});
  }
  const Reopened past = state.reopened[intent.key];
  ModelRow row;
  static_cast<PeriodRow&>(row) = PlannedRow(intent);
  row.generation = past.generation;
  row.fence = past.fence;
  row.wait_until = past.wait_until;
  row.change = 1;
  row.look_at = intent.not_before;
  row.lock_key = intent.lock_key;
  row.tenant = intent.tenant;
  row.limit_key = intent.limit_key;
  row.priority = intent.priority;
  if (intent.skip_reason.empty()) row.start_tag = turns.Take(intent.tenant);
  row.planned_at = row.changed_at = now;
  row.number = ++state.inserted;
  if (row.status == PeriodStatus::kSkipped) {
    row.finished_at = now;
  } else if (hold_by != nullptr && *room > 0 && intent.not_before <= now + ahead) {
    --*room;
    row.held_by = hold_by->name;
    row.held_until = std::max(now, intent.not_before) + kHoldFor;
    row.dispatched_at = now;
    held->push_back({intent.key, intent.not_before, intent.priority});
  }
  state.rows[intent.key] = row;
}

void ChangeRow(State& state, const Intent& intent, TurnsBefore& turns) {
  ModelRow* row = state.FindRow(intent.key);
  if (row == nullptr) return;
  const bool planned = row->status == PeriodStatus::kPlanned;
  const bool failed = row->status == PeriodStatus::kFailed && !row->held;
  if (intent.kind == Intent::Kind::kSkip && (planned || failed)) {
    row->status = PeriodStatus::kSkipped;
    row->reason = intent.skip_reason;
    row->by = intent.by;
    row->finished_at = state.Now();
    row->held_by.clear();
    row->held_until = kPast;
    state.Wake(row->key.job, row->biz_date, "", false);
  } else if (intent.kind == Intent::Kind::kReattempt && failed) {
    row->start_tag = turns.Take(intent.tenant);
    row->status = PeriodStatus::kPlanned;
    row->attempts = 0;
    row->reason.clear();
    row->finished_at = kPast;
    row->not_before = row->look_at = intent.not_before;
    row->start_by = intent.start_by;
    row->backfill = intent.backfill;
  } else if (intent.kind == Intent::Kind::kJudge && planned) {
    row->start_by = intent.start_by;
    row->backfill = intent.backfill;
    row->look_at = row->not_before;
    row->waits_for.clear();
  } else {
    return;
  }
  ++row->change;
  row->changed_at = state.Now();
}

}  // namespace

bool State::WritePlan(const PlanWrite& write, const NodeId* hold_by, absl::Duration ahead,
                      int* room, std::vector<HeldRow>* held) {
  ModelJob* job = FindJob(write.job);
  if (job == nullptr || job->row.revision != write.expected_revision) return false;
  for (const Intent& intent : write.intents) {
    const bool below = intent.kind == Intent::Kind::kInsert && intent.due <= job->row.floor;
    if (below && !intent.reopens && FindRow(intent.key) == nullptr) return false;
  }
  std::set<std::string> tenants;
  for (const Intent& intent : write.intents) tenants.insert(intent.tenant);
  TurnsBefore turns = TurnsNow(tenants);
  ++job->row.revision;
  if (write.cursor != kPast) job->row.cursor = std::max(job->row.cursor, write.cursor);
  job->row.next_look = write.next_look;
  if (write.gaps_filled) job->row.gap_from = write.next_gap;
  if (write.triggered) job->pending.reset();
  bool holdable = hold_by != nullptr && !job->row.suspension;
  for (const std::string& label : job->job.nodes) {
    holdable = holdable && std::find(hold_by->labels.begin(), hold_by->labels.end(), label) !=
                               hold_by->labels.end();
  }
  for (const Intent& intent : write.intents) {
    if (intent.kind == Intent::Kind::kInsert) {
      InsertRow(*this, intent, write.act.value_or(Act{}), holdable ? hold_by : nullptr, ahead, room,
                held, turns);
    } else {
      ChangeRow(*this, intent, turns);
    }
  }
  job->spans.insert(job->spans.end(), write.spans.begin(), write.spans.end());
  if (write.act && !write.act_told) {
    const auto all = [&](auto condition) {
      return !write.intents.empty() &&
             std::all_of(write.intents.begin(), write.intents.end(), condition);
    };
    std::string kind = "backfill";
    if (all([](const Intent& i) { return !i.skip_reason.empty(); })) kind = "skip";
    if (all([](const Intent& i) { return i.manual; })) kind = "run";
    if (!write.act_kind.empty()) kind = write.act_kind;
    AddEvent({.kind = kind,
              .job = write.job,
              .period = write.intents.size() == 1 ? write.intents[0].key.period : "",
              .who = write.act->who,
              .why = write.act->why});
  }
  return true;
}

}  // namespace matins::model
