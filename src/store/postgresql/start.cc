// Held, then started: START is one transaction of two round trips. The first locks (the store's
// start row where there is a global limit, serialised jobs by name, the rows by key) and reads, in
// later statements, the clock and all that decides; the second writes what was granted. Where it
// also takes what is due, the first locks that too, and one between them reads what decides. What
// stands in the way of some jobs alone (order, `after`, locks left behind) is asked once such a job
// has been seen: under the same locks, the first time in a round trip of its own.
#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/attempt.h"
#include "store/exec_label.h"
#include "store/postgresql/backfills.h"
#include "store/postgresql/columns.h"
#include "store/postgresql/due.h"
#include "store/postgresql/limits.h"
#include "store/postgresql/store.h"
#include "store/rules.h"
#include "store/server_rows.h"
#include "store/set_aside.h"
#include "store/start_rules.h"

namespace matins::postgresql {
namespace {

// Whether jobs have priorities: how long the answer stands at most, and at least.
constexpr absl::Duration kPrioritiesStand = absl::Minutes(1);
constexpr absl::Duration kPrioritiesPause = absl::Seconds(1);
// So many of what is due are looked for besides while a crowd is being set aside: each call sets
// aside all that it passes over, and what comes due meanwhile waits for it.
constexpr int kBesideSettingAside = 50;

constexpr char kLockStart[] =
    "select value from @.matins_meta where key = 'start' for no key update";

// Jobs whose runs are begun one at a time. Of rows that START has locked already the jobs are not
// waited for: who has one may wait for such a row.
std::string LockSerialised(absl::string_view jobs, bool wait) {
  return absl::StrCat("select j.name from @.job j where j.name in (", jobs, R"()
    and (j.strict or j.job_limit is not null or j.max_parallel is not null
    or j.lock_scope <> 'period' or j.overlap <> 'allow')
  order by j.name for no key update)",
                      wait ? "" : " skip locked");
}

std::string LockRows(absl::string_view keys) {
  return absl::StrCat("select r.* from (", keys, ") x cross join lateral (select ", kStartColumns,
                      " from @.job_watermark r where r.job_name = x.job and r.period = x.period "
                      "for update skip locked) r");
}

// Without parameters: what has any is planned for its values each time, where that may be cheaper.
std::string Clock(bool count_running) {
  return absl::StrCat(
      "select @NOW, @FROZEN, ",
      count_running ? "(select count(*) from @.job_watermark where status = 'RUNNING') + (select "
                      "count(*) from @.job_slot s where s.until > (select @NOW))"
                    : "0",
      ", ", kLimitsNumber,
      ", exists (select from @.job_watermark where status = 'PLANNED' and start_tag > 0), "
      "exists (select from @.job_lock), ",
      kAnyAside);
}

std::string JobFacts(absl::string_view jobs) {
  // Slots that outlive their rows are few, and mostly none.
  const std::string slots =
      "case when (select exists (select from @.job_slot)) then (select count(*) from @.job_slot s "
      "where s.job_name = j.name and s.until > (select @NOW)";
  std::string text =
      absl::StrCat(R"(
  select j.name, j.strict, j.job_limit, j.max_parallel, j.labels <@ $1::jsonb,
    j.suspended_at is not null, j.gap_from, j.cursor,
    case when j.job_limit is null then 0 else (select count(*) from @.job_watermark r
      where r.job_name = j.name and r.status = 'RUNNING') + @SLOTS) end,
    case when j.max_parallel is null then 0 else (select count(*) from @.job_watermark r
      where r.job_name = j.name and r.status = 'RUNNING' and r.backfill) + @SLOTS and s.backfill)
      end,
    j.strict or j.job_limit is not null or j.max_parallel is not null
      or j.lock_scope <> 'period' or j.overlap <> 'allow',
    coalesce(j.pending = 'person', false),
    exists (select from @.job_after a where a.job = j.name), j.next_look
  from ()",
                   jobs, ") x(job) join @.job j on j.name = x.job where not j.deleted");
  return absl::StrReplaceAll(
      text, {{"@SLOTS)", absl::StrCat(slots, ") else 0 end")},
             {"@SLOTS and s.backfill)", absl::StrCat(slots, " and s.backfill) else 0 end")}});
}

// What stands in the way of rows: an older period of a strict job (by due instant, or by date where
// another program wrote the row); a job in `after` that is not DONE for the day; the holder of the
// lock; a lock that a lost run left behind. Only rows that have something in their way come back.
// Each looks by keys, row by row, in the only shape that a LIMIT in a LATERAL allows: what the
// server thinks of a table's size does not matter then.
constexpr char kKeysRow[] = R"( cross join lateral (select r.due_at, r.biz_date, r.lock_key
    from @.job_watermark r where r.job_name = x.job and r.period = x.period limit 1) r )";

std::string OlderPeriods(absl::string_view keys) {
  return absl::StrCat("select x.job, x.period, o.period from (", keys, ") x", R"(
    join @.job j on j.name = x.job and j.strict)",
                      kKeysRow, R"(
    cross join lateral (select coalesce((select o.period from (
        (select o.period, o.due_at from @.job_watermark o where o.job_name = x.job
          and o.due_at < r.due_at and o.status in ('PLANNED', 'FAILED') order by o.due_at limit 1)
        union all
        (select o.period, o.due_at from @.job_watermark o where o.job_name = x.job
          and o.due_at < r.due_at and o.status = 'RUNNING' order by o.due_at limit 1)) o
        order by o.due_at limit 1),
      (select o.period from (
        (select o.period from @.job_watermark o where o.job_name = x.job and o.due_at is null
          and o.biz_date < r.biz_date and o.status in ('PLANNED', 'FAILED') limit 1)
        union all
        (select o.period from @.job_watermark o where o.job_name = x.job and o.due_at is null
          and o.biz_date < r.biz_date and o.status = 'RUNNING' limit 1)) o limit 1)) as period) o
  where o.period is not null)");
}

std::string AfterJobs(absl::string_view keys) {
  return absl::StrCat("select x.job, x.period, min(a.after_job) from (", keys,
                      ") x join @.job_after a on a.job = x.job", kKeysRow, R"(
  where not exists (select from @.job_watermark d where d.job_name = a.after_job
      and d.biz_date = r.biz_date and d.status = 'DONE') or
    exists (select from @.job_watermark d where d.job_name = a.after_job
      and d.biz_date = r.biz_date and d.status <> 'DONE')
  group by x.job, x.period)");
}

std::string LockHolders(absl::string_view keys) {
  return absl::StrCat("select x.job, x.period, o.holder from (", keys, ") x", kKeysRow, R"(
    cross join lateral (select o.job_name || ' ' || o.period as holder from @.job_watermark o
      where o.lock_key = r.lock_key and o.lock_key is not null and o.status = 'RUNNING' limit 1) o)");
}

std::string LeftoverLocks(absl::string_view keys) {
  return absl::StrCat("select x.job, x.period, k.holder, k.alive from (", keys, ") x", kKeysRow, R"(
    cross join lateral (select k.job_name || ' ' || k.period as holder,
      k.until > (select @NOW) as alive from @.job_lock k where k.lock_key = r.lock_key limit 1) k)");
}

// `keys` of rows that are locked, and so stay where they are; `leftovers`: some have a lock that a
// lost run left behind.
std::string GrantText(absl::string_view keys, bool leftovers) {
  // A claim's fence is taken while the row is locked, from the one source that only rises (I6).
  const std::string fence = IsMutant(Mutant::kNoFenceBump)
                                ? "case when r.fence > 0 then r.fence else @FENCE end"
                                : "@FENCE";
  return absl::StrCat(
      "with x as materialized (", keys, "), c as materialized (select @NOW as now), ",
      leftovers ? "k as (delete from @.job_lock k using x join @.job_watermark w on "
                  "w.job_name = x.job and w.period = x.period where k.lock_key = w.lock_key), "
                : "",
      "u as (update @.job_watermark r set status = 'RUNNING', fence = ", fence,
      R"(, nonce = $1::bigint, node = $2, attempts = r.attempts + 1,
      attempts_total = r.attempts_total + 1, claimed_at = c.now, op_at = c.now, op = 'claim',
      run_until = c.now + j.timeout + j.grace,
      lease_until = least(c.now + j.lock_ttl, c.now + j.timeout + j.grace),
      held_by = null, held_until = null, wait_until = null, waits_for = null, reason = null,
      start_by = null, checkpointed_at = null, cancel_by = null, cancel_why = null,
      renewals = null, finished_at = null, ver = r.ver + 1, look_at = null
    from x join @.job j on j.name = x.job cross join c
    where r.ctid = x.tid and r.status = 'PLANNED'
    returning r.job_name, r.period, r.fence, r.attempts, r.attempts_total, r.losses, r.version,
      j.version as current_version, r.claimed_at, r.lease_until, r.run_until, r.generation,
      r.checkpoint)
  select u.*, case when u.checkpoint > 0 then (select k.data from @.job_checkpoint k where
    k.job_name = u.job_name and k.period = u.period and k.generation = u.generation) end from u)");
}

constexpr char kPutOff[] = R"(
  update @.job_watermark r set waits_for = x.waits_for, held_by = null, held_until = null,
    look_at = greatest(coalesce(x.look_at, @NOW + $2::interval), r.not_before)
  from json_to_recordset($1::json) as x(job text, period text, waits_for text,
    look_at timestamptz)
  where r.job_name = x.job and r.period = x.period and r.status = 'PLANNED')";

// A row that is due for other nodes.
struct Other {
  PeriodKey key;
  std::string labels;  // of its job; empty: the job is suspended
  int64_t tag;
};

std::vector<Statement> Grants(const Session& session, const StartRequest& request,
                              const std::vector<Judged>& judged, const StartRules& rules,
                              const std::vector<Other>& others, bool leftovers) {
  const std::map<PeriodKey, StartFacts::Row>& places = rules.facts().rows;
  ColumnRows granted;
  JsonRows put_off;
  for (const Judged& j : judged) {
    if (j.answer.result == StartResult::kStarted) {
      granted.Row().AddKey(j.answer.key).AddTid("tid", places.at(j.answer.key).place);
    } else if (j.put_off) {
      put_off.Row().AddKey(j.answer.key).AddTime("look_at", j.look_at);
      if (!j.waits_for.empty()) put_off.Add("waits_for", j.waits_for);
    }
  }
  for (const Other& other : others) {
    if (rules.facts().frozen) break;
    const SetAside aside =
        AsideOf(other.key, other.labels, other.tag, rules.now(), request.put_off);
    put_off.Row().AddKey(other.key).AddTime("look_at", aside.look_at);
    if (!aside.waits_for.empty()) put_off.Add("waits_for", aside.waits_for);
  }
  std::vector<Statement> out;
  if (!granted.empty()) {
    std::vector<Parameter> params = {absl::StrCat(request.nonce), request.node.name};
    const std::string keys = granted.Take(params);
    out.push_back(session.Of(GrantText(keys, leftovers), std::move(params)));
  }
  if (!put_off.empty()) {
    out.push_back(session.Of(kPutOff, {put_off.Take(), IntervalText(request.put_off)}));
  }
  return out;
}

Claim ReadClaim(const Rows& r, int i, const PeriodRow& row, int64_t nonce) {
  Claim claim = ClaimFrom(row);
  claim.fence = r.Int(i, 2);
  claim.nonce = nonce;
  claim.attempt = static_cast<int>(r.Int(i, 3));
  claim.attempt_total = static_cast<int>(r.Int(i, 4));
  claim.losses = static_cast<int>(r.Int(i, 5));
  claim.version = static_cast<int>(r.Int(i, 6));
  claim.current_version = static_cast<int>(r.Int(i, 7));
  claim.claimed_at = r.Time(i, 8);
  claim.lease_until = r.Time(i, 9);
  claim.run_until = r.Time(i, 10);
  if (IsMutant(Mutant::kNoCheckpointOffer)) return claim;
  claim.checkpoint = r.Int(i, 12);
  claim.checkpoint_data = r.Text(i, 13);
  return claim;
}

// What is read behind the locks, in the form that StartRules take.
class Looked {
 public:
  explicit Looked(const StartRequest& request) : request_(request) {}

  // Locked rows, by kStartColumns.
  void AddNamed(const Rows& rows) { AddRows(rows); }
  void AddAlsoDue(const Rows& rows) {
    for (const PeriodKey& key : AddRows(rows)) {
      const auto place = facts_.rows.find(key);
      also_due_.push_back({rows_.at(key), &place->second});
    }
    more_ = rows.size() >= request_.also_due;
  }
  // What stood in the way.
  void AddOthers(const Rows& rows) {
    for (int i = 0; i < rows.size(); ++i) {
      others_.push_back({{rows.Text(i, 0), rows.Text(i, 1)}, rows.Text(i, 2), rows.Int(i, 3)});
    }
    more_ |= !others_.empty();
  }
  // Jobs that are locked; without it all are that need it.
  void AddLockedJobs(const Rows& names) {
    locked_jobs_.emplace();
    for (int i = 0; i < names.size(); ++i) locked_jobs_->insert(names.Text(i, 0));
  }
  // The answers to Questions::Decide; only the first where there are no rows.
  void AddFacts(const std::vector<Rows>& facts, StartAsks asked);
  // What has to be asked besides.
  StartAsks Unasked(StartAsks asked) const;
  // The answers to Questions::Besides.
  void AddBesides(absl::Span<const Rows> answers, StartAsks asked);
  // The answers to LookAtBackfills.
  void AddBackfills(const std::vector<Rows>& rows) {
    facts_.backfills = ReadBackfillFacts(rows[1], rows[2]);
    facts_.now = rows[3].Time(0, 0);
  }
  void AddLimits(const LimitBook& book, const Rows& counts) {
    facts_.limits = book;
    facts_.taken = ReadLimitCounts(counts);
  }

  std::vector<PeriodKey> Keys() const;
  std::vector<PeriodKey> KeysWithLocks() const;
  std::vector<LimitClaim> Claims() const;
  const std::set<int64_t>& backfills() const { return backfills_; }  // that rows belong to
  int64_t limits_number() const { return limits_number_; }           // of the rules in force
  bool in_turn() const { return in_turn_; }                          // tenants are served in turn
  // The index has no more that this node may run: fewer were found than AlsoDue asks for.
  bool ran_out() const { return also_due_.size() < static_cast<size_t>(request_.also_due) + 24; }
  // What is to be judged: what the request names, then what is due besides, the most urgent first;
  // those whose job could not be locked are left for another time.
  std::vector<PeriodKey> InOrder();
  // Afterwards nothing else is to be asked but the next two.
  StartFacts TakeFacts() { return std::move(facts_); }
  const std::vector<Other>& others() const { return others_; }
  bool any_aside() const { return any_aside_; }  // some rows are set aside
  bool leftovers() const { return leftovers_; }  // some row's lock was left behind, and has ended
  bool more() const { return more_; }            // more may be due

 private:
  struct Rank {
    int64_t priority, turn;
  };
  struct Candidate {
    Rank rank;
    const StartFacts::Row* row;
  };
  std::vector<PeriodKey> AddRows(const Rows& rows);
  void AddJobs(const Rows& jobs);
  void Note(const Rows& found, std::string StartFacts::Row::*field, bool leftover);

  const StartRequest& request_;
  StartFacts facts_;
  std::map<PeriodKey, Rank> rows_;
  std::set<int64_t> backfills_;
  std::vector<Candidate> also_due_;
  std::vector<Other> others_;
  std::optional<std::set<std::string>> locked_jobs_;
  bool leftovers_ = false, more_ = false;
  StartAsks needed_;  // as the jobs and the locks are, whatever the rows are
  int64_t limits_number_ = 0;
  bool in_turn_ = false, any_aside_ = false;
};

std::vector<PeriodKey> Looked::AddRows(const Rows& rows) {
  std::vector<PeriodKey> added;
  for (int i = 0; i < rows.size(); ++i) {
    StartFacts::Row row;
    PeriodRow& r = row.row;
    r.key = {rows.Text(i, 0), rows.Text(i, 1)};
    r.status = StatusOf(rows.Text(i, 2));
    r.node = rows.Text(i, 3);
    r.held_by = rows.Text(i, 4);
    r.held_until = rows.Time(i, 5);
    r.not_before = rows.Time(i, 6);
    r.start_by = rows.Time(i, 7, absl::InfiniteFuture());
    r.attempts_total = static_cast<int>(rows.Int(i, 8));
    r.wait_until = rows.Time(i, 9);
    r.due = rows.Time(i, 10);
    r.biz_date = rows.Day(i, 11);
    row.lock_key = rows.Text(i, 12);
    r.generation = static_cast<int>(rows.Int(i, 13));
    r.window_start = rows.Time(i, 14);
    r.window_end = rows.Time(i, 15);
    r.nominal = NominalOf(rows.Text(i, 16));
    r.backfill = rows.Bool(i, 17);
    r.manual = rows.Bool(i, 18);
    r.params = rows.Text(i, 19);
    row.place = rows.Text(i, 21);
    row.tenant = rows.Text(i, 22);
    row.limit_key = rows.Text(i, 23);
    r.backfill_id = rows.Int(i, 25);
    if (r.backfill_id != 0) backfills_.insert(r.backfill_id);
    PeriodKey key = r.key;
    if (!rows_.emplace(key, Rank{rows.Int(i, 20), rows.Int(i, 24)}).second) continue;
    facts_.rows.emplace(key, std::move(row));
    added.push_back(std::move(key));
  }
  return added;
}

void Looked::AddJobs(const Rows& jobs) {
  for (int i = 0; i < jobs.size(); ++i) {
    StartFacts::Job& job = facts_.jobs[jobs.Text(i, 0)];
    job.strict = jobs.Bool(i, 1);
    if (!jobs.IsNull(i, 2)) job.limit = jobs.Int(i, 2);
    if (!jobs.IsNull(i, 3)) job.max_parallel = jobs.Int(i, 3);
    job.labels = jobs.Bool(i, 4);
    job.suspended = jobs.Bool(i, 5);
    if (!jobs.IsNull(i, 6)) job.gap_from = jobs.Time(i, 6);
    job.cursor = jobs.Time(i, 7);
    job.running = jobs.Int(i, 8);
    job.backfills = jobs.Int(i, 9);
    job.serialised = jobs.Bool(i, 10);
    job.asked = jobs.Bool(i, 11);
    job.next_look = jobs.Time(i, 13, absl::InfiniteFuture());
    needed_.older |= job.strict;
    needed_.after |= jobs.Bool(i, 12);
  }
}

void Looked::Note(const Rows& found, std::string StartFacts::Row::*field, bool leftover) {
  for (int i = 0; i < found.size(); ++i) {
    const auto row = facts_.rows.find({found.Text(i, 0), found.Text(i, 1)});
    if (row == facts_.rows.end()) continue;
    if (leftover && !found.Bool(i, 3)) {
      leftovers_ = true;  // its time has passed: it goes with the grant
      continue;
    }
    row->second.*field = found.Text(i, 2);
  }
}

void Looked::AddFacts(const std::vector<Rows>& facts, StartAsks asked) {
  facts_.now = facts[0].Time(0, 0);
  facts_.frozen = facts[0].Bool(0, 1);
  facts_.alive = facts[0].Int(0, 2);
  limits_number_ = facts[0].Int(0, 3);
  in_turn_ = facts[0].Bool(0, 4);
  any_aside_ = facts[0].Bool(0, 6);
  if (facts.size() == 1) return;
  needed_.leftovers = facts[0].Bool(0, 5);
  AddJobs(facts[1]);
  Note(facts[2], &StartFacts::Row::holder, false);
  AddBesides(absl::MakeConstSpan(facts).subspan(3), asked);
}

StartAsks Looked::Unasked(StartAsks asked) const {
  return {needed_.older && !asked.older, needed_.after && !asked.after,
          needed_.leftovers && !asked.leftovers};
}

void Looked::AddBesides(absl::Span<const Rows> answers, StartAsks asked) {
  size_t next = 0;
  if (asked.older) Note(answers[next++], &StartFacts::Row::older, false);
  if (asked.after) Note(answers[next++], &StartFacts::Row::after, false);
  if (asked.leftovers) Note(answers[next++], &StartFacts::Row::leftover, true);
}

std::vector<PeriodKey> Looked::Keys() const {
  std::vector<PeriodKey> keys;
  for (const auto& [key, row] : facts_.rows) keys.push_back(key);
  return keys;
}

std::vector<PeriodKey> Looked::KeysWithLocks() const {
  std::vector<PeriodKey> keys;
  for (const auto& [key, row] : facts_.rows) {
    if (!row.lock_key.empty()) keys.push_back(key);
  }
  return keys;
}

std::vector<LimitClaim> Looked::Claims() const {
  std::vector<LimitClaim> claims;
  for (const auto& [key, row] : facts_.rows) claims.push_back(ClaimOf(row));
  return claims;
}

std::vector<PeriodKey> Looked::InOrder() {
  std::sort(also_due_.begin(), also_due_.end(), [](const Candidate& a, const Candidate& b) {
    if (a.rank.priority != b.rank.priority) return a.rank.priority > b.rank.priority;
    if (a.rank.turn != b.rank.turn) return a.rank.turn < b.rank.turn;
    if (a.row->row.due != b.row->row.due) return a.row->row.due < b.row->row.due;
    return a.row->row.key < b.row->row.key;
  });
  std::vector<PeriodKey> keys = request_.keys;
  for (const Candidate& candidate : also_due_) {
    const auto job = facts_.jobs.find(candidate.row->row.key.job);
    if (job != facts_.jobs.end() && job->second.serialised && locked_jobs_ &&
        !locked_jobs_->contains(job->first)) {
      more_ = true;
      continue;
    }
    keys.push_back(candidate.row->row.key);
  }
  return keys;
}

// Statements with their keys and jobs as parameters.
class Questions {
 public:
  // `priority_event`: the newest event when it was known whether jobs have priorities; -1: it is
  // not.
  Questions(const Session& session, const StartRequest& request, int64_t priority_event,
            bool any_priority)
      : session_(session),
        request_(request),
        priority_event_(priority_event),
        any_priority_(any_priority),
        labels_(JsonStrings(request.node.labels)) {}

  // Locks what is named, and finds and locks what is due besides.
  std::vector<Statement> Lock(bool in_turn, bool crowded) const {
    std::vector<Statement> out;
    if (request_.global_limit > 0) out.push_back(session_.Of(kLockStart));
    if (!request_.keys.empty()) {
      out.push_back(OfJobs(JobsOf(request_.keys), true));
      out.push_back(Of(LockRows, request_.keys));
    }
    if (request_.also_due > 0) {
      out.push_back(session_.Of(crowded ? AlsoDueInACrowd(in_turn) : AlsoDue(in_turn), ForDue()));
    }
    return out;
  }

  // Finds and locks what stands in the way of what is due.
  Statement Others(bool in_turn) const { return session_.Of(DueForOthers(in_turn), ForDue()); }

  // Reads what decides about `keys`, whose rows are locked. Of them `with_locks` may have a lock
  // key.
  std::vector<Statement> Decide(const std::vector<PeriodKey>& keys,
                                const std::vector<PeriodKey>& with_locks, StartAsks asks) const {
    std::vector<Parameter> params = {labels_};
    const std::string jobs = JobsOf(keys).Take(params);
    std::vector<Statement> out = {session_.Of(Clock(request_.global_limit > 0)),
                                  session_.Of(JobFacts(jobs), std::move(params)),
                                  Of(LockHolders, with_locks)};
    for (Statement& more : Besides(keys, with_locks, asks)) out.push_back(std::move(more));
    return out;
  }

  // What only some jobs have in their way.
  std::vector<Statement> Besides(const std::vector<PeriodKey>& keys,
                                 const std::vector<PeriodKey>& with_locks, StartAsks asks) const {
    std::vector<Statement> out;
    if (asks.older) out.push_back(Of(OlderPeriods, keys));
    if (asks.after) out.push_back(Of(AfterJobs, keys));
    if (asks.leftovers) out.push_back(Of(LeftoverLocks, with_locks));
    return out;
  }

  Statement OfJobs(ColumnRows jobs, bool wait) const {
    std::vector<Parameter> params;
    const std::string text = LockSerialised(jobs.Take(params), wait);
    return session_.Of(text, std::move(params));
  }

  static ColumnRows JobsOf(const std::vector<PeriodKey>& keys) {
    std::set<absl::string_view> jobs;
    for (const PeriodKey& key : keys) jobs.insert(key.job);
    ColumnRows rows;
    for (const absl::string_view job : jobs) rows.Row().Add("job", job);
    return rows;
  }

 private:
  std::vector<Parameter> ForDue() const {
    return {absl::StrCat(request_.also_due), labels_, absl::StrCat(priority_event_),
            any_priority_ ? "true" : "false"};
  }

  // A statement about nothing answers nothing, and keeps its place among the answers.
  Statement Of(std::string (*text)(absl::string_view), const std::vector<PeriodKey>& keys) const {
    if (keys.empty()) return session_.Of("select where false");
    std::vector<const PeriodKey*> sorted;
    for (const PeriodKey& key : keys) sorted.push_back(&key);
    std::sort(sorted.begin(), sorted.end(),
              [](const PeriodKey* a, const PeriodKey* b) { return *a < *b; });
    ColumnRows rows;
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (i == 0 || *sorted[i] != *sorted[i - 1]) rows.Row().AddKey(*sorted[i]);
    }
    std::vector<Parameter> params;
    const std::string text_of_keys = rows.Take(params);
    return session_.Of(text(text_of_keys), std::move(params));
  }

  const Session& session_;
  const StartRequest& request_;
  const int64_t priority_event_;
  const bool any_priority_;
  const std::string labels_;
};

std::vector<StartAnswer> Answers(const Rows& granted, std::vector<Judged> judged, int64_t nonce) {
  std::map<PeriodKey, int> index;
  for (int i = 0; i < granted.size(); ++i) index[{granted.Text(i, 0), granted.Text(i, 1)}] = i;
  std::vector<StartAnswer> answers;
  for (Judged& j : judged) {
    const auto grant = index.find(j.answer.key);
    if (j.answer.result == StartResult::kStarted && grant == index.end()) {
      j.answer.result = StartResult::kTaken;
    } else if (j.answer.result == StartResult::kStarted) {
      j.answer.claim = ReadClaim(granted, grant->second, *j.row, nonce);
    }
    answers.push_back(std::move(j.answer));
  }
  return answers;
}

// Who has kExecLabel, a call of exec or of lock, ends on this connection what it starts here.
bool IsCall(const NodeId& node) {
  return std::find(node.labels.begin(), node.labels.end(), kExecLabel) != node.labels.end();
}

}  // namespace

// All jobs are read for it: not by each START, therefore, that finds a new event, and not by those
// that find nothing.
absl::Status PostgresStore::LookForPriorities() {
  const absl::Duration now = SystemClock().BootNow();
  // Events of acts that are under way may be older than the newest: not for ever, therefore.
  const bool known =
      priorities_.seen == priorities_.event && now < priorities_.at + kPrioritiesStand;
  if (known || priorities_.seen < 0 || now < priorities_.at + kPrioritiesPause) {
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({session_.Of(
                       "select coalesce((select max(id) from @.job_event), 0), exists (select from "
                       "@.job where priority <> 0 and not deleted)")}));
  priorities_.event = rows[0].Int(0, 0);
  priorities_.any = rows[0].Bool(0, 1);
  priorities_.at = now;
  return absl::OkStatus();
}

absl::StatusOr<StartAnswers> PostgresStore::Start(const StartRequest& asked) {
  Connection& connection = session_.connection;
  StartRequest request = asked;
  if (sets_aside_) request.also_due = std::min(request.also_due, kBesideSettingAside);
  if (request.also_due > 0) RETURN_IF_ERROR(LookForPriorities());
  const Questions questions(session_, request, priorities_.event, priorities_.any);
  // Nothing: the limits had been changed since they were read, and are known now.
  const auto once = [&]() -> absl::StatusOr<std::optional<StartAnswers>> {
    Looked looked(request);
    const bool in_turn = in_turn_ && !look_behind_, crowded = crowded_ || any_aside_;
    std::vector<Statement> statements = questions.Lock(in_turn, crowded);
    const size_t locked = statements.size();
    const auto then = [&](std::vector<Statement> more) {
      statements.insert(statements.end(), more.begin(), more.end());
    };
    std::vector<Rows> rows;
    const bool limited = !limits_.book.empty();
    if (request.also_due == 0 && !limited) {
      then(questions.Decide(request.keys, request.keys, asks_));
      ASSIGN_OR_RETURN(rows, connection.Begin(statements));
      looked.AddNamed(rows[locked - 1]);
      rows.erase(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(locked));
    } else {
      ASSIGN_OR_RETURN(rows, connection.Begin(statements));
      const size_t due = request.also_due > 0 ? 1 : 0;
      if (!request.keys.empty()) looked.AddNamed(rows[locked - due - 1]);
      if (due > 0) {
        const Rows& found = rows[locked - 1];
        looked.AddAlsoDue(found);
        if (found.size() > 0) priorities_.seen = found.Int(0, kEventColumn);
      }
      const std::vector<PeriodKey> keys = looked.Keys();
      if (keys.empty() || due == 0) {
        statements = {session_.Of("select")};
      } else {
        statements = {questions.OfJobs(Questions::JobsOf(keys), false)};
      }
      // The rules' rows come last, and nothing is waited for behind them.
      const std::vector<LimitClaim> claims = looked.Claims();
      if (limited) then({LockLimits(session_, limits_.book.Concerning(claims))});
      if (keys.empty()) {
        then({session_.Of(Clock(false))});
      } else {
        then(questions.Decide(keys, looked.KeysWithLocks(), asks_));
      }
      if (limited) then({CountSlots(session_, limits_.book, claims)});
      const bool others = due > 0 && crowded && looked.ran_out();
      if (others) then({questions.Others(in_turn)});
      ASSIGN_OR_RETURN(rows, connection.More(statements));
      if (others) {
        looked.AddOthers(rows.back());
        rows.pop_back();
      }
      if (due > 0) looked.AddLockedJobs(rows[0]);
      rows.erase(rows.begin(), rows.begin() + (limited ? 2 : 1));
      if (limited) {
        looked.AddLimits(limits_.book, rows.back());
        rows.pop_back();
      }
    }
    looked.AddFacts(rows, asks_);
    if (request.also_due > 0) look_behind_ = in_turn_ && !look_behind_ && looked.ran_out();
    in_turn_ = looked.in_turn();
    if (request.also_due > 0) {
      sets_aside_ = looked.others().size() >= static_cast<size_t>(kPassedOver);
    }
    // Those that were not looked at are at once.
    const bool more_aside = request.also_due > 0 && looked.any_aside() && !crowded;
    any_aside_ = looked.any_aside();
    if (looked.limits_number() != limits_.number) {
      connection.Rollback();
      ASSIGN_OR_RETURN(limits_, ReadKnownLimits(session_));
      return std::optional<StartAnswers>();
    }
    if (const StartAsks besides = looked.Unasked(asks_); besides.any()) {
      ASSIGN_OR_RETURN(
          rows, connection.More(questions.Besides(looked.Keys(), looked.KeysWithLocks(), besides)));
      looked.AddBesides(rows, besides);
      asks_.Add(besides);  // from now on with the rest
    }
    if (!looked.backfills().empty()) {
      ASSIGN_OR_RETURN(const std::vector<Rows> asked,
                       connection.More(LookAtBackfills(session_, looked.backfills())));
      looked.AddBackfills(asked);
    }
    const std::vector<PeriodKey> keys = looked.InOrder();
    StartRules rules(request, looked.TakeFacts());
    std::vector<Judged> judged = rules.Judge(keys, request.keys.size());
    if (absl::Status fault = Reach("start.before_commit"); !fault.ok()) {  // crash: still PLANNED
      connection.Rollback();
      return fault;
    }
    ASSIGN_OR_RETURN(const std::vector<Rows> granted,
                     connection.Commit(Grants(session_, request, judged, rules, looked.others(),
                                              looked.leftovers())));
    // Crash here: it is RUNNING and nobody knows of it; its lease ends by itself.
    MATINS_FAULT_POINT("start.after_commit");
    StartAnswers answers;
    answers.now = rules.now();
    answers.more = looked.more() || more_aside || judged.size() < keys.size();
    const bool any = std::any_of(judged.begin(), judged.end(), [](const Judged& j) {
      return j.answer.result == StartResult::kStarted;
    });
    answers.rows = Answers(any ? granted[0] : Rows(nullptr), std::move(judged), request.nonce);
    if (IsCall(request.node) && !answers.rows.empty() && answers.rows[0].claim) {
      GetReadyToFinish(*answers.rows[0].claim, request.node);
    }
    return answers;
  };
  for (int tries = 0; tries < 10; ++tries) {
    ASSIGN_OR_RETURN(std::optional<StartAnswers> answers, session_.Retried(once));
    if (answers) return *std::move(answers);
  }
  return absl::UnavailableError("START: the limits are changed again and again; it is tried again");
}

}  // namespace matins::postgresql
