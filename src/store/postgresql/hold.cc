// Held before it is due: dispatched to a node, without lock, lease or time-out.
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/postgresql/due.h"
#include "store/postgresql/store.h"
#include "store/server_rows.h"
#include "store/set_aside.h"

namespace matins::postgresql {
namespace {

// Rows that may be held, the most urgent of those that the index gives first.
constexpr char kHoldRows[] = R"(
  with c as materialized (select @NOW as now),
  d as materialized (
    select r.job_name, r.period, r.priority, r.due_at from c cross join lateral (
      select r.job_name, r.period, r.priority, r.due_at from @.job_watermark r
      where r.status = 'PLANNED' and r.look_at <= c.now + $2::interval
        and ($5::boolean or r.look_at > c.now)
        and (r.look_at <= c.now or not coalesce(r.look_at > r.not_before, false))
        and (r.held_by is null or r.held_until <= c.now)
      order by r.look_at limit 8 * $3::bigint + 2000) r
    cross join lateral (select 1 from @.job b where b.name = r.job_name and not b.deleted
      and b.suspended_at is null and b.labels <@ $4::jsonb limit 1) b
    where not @FROZEN limit 4 * $3::bigint + 200),
  l as materialized (
    select r.job_name, r.period from d join @.job_watermark r
      on r.job_name = d.job_name and r.period = d.period
    where r.status = 'PLANNED'
    order by d.priority desc, d.due_at, r.job_name, r.period limit $3::bigint
    for update of r skip locked),
  n as materialized (select @NOW as now, count(*) from l),
  u as (update @.job_watermark r set held_by = $1, dispatched_at = n.now,
      held_until = greatest(r.not_before, n.now) + interval '2 seconds',
      ver = r.ver + 1, op = 'dispatch', op_at = n.now
    from l cross join n where r.job_name = l.job_name and r.period = l.period
      and r.status = 'PLANNED' and (r.held_by is null or r.held_until <= n.now)
    returning r.job_name, r.period, r.not_before, r.priority, r.due_at)
  select job_name, period, not_before, priority from u
  order by priority desc, due_at, job_name, period)";

// Of what is due and held by nobody, the first rows by their index: how many there are, and how
// many this node could run.
std::string NextStart() {
  return absl::StrCat(R"(
  with c as materialized (select @NOW as now),
  w as materialized (select r.job_name from @.job_watermark r
    where r.status = 'PLANNED' and r.look_at <= (select now from c)
      and r.not_before <= (select now from c)
      and (r.held_by is null or r.held_until <= (select now from c))
    order by r.look_at limit )",
                      kPassedOver, R"()
  select c.now, (select r.look_at from @.job_watermark r where r.status = 'PLANNED'
      and r.look_at > c.now + $1::interval order by r.look_at limit 1),
    (select r.look_at from @.job_watermark r where r.status = 'PLANNED' and r.look_at > c.now
      and r.look_at <= c.now + $1::interval and r.look_at > r.not_before
      order by r.look_at limit 1),
    (select count(*) from w),
    (select count(*) from w cross join lateral (select 1 from @.job b where b.name = w.job_name
      and not b.deleted and b.suspended_at is null and b.labels <@ $2::jsonb limit 1) b),
    )",
                      kAnyAside, R"(
  from c)");
}

}  // namespace

absl::StatusOr<HoldAnswer> PostgresStore::Hold(const HoldRequest& request) {
  const std::string labels = JsonStrings(request.node.labels);
  const Statement hold =
      session_.Of(kHoldRows, {request.node.name, IntervalText(request.ahead),
                              absl::StrCat(request.limit), labels, request.due ? "true" : "false"});
  MATINS_FAULT_POINT("hold.before_commit");  // crash here: the rows are free
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.Retried([&] {
    return session_.connection.Write(
        {hold, session_.Of(NextStart(), {IntervalText(request.ahead), labels})});
  }));
  MATINS_FAULT_POINT("hold.after_commit");  // crash here: held_until frees them
  HoldAnswer answer;
  answer.now = rows[1].Time(0, 0);
  answer.next_start = rows[1].Time(0, 1, absl::InfiniteFuture());
  answer.next_look = rows[1].Time(0, 2, absl::InfiniteFuture());
  const bool many = rows[1].Int(0, 3) == kPassedOver;
  crowded_ = many && rows[1].Int(0, 4) < kPassedOver;
  any_aside_ = rows[1].Bool(0, 5);
  answer.due = many || rows[1].Int(0, 4) > 0;
  if (!answer.due && any_aside_) {
    ASSIGN_OR_RETURN(const std::vector<Rows> aside,
                     session_.connection.Read({session_.Of(AsideForLabels(), {labels})}));
    answer.due = aside[0].Bool(0, 0);
  }
  for (int i = 0; i < rows[0].size(); ++i) {
    answer.rows.push_back({{rows[0].Text(i, 0), rows[0].Text(i, 1)},
                           rows[0].Time(i, 2),
                           static_cast<int>(rows[0].Int(i, 3))});
  }
  return answer;
}

absl::Status PostgresStore::Unhold(const NodeId& node, absl::Span<const PeriodKey> keys) {
  if (keys.empty()) return absl::OkStatus();
  JsonRows json;
  for (const PeriodKey& key : keys) json.Row().AddKey(key);
  const std::string rows_json = json.Take();
  RETURN_IF_ERROR(session_
                      .Retried([&] {
                        return session_.connection.Write({session_.Of(
                            R"(
    with l as materialized (select r.job_name, r.period from json_to_recordset($1::json) as
        x(job text, period text) join @.job_watermark r on r.job_name = x.job and
        r.period = x.period where r.status = 'PLANNED' and r.held_by = $2
      order by r.job_name, r.period for update of r skip locked)
    update @.job_watermark r set held_by = null, held_until = null
    from l where r.job_name = l.job_name and r.period = l.period and r.held_by = $2)",
                            {rows_json, node.name})});
                      })
                      .status());
  session_.Notify();
  return absl::OkStatus();
}

}  // namespace matins::postgresql
