// START is one transaction. Its first round trip locks (the store's start row where there is a
// global limit, serialised jobs by name, the rows by key) and finds and locks what is due besides;
// later statements read the clock and all that decides, behind the locks; the last round trip
// writes what was granted. Rows that are named are judged in the first already.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/mariadb/backfills.h"
#include "store/mariadb/due.h"
#include "store/mariadb/store.h"
#include "store/mariadb/ticket.h"
#include "store/rules.h"
#include "store/server_rows.h"
#include "store/set_aside.h"
#include "store/start_rules.h"

namespace matins::mariadb {
namespace {

Statement LockStart() {
  return Sql("SELECT value FROM matins_meta WHERE name = 'start' FOR UPDATE");
}

// A JSON array of the keys' jobs, each once, in order.
std::string JobsInOrder(const std::vector<PeriodKey>& keys) {
  std::set<absl::string_view> jobs;
  for (const PeriodKey& key : keys) jobs.insert(key.job);
  JsonRows json;
  for (const absl::string_view job : jobs) json.Row().Add("job", job);
  return json.Take();
}

constexpr absl::string_view kSerialised =
    "j.strict OR j.job_limit IS NOT NULL OR j.max_parallel IS NOT NULL OR "
    "j.lock_scope <> 'period' OR j.overlap <> 'allow'";

// Jobs whose runs are begun one at a time. The inner rows are read without a lock: only jobs that
// need it stand in each other's way. Of rows that START has locked already the jobs are not waited
// for: who has one may wait for such a row.
Statement LockSerialised(const std::string& jobs, bool wait) {
  return Sql(absl::StrCat("SELECT k.name FROM (SELECT j.name FROM ? @JOBS WHERE ", kSerialised,
                          " ORDER BY j.name) s STRAIGHT_JOIN job k FORCE INDEX (PRIMARY) ON "
                          "k.name = s.name FOR UPDATE",
                          wait ? "" : " SKIP LOCKED"),
             {JsonTable(jobs, "job name")});
}

// And the number of the limits that stand, locked against a change (limits.h), and what only some
// stores have.
Statement CountAlive(int global_limit) {
  return Sql(absl::StrCat(
      "SELECT ",
      global_limit > 0
          ? "(SELECT COUNT(*) FROM job_watermark FORCE INDEX (job_watermark_due) WHERE "
            "status = 'RUNNING') + (SELECT COUNT(*) FROM job_slot s WHERE "
            "s.until > @NOW)"
          : "0",
      ", value, EXISTS (SELECT 1 FROM job_watermark FORCE INDEX (job_watermark_turn) WHERE "
      "turn > 0), EXISTS (SELECT 1 FROM job_lock), ",
      kAnyAside, " FROM matins_meta WHERE name = 'limits' LOCK IN SHARE MODE"));
}

// The first of one status' part of the index, as "DUE PERIOD"; of rows that another program wrote,
// which have no due instant and come first, as " PERIOD".
std::string Oldest(absl::string_view of, absl::string_view status) {
  return absl::StrCat(
      "(SELECT CONCAT(COALESCE(o.due_at, ''), ' ', o.period) FROM job_watermark o FORCE INDEX "
      "(job_watermark_open) WHERE o.job_name = ",
      of, " AND o.status = '", status, "'");
}

constexpr absl::string_view kOpen[] = {"PLANNED", "RUNNING", "FAILED"};

// Each of these statements looks by keys of a named index: what the server thinks of the size of a
// table, which may have been filled a moment ago, does not matter.
Statement JobFacts(const std::string& jobs, const std::string& labels) {
  std::string text =
      "SELECT j.name, j.strict, j.job_limit, j.max_parallel, JSON_CONTAINS(?, j.labels), "
      "j.suspended_at IS NOT NULL, j.gap_from, j.`cursor`, "
      "IF(j.job_limit IS NULL, 0, (SELECT COUNT(*) FROM job_watermark r FORCE INDEX "
      "(job_watermark_open) WHERE r.job_name = j.name AND r.status = 'RUNNING') + IF(EXISTS "
      "(SELECT 1 FROM job_slot), (SELECT COUNT(*) FROM job_slot s WHERE s.job_name = j.name AND "
      "s.until > @NOW), 0)), "
      "IF(j.max_parallel IS NULL, 0, (SELECT COUNT(*) FROM job_watermark r FORCE INDEX "
      "(job_watermark_open) WHERE r.job_name = j.name AND r.status = 'RUNNING' AND r.backfill) + "
      "IF(EXISTS (SELECT 1 FROM job_slot), (SELECT COUNT(*) FROM job_slot s WHERE "
      "s.job_name = j.name AND s.until > @NOW AND s.backfill), 0)), "
      "j.version, j.lock_ttl, j.timeout, j.grace, COALESCE(j.pending = 'person', FALSE), "
      "EXISTS (SELECT 1 FROM job_after a FORCE INDEX (PRIMARY) WHERE a.job = j.name), ";
  absl::StrAppend(&text, kSerialised);
  for (const absl::string_view status : kOpen) {
    absl::StrAppend(&text, ", IF(j.strict, ", Oldest("j.name", status),
                    " ORDER BY o.due_at LIMIT 1), NULL)");
  }
  absl::StrAppend(&text, ", j.next_look FROM ? @JOBS WHERE NOT j.deleted");
  return Sql(text, {labels, JsonTable(jobs, "job name")});
}
constexpr int kOldestColumn = 17;

// The lock's holder, and a lock that a lost run left behind; with `after`, a job there that is not
// DONE for the day.
Statement RowFacts(const std::string& keys, bool after) {
  return Sql(
      "SELECT r.job_name, r.period, "
      "(SELECT CONCAT(o.job_name, ' ', o.period) FROM job_watermark o FORCE INDEX "
      "(job_watermark_lock) WHERE o.running_lock = r.lock_key LIMIT 1), "
      "(SELECT CONCAT(k.job_name, ' ', k.period) FROM job_lock k FORCE INDEX (PRIMARY) WHERE "
      "k.lock_key = r.lock_key AND k.until > @NOW), ? FROM ? @ROWS",
      {Value::Of(after ? "(SELECT a.after_job FROM job_after a FORCE INDEX (PRIMARY) WHERE "
                         "a.job = r.job_name AND (NOT EXISTS (SELECT 1 FROM job_watermark d FORCE "
                         "INDEX (job_watermark_day) WHERE d.job_name = a.after_job AND "
                         "d.biz_date = r.biz_date AND d.status = 'DONE') OR EXISTS (SELECT 1 FROM "
                         "job_watermark d FORCE INDEX (job_watermark_day) WHERE "
                         "d.job_name = a.after_job AND d.biz_date = r.biz_date AND "
                         "d.status <> 'DONE')) ORDER BY a.after_job LIMIT 1)"
                       : "NULL"),
       KeyTable(keys)});
}

// Of rows whose job has open ones that another program wrote: the oldest of each status that has a
// due instant, and one without that is of an earlier day.
Statement UndatedFacts(const std::string& keys) {
  std::string text = "SELECT r.job_name, r.period, COALESCE(";
  for (const absl::string_view status : kOpen) {
    absl::StrAppend(&text, status == kOpen[0] ? "" : ", ", Oldest("r.job_name", status),
                    " AND o.due_at IS NULL AND o.biz_date < r.biz_date LIMIT 1)");
  }
  absl::StrAppend(&text, ")");
  for (const absl::string_view status : kOpen) {
    absl::StrAppend(&text, ", ", Oldest("r.job_name", status),
                    " AND o.due_at IS NOT NULL ORDER BY o.due_at LIMIT 1)");
  }
  return Sql(absl::StrCat(text, " FROM ? @ROWS"), {KeyTable(keys)});
}

// What a grant needs of its job beside the facts that decide.
struct Terms {
  int version = 0;
  absl::Duration ttl, timeout, grace;
};

// Of a strict job.
struct OldestOpen {
  std::string row;       // "DUE PERIOD"
  bool undated = false;  // there are rows without a due instant, and others may be behind them

  void Add(const Rows& rows, int i, int first_column) {
    for (int column = first_column; column < first_column + 3; ++column) {
      if (rows.IsNull(i, column)) continue;
      const std::string text = rows.Text(i, column);
      if (text[0] == ' ') {
        undated = true;
      } else if (row.empty() || text < row) {
        row = text;
      }
    }
  }
  // The period of `row` where that is older, or nothing.
  std::string Before(const PeriodRow& other) const {
    const size_t due = row.find(' ', row.find(' ') + 1);  // "2026-10-30 01:00:00.000000 PERIOD"
    const bool older = !row.empty() && other.due != absl::InfinitePast() &&
                       absl::string_view(row).substr(0, due) < UtcText(other.due);
    return older ? row.substr(due + 1) : "";
  }
};

struct Facts {
  StartFacts start;
  std::map<std::string, OldestOpen> oldest;
  int64_t epoch = 0;
  std::map<std::string, Terms> terms;
  int64_t limits_number = 0;
  bool in_turn = false;
  bool any_after = false;     // a job waits for others
  bool any_aside = false;     // rows are set aside
  bool any_leftover = false;  // a lock outlives its run, or has until a moment ago
};

void AddRows(Facts& facts, const Rows& rows) {
  for (int i = 0; i < rows.size(); ++i) {
    StartFacts::Row row;
    AttemptRow whole = ReadRow(rows, i);
    row.lock_key = whole.lock_key;
    row.tenant = whole.tenant;
    row.limit_key = whole.limit_key;
    row.row = std::move(whole);
    facts.start.rows[row.row.key] = std::move(row);
  }
}

void AddBesides(Facts& read, const Rows& facts) {
  for (int i = 0; i < facts.size(); ++i) {
    const auto row = read.start.rows.find({facts.Text(i, 0), facts.Text(i, 1)});
    if (row == read.start.rows.end()) continue;
    row->second.holder = facts.Text(i, 2);
    row->second.leftover = facts.Text(i, 3);
    row->second.after = facts.Text(i, 4);
  }
}

// As Decide asks.
void AddFacts(Facts& read, absl::Span<const Rows> answers) {
  const Rows &clock = answers[0], &alive = answers[1], &jobs = answers[2];
  const Clock c = ClockOf(clock);
  read.epoch = c.epoch;
  read.start.now = c.now;
  read.start.frozen = c.frozen;
  if (alive.size() > 0) {
    read.start.alive = alive.Int(0, 0);
    read.limits_number = alive.Int(0, 1);
    read.in_turn = alive.Bool(0, 2);
    read.any_leftover = alive.Bool(0, 3);
    read.any_aside = alive.Bool(0, 4);
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
    read.any_after |= jobs.Bool(i, 15);
    job.serialised = jobs.Bool(i, 16);
    job.next_look = jobs.Time(i, kOldestColumn + 3, absl::InfiniteFuture());
    if (job.strict) read.oldest[name].Add(jobs, i, kOldestColumn);
    read.terms[name] = {static_cast<int>(jobs.Int(i, 10)), absl::Microseconds(jobs.Int(i, 11)),
                        absl::Microseconds(jobs.Int(i, 12)), absl::Microseconds(jobs.Int(i, 13))};
  }
  AddBesides(read, answers[3]);
  for (auto& [key, row] : read.start.rows) {
    const auto oldest = read.oldest.find(key.job);
    if (oldest != read.oldest.end()) row.older = oldest->second.Before(row.row);
  }
}

// Seldom, and so with a round trip of its own.
absl::Status LookAtUndated(Session& session, Facts& facts) {
  std::vector<PeriodKey> keys;
  for (const auto& [key, row] : facts.start.rows) {
    const auto oldest = facts.oldest.find(key.job);
    if (oldest != facts.oldest.end() && oldest->second.undated) keys.push_back(key);
  }
  if (keys.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session.connection.More({UndatedFacts(KeysInOrder(std::move(keys)))}));
  for (int i = 0; i < rows[0].size(); ++i) {
    const auto row = facts.start.rows.find({rows[0].Text(i, 0), rows[0].Text(i, 1)});
    if (row == facts.start.rows.end()) continue;
    OldestOpen oldest;
    oldest.Add(rows[0], i, 3);
    row->second.older = oldest.Before(row->second.row);
    if (row->second.older.empty() && !rows[0].IsNull(i, 2)) {
      row->second.older = rows[0].Text(i, 2).substr(1);
    }
  }
  return absl::OkStatus();
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
    JsonRows& rows = rows_[{claim.lease_until, claim.run_until}];
    rows.Row().AddKey(row.key);
    if (IsMutant(Mutant::kNoFenceBump) && row.fence > 0) {
      claim.fence = row.fence;
    } else {
      rows.AddInt("i", static_cast<int64_t>(fences_++));
    }
    if (claim.checkpoint > 0) checkpoints_.Row().AddKey(row.key).AddInt("gen", row.generation);
    const std::string& lock = facts.start.rows.at(row.key).lock_key;
    if (!lock.empty()) locks_.Row().Add("lock_key", lock);
    judged.answer.claim = std::move(claim);
  }

  std::vector<Statement> Statements(const Facts& facts, const StartRequest& request) {
    if (rows_.empty()) return {};
    std::vector<Statement> out = TakeFences(fences_);
    for (auto& [until, rows] : rows_) {
      out.push_back(Sql(
          "UPDATE ? @ROWS SET "
          "r.status = 'RUNNING', r.fence = IF(x.i IS NULL, r.fence, ? + CAST(@matins_fence AS "
          "SIGNED) + x.i), "
          "r.nonce = ?, r.node = ?, r.attempts = r.attempts + 1, "
          "r.attempts_total = r.attempts_total + 1, r.claimed_at = ?, r.op_at = ?, r.op = 'claim', "
          "r.lease_until = ?, r.run_until = ?, r.held_by = NULL, r.held_until = NULL, "
          "r.wait_until = NULL, r.waits_for = NULL, r.reason = NULL, r.start_by = NULL, "
          "r.checkpointed_at = NULL, r.cancel_by = NULL, r.cancel_why = NULL, "
          "r.renewals = NULL, r.finished_at = NULL, r.ver = r.ver + 1, r.look_at = NULL",
          {JsonTable(rows.Take(), "job name, period name, i int"), facts.epoch << kEpochShift,
           request.nonce, request.node.name, facts.start.now, facts.start.now, until.first,
           until.second}));
    }
    if (facts.any_leftover && !locks_.empty()) {
      out.push_back(
          Sql("DELETE k FROM ? STRAIGHT_JOIN job_lock k FORCE INDEX (PRIMARY) ON k.lock_key = "
              "x.lock_key",
              {JsonTable(locks_.Take(), "lock_key key")}));
    }
    // The last two answers are read.
    out.push_back(
        Sql("SELECT k.job_name, k.period, k.data FROM ? STRAIGHT_JOIN job_checkpoint k "
            "FORCE INDEX (PRIMARY) ON k.job_name = x.job AND k.period = x.period AND k.generation "
            "= x.gen",
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
  // By the ends of lease and time-out: those of one job have the same.
  std::map<std::pair<absl::Time, absl::Time>, JsonRows> rows_;
  JsonRows locks_, checkpoints_;
  size_t fences_ = 0;
};

Statement PutOff(JsonRows& rows, absl::Time now, absl::Duration put_off) {
  return Sql(
      "UPDATE ? @ROWS "
      "SET r.waits_for = x.waits_for, r.held_by = NULL, r.held_until = NULL, "
      "r.look_at = GREATEST(COALESCE(x.look_at, ?), COALESCE(r.not_before, TIMESTAMP'1970-01-01 "
      "00:00:00')) "
      "WHERE r.status = 'PLANNED'",
      {JsonTable(rows.Take(), "job name, period name, waits_for key, look_at time"),
       now + put_off});
}

// What stood in the way of what is due, and is set aside.
using Others = std::vector<std::pair<PeriodKey, SetAside>>;

// Writes what was judged, and ends the transaction.
absl::StatusOr<StartAnswers> Write(Session& session, const StartRequest& request,
                                   const Facts& facts, const Others& others,
                                   std::vector<Judged> judged) {
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
  for (const auto& [key, aside] : others) {
    put_off.Row().AddKey(key).AddTime("look_at", aside.look_at);
    if (!aside.waits_for.empty()) put_off.Add("waits_for", aside.waits_for);
  }
  std::vector<Statement> writes;
  if (!put_off.empty()) {
    writes.push_back(PutOff(put_off, facts.start.now, request.put_off));
  }
  for (Statement& s : grants.Statements(facts, request)) writes.push_back(std::move(s));
  // Crash here: still PLANNED.
  ASSIGN_OR_RETURN(const std::vector<Rows> answers,
                   CommitAt(session, "start.before_commit", writes));
  // Crash here: it is RUNNING and nobody knows of it; its lease ends by itself.
  MATINS_FAULT_POINT("start.after_commit");
  if (granted) Grants::Complete(judged, answers);
  StartAnswers out;
  out.now = facts.start.now;
  for (Judged& j : judged) out.rows.push_back(std::move(j.answer));
  return out;
}

// What was found and locked, in the order in which it is judged, and what decides about it.
struct Looked {
  Facts facts;
  std::vector<PeriodKey> keys;
  Others others;
  bool more = false;  // there may be more that is due
};

class Looking {
 public:
  Looking(Session& session, const StartRequest& request, StartMemory& memory)
      : session_(session),
        request_(request),
        memory_(memory),
        labels_(JsonStrings(request.node.labels)) {}

  // Begins the transaction. Nothing: what was known of jobs has changed, and is known now.
  absl::StatusOr<std::optional<Looked>> Look() {
    std::vector<Statement> look;
    const bool crowded = request_.also_due > 0 && (memory_.crowded || memory_.any_aside);
    std::vector<std::string> lists;
    if (crowded) {
      ASSIGN_OR_RETURN(lists, AsideLists(session_, labels_));
    }
    if (request_.global_limit > 0) look.push_back(LockStart());
    if (!request_.keys.empty()) {
      look.push_back(LockSerialised(JobsInOrder(request_.keys), /*wait=*/true));
      look.push_back(LockRows(session_, KeysInOrder(request_.keys), Locking::kSkip));
    }
    looked_.keys = request_.keys;
    if (request_.also_due == 0) {
      Append(look, Decide(request_.keys));
      ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.connection.Begin(look));
      const absl::Span<const Rows> decide = absl::MakeConstSpan(rows).last(kDecide);
      if (!request_.keys.empty()) AddRows(looked_.facts, rows[rows.size() - kDecide - 1]);
      AddFacts(looked_.facts, decide);
    } else {
      const bool in_turn = memory_.in_turn && !memory_.look_behind;
      const DueWindow window = {labels_, DueLookOf(request_, memory_), in_turn, crowded, lists};
      Append(look, AlsoDue(window, request_, memory_));
      ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.connection.Begin(look));
      if (!request_.keys.empty()) AddRows(looked_.facts, rows[rows.size() - 5]);
      ASSIGN_OR_RETURN(const bool known, KnowsPriorities(rows.back().Int(0, 1)));
      if (!known) return std::optional<Looked>();
      RETURN_IF_ERROR(TakeDue(rows[rows.size() - 2], rows.back().Int(0, 0), in_turn));
      const bool few = rows[rows.size() - 2].size() < request_.also_due + kSpare;
      if (crowded && few && !looked_.facts.start.frozen) {
        RETURN_IF_ERROR(FindOthers(window));
      }
      looked_.more |= !crowded && looked_.facts.any_aside;
      memory_.any_aside = looked_.facts.any_aside;
    }
    if (looked_.facts.any_after && !memory_.asks_after) {
      memory_.asks_after = true;  // from now on with the rest
      ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                       session_.connection.More({RowFacts(KeysInOrder(looked_.keys), true)}));
      AddBesides(looked_.facts, rows[0]);
    }
    return std::move(looked_);
  }

 private:
  static constexpr size_t kDecide = 4;

  // Reads what decides about rows that are locked. Of those that are known the holder of a lock is
  // asked only where they have one.
  std::vector<Statement> Decide(const std::vector<PeriodKey>& keys) const {
    std::vector<PeriodKey> asked;
    for (const PeriodKey& key : keys) {
      const auto row = looked_.facts.start.rows.find(key);
      const bool known = row != looked_.facts.start.rows.end();
      if (memory_.asks_after || !known || !row->second.lock_key.empty()) asked.push_back(key);
    }
    return {ReadClock(), CountAlive(request_.global_limit), JobFacts(JobsInOrder(keys), labels_),
            asked.empty() ? Sql("SELECT 1 FROM DUAL WHERE FALSE")
                          : RowFacts(KeysInOrder(std::move(asked)), memory_.asks_after)};
  }

  // Whether `event` is the newest one by which it was known that no job has a priority, or else
  // still none has.
  absl::StatusOr<bool> KnowsPriorities(int64_t event) {
    // Events of acts that are under way may be older than the newest: not for ever, therefore.
    const absl::Duration now = SystemClock().BootNow();
    if (event == memory_.priorities_event && now < memory_.priorities_until) return true;
    memory_.priorities_until = now + absl::Minutes(1);
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        session_.connection.More(
            {Sql("SELECT EXISTS (SELECT 1 FROM job WHERE priority <> 0 AND NOT deleted)")}));
    const bool before = std::exchange(memory_.any_priority, rows[0].Bool(0, 0));
    memory_.priorities_event = event;
    if (before || !memory_.any_priority) return true;
    session_.connection.Rollback();
    return false;
  }

  absl::Status TakeDue(const Rows& rows, int64_t chosen, bool in_turn) {
    struct Due {
      PeriodKey key;
      int64_t priority, turn;
      absl::Time due;
    };
    std::vector<Due> due;
    const std::set<PeriodKey> named(request_.keys.begin(), request_.keys.end());
    AddRows(looked_.facts, rows);
    for (int i = 0; i < rows.size(); ++i) {
      PeriodKey key{rows.Text(i, 0), rows.Text(i, 1)};
      if (named.contains(key)) continue;
      const absl::Time at = looked_.facts.start.rows.at(key).row.due;
      due.push_back(
          {std::move(key), rows.Int(i, kPriorityColumn), rows.Int(i, kRowColumnCount), at});
    }
    std::sort(due.begin(), due.end(), [](const Due& a, const Due& b) {
      return std::tie(b.priority, a.turn, a.due, a.key) <
             std::tie(a.priority, b.turn, b.due, b.key);
    });
    memory_.look_behind = in_turn && rows.size() < request_.also_due + kSpare;
    // Others have locked the rest of what was chosen: next time more is.
    const bool all = chosen < request_.also_due * memory_.reach + kSpare;
    const bool full = rows.size() == request_.also_due + kSpare;
    memory_.reach =
        full || all ? std::max(1, memory_.reach - 1) : std::min(kMostReach, 2 * memory_.reach);
    looked_.more = full || !all;

    std::vector<PeriodKey> keys;
    for (const Due& d : due) keys.push_back(d.key);
    std::vector<Statement> then = {LockSerialised(JobsInOrder(keys), /*wait=*/false)};
    keys.insert(keys.begin(), request_.keys.begin(), request_.keys.end());
    Append(then, Decide(keys));
    ASSIGN_OR_RETURN(const std::vector<Rows> answers, session_.connection.More(then));
    AddFacts(looked_.facts, absl::MakeConstSpan(answers).last(kDecide));
    std::set<std::string> locked;
    for (int i = 0; i < answers[0].size(); ++i) locked.insert(answers[0].Text(i, 0));
    for (const Due& d : due) {
      const auto job = looked_.facts.start.jobs.find(d.key.job);
      const bool serialised = job != looked_.facts.start.jobs.end() && job->second.serialised;
      if (serialised && !locked.contains(d.key.job)) {
        looked_.more = true;
      } else {
        looked_.keys.push_back(d.key);
      }
    }
    return absl::OkStatus();
  }

  // What stands in the way: chosen without a lock, then locked, past those that another has.
  absl::Status FindOthers(const DueWindow& window) {
    ASSIGN_OR_RETURN(const std::vector<Rows> found, session_.connection.More(DueForOthers(window)));
    const std::map<PeriodKey, OfOther> others = OthersOf(found);
    if (others.empty()) return absl::OkStatus();
    std::vector<PeriodKey> keys;
    for (const auto& [key, other] : others) keys.push_back(key);
    ASSIGN_OR_RETURN(
        const std::vector<Rows> locked,
        session_.connection.More({LockRows(session_, KeysInOrder(keys), Locking::kSkip)}));
    const absl::Time now = looked_.facts.start.now;
    for (int i = 0; i < locked[0].size(); ++i) {
      const AttemptRow row = ReadRow(locked[0], i);
      if (row.status != PeriodStatus::kPlanned) continue;
      if (!row.held_by.empty() && row.held_until > now) continue;
      const OfOther& other = others.at(row.key);
      looked_.others.emplace_back(row.key,
                                  AsideOf(row.key, other.labels, other.tag, now, request_.put_off));
    }
    looked_.more |= !looked_.others.empty();
    return absl::OkStatus();
  }

  Session& session_;
  const StartRequest& request_;
  StartMemory& memory_;
  const std::string labels_;
  Looked looked_;
};

}  // namespace

absl::StatusOr<StartAnswers> MariadbStore::Start(const StartRequest& request) {
  // Nothing: what was known of limits or jobs has changed, and is known now.
  const auto once = [&]() -> absl::StatusOr<std::optional<StartAnswers>> {
    ASSIGN_OR_RETURN(std::optional<Looked> looked, Looking(session_, request, start_).Look());
    if (!looked) return std::optional<StartAnswers>();
    Facts& facts = looked->facts;
    start_.in_turn = facts.in_turn;
    if (facts.limits_number != limits_.number) {
      session_.connection.Rollback();
      ASSIGN_OR_RETURN(limits_, ReadKnownLimits(session_));
      return std::optional<StartAnswers>();
    }
    if (!limits_.book.empty()) RETURN_IF_ERROR(Count(facts.start));
    RETURN_IF_ERROR(LookAtTheirBackfills(facts.start));
    RETURN_IF_ERROR(LookAtUndated(session_, facts));
    StartRules rules(request, facts.start);
    std::vector<Judged> judged = rules.Judge(looked->keys, request.keys.size());
    const bool more = looked->more || judged.size() < looked->keys.size();
    ASSIGN_OR_RETURN(StartAnswers answers,
                     Write(session_, request, facts, looked->others, std::move(judged)));
    answers.more = more;
    return std::optional<StartAnswers>(std::move(answers));
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
