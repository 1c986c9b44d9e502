#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "store/rules.h"
#include "store/sqlite/sqlite_store.h"
#include "store/turns.h"

namespace matins::sqlite {
namespace {

// ---- reading ----

// After the rows: what waits is judged by the version that was in force when it was due.
void ReadVersions(Connection& db, absl::Time after, JobState* state) {
  Statement rows =
      db.Sql("SELECT version, from_at, definition FROM job_version WHERE job = ? ORDER BY version",
             state->job);
  std::vector<JobVersion> all;
  while (rows.Next()) {
    all.push_back(
        {static_cast<int>(rows.Int(0)), rows.Time(1, absl::InfinitePast()), rows.Text(2)});
  }
  state->versions = VersionsSince(std::move(all), after, state->rows);
}

void ReadRows(Connection& db, JobState* state) {
  static const std::string kOpen =
      absl::StrCat("SELECT ", kRowColumns,
                   " FROM job_watermark WHERE job_name = ? AND status IN ('PLANNED', 'FAILED') AND "
                   "NOT held");
  static const std::string kRunning =
      absl::StrCat("SELECT ", kRowColumns,
                   " FROM job_watermark WHERE job_name = ? AND status = 'RUNNING' AND NOT held");
  static const std::string kSettledSinceGap = absl::StrCat(
      "SELECT ", kRowColumns,
      " FROM job_watermark WHERE job_name = ?1 AND status IN ('DONE', 'SKIPPED') AND due_at >= ?2");
  static const std::string kHeldSinceGap = absl::StrCat(
      "SELECT ", kRowColumns,
      " FROM job_watermark WHERE job_name = ?1 AND status IN ('PLANNED', 'FAILED') AND held AND "
      "due_at >= ?2");
  // Rows of other programs have no due instant; their day stands for it.
  static const std::string kForeignSinceGap = absl::StrCat(
      "SELECT ", kRowColumns,
      " FROM job_watermark WHERE job_name = ?1 AND due_at IS NULL AND status IN ('DONE', "
      "'SKIPPED') AND biz_date >= date(?2 / 1000000 - 172800, 'unixepoch')");
  const auto read = [&](Statement rows) {
    while (rows.Next()) state->rows.push_back(ReadRow(rows));
  };
  read(db.Sql(kOpen, state->job));
  read(db.Sql(kRunning, state->job));
  if (state->gap_from) {
    read(db.Sql(kSettledSinceGap, state->job, *state->gap_from));
    read(db.Sql(kHeldSinceGap, state->job, *state->gap_from));
    read(db.Sql(kForeignSinceGap, state->job, *state->gap_from));
  }
  std::sort(state->rows.begin(), state->rows.end(), [](const PeriodRow& a, const PeriodRow& b) {
    return std::tie(a.due, a.key.period) < std::tie(b.due, b.key.period);
  });
}

void ReadSpans(Connection& db, absl::Time after, JobState* state) {
  Statement rows = db.Sql(
      "SELECT from_at, to_at, first_period, last_period, count, reason, by_whom FROM job_span "
      "WHERE job = ? AND kind = 'skipped' AND to_at > ? ORDER BY from_at, id",
      state->job, after == absl::InfinitePast() ? absl::UnixEpoch() : after);
  while (rows.Next()) {
    state->spans.push_back({rows.Time(0, absl::InfinitePast()), rows.Time(1, absl::InfinitePast()),
                            rows.Text(2), rows.Text(3), rows.Int(4), rows.Text(5), rows.Text(6)});
  }
}

std::vector<std::string> JobsDue(Connection& db, absl::Time until, size_t limit) {
  std::vector<std::string> names;
  {
    Statement rows = db.Sql(
        "SELECT name FROM job WHERE next_look <= ? AND NOT deleted ORDER BY next_look, name "
        "LIMIT ?",
        until, static_cast<int64_t>(limit));
    while (rows.Next()) names.push_back(rows.Text(0));
  }
  if (names.size() < limit) return names;
  const size_t newest = limit / 2;
  names.resize(limit - newest);
  const std::set<std::string> oldest(names.begin(), names.end());
  Statement rows = db.Sql(
      "SELECT name FROM job WHERE next_look <= ? AND NOT deleted ORDER BY next_look DESC, name "
      "DESC "
      "LIMIT ?",
      until, static_cast<int64_t>(newest));
  while (rows.Next()) {
    if (std::string name = rows.Text(0); !oldest.contains(name)) names.push_back(std::move(name));
  }
  std::reverse(names.begin() + static_cast<std::ptrdiff_t>(oldest.size()), names.end());
  return names;
}

JobState ReadJob(Connection& db, const std::string& name, absl::Time now) {
  JobState state;
  state.job = name;
  {
    Statement row = db.Sql(
        "SELECT revision, first_sight, floor, cursor, gap_from, pending, suspended_at IS NOT NULL "
        "FROM job WHERE name = ?",
        name);
    if (!row.Next()) return state;
    state.revision = row.Int(0);
    state.first_sight = row.Time(1, absl::InfinitePast());
    state.floor = row.Time(2, absl::InfinitePast());
    state.cursor = row.Time(3, absl::InfinitePast());
    if (!row.Null(4)) state.gap_from = row.Time(4, absl::InfinitePast());
    if (!row.Null(5)) state.pending = FromWord<Trigger>(row.Text(5));
    state.suspended = row.Bool(6);
  }
  // Behind the cursor too, where the clock has been set back before it.
  const absl::Time after = std::min({state.cursor, state.gap_from.value_or(state.cursor), now});
  ReadRows(db, &state);
  ReadVersions(db, after, &state);
  ReadSpans(db, after, &state);
  return state;
}

// ---- writing ----

// The fence goes on rising and an old lease is waited for, whatever became of the row before.
struct Past {
  int generation = 1;
  int64_t fence = 0;
  absl::Time wait_until = absl::InfinitePast();
};

Past PastOf(Connection& db, const PeriodKey& key) {
  Past past;
  Statement row = db.Sql(
      "SELECT generation, CAST(json_extract(detail, '$.old_fence') AS INTEGER), "
      "json_extract(detail, '$.lease_until') FROM job_event WHERE job = ? AND period = ? AND "
      "kind = 'reopened' ORDER BY id DESC LIMIT 1",
      key.job, key.period);
  if (row.Next()) {
    past.generation = static_cast<int>(row.Int(0));
    past.fence = row.Int(1);
    past.wait_until = row.Time(2, absl::InfinitePast());
  }
  return past;
}

// A settled period whose row is gone is opened by an event, as a deletion would have done. A
// generation above the first has its own, and events stay; the others say what came before them.
void ReopenSettled(Connection& db, absl::Time now, const PeriodKey& key, const Act& act) {
  if (FindRow(db, key)) return;
  Past past = PastOf(db, key);
  {
    Statement known = db.Sql(
        "SELECT max(generation), max(fence) FROM (SELECT generation, fence FROM job_run WHERE "
        "job_name = ?1 AND period = ?2 UNION ALL SELECT generation, 0 FROM job_figure WHERE "
        "job_name = ?1 AND period = ?2)",
        key.job, key.period);
    if (known.Next()) {
      past.generation = std::max(past.generation, static_cast<int>(known.Int(0)));
      past.fence = std::max(past.fence, known.Int(1));
    }
  }
  WriteEvent(db, now,
             {.kind = "reopened",
              .job = key.job,
              .period = key.period,
              .generation = past.generation + 1,
              .who = act.who,
              .why = act.why,
              .detail = absl::StrCat("{\"old_status\":\"DONE\",\"old_fence\":\"", past.fence,
                                     "\",\"lease_until\":null}")});
}

std::set<std::string> TenantsOf(const PlanWrite& write) {
  std::set<std::string> tenants;
  for (const Intent& intent : write.intents) tenants.insert(intent.tenant);
  return tenants;
}

Turns TurnsOf(Connection& db, absl::Time now, const std::set<std::string>& tenants, bool tagged) {
  tagged = tagged || std::any_of(tenants.begin(), tenants.end(),
                                 [](const std::string& tenant) { return !tenant.empty(); });
  if (!tagged) return {};
  std::optional<int64_t> next;
  {
    Statement q = db.Sql(
        "SELECT start_tag FROM job_watermark WHERE status = 'PLANNED' AND start_tag > 0 AND "
        "(look_at <= ? AND waits_for IS NULL OR waits_for >= 'with/') ORDER BY start_tag LIMIT 1",
        now + kTurnAhead);
    if (q.Next()) next = q.Int(0);
  }
  std::map<std::string, int64_t> last;
  for (const std::string& tenant : tenants) {
    Statement q = db.Sql(
        "SELECT max(start_tag) FROM job_watermark WHERE status = 'PLANNED' AND start_tag > 0 AND "
        "tenant = ?",
        tenant);
    if (q.Next()) last[tenant] = q.Int(0);
  }
  return Turns(next, std::move(last));
}

// The floor has risen since the job was read, or somebody does not know what lies below it. And
// whether tenants' rows have tags.
bool BelowFloor(Connection& db, const PlanWrite& write, bool* tagged) {
  absl::Time floor = absl::InfinitePast();
  {
    Statement row = db.Sql(
        "SELECT floor, EXISTS (SELECT 1 FROM job_watermark WHERE status = 'PLANNED' AND "
        "start_tag > 0) FROM job WHERE name = ?",
        write.job);
    if (row.Next()) {
      floor = row.Time(0, absl::InfinitePast());
      *tagged = row.Bool(1);
    }
  }
  return std::any_of(write.intents.begin(), write.intents.end(), [&](const Intent& intent) {
    return intent.kind == Intent::Kind::kInsert && !intent.reopens && intent.due <= floor &&
           !FindRow(db, intent.key);
  });
}

bool MayHold(const Intent& intent, absl::Time now, const HoldAtOnce& hold) {
  return hold.node != nullptr && hold.room > 0 && intent.skip_reason.empty() &&
         intent.not_before <= now + hold.ahead;
}

void Insert(Connection& db, absl::Time now, const Intent& intent, bool hold_it, HoldAtOnce* hold,
            std::vector<HeldRow>* held, Turns& turns) {
  const Past past = PastOf(db, intent.key);
  const bool skipped = !intent.skip_reason.empty();
  static constexpr absl::string_view kInsert =
      "INTO job_watermark (job_name, period, biz_date, status, finished_at, generation, op, op_at, "
      "due_at, window_start, window_end, nominal, not_before, start_by, look_at, version, "
      "backfill, manual, params, reason, by_whom, priority, lock_key, fence, wait_until, "
      "planned_at, held_by, held_until, dispatched_at, tenant, limit_key, start_tag) VALUES (?, ?, "
      "?, ?, ?, ?, ?, "
      "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
  static const std::string kOnce =
      absl::StrCat("INSERT ", kInsert, " ON CONFLICT (job_name, period) DO NOTHING");
  static const std::string kOver = absl::StrCat("INSERT OR REPLACE ", kInsert);
  const std::string& sql = IsMutant(Mutant::kNoUniqueKey) ? kOver : kOnce;
  const int inserted =
      db.Sql(sql, intent.key.job, intent.key.period, FormatDay(intent.biz_date),
             Word(skipped ? PeriodStatus::kSkipped : PeriodStatus::kPlanned),
             skipped ? std::optional<std::string>(FinishedText(now)) : std::nullopt,
             past.generation, skipped ? "skip" : "plan", now, intent.due, intent.window_start,
             intent.window_end, NominalText(intent.nominal), intent.not_before, intent.start_by,
             intent.not_before, intent.version, intent.backfill, intent.manual, intent.params,
             intent.skip_reason, intent.by, intent.priority,
             intent.lock_key.empty() ? std::nullopt : std::optional<std::string>(intent.lock_key),
             past.fence, past.wait_until, now, hold_it ? hold->node->name : std::string(),
             hold_it ? std::max(now, intent.not_before) + kHoldFor : absl::InfinitePast(),
             hold_it ? now : absl::InfinitePast(), intent.tenant, intent.limit_key,
             skipped ? int64_t{0} : turns.Next(intent.tenant))
          .Run();
  if (inserted > 0 && !skipped) turns.Take(intent.tenant);
  if (!hold_it || inserted == 0) return;
  --hold->room;
  held->push_back({intent.key, intent.not_before, intent.priority});
}

void Change(Connection& db, absl::Time now, const Intent& intent, Turns& turns) {
  switch (intent.kind) {
    case Intent::Kind::kInsert:
      return;
    case Intent::Kind::kSkip: {
      const int changed =
          db.Sql(
                "UPDATE job_watermark SET status = 'SKIPPED', reason = ?, by_whom = ?, "
                "finished_at = ?, ver = ver + 1, op = 'skip', op_at = ?, held_by = '', "
                "held_until = NULL WHERE job_name = ? AND period = ? AND status IN ('PLANNED', "
                "'FAILED') AND NOT held",
                intent.skip_reason, intent.by, FinishedText(now), now, intent.key.job,
                intent.key.period)
              .Run();
      PeriodRow row;
      row.key = intent.key;
      if (changed > 0) Wake(db, now, row, "", false);
      return;
    }
    case Intent::Kind::kReattempt:
      db.Sql(
            "UPDATE job_watermark SET status = 'PLANNED', attempts = 0, reason = '', "
            "finished_at = NULL, not_before = ?1, look_at = ?1, start_by = ?2, backfill = ?3, "
            "ver = ver + 1, op = 'dispatch', op_at = ?4, start_tag = ?7 WHERE job_name = ?5 AND "
            "period = ?6 AND status = 'FAILED' AND NOT held",
            intent.not_before, intent.start_by, intent.backfill, now, intent.key.job,
            intent.key.period, turns.Take(intent.tenant))
          .Run();
      return;
    case Intent::Kind::kJudge:
      db.Sql(
            "UPDATE job_watermark SET start_by = ?, backfill = ?, look_at = not_before, waits_for "
            "= NULL, "
            "ver = ver + 1, op = 'dispatch', op_at = ? WHERE job_name = ? AND period = ? AND "
            "status = 'PLANNED'",
            intent.start_by, intent.backfill, now, intent.key.job, intent.key.period)
          .Run();
      return;
  }
}

void WriteAct(Connection& db, absl::Time now, const PlanWrite& write) {
  const auto all = [&](auto condition) {
    return !write.intents.empty() &&
           std::all_of(write.intents.begin(), write.intents.end(), condition);
  };
  absl::string_view kind = "backfill";
  if (all([](const Intent& i) { return !i.skip_reason.empty(); })) kind = "skip";
  if (all([](const Intent& i) { return i.manual; })) kind = "run";
  if (!write.act_kind.empty()) kind = write.act_kind;
  WriteEvent(db, now,
             {.kind = kind,
              .job = write.job,
              .period = write.intents.size() == 1 ? write.intents[0].key.period : std::string(),
              .who = write.act->who,
              .why = write.act->why,
              .detail = absl::StrCat("{\"periods\":", write.intents.size(), "}")});
}

}  // namespace

Turns TurnsOfRows(Connection& db, absl::Time now, absl::Span<const PeriodKey> keys) {
  std::set<std::string> tenants;
  for (const PeriodKey& key : keys) {
    if (const std::optional<Row> row = FindRow(db, key)) tenants.insert(row->tenant);
  }
  const bool tagged =
      db.Sql("SELECT 1 FROM job_watermark WHERE status = 'PLANNED' AND start_tag > 0 LIMIT 1")
          .Next();
  return TurnsOf(db, now, tenants, tagged);
}

bool WritePlan(Connection& db, absl::Time now, const PlanWrite& write, HoldAtOnce* hold,
               std::vector<HeldRow>* held) {
  bool tagged = false;
  if (BelowFloor(db, write, &tagged)) return false;
  Turns turns = TurnsOf(db, now, TenantsOf(write), tagged);
  const int taken =
      db.Sql(
            "UPDATE job SET revision = revision + 1, cursor = CASE WHEN ?1 IS NULL THEN cursor "
            "WHEN cursor IS NULL THEN ?1 ELSE max(cursor, ?1) END, next_look = ?2, "
            "gap_from = CASE WHEN ?3 THEN ?7 ELSE gap_from END, "
            "pending = CASE WHEN ?4 THEN NULL ELSE pending END "
            "WHERE name = ?5 AND revision = ?6 AND NOT deleted",
            write.cursor, write.next_look, write.gaps_filled, write.triggered, write.job,
            write.expected_revision, write.next_gap.value_or(absl::InfinitePast()))
          .Run();
  if (taken == 0) return false;
  Jobs jobs(db);
  const JobInfo* job = jobs.Find(write.job);
  const bool holdable = job != nullptr && !job->suspended && hold->node != nullptr &&
                        HasLabels(hold->node->labels, job->labels);
  for (const Intent& intent : write.intents) {
    if (intent.kind != Intent::Kind::kInsert) {
      Change(db, now, intent, turns);
    } else {
      if (intent.reopens) ReopenSettled(db, now, intent.key, write.act.value_or(Act{}));
      Insert(db, now, intent, holdable && MayHold(intent, now, *hold), hold, held, turns);
    }
  }
  for (const SkipSpan& span : write.spans) {
    db.Sql(
          "INSERT INTO job_span (job, kind, from_at, to_at, first_period, last_period, count, "
          "reason, by_whom) VALUES (?, 'skipped', ?, ?, ?, ?, ?, ?, ?)",
          write.job, span.from, span.to, span.first_period, span.last_period, span.count,
          span.reason, span.by)
        .Run();
  }
  if (write.act && !write.act_told) WriteAct(db, now, write);
  return db.ok();
}

absl::StatusOr<DueJobs> SqliteStore::ReadDue(const ReadDueRequest& request) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  DueJobs due;
  due.now = snapshot.now();
  due.frozen = request.by_node ? snapshot.frozen_to_nodes() : snapshot.frozen();
  std::vector<std::string> names;
  if (request.jobs.empty()) {
    names = JobsDue(*db_, due.now + request.ahead, request.limit);
  } else {
    for (const std::string& name : request.jobs) {
      if (db_->Sql("SELECT 1 FROM job WHERE name = ? AND NOT deleted", name).Next()) {
        names.push_back(name);
      }
    }
  }
  for (const std::string& name : names) due.jobs.push_back(ReadJob(*db_, name, due.now));
  const std::set<std::string> answered(names.begin(), names.end());
  Statement rest = db_->Sql(
      "SELECT name, next_look FROM job WHERE next_look IS NOT NULL AND NOT deleted ORDER BY "
      "next_look");
  while (rest.Next()) {
    if (answered.contains(rest.Text(0))) continue;
    due.next_look = rest.Time(1, absl::InfiniteFuture());
    break;
  }
  RETURN_IF_ERROR(db_->status());
  return due;
}

absl::StatusOr<std::vector<JobDefinition>> SqliteStore::ReadDefinitions(
    const std::vector<std::string>& jobs) {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<JobDefinition> definitions;
  for (const std::string& job : jobs) {
    Statement row =
        db_->Sql("SELECT version, definition FROM job WHERE name = ? AND NOT deleted", job);
    if (row.Next()) definitions.push_back({job, static_cast<int>(row.Int(0)), row.Text(1)});
  }
  RETURN_IF_ERROR(db_->status());
  return definitions;
}

absl::StatusOr<PlanAnswers> SqliteStore::Plan(const PlanRequest& request) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "plan"));
  PlanAnswers answers;
  answers.now = transaction.now();
  HoldAtOnce hold;
  hold.node = request.hold_by.name.empty() ? nullptr : &request.hold_by;
  hold.ahead = request.hold_ahead;
  hold.room = request.hold_at_most;
  const bool frozen = hold.node != nullptr ? transaction.frozen_to_nodes() : transaction.frozen();
  for (const PlanWrite& write : request.writes) {
    PlanAnswer answer;
    if (!frozen) {
      answer.written = WritePlan(*db_, transaction.now(), write, &hold, &answer.held);
    }
    answers.jobs.push_back(std::move(answer));
  }
  RETURN_IF_ERROR(transaction.Commit());
  return answers;
}

}  // namespace matins::sqlite
