#include "demo/reconcile.h"

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "demo/fence.h"
#include "demo/ledger.h"

namespace matins::demo {
namespace {

constexpr int64_t kBatches =
    kPaymentsADay / kBatch + 1;  // a day may have a few more payments than the round number
constexpr int64_t kForeignStep = kBatches + 1;
constexpr int64_t kLateStep = kBatches + 2;
constexpr int64_t kSumStep = kBatches + 3;

// What had come by the end of the day; the rest is tomorrow's.
constexpr char kAmountDiffers[] = R"sql(
INSERT INTO difference (biz_date, kind, payment_id, ledger_amount, channel_amount, state, note, batch, fence)
SELECT p.biz_date, 'amount', p.id, p.amount, s.amount, 'draft', '', %BATCH%, %FENCE%
FROM payment p JOIN statement_line s ON s.payment_id = p.id
WHERE p.id >= %FROM% AND p.id < %TO% AND s.arrived = p.biz_date AND s.amount <> p.amount
  AND NOT EXISTS (SELECT 1 FROM difference d WHERE d.payment_id = p.id AND d.kind = 'amount' AND %CARRIED%))sql";

constexpr char kMissingAtChannel[] = R"sql(
INSERT INTO difference (biz_date, kind, payment_id, ledger_amount, channel_amount, state, note, batch, fence)
SELECT p.biz_date, 'missing_at_channel', p.id, p.amount, 0, 'draft', '', %BATCH%, %FENCE%
FROM payment p
WHERE p.id >= %FROM% AND p.id < %TO%
  AND NOT EXISTS (SELECT 1 FROM statement_line s WHERE s.payment_id = p.id AND s.arrived = p.biz_date)
  AND NOT EXISTS (SELECT 1 FROM difference d WHERE d.payment_id = p.id AND d.kind = 'missing_at_channel' AND %CARRIED%))sql";

constexpr char kDuplicate[] = R"sql(
INSERT INTO difference (biz_date, kind, payment_id, ledger_amount, channel_amount, state, note, batch, fence)
SELECT MIN(s.biz_date), 'duplicate', s.payment_id, 0, MAX(s.amount), 'draft', '', %BATCH%, %FENCE%
FROM statement_line s
WHERE s.payment_id >= %FROM% AND s.payment_id < %TO% AND s.arrived = s.biz_date
  AND NOT EXISTS (SELECT 1 FROM difference d WHERE d.payment_id = s.payment_id AND d.kind = 'duplicate' AND %CARRIED%)
GROUP BY s.payment_id HAVING COUNT(*) > 1)sql";

constexpr char kMissingInLedger[] = R"sql(
INSERT INTO difference (biz_date, kind, payment_id, ledger_amount, channel_amount, state, note, batch, fence)
SELECT s.biz_date, 'missing_in_ledger', s.payment_id, 0, s.amount, 'draft', '', %BATCH%, %FENCE%
FROM statement_line s
WHERE s.payment_id >= %FROM% AND s.payment_id < %TO% AND s.arrived = s.biz_date
  AND NOT EXISTS (SELECT 1 FROM payment p WHERE p.id = s.payment_id)
  AND NOT EXISTS (SELECT 1 FROM difference d WHERE d.payment_id = s.payment_id AND d.kind = 'missing_in_ledger' AND %CARRIED%))sql";

// A line of the day before that came today settles what was missing then; what a person works on
// gets a note instead.
constexpr char kSettleLate[] = R"sql(
UPDATE difference SET note = 'the line came a day late',
  state = CASE WHEN state = 'working' THEN 'working' ELSE 'settled' END
WHERE kind = 'missing_at_channel' AND biz_date = ? AND payment_id IN (
  SELECT s.payment_id FROM statement_line s WHERE s.payment_id >= ? AND s.payment_id < ? AND s.arrived = ?))sql";

// Under Matins what was there as a draft has just been cleared, and anything else is carried over;
// the plain way knows of no carrying over.
enum class Carry { kYes, kNo };

std::string Filled(absl::string_view text, int64_t batch, int64_t fence, int64_t from, int64_t to,
                   Carry carry) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const size_t end = text.find('%', i + 1);
    const absl::string_view word = text.substr(i + 1, end - i - 1);
    if (word == "BATCH") absl::StrAppend(&out, batch);
    if (word == "FENCE") absl::StrAppend(&out, fence);
    if (word == "FROM") absl::StrAppend(&out, from);
    if (word == "TO") absl::StrAppend(&out, to);
    if (word == "CARRIED") absl::StrAppend(&out, carry == Carry::kYes ? "1 = 1" : "1 = 0");
    i = end;
  }
  return out;
}

absl::Status Compute(Sql& sql, int64_t batch, int64_t fence, int64_t from, int64_t to,
                     Carry carry) {
  for (const char* text : {kAmountDiffers, kMissingAtChannel, kDuplicate}) {
    RETURN_IF_ERROR(sql.DoAll(Filled(text, batch, fence, from, to, carry)));
  }
  return absl::OkStatus();
}

absl::Status SumUp(Sql& sql, absl::CivilDay day, int64_t fence) {
  return sql
      .Do("INSERT INTO day_summary (biz_date, differences, amount, fence) "
          "SELECT CAST(? AS TEXT), COUNT(*), COALESCE(SUM(ABS(ledger_amount - channel_amount)), "
          "0), CAST(? AS BIGINT) "
          "FROM difference WHERE biz_date = ? "
          "ON CONFLICT (biz_date) DO UPDATE SET differences = excluded.differences, amount = "
          "excluded.amount, "
          "fence = excluded.fence",
          {FormatDay(day), fence, FormatDay(day)})
      .status();
}

absl::Status WriteStep(Sql& sql, int64_t step, int64_t fence, absl::CivilDay day) {
  const int64_t first = FirstId(day);
  if (step < kLateStep) {
    RETURN_IF_ERROR(
        sql.Do("DELETE FROM difference WHERE biz_date = ? AND batch = ? AND state = 'draft'",
               {FormatDay(day), step})
            .status());
  }
  if (step <= kBatches) {
    return Compute(sql, step, fence, first + (step - 1) * kBatch, first + step * kBatch,
                   Carry::kYes);
  }
  if (step == kForeignStep) {
    return sql.DoAll(
        Filled(kMissingInLedger, step, fence, first + kForeign, first + kIdsADay, Carry::kYes));
  }
  if (step == kLateStep) {
    const int64_t before = FirstId(day - 1);
    return sql.Do(kSettleLate, {FormatDay(day - 1), before, before + kIdsADay, FormatDay(day)})
        .status();
  }
  return SumUp(sql, day, fence);
}

}  // namespace

int64_t Steps() { return kSumStep; }

absl::Status Reconcile(Sql& sql, const Ownership& owner, absl::CivilDay day,
                       const std::function<void(int64_t)>& after_step) {
  ASSIGN_OR_RETURN(const int64_t done, RaiseFence(sql, owner));
  for (int64_t step = done + 1; step <= kSumStep; ++step) {
    RETURN_IF_ERROR(
        InFencedStep(sql, owner, step, [&] { return WriteStep(sql, step, owner.fence, day); }));
    after_step(step);
  }
  return absl::OkStatus();
}

absl::Status ReconcilePlainly(Sql& sql, absl::CivilDay day) {
  ASSIGN_OR_RETURN(const Answer there,
                   sql.Do("SELECT 1 FROM day_summary WHERE biz_date = ?", {FormatDay(day)}));
  if (!there.rows.empty()) return absl::OkStatus();
  const int64_t first = FirstId(day);
  for (int64_t batch = 1; batch <= kBatches; ++batch) {
    RETURN_IF_ERROR(
        Compute(sql, batch, 0, first + (batch - 1) * kBatch, first + batch * kBatch, Carry::kNo));
  }
  RETURN_IF_ERROR(sql.DoAll(
      Filled(kMissingInLedger, kForeignStep, 0, first + kForeign, first + kIdsADay, Carry::kNo)));
  return SumUp(sql, day, 0);
}

}  // namespace matins::demo
