// How attempts end: by their node's word, and when the answer to it did not come.
#include "store/mariadb/finish.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/fault.h"
#include "base/status.h"
#include "job/words.h"
#include "store/mariadb/store.h"
#include "store/rules.h"
#include "store/set_aside.h"

namespace matins::mariadb {
namespace {

constexpr int kWaitingMost = 200;  // so many kinds are told apart; more: all count as there

}  // namespace

Statement ReadWaiting() {
  return Sql(
      "SELECT DISTINCT waits_for FROM job_watermark FORCE INDEX (job_watermark_waiting) WHERE "
      "waits_for IS NOT NULL AND waits_for < ? LIMIT ?",
      {kAside, kWaitingMost});
}

std::set<std::string> WaitingOf(const Rows& rows) {
  std::set<std::string> waiting;
  for (int i = 0; i < rows.size(); ++i) waiting.insert(rows.Text(i, 0));
  return waiting;
}

void Wakes::Add(const std::string& job, const std::string& lock_key, absl::CivilDay day) {
  if (waiting_.empty()) return;
  ++freed_[absl::StrCat("job/", job)];
  if (!lock_key.empty()) ++freed_[absl::StrCat("lock/", lock_key)];
  ++freed_["global"];
  days_.insert({absl::StrCat("after/", job), day});
}

void Wakes::AddSlot(const LimitClaim& claim) {
  if (waiting_.empty()) return;
  if (!claim.tenant.empty()) ++freed_[LimitName(LimitKind::kTenant, claim.tenant)];
  if (!claim.key.empty()) ++freed_[LimitName(LimitKind::kKey, claim.key)];
  if (claim.backfill) ++freed_[LimitName(LimitKind::kBackfillShare, "")];
}

std::vector<Statement> Wakes::Statements() const {
  const auto waits = [&](const std::string& key) {
    return waiting_.contains(key) || waiting_.size() >= kWaitingMost;
  };
  // The oldest of the first that some living node may run, then the oldest. Chosen by a SELECT of
  // its own, because an UPDATE locks all that it asks, jobs too; then locked in that order until
  // there are enough.
  constexpr absl::string_view kChoose =
      "SELECT JSON_ARRAYAGG(JSON_OBJECT('job', a.job_name, 'period', a.period)) INTO @matins_wake "
      "FROM (SELECT f.job_name, f.period FROM (SELECT o.job_name, o.period, o.due_at FROM "
      "job_watermark o FORCE INDEX (job_watermark_waiting) WHERE o.waits_for = ? AND "
      "o.status = 'PLANNED' ORDER BY o.due_at LIMIT ?) f ORDER BY EXISTS (SELECT 1 FROM job j "
      "FORCE INDEX (PRIMARY) STRAIGHT_JOIN job_node n ON NOT n.`left` AND n.seen_at > (SELECT "
      "@NOW) - INTERVAL ? MICROSECOND AND JSON_CONTAINS(n.labels, j.labels) WHERE "
      "j.name = f.job_name AND NOT j.deleted AND j.suspended_at IS NULL) DESC, f.due_at LIMIT ?) a";
  constexpr absl::string_view kWake =
      "UPDATE (SELECT w.job_name AS job, w.period AS period FROM ? STRAIGHT_JOIN job_watermark w "
      "FORCE INDEX (PRIMARY) ON w.job_name = x.job AND w.period = x.period AND w.waits_for = ? "
      "AND w.status = 'PLANNED' LIMIT ? FOR UPDATE SKIP LOCKED) x @ROWS "
      "SET r.look_at = r.not_before, r.waits_for = NULL";
  constexpr absl::string_view kWakeTheDay =
      "UPDATE (SELECT w.job_name AS job, w.period AS period FROM job_watermark w FORCE INDEX "
      "(job_watermark_waiting) WHERE w.waits_for = ? AND w.status = 'PLANNED' AND w.biz_date = ? "
      "ORDER BY w.due_at LIMIT 1000 FOR UPDATE SKIP LOCKED) x @ROWS "
      "SET r.look_at = r.not_before, r.waits_for = NULL";
  const Value chosen = JsonTableOf(Value::Of("@matins_wake"), "job name, period name");
  std::vector<Statement> out;
  for (const auto& [key, count] : freed_) {
    if (!waits(key)) continue;
    out.push_back(Sql(kChoose, {key, kWakeLook, absl::ToInt64Microseconds(kNodeGone), kWakeLook}));
    out.push_back(Sql(kWake, {chosen, key, count}));
  }
  for (const auto& [key, day] : days_) {
    if (!waits(key)) continue;
    out.push_back(Sql(kWakeTheDay, {key, Value::Day(day)}));
  }
  return out;
}

// ---- ends ----

namespace {

// What most ends have in common is said once, and not by row: a JSON_TABLE's columns cost.
constexpr absl::string_view kAlike =
    "r.status = ?, r.held = ?, r.reason = ?, r.finished_at = ?, r.look_at = r.not_before, "
    "r.attempts = ?, r.losses = ?, r.by_whom = ?, r.wait_until = ?, r.op = ?";
constexpr absl::string_view kFreed =
    "r.lease_until = NULL, r.run_until = NULL, r.held_by = NULL, r.held_until = NULL, "
    "r.cancel_by = NULL, r.cancel_why = NULL, r.waits_for = NULL, r.ver = r.ver + 1";

}  // namespace

void Ends::Add(const AttemptRow& row, const Ending& ending) {
  const AfterEnd after = EndOf(row, ending, clock_.now);
  if (!after.burn && after.not_before == row.not_before) {
    alike_[Sql(kAlike,
               {Word(after.status), after.held, Value::OrNull(after.reason),
                after.final ? Value(clock_.now) : Value::Null(), after.attempts, after.losses,
                Value::Of(ending.skip ? "'policy'" : "r.by_whom"), ending.wait_until, ending.op})
               .sql]
        .Row()
        .AddKey(row.key);
  } else {
    rows_.Row().AddKey(row.key).Add("status", Word(after.status)).AddBool("held", after.held);
    rows_.Add("reason", after.reason).AddBool("final", after.final);
    rows_.AddTime("not_before", after.not_before).AddInt("attempts", after.attempts);
    rows_.AddInt("losses", after.losses).AddTime("wait_until", ending.wait_until);
    rows_.AddBool("skip", ending.skip).Add("op", ending.op);
    if (after.burn) rows_.AddInt("burn", burnt_++);
  }
  AddRun(row, ending);
  wakes_.Add(row.key.job, row.lock_key, row.biz_date);
  wakes_.AddSlot({row.tenant, row.limit_key, row.backfill});
  if (ending.wait_until > clock_.now) LeaveSlot(row, ending.wait_until);
}

void Ends::LeaveSlot(const AttemptRow& row, absl::Time until, bool grace) {
  if (row.fence == 0 || IsMutant(Mutant::kNoLeftSlot)) return;
  slots_.Row().AddKey(row.key).AddInt("fence", row.fence).AddBool("backfill", row.backfill);
  if (!row.tenant.empty()) slots_.Add("tenant", row.tenant);
  if (!row.limit_key.empty()) slots_.Add("limit_key", row.limit_key);
  slots_.AddTime("until", until).AddBool("grace", grace);
}

void Ends::Note(const AttemptRow& row, const Ending& ending) {
  AddRun(row, ending);
  wakes_.Add(row.key.job, row.lock_key, row.biz_date);
  wakes_.AddSlot({row.tenant, row.limit_key, row.backfill});
}

void Ends::AddRun(const AttemptRow& row, const Ending& ending) {
  if (IsMutant(Mutant::kNoRunRow) && ending.run_word == "LOST") return;
  if (row.fence == 0) return;  // as other programs write it: no attempt of ours
  const Outcome& o = ending.outcome;
  runs_.Add({row.fence,
             row.key.job,
             row.key.period,
             Value::Day(row.biz_date),
             row.generation,
             row.attempts,
             row.attempts_total,
             row.node,
             ending.run_word,
             Value::OrNull(o.reason),
             Value::OrNull(o.message),
             o.exit_code,
             o.signal,
             Value::OrNull(o.result),
             row.due,
             row.planned_at,
             row.dispatched_at,
             row.claimed_at,
             StartedWithin(row, o.started_at, clock_.now),
             row.checkpointed_at,
             clock_.now,
             row.backfill,
             row.manual,
             row.version});
}

void Ends::AddEvidence(const AttemptRow& row, const Outcome& o) {
  const int64_t bytes = std::max<int64_t>(
      o.output_bytes, static_cast<int64_t>(o.output_head.size() + o.output_tail.size()));
  if (bytes > 0) {
    outputs_.Add(
        {row.fence, Value::Bytes(o.output_head), Value::Bytes(o.output_tail), bytes, clock_.now});
  }
  for (const auto& [name, value] : o.figures) {
    // A number that is none cannot be kept.
    const Value number =
        std::isfinite(value) ? Value::Of(absl::StrFormat("%.17g", value)) : Value::Null();
    figures_.Add(
        {row.key.job, row.key.period, row.generation, row.fence, name, number, clock_.now});
  }
}

std::vector<Statement> Ends::Statements() {
  std::vector<Statement> out = TakeFences(static_cast<size_t>(burnt_));
  for (auto& [set, keys] : alike_) {
    out.push_back(
        Sql("UPDATE ? @ROWS SET ?, ?, r.op_at = ?",
            {KeyTable(keys.Take()), Value::Of(set), Value::Of(std::string(kFreed)), clock_.now}));
  }
  if (!rows_.empty()) {
    out.push_back(
        Sql("UPDATE ? @ROWS SET "
            "r.status = x.status, r.held = x.held, r.reason = NULLIF(x.reason, ''), "
            "r.finished_at = IF(x.final, ?, NULL), r.not_before = x.not_before, "
            "r.look_at = x.not_before, r.attempts = x.attempts, r.losses = x.losses, "
            "r.by_whom = IF(x.skip, 'policy', r.by_whom), r.wait_until = x.wait_until, "
            "r.fence = IF(x.burn IS NULL, r.fence, ? + CAST(@matins_fence AS SIGNED) + x.burn), "
            "r.nonce = IF(x.burn IS NULL, r.nonce, NULL), ?, r.op = x.op, r.op_at = ?",
            {JsonTable(rows_.Take(),
                       "job name, period name, status name, held bool, reason text, final bool, "
                       "not_before time, attempts int, losses int, wait_until time, skip bool, "
                       "op name, burn int"),
             clock_.now, clock_.epoch << kEpochShift, Value::Of(std::string(kFreed)), clock_.now}));
  }
  if (!runs_.empty()) {
    out.push_back(Sql(
        "INSERT INTO job_run (fence, job_name, period, biz_date, generation, attempt, "
        "attempts_total, node, status, reason, message, exit_code, `signal`, result, due_at, "
        "planned_at, dispatched_at, claimed_at, started_at, checkpointed_at, finished_at, "
        "backfill, manual, version) VALUES ? ON DUPLICATE KEY UPDATE status = VALUES(status), "
        "reason = VALUES(reason), message = VALUES(message), exit_code = VALUES(exit_code), "
        "`signal` = VALUES(`signal`), result = VALUES(result), started_at = VALUES(started_at), "
        "finished_at = VALUES(finished_at)",
        {runs_.Take()}));
  }
  if (!slots_.empty()) {
    out.push_back(
        Sql("INSERT IGNORE INTO job_slot (fence, job_name, period, tenant, limit_key, backfill, "
            "until) SELECT x.fence, x.job, x.period, x.tenant, x.limit_key, x.backfill, "
            "x.until + INTERVAL IF(x.grace, COALESCE(b.grace, 10000000), 0) MICROSECOND FROM ? "
            "LEFT JOIN job b FORCE INDEX (PRIMARY) ON b.name = x.job",
            {JsonTable(slots_.Take(),
                       "fence int, job name, period name, tenant name, limit_key key, backfill "
                       "bool, until time, grace bool")}));
  }
  if (!outputs_.empty()) {
    out.push_back(
        Sql("INSERT INTO job_output (fence, head, tail, bytes, at) VALUES ? ON "
            "DUPLICATE KEY UPDATE head = VALUES(head), tail = VALUES(tail), "
            "bytes = VALUES(bytes), at = VALUES(at)",
            {outputs_.Take()}));
  }
  if (!figures_.empty()) {
    out.push_back(
        Sql("INSERT INTO job_figure (job_name, period, generation, fence, name, value, "
            "at) VALUES ? ON DUPLICATE KEY UPDATE fence = VALUES(fence)",
            {figures_.Take()}));
  }
  for (Statement& wake : wakes_.Statements()) out.push_back(std::move(wake));
  return out;
}

Statement ReadLossRules(absl::string_view keys_json) {
  return Sql(
      "SELECT DISTINCT j.name, j.recovery, j.max_lost, j.stale_after FROM ? @JOBS WHERE NOT "
      "j.deleted",
      {KeyTable(keys_json)});
}

LossRules LossRulesOf(const Rows& rows) {
  LossRules rules;
  for (int i = 0; i < rows.size(); ++i) {
    rules.rules[rows.Text(i, 0)] = {rows.Text(i, 1), static_cast<int>(rows.Int(i, 2))};
    rules.stale_after[rows.Text(i, 0)] = absl::Microseconds(rows.Int(i, 3));
  }
  return rules;
}

std::optional<LossRule> LossRules::Of(const std::string& job) const {
  const auto rule = rules.find(job);
  if (rule == rules.end()) return std::nullopt;
  return rule->second;
}

std::optional<absl::Duration> LossRules::StaleAfter(const std::string& job) const {
  const auto span = stale_after.find(job);
  if (span == stale_after.end()) return std::nullopt;
  return span->second;
}

// ---- finish ----

namespace {

// Under the row's lock: ends it, or says why not.
std::string FinishOne(const LockedRows& locked, const FinishRequest& request, Ends& ends) {
  const AttemptRow* row = locked.Find(request.ticket.key);
  if (row == nullptr && locked.busy.contains(request.ticket.key)) return kBusy;
  std::string why = RefusalOf(row, request.ticket, locked.clock.now, Asked::kFinish);
  const Ending ending = EndingOf(request.outcome);
  if (request.outcome.kind == Outcome::Kind::kDoneByJob) {
    // The job itself wrote DONE under this fence; its node completes the attempt's row.
    if (row == nullptr || !DoneBy(*row, request.ticket)) {
      return why == "fence" || why == "gone" ? why : reason::kNoCommit;
    }
    ends.Note(*row, ending);
    why.clear();
  } else if (why.empty()) {
    ends.Add(*row, ending);
  }
  if (why.empty()) ends.AddEvidence(*row, request.outcome);
  return why;
}

}  // namespace

absl::StatusOr<std::vector<Refusal>> MariadbStore::Finish(
    absl::Span<const FinishRequest> requests) {
  std::vector<Refusal> answers(requests.size());
  std::vector<PeriodKey> keys;
  for (const FinishRequest& r : requests) keys.push_back(r.ticket.key);
  const auto batch = [&](const std::vector<size_t>& part, Locking locking) -> absl::Status {
    std::vector<PeriodKey> wanted;
    for (const size_t i : part) wanted.push_back(keys[i]);
    const auto once = [&]() -> absl::StatusOr<std::vector<std::string>> {
      ASSIGN_OR_RETURN(const LockedRows locked, LockTickets(session_, wanted, locking,
                                                            "finish.before_lock", {ReadWaiting()}));
      Ends ends(locked.clock, WaitingOf(locked.more[0]));
      std::vector<std::string> why;
      for (const size_t i : part) why.push_back(FinishOne(locked, requests[i], ends));
      // Crash here: the lease ends, reap takes it.
      RETURN_IF_ERROR(CommitAt(session_, "finish.before_commit", ends.Statements()).status());
      return why;
    };
    ASSIGN_OR_RETURN(const std::vector<std::string> why, session_.Retried(once, 1));
    MATINS_FAULT_POINT("finish.after_commit");  // crash here: it stands, and nobody was told
    for (size_t k = 0; k < part.size(); ++k) answers[part[k]].why = why[k];
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(RunBatches(
      keys, batch, [&](size_t i) { return absl::string_view(answers[i].why); },
      [&](size_t i, std::string why) { answers[i].why = std::move(why); }, kBatchErrors));
  return answers;
}

absl::StatusOr<std::vector<ResolveAnswer>> MariadbStore::Resolve(
    absl::Span<const FinishRequest> requests) {
  std::vector<ResolveAnswer> answers;
  for (const FinishRequest& r : requests) {
    const std::string key_json = KeysInOrder({r.ticket.key});
    const auto once = [&]() -> absl::StatusOr<ResolveAnswer> {
      // Behind the lock a COMMIT in flight has ended, and the attempt's own row tells of it.
      const std::vector<Statement> also = {
          Sql("SELECT status FROM job_run WHERE fence = ?", {r.ticket.fence}), ReadWaiting(),
          ReadLossRules(key_json)};
      const Locking locking = IsMutant(Mutant::kNaiveResolve) ? Locking::kSkip : Locking::kWait;
      ASSIGN_OR_RETURN(const LockedRows locked,
                       LockTickets(session_, {r.ticket.key}, locking, "resolve.before_lock", also));
      const AttemptRow* row = locked.Find(r.ticket.key);
      std::optional<std::string> run;
      if (locked.more[0].size() > 0) run = locked.more[0].Text(0, 0);
      Ends ends(locked.clock, WaitingOf(locked.more[1]));
      ResolveVerdict verdict = JudgeResolve(r, row, run, locked.clock.now);
      if (verdict == ResolveVerdict::kComplete && !FinishOne(locked, r, ends).empty()) {
        verdict = ResolveVerdict::kBurn;  // run_until has passed
      }
      if (verdict == ResolveVerdict::kBurn && !IsMutant(Mutant::kResolveBurnsNothing)) {
        // A late COMMIT must fail (I9); the period goes where a lost lease leads.
        const LossRules rules = LossRulesOf(locked.more[2]);
        ends.Add(*row, TakenBack(*row, rules.Of(row->key.job), locked.clock.now));
      }
      RETURN_IF_ERROR(CommitAt(session_, "resolve.before_commit", ends.Statements()).status());
      const bool yes = verdict == ResolveVerdict::kYes || verdict == ResolveVerdict::kComplete;
      return ResolveAnswer{yes ? ResolveAnswer::Kind::kCommitted
                               : ResolveAnswer::Kind::kNotCommitted};
    };
    ASSIGN_OR_RETURN(const ResolveAnswer answer, session_.Retried(once));
    MATINS_FAULT_POINT("resolve.after_commit");  // crash here: asked again, it answers the same
    answers.push_back(answer);
  }
  return answers;
}

}  // namespace matins::mariadb
