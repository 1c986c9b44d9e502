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

FenceDialect DialectOf(const Sql& sql) {
  return sql.is_sqlite() ? FenceDialect::kSqlite : FenceDialect::kPostgresql;
}

}  // namespace

absl::Status MakeFence(Sql& sql) { return sql.DoAll(FenceSql(DialectOf(sql)).tables); }

absl::StatusOr<int64_t> RaiseFence(Sql& sql, const Ownership& owner) {
  ASSIGN_OR_RETURN(const Answer raised,
                   sql.Do(FenceSql(DialectOf(sql)).raise,
                          {owner.job, owner.period, owner.generation, owner.fence}));
  if (raised.rows.empty()) return Stale(owner, "raising the fence");
  return raised.Number(0, 0);
}

absl::Status InFencedStep(Sql& sql, const Ownership& owner, int64_t step,
                          const std::function<absl::Status()>& write) {
  RETURN_IF_ERROR(sql.Begin());
  const auto fenced = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const Answer taken,
                     sql.Do(FenceSql(DialectOf(sql)).step,
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
