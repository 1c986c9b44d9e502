#include "store/postgresql/sql.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/fault.h"
#include "base/time.h"
#include "job/words.h"

namespace matins::postgresql {
std::optional<std::string> TimeParam(absl::Time t) {
  if (t == absl::InfinitePast() || t == absl::InfiniteFuture()) return std::nullopt;
  return absl::StrCat(UtcText(t), "+00");
}

std::string IntervalText(absl::Duration d) {
  return absl::StrCat(absl::ToInt64Microseconds(d), " microseconds");
}

const char kRowColumns[] =
    "r.job_name, r.period, r.biz_date, r.status, r.held, r.generation, r.ver, r.due_at, "
    "r.window_start, r.window_end, r.nominal, r.not_before, r.start_by, r.version, r.backfill, "
    "r.manual, r.params, r.reason, r.by_whom, r.attempts, r.attempts_total, r.losses, r.fence, "
    "r.nonce, r.node, r.held_by, r.held_until, r.claimed_at, r.lease_until, r.run_until, "
    "r.wait_until, r.checkpoint, r.finished_at, r.op_at";

absl::CivilSecond NominalOf(absl::string_view text) {
  // "2026-11-29T01:00:00", which is read for each run; anything else by the library.
  const auto number = [&](size_t at, size_t length) {
    int value = 0;
    for (size_t i = at; i < at + length; ++i) {
      if (!absl::ascii_isdigit(static_cast<unsigned char>(text[i]))) return -1;
      value = value * 10 + (text[i] - '0');
    }
    return value;
  };
  if (text.size() == 19 && text[4] == '-' && text[10] == 'T') {
    const int year = number(0, 4), month = number(5, 2), day = number(8, 2);
    const int hour = number(11, 2), minute = number(14, 2), second = number(17, 2);
    if (std::min({year, month, day, hour, minute, second}) >= 0) {
      return absl::CivilSecond(year, month, day, hour, minute, second);
    }
  }
  absl::CivilSecond nominal;
  absl::ParseCivilTime(text, &nominal);
  return nominal;
}

absl::string_view StatusText(PeriodStatus status) { return Word(status); }

PeriodStatus StatusOf(absl::string_view text) {
  return FromWord<PeriodStatus>(text).value_or(PeriodStatus::kFailed);
}

PeriodRow ReadRow(const Rows& rows, int i, int c) {
  PeriodRow row;
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
  return row;
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
  return absl::StrReplaceAll(
      sql, {{"@NOW", now},
            {"@FENCE", absl::StrCat("((select value::bigint from ", quoted,
                                    "matins_meta where key = 'epoch') << 40 | nextval('", quoted,
                                    "matins_fence'))")},
            {"@STEPPED", frozen},
            // In a sub-select: once a statement, not once a row.
            {"@FROZEN", absl::StrCat("(select ", frozen, jumped, ")")},
            {"@.", quoted}});
}

std::string SqlNames::channel() const { return absl::StrCat("\"matins/", schema_, "\""); }

}  // namespace matins::postgresql
