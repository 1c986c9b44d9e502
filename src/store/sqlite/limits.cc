#include "store/sqlite/limits.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "job/words.h"
#include "store/set_aside.h"
#include "store/sqlite/sqlite_acts.h"

namespace matins::sqlite {
namespace {

std::vector<LimitRow> ReadRules(Connection& db) {
  std::vector<LimitRow> rows;
  Statement q = db.Sql("SELECT kind, name, most, source, by_whom, at FROM job_limit");
  while (q.Next()) {
    LimitRow row;
    row.rule = {FromWord<LimitKind>(q.Text(0)).value_or(LimitKind::kGlobal), q.Text(1),
                static_cast<int>(q.Int(2))};
    row.source = q.Text(3);
    row.by = q.Text(4);
    row.at = q.Time(5, absl::InfinitePast());
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<LimitRule> RulesOf(const std::vector<LimitRow>& rows) {
  std::vector<LimitRule> rules;
  for (const LimitRow& row : rows) rules.push_back(row.rule);
  return rules;
}

int64_t Number(Statement q) { return q.Next() ? q.Int(0) : 0; }

// Runs that are alive by their rows, and those whose slot outlives the row.
constexpr char kAlive[] =
    "SELECT (SELECT count(*) FROM job_watermark WHERE status = 'RUNNING') + (SELECT count(*) FROM "
    "job_slot WHERE until > ?1)";
constexpr char kBackfills[] =
    "SELECT (SELECT count(*) FROM job_watermark WHERE status = 'RUNNING' AND backfill) + (SELECT "
    "count(*) FROM job_slot WHERE until > ?1 AND backfill)";
constexpr char kOfTenant[] =
    "SELECT (SELECT count(*) FROM job_watermark WHERE status = 'RUNNING' AND tenant <> '' AND "
    "tenant = ?2) + (SELECT count(*) FROM job_slot WHERE until > ?1 AND tenant = ?2)";
constexpr char kOfKey[] =
    "SELECT (SELECT count(*) FROM job_watermark WHERE status = 'RUNNING' AND limit_key <> '' AND "
    "limit_key = ?2) + (SELECT count(*) FROM job_slot WHERE until > ?1 AND limit_key = ?2)";

}  // namespace

LimitGate::LimitGate(Connection& db, const Transaction& transaction)
    : db_(db), now_(transaction.now()) {
  if (transaction.has_limits()) book_ = LimitBook(RulesOf(ReadRules(db)));
}

void LimitGate::Count(const LimitClaim& claim) {
  if (!std::exchange(counted_, true)) {
    if (book_.Find(LimitKind::kGlobal, "") != nullptr)
      counts_.alive = Number(db_.Sql(kAlive, now_));
    if (book_.MostBackfills()) counts_.backfills = Number(db_.Sql(kBackfills, now_));
  }
  if (!claim.tenant.empty() && known_.insert(LimitName(LimitKind::kTenant, claim.tenant)).second) {
    counts_.tenants[claim.tenant] = Number(db_.Sql(kOfTenant, now_, claim.tenant));
  }
  if (!claim.key.empty() && known_.insert(LimitName(LimitKind::kKey, claim.key)).second) {
    counts_.keys[claim.key] = Number(db_.Sql(kOfKey, now_, claim.key));
  }
}

std::optional<Full> LimitGate::Refuse(const Row& row) {
  if (book_.empty()) return std::nullopt;
  const LimitClaim claim = ClaimOf(row);
  Count(claim);
  return FirstFull(book_, counts_, claim);
}

void LeaveSlot(Connection& db, const Row& row, absl::Time until) {
  if (row.fence == 0 || IsMutant(Mutant::kNoLeftSlot)) return;
  db.Sql(
        "INSERT OR REPLACE INTO job_slot (fence, job_name, period, tenant, limit_key, backfill, "
        "until) VALUES (?, ?, ?, ?, ?, ?, ?)",
        row.fence, row.key.job, row.key.period, row.tenant, row.limit_key, row.backfill, until)
      .Run();
}

bool DropSlot(Connection& db, absl::Time now, const PeriodKey& key, int64_t fence) {
  Row row;
  row.key = key;
  {
    Statement slot = db.Sql(
        "DELETE FROM job_slot WHERE fence = ? AND job_name = ? AND period = ? RETURNING tenant, "
        "limit_key, backfill",
        fence, key.job, key.period);
    if (!slot.Next()) return false;
    row.tenant = slot.Text(0);
    row.limit_key = slot.Text(1);
    row.backfill = slot.Bool(2);
    while (slot.Next()) {
    }
  }
  WakeForSlot(db, now, row);
  return true;
}

void WakeForSlot(Connection& db, absl::Time now, const Row& row) {
  static const auto& text = *new std::string(WakeText("waits_for = ?1 AND waits_for IS NOT NULL"));
  const auto wake = [&](const std::string& waits_for) {
    db.Sql(text, waits_for, now - kNodeGone).Run();
  };
  wake(LimitName(LimitKind::kGlobal, ""));
  if (!row.tenant.empty()) wake(LimitName(LimitKind::kTenant, row.tenant));
  if (!row.limit_key.empty()) wake(LimitName(LimitKind::kKey, row.limit_key));
  if (row.backfill) wake(LimitName(LimitKind::kBackfillShare, ""));
}

// ---- acts ----

absl::StatusOr<bool> SqliteActs::SetLimits(const SetLimitsRequest& request) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "set_limits"));
  const absl::Time now = transaction.now();
  const std::vector<LimitRow> rows = ReadRules(*db_);
  const std::string said_key = LimitsSaidKey(request.source);
  std::optional<std::string> said;
  int64_t number = 0;
  {
    Statement q =
        db_->Sql("SELECT key, value FROM matins_meta WHERE key IN ('limits', ?)", said_key);
    while (q.Next()) {
      if (q.Text(0) == "limits") {
        number = q.Int(1);
      } else {
        said = q.Text(1);
      }
    }
  }
  RETURN_IF_ERROR(db_->status());
  ASSIGN_OR_RETURN(const LimitChange change, ChangeLimits(rows, said, request));
  if (!request.source.empty() && said != change.said) {
    db_->Sql("INSERT OR REPLACE INTO matins_meta (key, value) VALUES (?, ?)", said_key, change.said)
        .Run();
  }
  if (!change.empty()) {
    for (const LimitRule& rule : change.gone) {
      db_->Sql("DELETE FROM job_limit WHERE kind = ? AND name = ?", Word(rule.kind), rule.name)
          .Run();
    }
    for (const LimitRule& rule : change.put) {
      db_->Sql(
             "INSERT INTO job_limit (kind, name, most, source, by_whom, at) VALUES (?, ?, ?, ?, ?, "
             "?)",
             Word(rule.kind), rule.name, rule.most, request.source, request.act.who, now)
          .Run();
    }
    db_->Sql("INSERT OR REPLACE INTO matins_meta (key, value) VALUES ('limits', ?)",
             NextLimitsNumber(number, change.any))
        .Run();
    // Whoever waited for a limit is looked at by the new one.
    db_->Sql(
           "UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE status = "
           "'PLANNED' AND waits_for IS NOT NULL AND waits_for < ?",
           kAside)
        .Run();
    WriteEvent(*db_, now,
               {.kind = "limits",
                .who = request.act.who,
                .why = request.act.why,
                .detail = change.detail});
  }
  RETURN_IF_ERROR(transaction.Commit());
  return !change.empty();
}

absl::StatusOr<LimitsView> SqliteActs::ReadLimits() {
  ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
  std::vector<LimitUse> uses;
  Statement q = db_->Sql(
      "SELECT kind, name, sum(taken), sum(left), sum(waiting) FROM ("
      "WITH s AS (SELECT tenant, limit_key, backfill, 1 AS taken, 0 AS left FROM job_watermark "
      "WHERE status = 'RUNNING' UNION ALL SELECT tenant, limit_key, backfill, 1, 1 FROM job_slot "
      "WHERE until > ?) "
      "SELECT 'global' AS kind, '' AS name, taken, left, 0 AS waiting FROM s UNION ALL "
      "SELECT 'tenant', tenant, taken, left, 0 FROM s WHERE tenant <> '' UNION ALL "
      "SELECT 'key', limit_key, taken, left, 0 FROM s WHERE limit_key <> '' UNION ALL "
      "SELECT 'backfill_share', '', taken, left, 0 FROM s WHERE backfill UNION ALL "
      "SELECT CASE WHEN instr(waits_for, '/') > 0 THEN substr(waits_for, 1, instr(waits_for, '/') "
      "- 1) ELSE waits_for END, CASE WHEN instr(waits_for, '/') > 0 THEN substr(waits_for, "
      "instr(waits_for, '/') + 1) ELSE '' END, 0, 0, 1 FROM job_watermark WHERE status = "
      "'PLANNED' AND waits_for IS NOT NULL AND waits_for < ?2) GROUP BY kind, name",
      snapshot.now(), kAside);
  while (q.Next()) {
    uses.push_back({FromWord<LimitKind>(q.Text(0)).value_or(LimitKind::kGlobal), q.Text(1),
                    q.Int(2), q.Int(3), q.Int(4)});
  }
  LimitsView view = ViewOf(ReadRules(*db_), std::move(uses));
  RETURN_IF_ERROR(db_->status());
  return view;
}

}  // namespace matins::sqlite
