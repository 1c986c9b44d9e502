#include "store/postgresql/ticket.h"

#include "absl/strings/str_cat.h"
#include "base/fault.h"

namespace matins::postgresql {

std::string LockedRows(absl::string_view columns, Locking locking) {
  return absl::StrCat(
      "with x as materialized (select * from json_to_recordset($1::json) as x(n int, job text, "
      "period text, gen int, fence bigint, nonce bigint",
      columns.empty() ? "" : ", ", columns,
      ")), l as materialized (select x.n, r.* from x join @.job_watermark r on "
      "r.job_name = x.job and r.period = x.period order by r.job_name, r.period for update of r",
      locking == Locking::kSkip ? " skip locked" : "",
      // An aggregate: it has seen the last locked row before it reads the clock.
      "), c as materialized (select @NOW as now, count(*) as locked from l) ");
}

std::string LockedRowsOf(absl::string_view requests, absl::string_view columns, Locking locking) {
  return absl::StrCat(
      "with x as materialized (", requests,
      // Row by row, by the key and in the requests' order: no plan can be of another shape.
      "), l as materialized (select x.n, r.* from x cross join lateral (select r.job_name, "
      "r.period, r.status, r.generation, r.fence, r.nonce, r.lease_until, r.run_until, "
      "r.ctid as tid, ",
      columns,
      " from @.job_watermark r where r.job_name = x.job and r.period = x.period for update",
      locking == Locking::kSkip ? " skip locked" : "",
      ") r), c as materialized (select @NOW as now, count(*) as locked from l) ");
}

std::string TicketWhy(Asked asked) {
  std::string why = "case ";
  if (asked != Asked::kFinish) {
    why +=
        "when l.status = 'DONE' and l.fence = x.fence and l.nonce = x.nonce and l.generation = "
        "x.gen and exists (select from @.job b where b.name = l.job_name and b.commit_by = 'job') "
        "then 'done' ";
  }
  why += "when l.status <> 'RUNNING'";
  if (!IsMutant(Mutant::kNoFenceCheck)) {
    why += " or l.fence <> x.fence or l.nonce is distinct from x.nonce or l.generation <> x.gen";
  }
  why += " then 'fence'";
  const bool no_lease_check = IsMutant(Mutant::kNoLeaseCheck) ||
                              (asked == Asked::kExtend && IsMutant(Mutant::kReviveLease));
  if (!no_lease_check) {
    why +=
        " when l.run_until <= c.now then 'deadline'"
        " when l.lease_until is null or l.lease_until <= c.now then 'lease'";
  }
  return why + " else '' end";
}

const char kUnlockedWhy[] =
    "case when exists (select from @.job_watermark w where w.job_name = x.job and "
    "w.period = x.period) then 'busy' else 'gone' end";

}  // namespace matins::postgresql
