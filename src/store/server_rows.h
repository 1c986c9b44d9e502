// What the servers' stores read of an answer, column by column. `Rows` is the answer of either's
// connection, which reads NULL as nothing: "", 0, false or InfinitePast.
#ifndef MATINS_STORE_SERVER_ROWS_H_
#define MATINS_STORE_SERVER_ROWS_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "job/values.h"
#include "job/words.h"
#include "store/act_rules.h"
#include "store/act_store.h"
#include "store/backfill_rules.h"
#include "store/limit_rules.h"
#include "store/store.h"

namespace matins {

// A fire's local time as absl::FormatCivilTime writes it; 1970-01-01 where it is none.
absl::CivilSecond NominalOf(absl::string_view text);

// The columns of a PeriodRow, of the table named `r`, in the order that ReadPeriod reads.
inline constexpr char kPeriodColumns[] =
    "r.job_name, r.period, r.biz_date, r.status, r.held, r.generation, r.ver, r.due_at, "
    "r.window_start, r.window_end, r.nominal, r.not_before, r.start_by, r.version, r.backfill, "
    "r.manual, r.params, r.reason, r.by_whom, r.attempts, r.attempts_total, r.losses, r.fence, "
    "r.nonce, r.node, r.held_by, r.held_until, r.claimed_at, r.lease_until, r.run_until, "
    "r.wait_until, r.checkpoint, r.finished_at, r.op_at, r.backfill_id";
inline constexpr int kPeriodColumnCount = 35;

inline PeriodStatus StatusOf(absl::string_view text) {
  return FromWord<PeriodStatus>(text).value_or(PeriodStatus::kFailed);
}

// `c`: the first of the columns.
template <typename Rows>
void ReadPeriod(const Rows& rows, int i, int c, PeriodRow& row) {
  row.key = {rows.Text(i, c), rows.Text(i, c + 1)};
  row.biz_date = rows.Day(i, c + 2);
  row.status = StatusOf(rows.Text(i, c + 3));
  row.held = rows.Bool(i, c + 4);
  row.generation = static_cast<int>(rows.Int(i, c + 5));
  row.change = rows.Int(i, c + 6);
  row.due = rows.Time(i, c + 7);
  row.window_start = rows.Time(i, c + 8);
  row.window_end = rows.Time(i, c + 9);
  row.nominal = NominalOf(rows.Text(i, c + 10));
  row.not_before = rows.Time(i, c + 11);
  row.start_by = rows.Time(i, c + 12, absl::InfiniteFuture());
  row.version = static_cast<int>(rows.Int(i, c + 13));
  row.backfill = rows.Bool(i, c + 14);
  row.manual = rows.Bool(i, c + 15);
  row.params = rows.Text(i, c + 16);
  row.reason = rows.Text(i, c + 17);
  row.by = rows.Text(i, c + 18);
  row.attempts = static_cast<int>(rows.Int(i, c + 19));
  row.attempts_total = static_cast<int>(rows.Int(i, c + 20));
  row.losses = static_cast<int>(rows.Int(i, c + 21));
  row.fence = rows.Int(i, c + 22);
  row.nonce = rows.Int(i, c + 23);
  row.node = rows.Text(i, c + 24);
  row.held_by = rows.Text(i, c + 25);
  row.held_until = rows.Time(i, c + 26);
  row.claimed_at = rows.Time(i, c + 27);
  row.lease_until = rows.Time(i, c + 28);
  row.run_until = rows.Time(i, c + 29);
  row.wait_until = rows.Time(i, c + 30);
  row.checkpoint = rows.Int(i, c + 31);
  row.finished_at = rows.Time(i, c + 32);
  row.changed_at = rows.Time(i, c + 33);
  row.backfill_id = rows.Int(i, c + 34);
}

// name, version, definition, source, first_sight, floor, cursor, next_look, gap_from, suspended_at,
// suspended_by, suspended_why, revision; what the attempts say of the job is not among them.
template <typename Rows>
JobRow ReadJobRow(const Rows& r, int i) {
  JobRow job;
  job.name = r.Text(i, 0);
  job.version = static_cast<int>(r.Int(i, 1));
  job.definition = r.Text(i, 2);
  job.source = r.Text(i, 3);
  job.first_sight = r.Time(i, 4);
  job.floor = r.Time(i, 5);
  job.cursor = r.Time(i, 6);
  job.next_look = r.Time(i, 7, absl::InfiniteFuture());
  if (!r.IsNull(i, 8)) job.gap_from = r.Time(i, 8);
  if (!r.IsNull(i, 9)) {
    job.suspension = Suspension{r.Time(i, 9), absl::InfiniteFuture(), r.Text(i, 10), r.Text(i, 11)};
  }
  job.revision = r.Int(i, 12);
  return job;
}

// name, version, definition, source, deleted, whether it is suspended, suspended_by.
template <typename Rows>
std::map<std::string, KnownJob> ReadKnownJobs(const Rows& r) {
  std::map<std::string, KnownJob> known;
  for (int i = 0; i < r.size(); ++i) {
    known[r.Text(i, 0)] = {static_cast<int>(r.Int(i, 1)),
                           r.Text(i, 2),
                           r.Text(i, 3),
                           r.Bool(i, 4),
                           r.Bool(i, 5),
                           r.Text(i, 6)};
  }
  return known;
}

// from_at, to_at, first_period, last_period, count, reason, by_whom; `c`: the first of them.
template <typename Rows>
SkipSpan ReadSpan(const Rows& r, int i, int c = 0) {
  return {r.Time(i, c),    r.Time(i, c + 1), r.Text(i, c + 2), r.Text(i, c + 3),
          r.Int(i, c + 4), r.Text(i, c + 5), r.Text(i, c + 6)};
}

// job_name, period, generation, fence, attempt, node, status, reason, message, result, exit_code,
// signal, due_at, planned_at, dispatched_at, claimed_at, started_at, checkpointed_at, finished_at,
// backfill, manual, bytes of output.
template <typename Rows>
std::vector<RunRow> ReadRunRows(const Rows& r) {
  std::vector<RunRow> runs;
  for (int i = 0; i < r.size(); ++i) {
    RunRow run;
    run.key = {r.Text(i, 0), r.Text(i, 1)};
    run.generation = static_cast<int>(r.Int(i, 2));
    run.fence = r.Int(i, 3);
    run.attempt = static_cast<int>(r.Int(i, 4));
    run.node = r.Text(i, 5);
    run.status = r.Text(i, 6);
    run.reason = r.Text(i, 7);
    run.message = r.Text(i, 8);
    run.result = r.Text(i, 9);
    if (!r.IsNull(i, 10)) run.exit_code = static_cast<int>(r.Int(i, 10));
    if (!r.IsNull(i, 11)) run.signal = static_cast<int>(r.Int(i, 11));
    run.due = r.Time(i, 12);
    run.planned_at = r.Time(i, 13);
    run.dispatched_at = r.Time(i, 14);
    run.claimed_at = r.Time(i, 15);
    run.started_at = r.Time(i, 16);
    run.checkpointed_at = r.Time(i, 17);
    run.finished_at = r.Time(i, 18);
    run.backfill = r.Bool(i, 19);
    run.manual = r.Bool(i, 20);
    run.output_bytes = r.Int(i, 21);
    runs.push_back(std::move(run));
  }
  return runs;
}

// Of job_backfill, named `b`, in the order that ReadBackfillRow reads; then what is there of its
// periods: PLANNED, RUNNING, DONE, FAILED, SKIPPED.
inline constexpr char kBackfillColumns[] =
    "b.id, b.job, b.from_day, b.to_day, b.reprocess, b.max_parallel, b.hours, b.zone, b.cascades, "
    "b.state, b.periods, b.who, b.why, b.at, b.changed_by, b.changed_why, b.changed_at";
inline constexpr int kBackfillColumnCount = 17;
template <typename Rows>
BackfillRow ReadBackfillRow(const Rows& r, int i) {
  BackfillRow row;
  row.id = r.Int(i, 0);
  row.terms.job = r.Text(i, 1);
  row.terms.from = r.Day(i, 2);
  row.terms.to = r.Day(i, 3);
  row.terms.reprocess = r.Text(i, 4);
  if (!r.IsNull(i, 5)) row.terms.max_parallel = static_cast<int>(r.Int(i, 5));
  row.terms.window = r.Text(i, 6);
  row.terms.zone = r.Text(i, 7);
  row.terms.cascade = r.Bool(i, 8);
  row.state = FromWord<BackfillState>(r.Text(i, 9)).value_or(BackfillState::kPaused);
  row.periods = r.Int(i, 10);
  row.act = {r.Text(i, 11), r.Text(i, 12)};
  row.opened_at = r.Time(i, 13);
  row.changed = {r.Text(i, 14), r.Text(i, 15)};
  row.changed_at = r.Time(i, 16);
  return row;
}
template <typename Rows>
std::vector<BackfillRow> ReadBackfillRows(const Rows& r) {
  std::vector<BackfillRow> rows;
  for (int i = 0; i < r.size(); ++i) {
    BackfillRow row = ReadBackfillRow(r, i);
    int c = kBackfillColumnCount;
    for (int64_t BackfillRow::*count :
         {&BackfillRow::planned, &BackfillRow::running, &BackfillRow::done, &BackfillRow::failed,
          &BackfillRow::skipped}) {
      row.*count = r.Int(i, c++);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// `facts`: the columns, runs that are alive, a period that has failed; `oldest`: id, job, due_at.
template <typename Rows>
std::map<int64_t, BackfillFacts> ReadBackfillFacts(const Rows& facts, const Rows& oldest) {
  std::map<int64_t, BackfillFacts> found;
  for (int i = 0; i < facts.size(); ++i) {
    BackfillRow row = ReadBackfillRow(facts, i);
    found[row.id] = {std::move(row.terms),
                     row.state,
                     std::move(row.changed.who),
                     facts.Int(i, kBackfillColumnCount),
                     facts.Text(i, kBackfillColumnCount + 1),
                     {}};
  }
  for (int i = 0; i < oldest.size(); ++i) {
    const auto backfill = found.find(oldest.Int(i, 0));
    if (backfill != found.end()) backfill->second.oldest[oldest.Text(i, 1)] = oldest.Time(i, 2);
  }
  return found;
}

// id, at, kind, job, period, generation, who, why, detail.
template <typename Rows>
std::vector<EventRow> ReadEventRows(const Rows& r) {
  std::vector<EventRow> events;
  for (int i = 0; i < r.size(); ++i) {
    events.push_back({r.Int(i, 0), r.Time(i, 1), r.Text(i, 2), r.Text(i, 3), r.Text(i, 4),
                      static_cast<int>(r.Int(i, 5)), r.Text(i, 6), r.Text(i, 7), r.Text(i, 8)});
  }
  return events;
}

// The answers to the six questions of an audit's facts, in this order: the clock, the newest event;
// job, version, from_at, definition; job, from_at, to_at, by_whom, why of suspensions; job and a
// span's seven; lock_key, job_name, period, fence, until; job_name, period, generation, count of
// doubles.
template <typename Rows>
AuditFacts ReadFacts(const std::vector<Rows>& r) {
  AuditFacts facts;
  facts.now = r[0].Time(0, 0);
  facts.last_event = r[0].Int(0, 1);
  for (int i = 0; i < r[1].size(); ++i) {
    facts.versions[r[1].Text(i, 0)].push_back(
        {static_cast<int>(r[1].Int(i, 1)), r[1].Time(i, 2), r[1].Text(i, 3)});
  }
  for (int i = 0; i < r[2].size(); ++i) {
    facts.suspended[r[2].Text(i, 0)].push_back({r[2].Time(i, 1),
                                                r[2].Time(i, 2, absl::InfiniteFuture()),
                                                r[2].Text(i, 3), r[2].Text(i, 4)});
  }
  for (int i = 0; i < r[3].size(); ++i) {
    facts.spans[r[3].Text(i, 0)].push_back(ReadSpan(r[3], i, 1));
  }
  for (int i = 0; i < r[4].size(); ++i) {
    facts.locks.push_back(
        {r[4].Text(i, 0), {r[4].Text(i, 1), r[4].Text(i, 2)}, r[4].Int(i, 3), r[4].Time(i, 4)});
  }
  for (int i = 0; i < r[5].size(); ++i) {
    facts.doubles.push_back({{r[5].Text(i, 0), r[5].Text(i, 1)},
                             static_cast<int>(r[5].Int(i, 2)),
                             static_cast<int>(r[5].Int(i, 3))});
  }
  return facts;
}

// lock_key, job_name, period, fence, node, since, until, leftover, renewals.
template <typename Rows>
std::vector<LockRow> ReadLockRows(const Rows& r) {
  std::vector<LockRow> locks;
  for (int i = 0; i < r.size(); ++i) {
    locks.push_back({.key = r.Text(i, 0),
                     .run = {r.Text(i, 1), r.Text(i, 2)},
                     .fence = r.Int(i, 3),
                     .node = r.Text(i, 4),
                     .since = r.Time(i, 5),
                     .until = r.Time(i, 6),
                     .leftover = r.Bool(i, 7),
                     .renewals = r.Int(i, 8)});
  }
  return locks;
}

template <typename Rows>
LimitKind ReadLimitKind(const Rows& r, int i) {
  return FromWord<LimitKind>(r.Text(i, 0)).value_or(LimitKind::kGlobal);
}

// kind, name, most, source, by_whom, at.
template <typename Rows>
std::vector<LimitRow> ReadLimitRows(const Rows& r) {
  std::vector<LimitRow> rows;
  for (int i = 0; i < r.size(); ++i) {
    LimitRow row;
    row.rule = {ReadLimitKind(r, i), r.Text(i, 1), static_cast<int>(r.Int(i, 2))};
    row.source = r.Text(i, 3);
    row.by = r.Text(i, 4);
    row.at = r.Time(i, 5);
    rows.push_back(std::move(row));
  }
  return rows;
}

// kind, name, taken, left, waiting.
template <typename Rows>
std::vector<LimitUse> ReadLimitUses(const Rows& r) {
  std::vector<LimitUse> uses;
  for (int i = 0; i < r.size(); ++i) {
    uses.push_back({ReadLimitKind(r, i), r.Text(i, 1), r.Int(i, 2), r.Int(i, 3), r.Int(i, 4)});
  }
  return uses;
}

// name, version, definition.
template <typename Rows>
std::vector<JobDefinition> ReadJobDefinitions(const Rows& r) {
  std::vector<JobDefinition> definitions;
  for (int i = 0; i < r.size(); ++i) {
    definitions.push_back({r.Text(i, 0), static_cast<int>(r.Int(i, 1)), r.Text(i, 2)});
  }
  return definitions;
}

// kind, name, taken.
template <typename Rows>
LimitCounts ReadLimitCounts(const Rows& r) {
  LimitCounts counts;
  for (int i = 0; i < r.size(); ++i) {
    const int64_t taken = r.Int(i, 2);
    switch (ReadLimitKind(r, i)) {
      case LimitKind::kGlobal:
        counts.alive = taken;
        break;
      case LimitKind::kTenant:
        counts.tenants[r.Text(i, 1)] = taken;
        break;
      case LimitKind::kKey:
        counts.keys[r.Text(i, 1)] = taken;
        break;
      case LimitKind::kBackfillShare:
        counts.backfills = taken;
        break;
    }
  }
  return counts;
}

// id, beat, due_at, by_whom, started_at, finished_at, expected, done, findings, alarms, canary,
// detail.
template <typename Rows>
std::vector<AuditRow> ReadAuditRows(const Rows& r) {
  std::vector<AuditRow> audits;
  for (int i = 0; i < r.size(); ++i) {
    audits.push_back({r.Int(i, 0), r.Text(i, 1), r.Time(i, 2), r.Text(i, 3), r.Time(i, 4),
                      r.Time(i, 5), r.Int(i, 6), r.Int(i, 7), r.Int(i, 8), r.Int(i, 9),
                      r.Bool(i, 10), r.Text(i, 11)});
  }
  return audits;
}

// period, status, by_whom, generation, fence: of each row what a drill asks, by its period.
template <typename Rows>
std::map<std::string, PeriodRow> ReadStanding(const Rows& r) {
  std::map<std::string, PeriodRow> rows;
  for (int i = 0; i < r.size(); ++i) {
    PeriodRow& row = rows[r.Text(i, 0)];
    row.status = StatusOf(r.Text(i, 1));
    row.by = r.Text(i, 2);
    row.generation = static_cast<int>(r.Int(i, 3));
    row.fence = r.Int(i, 4);
  }
  return rows;
}
inline const PeriodRow* FindStanding(const std::map<std::string, PeriodRow>& rows,
                                     const std::string& period) {
  const auto row = rows.find(period);
  return row == rows.end() ? nullptr : &row->second;
}

// id, job, by_whom, why, started_at, until, finished_at, result, detail, period, generation, fence:
// one row a period of a drill, those of a drill together.
template <typename Rows>
std::vector<DrillRow> ReadDrillRows(const Rows& r) {
  std::vector<DrillRow> drills;
  for (int i = 0; i < r.size(); ++i) {
    if (drills.empty() || drills.back().id != r.Int(i, 0)) {
      drills.push_back({r.Int(i, 0),
                        r.Text(i, 1),
                        r.Text(i, 2),
                        r.Text(i, 3),
                        r.Time(i, 4),
                        r.Time(i, 5),
                        r.Time(i, 6),
                        r.Text(i, 7),
                        r.Text(i, 8),
                        {}});
    }
    if (!r.IsNull(i, 9)) {
      drills.back().periods.push_back({r.Text(i, 9), static_cast<int>(r.Int(i, 10)), r.Int(i, 11)});
    }
  }
  return drills;
}

}  // namespace matins

#endif  // MATINS_STORE_SERVER_ROWS_H_
