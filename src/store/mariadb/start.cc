// START is one transaction of two round trips. The first locks (the store's start row where there
// is a global limit, serialised jobs by name, the rows by key) and reads, in later statements, the
// clock and all that decides; the second writes what was granted.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/mariadb/backfills.h"
#include "store/mariadb/store.h"
#include "store/mariadb/ticket.h"
#include "store/rules.h"
#include "store/server_rows.h"
#include "store/start_rules.h"

namespace matins::mariadb {
namespace {

// What `also_due` would take: named before anything is locked, so that START locks in one order.
// The most urgent of those that the index gives first.
// Where tenants are served in turn, that index is the one of the turns.
std::vector<Statement> AlsoDue(const StartRequest& request, const std::string& labels,
                               bool in_turn) {
  const Value from =
      Value::Of(in_turn ? "r.turn > 0 AND r.turn_at" : "r.status = 'PLANNED' AND r.look_at");
  const Value order = Value::Of(in_turn ? "r.turn, r.turn_at" : "r.look_at");
  return {
      Sql("SET @matins_now = @NOW"),
      Sql("SELECT d.job_name, d.period FROM (SELECT r.job_name, r.period, r.priority, r.due_at, "
          "r.start_tag FROM job_watermark r WHERE "
          "? <= CAST(@matins_now AS DATETIME(6)) AND "
          "r.not_before <= CAST(@matins_now AS DATETIME(6)) AND (r.held_by IS NULL OR "
          "r.held_until <= CAST(@matins_now AS DATETIME(6))) ORDER BY ? LIMIT ?) d "
          "JOIN job b ON b.name = d.job_name AND NOT b.deleted AND b.suspended_at IS NULL AND "
          "JSON_CONTAINS(?, b.labels) "
          "ORDER BY d.priority DESC, d.start_tag, d.due_at, d.job_name, d.period LIMIT ?",
          {from, order, 4 * request.also_due + 200, labels, 2 * request.also_due + 16})};
}

Statement LockStart() {
  return Sql("SELECT value FROM matins_meta WHERE name = 'start' FOR UPDATE");
}

// The inner rows are read without a lock: only jobs that need it stand in each other's way.
Statement LockSerialised(const std::string& keys) {
  return Sql(
      "SELECT j.name FROM (SELECT DISTINCT b.name FROM ? STRAIGHT_JOIN job b ON "
      "b.name = x.job WHERE b.strict OR b.job_limit IS NOT NULL OR "
      "b.max_parallel IS NOT NULL OR b.lock_scope <> 'period' OR b.overlap <> 'allow' "
      "ORDER BY b.name) s STRAIGHT_JOIN job j ON j.name = s.name FOR UPDATE",
      {KeyTable(keys)});
}

// And the number of the limits that stand, locked against a change (limits.h).
Statement CountAlive(int global_limit) {
  return Sql(absl::StrCat(
      "SELECT ",
      global_limit > 0 ? "(SELECT COUNT(*) FROM job_watermark WHERE status = 'RUNNING') + (SELECT "
                         "COUNT(*) FROM job_slot s WHERE s.until > @NOW)"
                       : "0",
      ", value, EXISTS (SELECT 1 FROM job_watermark WHERE turn > 0) FROM matins_meta WHERE name = "
      "'limits' LOCK IN SHARE MODE"));
}

Statement JobFacts(const std::string& keys, const std::string& labels) {
  return Sql(
      "SELECT j.name, j.strict, j.job_limit, j.max_parallel, JSON_CONTAINS(?, j.labels), "
      "j.suspended_at IS NOT NULL, j.gap_from, j.`cursor`, "
      "IF(j.job_limit IS NULL, 0, (SELECT COUNT(*) FROM job_watermark r WHERE "
      "r.job_name = j.name AND r.status = 'RUNNING') + IF(EXISTS (SELECT 1 FROM job_slot), "
      "(SELECT COUNT(*) FROM job_slot s WHERE s.job_name = j.name AND s.until > @NOW), 0)), "
      "IF(j.max_parallel IS NULL, 0, (SELECT COUNT(*) FROM job_watermark r WHERE "
      "r.job_name = j.name AND r.status = 'RUNNING' AND r.backfill) + "
      "IF(EXISTS (SELECT 1 FROM job_slot), (SELECT COUNT(*) FROM job_slot s WHERE "
      "s.job_name = j.name AND s.until > @NOW AND s.backfill), 0)), "
      "j.version, j.lock_ttl, j.timeout, j.grace, COALESCE(j.pending = 'person', FALSE) "
      "FROM (SELECT DISTINCT x.job FROM ?) k STRAIGHT_JOIN job j ON j.name = k.job "
      "WHERE NOT j.deleted",
      {labels, KeyTable(keys)});
}

// The oldest row of each open status that is older than `r`, as "DUE PERIOD": one index entry each.
std::string OlderText() {
  std::string text;
  for (const char* status : {"PLANNED", "RUNNING", "FAILED"}) {
    absl::StrAppend(
        &text, "IF(j.strict, (SELECT CONCAT(o.due_at, ' ', o.period) FROM job_watermark o WHERE ",
        "o.job_name = r.job_name AND o.status = '", status,
        "' AND o.due_at < r.due_at ORDER BY o.due_at LIMIT 1), NULL), ");
  }
  return text;
}

// An older period in the way; a job in `after` that is not DONE for the day; the lock's holder.
Statement RowFacts(const std::string& keys) {
  return Sql(
      absl::StrCat(
          "SELECT r.job_name, r.period, ", OlderText(),
          "IF(j.strict, (SELECT o.period FROM job_watermark o WHERE o.job_name = r.job_name AND "
          "o.status IN ('PLANNED', 'RUNNING', 'FAILED') AND o.due_at IS NULL AND "
          "o.biz_date < r.biz_date LIMIT 1), NULL), "
          "(SELECT a.after_job FROM job_after a WHERE a.job = r.job_name AND ("
          "NOT EXISTS (SELECT 1 FROM job_watermark d WHERE d.job_name = a.after_job AND "
          "d.biz_date = r.biz_date AND d.status = 'DONE') OR "
          "EXISTS (SELECT 1 FROM job_watermark d WHERE d.job_name = a.after_job AND "
          "d.biz_date = r.biz_date AND d.status <> 'DONE')) ORDER BY a.after_job LIMIT 1), "
          "(SELECT CONCAT(o.job_name, ' ', o.period) FROM job_watermark o WHERE "
          "o.running_lock = r.lock_key LIMIT 1), "
          "(SELECT CONCAT(k.job_name, ' ', k.period) FROM job_lock k WHERE "
          "k.lock_key = r.lock_key AND k.until > @NOW) "
          "FROM ? STRAIGHT_JOIN job_watermark r ON r.job_name = x.job AND r.period = x.period "
          "STRAIGHT_JOIN job j ON j.name = r.job_name"),
      {KeyTable(keys)});
}

// What a grant needs of its job beside the facts that decide.
struct Terms {
  int version = 0;
  absl::Duration ttl, timeout, grace;
};

struct Facts {
  StartFacts start;
  int64_t epoch = 0;
  std::map<std::string, Terms> terms;
  int64_t limits_number = 0;
  bool in_turn = false;
};

Facts ReadFacts(const Rows& rows, const Rows& clock, const Rows& alive, const Rows& jobs,
                const Rows& facts) {
  Facts read;
  const Clock c = ClockOf(clock);
  read.epoch = c.epoch;
  read.start.now = c.now;
  read.start.frozen = c.frozen;
  if (alive.size() > 0) {
    read.start.alive = alive.Int(0, 0);
    read.limits_number = alive.Int(0, 1);
    read.in_turn = alive.Bool(0, 2);
  }
  for (int i = 0; i < rows.size(); ++i) {
    StartFacts::Row row;
    AttemptRow whole = ReadRow(rows, i);
    row.lock_key = whole.lock_key;
    row.tenant = whole.tenant;
    row.limit_key = whole.limit_key;
    row.row = std::move(whole);
    read.start.rows[row.row.key] = std::move(row);
  }
  for (int i = 0; i < jobs.size(); ++i) {
    const std::string name = jobs.Text(i, 0);
    StartFacts::Job& job = read.start.jobs[name];
    job.strict = jobs.Bool(i, 1);
    if (!jobs.IsNull(i, 2)) job.limit = jobs.Int(i, 2);
    if (!jobs.IsNull(i, 3)) job.max_parallel = jobs.Int(i, 3);
    job.labels = jobs.Bool(i, 4);
    job.suspended = jobs.Bool(i, 5);
    if (!jobs.IsNull(i, 6)) job.gap_from = jobs.Time(i, 6);
    job.cursor = jobs.Time(i, 7);
    job.running = jobs.Int(i, 8);
    job.backfills = jobs.Int(i, 9);
    job.asked = jobs.Bool(i, 14);
    read.terms[name] = {static_cast<int>(jobs.Int(i, 10)), absl::Microseconds(jobs.Int(i, 11)),
                        absl::Microseconds(jobs.Int(i, 12)), absl::Microseconds(jobs.Int(i, 13))};
  }
  for (int i = 0; i < facts.size(); ++i) {
    const auto row = read.start.rows.find({facts.Text(i, 0), facts.Text(i, 1)});
    if (row == read.start.rows.end()) continue;
    std::string oldest;
    for (int column = 2; column < 5; ++column) {
      if (facts.IsNull(i, column)) continue;
      const std::string text = facts.Text(i, column);
      if (oldest.empty() || text < oldest) oldest = text;
    }
    // "2026-10-30 01:00:00.000000 PERIOD"
    row->second.older = oldest.size() > 27 ? oldest.substr(27) : facts.Text(i, 5);
    row->second.after = facts.Text(i, 6);
    row->second.holder = facts.Text(i, 7);
    row->second.leftover = facts.Text(i, 8);
  }
  return read;
}

Claim ClaimOf(const PeriodRow& row, const Terms& terms, const StartRequest& request,
              absl::Time now) {
  Claim claim = ClaimFrom(row);
  claim.nonce = request.nonce;
  claim.attempt = row.attempts + 1;
  claim.attempt_total = row.attempts_total + 1;
  claim.current_version = terms.version;
  claim.claimed_at = now;
  claim.run_until = now + terms.timeout + terms.grace;
  claim.lease_until = std::min(now + terms.ttl, claim.run_until);
  claim.checkpoint = IsMutant(Mutant::kNoCheckpointOffer) ? 0 : row.checkpoint;
  return claim;
}

// What was granted, as statements; fences are known once they have run.
class Grants {
 public:
  void Add(Judged& judged, const Facts& facts, const StartRequest& request) {
    const PeriodRow& row = *judged.row;
    Claim claim = ClaimOf(row, facts.terms.at(row.key.job), request, facts.start.now);
    rows_.Row().AddKey(row.key).AddTime("lease", claim.lease_until);
    rows_.AddTime("run", claim.run_until);
    if (IsMutant(Mutant::kNoFenceBump) && row.fence > 0) {
      claim.fence = row.fence;
    } else {
      rows_.AddInt("i", static_cast<int64_t>(fences_++));
    }
    if (claim.checkpoint > 0) checkpoints_.Row().AddKey(row.key).AddInt("gen", row.generation);
    const std::string& lock = facts.start.rows.at(row.key).lock_key;
    if (!lock.empty()) locks_.Row().Add("lock_key", lock);
    judged.answer.claim = std::move(claim);
  }

  std::vector<Statement> Statements(const Facts& facts, const StartRequest& request) {
    if (rows_.empty()) return {};
    std::vector<Statement> out = TakeFences(fences_);
    out.push_back(Sql(
        "UPDATE ? STRAIGHT_JOIN job_watermark r ON r.job_name = x.job AND r.period = x.period SET "
        "r.status = 'RUNNING', r.fence = IF(x.i IS NULL, r.fence, ? + CAST(@matins_fence AS "
        "SIGNED) + x.i), "
        "r.nonce = ?, r.node = ?, r.attempts = r.attempts + 1, "
        "r.attempts_total = r.attempts_total + 1, r.claimed_at = ?, r.op_at = ?, r.op = 'claim', "
        "r.run_until = x.run, r.lease_until = x.lease, r.held_by = NULL, r.held_until = NULL, "
        "r.wait_until = NULL, r.waits_for = NULL, r.reason = NULL, r.start_by = NULL, "
        "r.checkpointed_at = NULL, r.cancel_by = NULL, r.cancel_why = NULL, "
        "r.renewals = NULL, r.finished_at = NULL, r.ver = r.ver + 1, r.look_at = NULL",
        {JsonTable(rows_.Take(), "job name, period name, lease time, run time, i int"),
         facts.epoch << kEpochShift, request.nonce, request.node.name, facts.start.now,
         facts.start.now}));
    if (!locks_.empty()) {
      out.push_back(Sql("DELETE k FROM ? STRAIGHT_JOIN job_lock k ON k.lock_key = x.lock_key",
                        {JsonTable(locks_.Take(), "lock_key key")}));
    }
    // The last two answers are read.
    out.push_back(
        Sql("SELECT k.job_name, k.period, k.data FROM ? STRAIGHT_JOIN job_checkpoint k ON "
            "k.job_name = x.job AND k.period = x.period AND k.generation = x.gen",
            {JsonTable(checkpoints_.Take(), "job name, period name, gen int")}));
    out.push_back(Sql("SELECT ? + CAST(@matins_fence AS SIGNED)", {facts.epoch << kEpochShift}));
    return out;
  }

  // In the order of Add: the i-th that took a new fence has the i-th number.
  static void Complete(std::vector<Judged>& judged, const std::vector<Rows>& answers) {
    const Rows& data = answers[answers.size() - 2];
    int64_t fence = answers.back().Int(0, 0);
    std::map<PeriodKey, std::string> checkpoints;
    for (int i = 0; i < data.size(); ++i) {
      checkpoints[{data.Text(i, 0), data.Text(i, 1)}] = data.Text(i, 2);
    }
    for (Judged& j : judged) {
      if (!j.answer.claim) continue;
      if (j.answer.claim->fence == 0) j.answer.claim->fence = fence++;
      const auto checkpoint = checkpoints.find(j.answer.key);
      if (checkpoint != checkpoints.end()) j.answer.claim->checkpoint_data = checkpoint->second;
    }
  }

 private:
  JsonRows rows_, locks_, checkpoints_;
  size_t fences_ = 0;
};

Statement PutOff(JsonRows& rows, absl::Time now, absl::Duration put_off) {
  return Sql(
      "UPDATE ? STRAIGHT_JOIN job_watermark r ON r.job_name = x.job AND r.period = x.period "
      "SET r.waits_for = x.waits_for, r.held_by = NULL, r.held_until = NULL, "
      "r.look_at = GREATEST(COALESCE(x.look_at, ?), COALESCE(r.not_before, TIMESTAMP'1970-01-01 "
      "00:00:00')) "
      "WHERE r.status = 'PLANNED'",
      {JsonTable(rows.Take(), "job name, period name, waits_for key, look_at time"),
       now + put_off});
}

}  // namespace

absl::StatusOr<StartAnswers> MariadbStore::Start(const StartRequest& request) {
  Connection& connection = session_.connection;
  std::vector<PeriodKey> keys = request.keys;
  const std::string labels = JsonStrings(request.node.labels);
  if (request.also_due > 0) {
    std::set<PeriodKey> named(keys.begin(), keys.end());
    ASSIGN_OR_RETURN(const std::vector<Rows> due,
                     connection.Read(AlsoDue(request, labels, in_turn_ && !look_behind_)));
    look_behind_ = in_turn_ && !look_behind_ && due[1].size() < 2 * request.also_due;
    for (int i = 0; i < due[1].size(); ++i) {
      PeriodKey key{due[1].Text(i, 0), due[1].Text(i, 1)};
      if (named.insert(key).second) keys.push_back(std::move(key));
    }
  }
  const std::string list = KeysInOrder(keys);
  std::vector<Statement> look;
  if (request.global_limit > 0) look.push_back(LockStart());
  look.push_back(LockSerialised(list));
  look.push_back(LockRows(session_, list, Locking::kSkip));
  look.push_back(ReadClock());
  look.push_back(CountAlive(request.global_limit));
  look.push_back(JobFacts(list, labels));
  look.push_back(RowFacts(list));
  // Nothing: the limits had been changed since they were read, and are known now.
  const auto once = [&]() -> absl::StatusOr<std::optional<StartAnswers>> {
    ASSIGN_OR_RETURN(std::vector<Rows> rows, connection.Begin(look));
    rows.erase(rows.begin(), rows.end() - 5);
    Facts facts = ReadFacts(rows[0], rows[1], rows[2], rows[3], rows[4]);
    in_turn_ = facts.in_turn;
    if (facts.limits_number != limits_.number) {
      connection.Rollback();
      ASSIGN_OR_RETURN(limits_, ReadKnownLimits(session_));
      return std::optional<StartAnswers>();
    }
    if (!limits_.book.empty()) RETURN_IF_ERROR(Count(facts.start));
    RETURN_IF_ERROR(LookAtTheirBackfills(facts.start));
    StartRules rules(request, facts.start);
    std::vector<Judged> judged = rules.Judge(keys, request.keys.size());
    Grants grants;
    JsonRows put_off;
    bool granted = false;
    for (Judged& j : judged) {
      if (j.answer.result == StartResult::kStarted) {
        grants.Add(j, facts, request);
        granted = true;
      } else if (j.put_off) {
        put_off.Row().AddKey(j.answer.key).AddTime("look_at", j.look_at);
        if (!j.waits_for.empty()) put_off.Add("waits_for", j.waits_for);
      }
    }
    std::vector<Statement> writes;
    if (!put_off.empty()) {
      writes.push_back(PutOff(put_off, facts.start.now, request.put_off));
    }
    for (Statement& s : grants.Statements(facts, request)) writes.push_back(std::move(s));
    // Crash here: still PLANNED.
    ASSIGN_OR_RETURN(const std::vector<Rows> answers,
                     CommitAt(session_, "start.before_commit", writes));
    // Crash here: it is RUNNING and nobody knows of it; its lease ends by itself.
    MATINS_FAULT_POINT("start.after_commit");
    if (granted) Grants::Complete(judged, answers);
    StartAnswers out;
    out.now = facts.start.now;
    out.more = keys.size() > judged.size();
    for (Judged& j : judged) out.rows.push_back(std::move(j.answer));
    return out;
  };
  for (int tries = 0; tries < 10; ++tries) {
    ASSIGN_OR_RETURN(std::optional<StartAnswers> answers, session_.Retried(once));
    if (answers) return *std::move(answers);
  }
  return absl::UnavailableError("START: the limits are changed again and again; it is tried again");
}

absl::Status MariadbStore::LookAtTheirBackfills(StartFacts& facts) {
  std::set<int64_t> ids;
  for (const auto& [key, row] : facts.rows) {
    if (row.row.backfill_id != 0) ids.insert(row.row.backfill_id);
  }
  if (ids.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.connection.More(LookAtBackfills(ids)));
  const Clock clock = ClockOf(rows[3]);
  facts.now = clock.now;
  facts.frozen = clock.frozen;
  facts.backfills = ReadBackfillFacts(rows[1], rows[2]);
  return absl::OkStatus();
}

// The rules' rows are locked after the rest, nothing is waited for behind them, and the clock is
// read again.
absl::Status MariadbStore::Count(StartFacts& facts) {
  std::vector<LimitClaim> claims;
  for (const auto& [key, row] : facts.rows) claims.push_back(ClaimOf(row));
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.More({LockLimits(limits_.book.Concerning(claims)),
                                             CountSlots(limits_.book, claims), ReadClock()}));
  const Clock clock = ClockOf(rows[2]);
  facts.now = clock.now;
  facts.frozen = clock.frozen;
  facts.limits = limits_.book;
  facts.taken = ReadLimitCounts(rows[1]);
  return absl::OkStatus();
}

}  // namespace matins::mariadb
