#include "ops/give_back.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "ops/session.h"
#include "plan/plan.h"

namespace matins {

absl::Status GiveLeaseBack(Database& database, const LeaseToGiveBack& lease) {
  ASSIGN_OR_RETURN(Session session, Session::Open(database, "guard"));
  ASSIGN_OR_RETURN(const PeriodRow row, ReadRow(session, {lease.job, lease.period}));
  if (row.fence != lease.fence || row.nonce != lease.nonce || row.status != PeriodStatus::kRunning)
    return absl::OkStatus();
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, lease.job));
  const LossVerdict verdict = AfterLoss(planned.current().job, row);
  FinishRequest request;
  request.ticket = {row.key, row.generation, lease.fence, lease.nonce};
  request.node = row.node;
  request.outcome.kind = verdict.to;
  request.outcome.reason = verdict.reason;
  request.outcome.message =
      absl::StrCat("node ", row.node, " died; its guard killed the run and gave the lease back");
  return session.store().Finish({request}).status();
}

}  // namespace matins
