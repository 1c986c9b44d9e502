// What people read of a store. Each is one snapshot, and never in doubt.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "store/postgresql/acts.h"
#include "store/postgresql/schema.h"
#include "store/rules.h"
#include "store/server_rows.h"

namespace matins::postgresql {
namespace {

std::optional<std::string> DayParam(const std::optional<absl::CivilDay>& day) {
  if (!day) return std::nullopt;
  return FormatDay(*day);
}

std::vector<std::string> SplitLabels(const std::string& text) {
  return absl::StrSplit(text, '\x1f', absl::SkipEmpty());
}

}  // namespace

absl::StatusOr<std::vector<JobRow>> PostgresActs::ReadJobs(absl::string_view name) {
  // A finish writes nothing to the job's row; what the newest attempts say is read from them, what
  // older ones said was folded into the job when they went.
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(
          R"(select j.name, j.version, j.definition, j.source, j.first_sight, j.floor, j.cursor,
               j.next_look, j.gap_from, j.suspended_at, j.suspended_by, j.suspended_why, j.revision,
               greatest(j.last_success, s.last), coalesce(n.status || coalesce('(' ||
                 nullif(n.reason, '') || ')', ''), j.last_result, ''),
               (extract(epoch from coalesce(greatest(j.worst_duration, s.worst), interval '0'))
                 * 1000000)::bigint
             from @.job j
             left join lateral (select max(r.finished_at) as last,
               max(r.finished_at - r.claimed_at) as worst from @.job_run r
               where r.job_name = j.name and r.status = 'DONE') s on true
             left join lateral (select r.status, r.reason from @.job_run r
               where r.job_name = j.name order by r.finished_at desc, r.fence desc limit 1) n on true
             where not j.deleted and ($1 = '' or j.name = $1) order by j.name)",
          {UsableText(name)})}));
  const Rows& r = rows[0];
  std::vector<JobRow> jobs;
  for (int i = 0; i < r.size(); ++i) {
    JobRow job = ReadJobRow(r, i);
    job.last_success = r.Time(i, 13);
    job.last_result = r.Text(i, 14);
    job.worst_duration = absl::Microseconds(r.Int(i, 15));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

absl::StatusOr<std::vector<JobDefinition>> PostgresActs::ReadDefinitionsAfter(
    absl::string_view after, int limit) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({session_.Of(
                       "select j.name, j.version, j.definition from @.job j where not j.deleted "
                       "and j.name > $1 order by j.name limit $2::bigint",
                       {UsableText(after), absl::StrCat(limit)})}));
  return ReadJobDefinitions(rows[0]);
}

absl::StatusOr<std::vector<PeriodRow>> PostgresActs::ReadRows(const RowFilter& filter) {
  std::vector<Parameter> params;
  std::string where = "true";
  const auto add = [&](absl::string_view condition, std::optional<std::string> value) {
    if (!value) return;
    params.push_back(std::move(value));
    absl::StrAppend(&where, " and ", condition, " $", params.size());
  };
  if (!filter.job.empty()) add("r.job_name =", UsableText(filter.job));
  if (filter.from) add("r.biz_date >=", DayParam(filter.from));
  if (filter.to) add("r.biz_date <=", DayParam(filter.to));
  if (filter.period) add("r.period =", UsableText(*filter.period));
  if (filter.status) add("r.status =", std::string(Word(*filter.status)));
  const absl::string_view way = filter.newest_first ? " desc" : "";
  params.push_back(absl::StrCat(filter.limit));
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(
          absl::StrCat("select ", kPeriodColumns, " from @.job_watermark r where ", where,
                       " order by r.biz_date", way, ", r.due_at", way, ", r.job_name", way,
                       ", r.period", way, " limit $", params.size(), "::bigint"),
          params)}));
  std::vector<PeriodRow> out;
  for (int i = 0; i < rows[0].size(); ++i) out.push_back(ReadRow(rows[0], i));
  return out;
}

absl::StatusOr<std::vector<SkipSpan>> PostgresActs::ReadSpans(absl::string_view job) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({session_.Of(
                       "select from_at, to_at, first_period, last_period, count, reason, by_whom "
                       "from @.job_span where job = $1 and kind = 'skipped' order by from_at, id",
                       {UsableText(job)})}));
  const Rows& r = rows[0];
  std::vector<SkipSpan> spans;
  for (int i = 0; i < r.size(); ++i) spans.push_back(ReadSpan(r, i));
  return spans;
}

absl::StatusOr<std::vector<RunRow>> PostgresActs::ReadRuns(const RunFilter& filter) {
  // Those that ended, and those that are running: two queries, each with its index.
  constexpr char kText[] = R"(
    select * from (
      (select r.job_name, r.period, r.generation, r.fence, r.attempt, r.node, r.status, r.reason,
         r.message, r.result, r.exit_code, r.signal, r.due_at, r.planned_at, r.dispatched_at,
         r.claimed_at, r.started_at, r.checkpointed_at, r.finished_at, r.backfill, r.manual
       from @.job_run r where ($1 = '' or r.job_name = $1) and ($2::text is null or r.period = $2)
         and ($3::bigint is null or r.fence = $3) order by r.fence desc limit $4::bigint)
      union all
      (select w.job_name, w.period, w.generation, w.fence, w.attempts, w.node, 'RUNNING', null,
         null, null, null, null, w.due_at, w.planned_at, w.dispatched_at, w.claimed_at, null,
         w.checkpointed_at, null, w.backfill, w.manual
       from @.job_watermark w where w.status = 'RUNNING' and w.fence > 0
         and ($1 = '' or w.job_name = $1) and ($2::text is null or w.period = $2)
         and ($3::bigint is null or w.fence = $3) order by w.fence desc limit $4::bigint)) q
    left join lateral (select o.bytes from @.job_output o where o.fence = q.fence) b on true
    order by q.fence desc limit $4::bigint)";
  std::optional<std::string> period, fence;
  if (filter.period) period = UsableText(*filter.period);
  if (filter.fence) fence = absl::StrCat(*filter.fence);
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(
          kText, {UsableText(filter.job), period, fence, absl::StrCat(filter.limit)})}));
  return ReadRunRows(rows[0]);
}

absl::StatusOr<std::vector<EventRow>> PostgresActs::ReadEvents(absl::string_view job, int limit) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({session_.Of(
                       "select id, at, kind, job, period, generation, who, why, detail from "
                       "@.job_event where $1 = '' or job = $1 order by id desc limit $2::bigint",
                       {UsableText(job), absl::StrCat(limit)})}));
  return ReadEventRows(rows[0]);
}

absl::StatusOr<std::vector<NodeRow>> PostgresActs::ReadNodes() {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(
          R"(select n.name, (select string_agg(l, chr(31)) from jsonb_array_elements_text(n.labels)
               l), n.started_at, n.seen_at, (extract(epoch from n.clock_offset) * 1000000)::bigint,
               n."left", coalesce(w.running, 0)
             from @.job_node n left join (select node, count(*) as running from @.job_watermark
               where status = 'RUNNING' group by node) w on w.node = n.name
             order by n.name)")}));
  const Rows& r = rows[0];
  std::vector<NodeRow> nodes;
  for (int i = 0; i < r.size(); ++i) {
    NodeRow node;
    node.name = r.Text(i, 0);
    node.labels = SplitLabels(r.Text(i, 1));
    node.started_at = r.Time(i, 2);
    node.seen_at = r.Time(i, 3);
    node.clock_offset = absl::Microseconds(r.Int(i, 4));
    node.left = r.Bool(i, 5);
    node.running = static_cast<int>(r.Int(i, 6));
    nodes.push_back(std::move(node));
  }
  return nodes;
}

absl::StatusOr<std::vector<LockRow>> PostgresActs::ReadLocks() {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session_.connection.Read({session_.Of(
          R"(select coalesce(lock_key, 'period/' || job_name || '/' || period) collate "C" as key,
               job_name, period, fence, node, claimed_at, lease_until, false as leftover,
               renewals from @.job_watermark where status = 'RUNNING' and lease_until > (select @NOW)
             union all select lock_key, job_name, period, fence, '', null, until, true, null
             from @.job_lock where until > (select @NOW) order by 1, 8)")}));
  return ReadLockRows(rows[0]);
}

absl::StatusOr<OutputRow> PostgresActs::ReadOutput(int64_t fence) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.connection.Read({session_.Of(
                                                     R"(select o.head, o.tail, coalesce(o.bytes, 0),
               exists (select from @.job_watermark where status = 'RUNNING' and fence = $1::bigint),
               exists (select from @.job_run where fence = $1::bigint)
             from (select 1) one left join @.job_output o on o.fence = $1::bigint)",
                                                     {absl::StrCat(fence)})}));
  const Rows& r = rows[0];
  if (r.IsNull(0, 0) && !r.Bool(0, 3) && !r.Bool(0, 4)) {
    return absl::NotFoundError(absl::StrCat("no run ", fence,
                                            ", or its history is gone; `matins runs` shows what is "
                                            "there"));
  }
  return OutputRow{r.Text(0, 0), r.Text(0, 1), r.Int(0, 2), r.Bool(0, 3)};
}

absl::StatusOr<StoreStatus> PostgresActs::ReadStatus() {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.connection.Read({session_.Of(
                                                     R"(select current_setting('server_version'),
               (select value::int from @.matins_meta where key = 'schema'), @NOW,
               (select value::bigint from @.matins_meta where key = 'epoch'),
               (select coalesce(value, '') from @.matins_meta where key = 'clock_frozen_why'),
               (select value from @.matins_meta where key = 'journal'),
               (select count(*) from @.job where not deleted),
               (select count(*) from @.job_watermark where status = 'PLANNED'),
               (select count(*) from @.job_watermark where status = 'RUNNING'),
               (select count(*) from @.job_watermark where status = 'FAILED' and not held),
               (select count(*) from @.job_watermark where status = 'FAILED' and held))")}));
  const Rows& r = rows[0];
  StoreStatus status;
  status.kind = "postgresql";
  status.version = r.Text(0, 0);
  status.schema = static_cast<int>(r.Int(0, 1));
  status.now = r.Time(0, 2);
  status.epoch = r.Int(0, 3);
  status.frozen_why = r.Text(0, 4);
  status.frozen = !status.frozen_why.empty();
  status.journal = r.Text(0, 5);
  status.jobs = r.Int(0, 6);
  status.planned = r.Int(0, 7);
  status.running = r.Int(0, 8);
  status.failed = r.Int(0, 9);
  status.held = r.Int(0, 10);
  ASSIGN_OR_RETURN(status.warnings, ServerWarnings(session_));
  return status;
}

}  // namespace matins::postgresql
