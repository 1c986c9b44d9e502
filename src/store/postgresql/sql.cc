#include "store/postgresql/sql.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/fault.h"
#include "base/time.h"

namespace matins::postgresql {
namespace {

// The length of the UTF-8 sequence at `text[i]`, or 0 where there is none that PostgreSQL takes.
size_t SequenceLength(absl::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  if (lead == 0) return 0;
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xc2 && lead <= 0xdf   ? 2
                        : lead >= 0xe0 && lead <= 0xef ? 3
                        : lead >= 0xf0 && lead <= 0xf4 ? 4
                                                       : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(i + 1);
  if ((lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f) ||
      (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f)) {
    return 0;
  }
  return length;
}

void AppendJsonText(std::string& out, absl::string_view text) {
  out += '"';
  for (const char c : UsableText(text)) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

std::string InstantText(absl::Time t) {
  return absl::FormatTime("%E4Y-%m-%d %H:%M:%E6S+00", t, absl::UTCTimeZone());
}

}  // namespace

std::string UsableText(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const size_t length = SequenceLength(text, i);
    if (length == 0) {
      out += '?';
      ++i;
    } else {
      absl::StrAppend(&out, text.substr(i, length));
      i += length;
    }
  }
  return out;
}

JsonRows& JsonRows::Row() {
  text_ += rows_++ == 0 ? "{" : "},{";
  first_ = true;
  return *this;
}
void JsonRows::Name(absl::string_view column) {
  if (!first_) text_ += ',';
  first_ = false;
  absl::StrAppend(&text_, "\"", column, "\":");
}
JsonRows& JsonRows::Add(absl::string_view column, absl::string_view text) {
  Name(column);
  AppendJsonText(text_, text);
  return *this;
}
JsonRows& JsonRows::AddInt(absl::string_view column, int64_t value) {
  Name(column);
  absl::StrAppend(&text_, value);
  return *this;
}
JsonRows& JsonRows::AddNumber(absl::string_view column, double value) {
  Name(column);
  // As text: JSON knows no NaN, PostgreSQL's float8 does.
  absl::StrAppendFormat(&text_, "\"%.17g\"", value);
  return *this;
}
JsonRows& JsonRows::AddBool(absl::string_view column, bool value) {
  Name(column);
  text_ += value ? "true" : "false";
  return *this;
}
JsonRows& JsonRows::AddTime(absl::string_view column, absl::Time t) {
  Name(column);
  const std::optional<std::string> text = TimeParam(t);
  text_ += text ? absl::StrCat("\"", *text, "\"") : "null";
  return *this;
}
JsonRows& JsonRows::AddDay(absl::string_view column, absl::CivilDay day) {
  Name(column);
  absl::StrAppend(&text_, "\"", FormatDay(day), "\"");
  return *this;
}
JsonRows& JsonRows::AddSpan(absl::string_view column, absl::Duration d) {
  Name(column);
  text_ += d == absl::InfiniteDuration() ? "null" : absl::StrCat("\"", IntervalText(d), "\"");
  return *this;
}
JsonRows& JsonRows::AddBytes(absl::string_view column, absl::string_view bytes) {
  Name(column);
  absl::StrAppend(&text_, "\"", absl::BytesToHexString(bytes), "\"");
  return *this;
}
JsonRows& JsonRows::AddKey(const PeriodKey& key) {
  return Add("job", key.job).Add("period", key.period);
}
JsonRows& JsonRows::AddTicket(const Ticket& ticket) {
  return AddKey(ticket.key)
      .AddInt("gen", ticket.generation)
      .AddInt("fence", ticket.fence)
      .AddInt("nonce", ticket.nonce);
}
std::string JsonRows::Take() {
  text_ += rows_ == 0 ? "]" : "}]";
  return std::move(text_);
}

std::string JsonStrings(const std::vector<std::string>& strings) {
  std::string out = "[";
  for (size_t i = 0; i < strings.size(); ++i) {
    if (i > 0) out += ',';
    AppendJsonText(out, strings[i]);
  }
  return out + "]";
}

std::optional<std::string> TimeParam(absl::Time t) {
  if (t == absl::InfinitePast() || t == absl::InfiniteFuture()) return std::nullopt;
  return InstantText(t);
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

absl::string_view StatusText(PeriodStatus status) {
  switch (status) {
    case PeriodStatus::kPlanned:
      return "PLANNED";
    case PeriodStatus::kRunning:
      return "RUNNING";
    case PeriodStatus::kDone:
      return "DONE";
    case PeriodStatus::kFailed:
      return "FAILED";
    case PeriodStatus::kSkipped:
      return "SKIPPED";
  }
  return "";
}

PeriodStatus StatusOf(absl::string_view text) {
  for (const PeriodStatus s : {PeriodStatus::kPlanned, PeriodStatus::kRunning, PeriodStatus::kDone,
                               PeriodStatus::kSkipped}) {
    if (StatusText(s) == text) return s;
  }
  return PeriodStatus::kFailed;
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
  absl::ParseCivilTime(rows.Text(i, c + 10), &row.nominal);
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
  return absl::StrReplaceAll(
      sql, {{"@NOW", IsMutant(Mutant::kClockBeforeLock)
                         ? std::string("current_setting('matins.early')::timestamptz")
                         : absl::StrCat(quoted, "matins_now()")},
            {"@FENCE", absl::StrCat("((select value::bigint from ", quoted,
                                    "matins_meta where key = 'epoch') << 40 | nextval('", quoted,
                                    "matins_fence'))")},
            {"@FROZEN", absl::StrCat(quoted, "matins_frozen()")},
            {"@.", quoted}});
}

std::string SqlNames::channel() const { return absl::StrCat("\"matins/", schema_, "\""); }

}  // namespace matins::postgresql
