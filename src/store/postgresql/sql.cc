#include "store/postgresql/sql.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/fault.h"
#include "base/time.h"
#include "store/rules.h"
#include "store/server_rows.h"

namespace matins::postgresql {

std::optional<std::string> TimeParam(absl::Time t) {
  if (t == absl::InfinitePast() || t == absl::InfiniteFuture()) return std::nullopt;
  return absl::StrCat(UtcText(t), "+00");
}

std::string IntervalText(absl::Duration d) {
  return absl::StrCat(absl::ToInt64Microseconds(d), " microseconds");
}

PeriodRow ReadRow(const Rows& rows, int i, int c) {
  PeriodRow row;
  ReadPeriod(rows, i, c, row);
  return row;
}

void Append(std::vector<Statement>& to, std::vector<Statement> more) {
  for (Statement& s : more) to.push_back(std::move(s));
}

SqlNames::SqlNames(absl::string_view schema) : schema_(schema) {}

std::string SqlNames::operator()(absl::string_view sql) const {
  const std::string quoted = absl::StrCat("\"", schema_, "\".");
  std::string now = absl::StrCat(quoted, "matins_now()");
  if (IsMutant(Mutant::kClockBeforeLock)) now = "current_setting('matins.early')::timestamptz";
  if (IsMutant(Mutant::kNoClockMark)) now = absl::StrCat(quoted, "matins_clock()");
  const std::string frozen =
      IsMutant(Mutant::kNoStepBack)
          ? absl::StrCat("exists (select from ", quoted,
                         "matins_meta where key = 'clock_frozen_why' and value <> '')")
          : absl::StrCat(quoted, "matins_frozen()");
  const std::string jumped =
      IsMutant(Mutant::kNoStepForward)
          ? ""
          : absl::StrCat(" or coalesce(", quoted,
                         "matins_clock() > (select timestamptz 'epoch' + value::bigint * interval "
                         "'1 microsecond' + interval '1 hour' from ",
                         quoted, "matins_meta where key = 'clock_hwm'), false)");
  // A newer program has been here, whose rules this one does not know.
  const std::string outdated = absl::StrCat(" or (select value::int from ", quoted,
                                            "matins_meta where key = 'schema') > ", kSchemaVersion);
  return absl::StrReplaceAll(
      sql, {{"@NOW", now},
            {"@FENCE", absl::StrCat("((select value::bigint from ", quoted,
                                    "matins_meta where key = 'epoch') << 40 | nextval('", quoted,
                                    "matins_fence'))")},
            {"@STEPPED", frozen},
            // In a sub-select: once a statement, not once a row.
            {"@FROZEN", absl::StrCat("(select ", frozen, jumped, outdated, ")")},
            {"@.", quoted}});
}

std::string SqlNames::channel() const { return absl::StrCat("\"matins/", schema_, "\""); }

}  // namespace matins::postgresql
