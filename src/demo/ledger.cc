#include "demo/ledger.h"

#include <functional>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"

namespace matins::demo {
namespace {

constexpr uint64_t kSeed = 20261029;
constexpr size_t kRowsAStatement = 1'000;

constexpr char kTables[] = R"sql(
CREATE TABLE IF NOT EXISTS payment (
  id BIGINT PRIMARY KEY, biz_date TEXT NOT NULL, hour INTEGER NOT NULL, merchant INTEGER NOT NULL,
  amount BIGINT NOT NULL);
CREATE INDEX IF NOT EXISTS payment_day ON payment (biz_date, hour, merchant);
CREATE TABLE IF NOT EXISTS statement_line (
  id BIGINT PRIMARY KEY, biz_date TEXT NOT NULL, payment_id BIGINT NOT NULL, amount BIGINT NOT NULL,
  arrived TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS statement_line_payment ON statement_line (payment_id);
CREATE TABLE IF NOT EXISTS difference (
  biz_date TEXT NOT NULL, kind TEXT NOT NULL, payment_id BIGINT NOT NULL, ledger_amount BIGINT NOT NULL,
  channel_amount BIGINT NOT NULL, state TEXT NOT NULL, note TEXT NOT NULL, batch INTEGER NOT NULL, fence BIGINT NOT NULL);
CREATE INDEX IF NOT EXISTS difference_day ON difference (biz_date, batch);
CREATE INDEX IF NOT EXISTS difference_payment ON difference (payment_id);
CREATE TABLE IF NOT EXISTS day_summary (
  biz_date TEXT PRIMARY KEY, differences BIGINT NOT NULL, amount BIGINT NOT NULL, fence BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS invoice (
  hour_start TEXT NOT NULL, merchant_group INTEGER NOT NULL, payments BIGINT NOT NULL, amount BIGINT NOT NULL);
CREATE INDEX IF NOT EXISTS invoice_hour ON invoice (hour_start);
CREATE TABLE IF NOT EXISTS report (
  biz_date TEXT PRIMARY KEY, days BIGINT NOT NULL, differences BIGINT NOT NULL, open_amount BIGINT NOT NULL);
)sql";

// A line of the statement, or a payment, as it is made.
struct Made {
  int64_t id, payment, merchant, amount;
  int hour;
  bool late = false;
};

struct Day {
  std::vector<Made> payments, lines;
  Planted planted;
};

// One day, wholly decided by its date: how many of what, which, and how much.
Day MakeDay(absl::CivilDay date) {
  const int64_t first = FirstId(date);
  SeededRandom random(kSeed + static_cast<uint64_t>(first));
  Day day;
  const int64_t count = kPaymentsADay - 500 + static_cast<int64_t>(random.Below(1'000));
  int64_t line = first;
  const auto add_line = [&](int64_t payment, int64_t amount, bool late) {
    day.lines.push_back({line++, payment, 0, amount, 0, late});
    day.planted.late += late;
  };
  for (int64_t i = 0; i < count; ++i) {
    const auto merchant = static_cast<int64_t>(random.Below(200));
    const auto amount = static_cast<int64_t>(100 + random.Below(500'000));
    day.payments.push_back(
        {first + i, first + i, merchant, amount, static_cast<int>(i * 24 / count)});
    switch (random.Below(10'000)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
        ++day.planted.amount;
        add_line(first + i, amount + 1 + static_cast<int64_t>(random.Below(9'999)), false);
        break;
      case 10:
      case 11:
      case 12:
      case 13:
      case 14:
        ++day.planted.missing_at_channel;
        break;
      case 15:
      case 16:
      case 17:
      case 18:
      case 19:
        ++day.planted.duplicate;
        add_line(first + i, amount, false);
        add_line(first + i, amount, false);
        break;
      case 20:
      case 21:
      case 22:
      case 23:
      case 24:
      case 25:
      case 26:
      case 27:
        add_line(first + i, amount, true);
        break;
      default:
        add_line(first + i, amount, false);
    }
  }
  day.planted.missing_in_ledger = 5 + static_cast<int64_t>(random.Below(10));
  for (int64_t i = 0; i < day.planted.missing_in_ledger; ++i) {
    add_line(first + kForeign + i, static_cast<int64_t>(100 + random.Below(500'000)), false);
  }
  return day;
}

absl::Status Insert(Sql& sql, absl::string_view into, const std::vector<Made>& rows,
                    const std::function<std::string(const Made&)>& values) {
  for (size_t start = 0; start < rows.size(); start += kRowsAStatement) {
    std::string statement = absl::StrCat("INSERT INTO ", into, " VALUES ");
    for (size_t i = start; i < std::min(rows.size(), start + kRowsAStatement); ++i) {
      absl::StrAppend(&statement, i == start ? "" : ",", values(rows[i]));
    }
    RETURN_IF_ERROR(sql.DoAll(statement));
  }
  return absl::OkStatus();
}

absl::Status InsertDay(Sql& sql, absl::CivilDay date, const Day& day) {
  const std::string on = FormatDay(date), later = FormatDay(date + 1);
  RETURN_IF_ERROR(Insert(sql, "payment (id, biz_date, hour, merchant, amount)", day.payments,
                         [&](const Made& row) {
                           return absl::StrCat("(", row.id, ",'", on, "',", row.hour, ",",
                                               row.merchant, ",", row.amount, ")");
                         }));
  return Insert(sql, "statement_line (id, biz_date, payment_id, amount, arrived)", day.lines,
                [&](const Made& row) {
                  return absl::StrCat("(", row.id, ",'", on, "',", row.payment, ",", row.amount,
                                      ",'", row.late ? later : on, "')");
                });
}

}  // namespace

int64_t FirstId(absl::CivilDay day) { return (day - absl::CivilDay(2020, 1, 1)) * kIdsADay; }

absl::Status MakeLedger(Sql& sql) { return sql.DoAll(kTables); }

absl::StatusOr<bool> HasDay(Sql& sql, absl::CivilDay day) {
  ASSIGN_OR_RETURN(const Answer answer,
                   sql.Do("SELECT 1 FROM payment WHERE biz_date = ? LIMIT 1", {FormatDay(day)}));
  return !answer.rows.empty();
}

absl::StatusOr<Planted> FillDay(Sql& sql, absl::CivilDay date) {
  const Day day = MakeDay(date);
  RETURN_IF_ERROR(sql.Begin());
  absl::Status status = InsertDay(sql, date, day);
  if (status.ok()) status = sql.Commit();
  if (!status.ok()) {
    sql.Rollback();
    return status;
  }
  return day.planted;
}

Planted PlantedOn(absl::CivilDay day) { return MakeDay(day).planted; }

absl::StatusOr<Count> CountDay(Sql& sql, absl::CivilDay day) {
  ASSIGN_OR_RETURN(
      const Answer answer,
      sql.Do("SELECT COALESCE(SUM(n), 0), COALESCE(SUM(n - 1), 0), COALESCE(SUM(w), 0) FROM ("
             "SELECT COUNT(*) AS n, SUM(CASE WHEN state = 'working' THEN 1 ELSE 0 END) AS w "
             "FROM difference WHERE biz_date = ? GROUP BY kind, payment_id) AS each_one",
             {FormatDay(day)}));
  return Count{answer.Number(0, 0), answer.Number(0, 1), answer.Number(0, 2)};
}

}  // namespace matins::demo
