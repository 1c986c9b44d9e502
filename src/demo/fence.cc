#include "demo/fence.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/fence_sql.h"

namespace matins::demo {
namespace {

absl::Status Stale(const Ownership& owner, absl::string_view what) {
  return absl::AbortedError(absl::StrCat(what, " refused: fence ", owner.fence, " of ", owner.job,
                                         " ", owner.period,
                                         " is no longer the newest; a later owner is at work"));
}

}  // namespace

absl::Status MakeFence(Sql& sql) { return sql.DoAll(FenceSql(sql.dialect()).tables); }

absl::StatusOr<int64_t> RaiseFence(Sql& sql, const Ownership& owner) {
  const FenceStatements& fence = FenceSql(sql.dialect());
  const std::vector<Param> params = {owner.job, owner.period, owner.generation, owner.fence};
  RETURN_IF_ERROR(sql.Begin());
  const auto raise = [&]() -> absl::StatusOr<Answer> {
    ASSIGN_OR_RETURN(Answer raised, sql.Do(fence.raise, params));
    if (!fence.raised.empty()) {
      ASSIGN_OR_RETURN(raised, sql.Do(fence.raised, params));
    }
    RETURN_IF_ERROR(sql.Commit());
    return raised;
  };
  const absl::StatusOr<Answer> raised = raise();
  if (!raised.ok()) {
    sql.Rollback();
    return raised.status();
  }
  if (raised->rows.empty()) return Stale(owner, "raising the fence");
  return raised->Number(0, 0);
}

absl::Status InFencedStep(Sql& sql, const Ownership& owner, int64_t step,
                          const std::function<absl::Status()>& write) {
  RETURN_IF_ERROR(sql.Begin());
  const auto fenced = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Answer taken,
                     sql.Do(FenceSql(sql.dialect()).step,
                            {step, owner.job, owner.period, owner.fence, step - 1}));
    if (taken.changed != 1) return Stale(owner, absl::StrCat("step ", step));
    RETURN_IF_ERROR(write());
    return sql.Commit();
  };
  const absl::Status status = fenced();
  if (!status.ok()) sql.Rollback();
  return status;
}

}  // namespace matins::demo
