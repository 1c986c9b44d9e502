#include "store/plan_batch.h"

#include <algorithm>
#include <utility>

namespace matins {
namespace {

absl::string_view ActKind(const PlanWrite& write) {
  if (!write.act_kind.empty()) return write.act_kind;
  const auto all = [&](auto condition) {
    return !write.intents.empty() &&
           std::all_of(write.intents.begin(), write.intents.end(), condition);
  };
  if (all([](const Intent& i) { return i.manual; })) return "run";
  if (all([](const Intent& i) { return !i.skip_reason.empty(); })) return "skip";
  return "backfill";
}

// The floor has risen since the job was read, or somebody does not know what lies below it.
bool BelowFloor(const PlanWrite& write, const PlanFacts& facts) {
  const auto floor = facts.floors.find(write.job);
  if (floor == facts.floors.end()) return false;
  return std::any_of(write.intents.begin(), write.intents.end(), [&](const Intent& intent) {
    return intent.kind == Intent::Kind::kInsert && !intent.reopens && intent.due <= floor->second &&
           !facts.there.contains(intent.key);
  });
}

}  // namespace

PlanBatch::PlanBatch(const PlanRequest& request, PlanFacts facts, JsonForm form)
    : reopens(form),
      inserts(form),
      jobs(form),
      spans(form),
      acts(form),
      skipped(form),
      form_(form) {
  int hold_left = request.hold_by.name.empty() ? 0 : request.hold_at_most;
  written.resize(request.writes.size());
  for (size_t i = 0; i < request.writes.size(); ++i) {
    const PlanWrite& write = request.writes[i];
    const auto job = facts.usable.find(write.job);
    if (job == facts.usable.end() || BelowFloor(write, facts)) continue;
    written[i] = true;
    AddWrite(write);
    for (const Intent& intent : write.intents) {
      const bool hold = job->second && intent.kind == Intent::Kind::kInsert &&
                        intent.skip_reason.empty() && !facts.there.contains(intent.key) &&
                        intent.not_before <= facts.now + request.hold_ahead && hold_left > 0;
      if (hold) {
        --hold_left;
        held.push_back(intent.key);
      }
      if (intent.reopens && !facts.there.contains(intent.key)) {
        const Act act = write.act.value_or(Act{});
        reopens.Row().AddKey(intent.key).Add("who", act.who).Add("why", act.why);
      }
      const bool there = facts.there.contains(intent.key);
      AddIntent(intent, hold ? request.hold_by.name : "", there, facts.turns);
    }
    facts.usable.erase(job);  // of two plans for one job the first is written
  }
}

void PlanBatch::AddWrite(const PlanWrite& write) {
  jobs.Row().Add("job", write.job).AddTime("cursor", write.cursor);
  jobs.AddTime("next_look", write.next_look);
  jobs.AddBool("filled", write.gaps_filled).AddBool("triggered", write.triggered);
  jobs.AddTime("next_gap", write.next_gap.value_or(absl::InfinitePast()));
  for (const SkipSpan& s : write.spans) {
    spans.Row().Add("job", write.job).AddTime("from_at", s.from).AddTime("to_at", s.to);
    spans.Add("first_period", s.first_period).Add("last_period", s.last_period);
    spans.AddInt("count", s.count).Add("reason", s.reason).Add("by", s.by);
  }
  if (write.act && !write.act_told) {
    acts.Row().Add("kind", ActKind(write)).Add("job", write.job);
    acts.Add("period", write.intents.size() == 1 ? write.intents[0].key.period : "");
    acts.Add("who", write.act->who).Add("why", write.act->why);
    acts.AddInt("n", static_cast<int64_t>(write.intents.size()));
  }
}

void PlanBatch::AddIntent(const Intent& intent, absl::string_view node, bool there, Turns& turns) {
  if (intent.kind == Intent::Kind::kInsert) {
    inserts.Row().AddKey(intent.key).AddDay("day", intent.biz_date);
    inserts.AddTime("ws", intent.window_start).AddTime("we", intent.window_end);
    inserts.AddTime("due", intent.due).Add("nominal", absl::FormatCivilTime(intent.nominal));
    inserts.AddTime("not_before", intent.not_before).AddTime("start_by", intent.start_by);
    inserts.AddInt("version", intent.version).AddBool("backfill", intent.backfill);
    inserts.AddBool("manual", intent.manual).Add("params", intent.params);
    inserts.Add("lock_key", intent.lock_key).AddInt("priority", intent.priority);
    inserts.Add("skip", intent.skip_reason).Add("by", intent.by).Add("node", node);
    if (!intent.tenant.empty()) inserts.Add("tenant", intent.tenant);
    if (!intent.limit_key.empty()) inserts.Add("limit_key", intent.limit_key);
    const bool waits = intent.skip_reason.empty() && !there;
    const int64_t tag = waits ? turns.Take(intent.tenant) : 0;
    if (tag > 0) inserts.AddInt("tag", tag);
    return;
  }
  // Several intents for one row take effect in their order: a statement each.
  const size_t round = rounds_[intent.key]++;
  if (round == updates.size()) updates.emplace_back(form_);
  JsonRows& rows = updates[round];
  rows.Row().AddKey(intent.key);
  rows.Add("kind", intent.kind == Intent::Kind::kSkip        ? "skip"
                   : intent.kind == Intent::Kind::kReattempt ? "again"
                                                             : "judge");
  rows.AddTime("not_before", intent.not_before).AddTime("start_by", intent.start_by);
  rows.AddBool("backfill", intent.backfill).Add("skip", intent.skip_reason);
  rows.Add("by", intent.by);
  if (intent.kind == Intent::Kind::kReattempt) {
    if (const int64_t tag = turns.Take(intent.tenant); tag > 0) rows.AddInt("tag", tag);
  }
  if (intent.kind == Intent::Kind::kSkip) skipped.Row().AddKey(intent.key);
}

}  // namespace matins
