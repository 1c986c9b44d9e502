// Floors rise over what is settled, and history goes, in small batches.
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/postgresql/store.h"
#include "store/purged.h"

namespace matins::postgresql {
namespace {

// The floor is the last due instant, old enough, below which all is DONE or SKIPPED; a row that was
// deleted (gap_from) is not settled. Most jobs have nothing so old, and are neither looked into nor
// locked: a lock is a write.
constexpr char kMoveFloors[] = R"(
  with c as materialized (select @NOW as now),
  f as materialized (
    select j.name, least(j.cursor, c.now - j.keep_for,
      (select min(o.due_at) - interval '1 microsecond' from @.job_watermark o
       where o.job_name = j.name and o.status in ('PLANNED', 'FAILED')),
      (select min(o.due_at) - interval '1 microsecond' from @.job_watermark o
       where o.job_name = j.name and o.status = 'RUNNING'),
      j.gap_from - interval '1 microsecond') as floor
    from @.job j cross join c where j.cursor is not null and j.keep_for is not null
      and not j.deleted and exists (select from @.job_watermark o where o.job_name = j.name
        and o.due_at <= least(j.cursor, c.now - j.keep_for))),
  l as materialized (select j.name, f.floor from f join @.job j on j.name = f.name
    where f.floor > coalesce(j.floor, '-infinity') order by j.name
    for no key update of j skip locked)
  update @.job j set floor = l.floor from l where j.name = l.name
    and not exists (select from @.job_watermark o where o.job_name = j.name and o.due_at <= l.floor
      and o.status in ('PLANNED', 'FAILED'))
    and not exists (select from @.job_watermark o where o.job_name = j.name and o.due_at <= l.floor
      and o.status = 'RUNNING')
    and (j.gap_from is null or j.gap_from > l.floor)
    and exists (select from @.job_watermark o where o.job_name = j.name
      and o.due_at <= l.floor))";

// The trigger lets rows at or below the floor go without opening them again.
constexpr char kOldRows[] = R"(
  with d as materialized (
    select r.job_name, r.period from @.job j cross join lateral (
      select r.job_name, r.period, r.due_at from @.job_watermark r where r.job_name = j.name
        and r.due_at <= j.floor and r.status in ('DONE', 'SKIPPED') limit $1::bigint) r
    where j.floor is not null limit $1::bigint),
  l as materialized (select r.job_name, r.period from d join @.job_watermark r
    on r.job_name = d.job_name and r.period = d.period order by r.job_name, r.period
    for update of r skip locked),
  k as (delete from @.job_checkpoint k using l where k.job_name = l.job_name
    and k.period = l.period),
  g as (delete from @.job_journal k using l where k.job_name = l.job_name
    and k.period = l.period)
  delete from @.job_watermark r using l where r.job_name = l.job_name and r.period = l.period)";

constexpr char kOldSpans[] = R"(
  delete from @.job_span s using (select s.id from @.job_span s join @.job j on j.name = s.job
    where s.kind = 'skipped' and s.to_at <= j.floor order by s.id limit $1::bigint) d
  where s.id = d.id)";

// Beyond `history:` of its kind, attempts of open periods aside; what a job's history says for ever
// is folded into the job first. From a job's newest on, in the order of its index: what is looked
// at is what the job keeps and what goes, however much there is behind it.
constexpr char kOldRuns[] = R"(
  with d as materialized (
    select q.* from @.job j cross join lateral (
      select r.fence, r.job_name, r.status, r.reason, r.claimed_at, r.finished_at from (
        select r.*, count(*) filter (where r.status = 'DONE') over w as succeeded,
          count(*) filter (where r.status <> 'DONE') over w as failed
        from @.job_run r where r.job_name = j.name
          and not exists (select from @.job_watermark w where w.job_name = r.job_name
            and w.period = r.period and w.status in ('PLANNED', 'RUNNING', 'FAILED'))
        window w as (order by r.finished_at desc, r.fence desc rows unbounded preceding)) r
      where case when r.status = 'DONE' then r.succeeded > greatest(j.history_succeeded, 0)
        else r.failed > greatest(j.history_failed, 0) end
      limit $1::bigint) q
    limit $1::bigint),
  s as materialized (select job_name, max(finished_at) as last,
      max(finished_at - claimed_at) as worst from d where status = 'DONE' group by job_name),
  j as (update @.job j set last_success = greatest(j.last_success, s.last),
      worst_duration = greatest(j.worst_duration, s.worst)
    from (select s.* from s join @.job b on b.name = s.job_name order by b.name
      for no key update of b) s where j.name = s.job_name),
  e as (update @.job j set last_result = q.text from (
      select distinct on (d.job_name) d.job_name, d.finished_at, d.status ||
        coalesce('(' || nullif(d.reason, '') || ')', '') as text
      from d order by d.job_name, d.finished_at desc) q
    where j.name = q.job_name and not exists (select from s where s.job_name = q.job_name)
      and not exists (select from @.job_run n where n.job_name = q.job_name
        and n.finished_at > q.finished_at)),
  o as (delete from @.job_output k using d where k.fence = d.fence)
  delete from @.job_run r using d where r.fence = d.fence)";

constexpr char kOldCheckpoints[] = R"(
  delete from @.job_checkpoint k using (
    select k.job_name, k.period, k.generation from @.job_checkpoint k
    left join @.job_watermark r on r.job_name = k.job_name and r.period = k.period
      and r.generation = k.generation
    where r.job_name is null or r.status in ('DONE', 'SKIPPED') limit $1::bigint) d
  where k.job_name = d.job_name and k.period = d.period and k.generation = d.generation)";

constexpr char kOldNodes[] = "delete from @.job_node where seen_at < @NOW - interval '7 days'";
constexpr char kOldLocks[] = "delete from @.job_lock where until <= @NOW";
// What was planned before there were tenants has the first turn.
constexpr char kFirstTurns[] =
    "update @.job_watermark set start_tag = 1 where status = 'PLANNED' and start_tag = 0 and "
    "exists (select from @.job_watermark where status = 'PLANNED' and start_tag > 0)";
constexpr char kOldSlots[] = "delete from @.job_slot where until <= @NOW";

}  // namespace

absl::StatusOr<int64_t> PostgresStore::Purge(int limit) {
  const std::string most = absl::StrCat(std::max(limit, 1));
  const std::vector<std::pair<const char*, bool>> steps = {
      {kMoveFloors, false}, {kOldRows, true},        {kOldSpans, true},
      {kOldRuns, true},     {kOldCheckpoints, true}, {kOldNodes, false},
      {kOldLocks, false},   {kOldSlots, false},      {kFirstTurns, false}};
  ASSIGN_OR_RETURN(const std::vector<Rows> last,
                   session_.connection.Read({session_.Of(
                       "select (select max(fence) from @.job_run), (select max(id) from "
                       "@.job_event), @NOW, exists (select from @.job_lock where until <= @NOW) or "
                       "exists (select from @.job_slot where until <= @NOW)")}));
  const PurgedUpTo here = {last[0].Int(0, 0), last[0].Int(0, 1), last[0].Time(0, 2)};
  if (!last[0].Bool(0, 3) && NothingToPurge(purged_, here)) return 0;
  purged_.reset();
  int64_t gone = 0;
  // A transaction each: none of them holds its locks for the others' sake.
  for (const auto& [text, limited] : steps) {
    const Statement statement = limited ? session_.Of(text, {most}) : session_.Of(text);
    ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                     session_.Retried([&] { return session_.connection.Write({statement}); }));
    MATINS_FAULT_POINT("purge.after_commit");  // crash here: the next call goes on from there
    if (limited) gone += rows[0].affected();
  }
  if (gone < limit) purged_ = here;
  return gone;
}

}  // namespace matins::postgresql
