#include "store/postgresql/due.h"

#include "absl/strings/str_cat.h"
#include "store/set_aside.h"

namespace matins::postgresql {

const char kStartColumns[] =
    "r.job_name, r.period, r.status, r.node, r.held_by, r.held_until, r.not_before, r.start_by, "
    "r.attempts_total, r.wait_until, r.due_at, r.biz_date, r.lock_key, r.generation, "
    "r.window_start, r.window_end, r.nominal, r.backfill, r.manual, r.params, r.priority, r.ctid, "
    "r.tenant, r.limit_key, r.start_tag, r.backfill_id";

namespace {

// Where an act has come since ($3, $4) there may be any.
constexpr char kAnyPriority[] = R"((select e.id <> $3::bigint or $4::boolean
    from (select coalesce(max(id), 0) as id from @.job_event) e))";

constexpr char kFree[] = "(r.held_by is null or r.held_until <= (select @NOW))";
constexpr char kBy[] = "(select coalesce(max(id), 0) from @.job_event)";

// Named `n`: so many are wanted.
std::string Wanted() {
  return absl::StrCat("n as materialized (select $1::bigint + 24 + case when ", kAnyPriority,
                      " then 200 else 0 end as n)");
}

// Named `k`: the lists of what is set aside.
std::string Lists() {
  const std::string lists =
      "select r.waits_for from @.job_watermark r where r.status = 'PLANNED' and r.waits_for is not "
      "null and r.waits_for >= ";
  return absl::StrCat("k(v) as ((", lists, "'", kAside,
                      "' order by r.waits_for limit 1) union all select (", lists, "left(k.v, -",
                      kTagDigits + 1,
                      ") || '0' order by r.waits_for limit 1) from k where k.v is not null)");
}

// Of `k`: whether a node with these labels may run what stands there.
std::string TheirLabels(absl::string_view labels) {
  return absl::StrCat("k.v is not null and substr(left(k.v, -", kTagDigits + 1, "), ",
                      absl::string_view(kAside).size() + 1, ")::jsonb <@ ", labels, "::jsonb");
}

// Named `w`: the first due rows by their index, whoever may run them. Named `p`: the first of each
// list of rows that were set aside for nodes with no other labels.
std::string Windows(bool in_turn) {
  const int tag = kTagDigits + 1;
  return absl::StrCat(
      Wanted(), R"(,
  w as materialized (select r.ctid as tid, r.job_name, r.start_tag, r.not_before
    from @.job_watermark r
    where r.status = 'PLANNED' and r.look_at <= (select @NOW) and r.not_before <= (select @NOW)
      and )",
      kFree,
      in_turn ? " and r.start_tag > 0 order by r.start_tag, r.look_at" : " order by r.look_at",
      " limit (select n from n) + ", kPassedOver, R"(),
  )",
      Lists(), R"(,
  p as materialized (select r.tid, r.job_name, r.start_tag, r.not_before from k cross join lateral (
    select r.ctid as tid, r.job_name, r.start_tag, r.not_before from @.job_watermark r
    where r.status = 'PLANNED' and r.waits_for is not null
      and r.waits_for >= left(k.v, -)",
      kTagDigits, ")", in_turn ? absl::StrCat(" || lpad('1', ", kTagDigits, ", '0')") : "",
      " and r.waits_for < left(k.v, -", tag, ") || '0' and ", kFree, R"(
    order by r.waits_for, r.due_at limit (select n from n)) r
    where )",
      TheirLabels("$2"), ")");
}

// Of rows `w`: whether this node may run them.
constexpr char kTheirJob[] = R"( cross join lateral (select j.labels <@ $2::jsonb and
    j.suspended_at is null as may, case when j.suspended_at is null then j.labels::text end as labels
    from @.job j where j.name = w.job_name and not j.deleted limit 1) j)";

}  // namespace

std::string AlsoDue(bool in_turn) {
  return absl::StrCat(
      "select ", kStartColumns, ", ", kBy, R"( from @.job_watermark r
  join @.job j on j.name = r.job_name
  where r.status = 'PLANNED' and r.look_at <= (select @NOW) and r.not_before <= (select @NOW)
    and (r.held_by is null or r.held_until <= (select @NOW))
    and not j.deleted and j.suspended_at is null and j.labels <@ $2::jsonb
  )",
      in_turn ? "and r.start_tag > 0 order by r.start_tag, r.look_at" : "order by r.look_at",
      R"(
  limit $1::bigint + 24 + case when )",
      kAnyPriority, R"( then 200 else 0 end
  for update of r skip locked)");
}

std::string AlsoDueInACrowd(bool in_turn) {
  return absl::StrCat("with recursive ", Windows(in_turn), R"(,
  f as materialized (select w.tid from (select * from w union select * from p) w)",
                      kTheirJob, R"(
    where j.may order by w.start_tag, w.not_before limit 2 * (select n from n))
  select r.*, )",
                      kBy, R"( from f cross join lateral (select )", kStartColumns,
                      R"( from @.job_watermark r
    where r.ctid = f.tid and r.status = 'PLANNED' and )",
                      kFree, R"(
    limit 1 for update of r skip locked) r limit (select n from n))");
}

std::string DueForOthers(bool in_turn) {
  return absl::StrCat("with recursive ", Windows(in_turn), R"(,
  x as materialized (select w.tid, j.may, j.labels from w)",
                      kTheirJob, R"(),
  o as materialized (select x.tid, x.labels from x where not x.may
      and (select count(*) from x where not x.may) >= )",
                      kPassedOver, R"(
    union select w.tid, j.labels from p w)",
                      kTheirJob, R"( where not j.may)
  select r.job_name, r.period, o.labels, r.start_tag from o cross join lateral (
    select r.job_name, r.period, r.start_tag from @.job_watermark r
    where r.ctid = o.tid and r.status = 'PLANNED' and )",
                      kFree, R"(
    limit 1 for update of r skip locked) r)");
}

std::string AsideForLabels() {
  return absl::StrCat("with recursive ", Lists(), " select exists (select from k where ",
                      TheirLabels("$1"), ")");
}

}  // namespace matins::postgresql
