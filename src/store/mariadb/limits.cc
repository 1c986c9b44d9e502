#include "store/mariadb/limits.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "job/words.h"
#include "store/mariadb/acts.h"
#include "store/mariadb/ticket.h"
#include "store/server_rows.h"

namespace matins::mariadb {
namespace {

constexpr char kRules[] = "SELECT kind, name, most, source, by_whom, at FROM job_limit";

Value RulesTable(const std::vector<LimitRule>& rules) {
  JsonRows json;
  for (const LimitRule& rule : rules) {
    json.Row().Add("kind", Word(rule.kind)).Add("name", rule.name).AddInt("most", rule.most);
  }
  return JsonTable(json.Take(), "kind name, name key, most int");
}

// Runs that are alive by their rows, and those whose slot outlives the row.
constexpr char kRunning[] = "(SELECT COUNT(*) FROM job_watermark r WHERE r.status = 'RUNNING'";
constexpr char kLeft[] = ") + (SELECT COUNT(*) FROM job_slot s WHERE s.until > @NOW";

}  // namespace

absl::StatusOr<KnownLimits> ReadKnownLimits(Session& session) {
  // One snapshot for both.
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session.connection.Read(
                       {Sql("SELECT value FROM matins_meta WHERE name = 'limits'"), Sql(kRules)}));
  KnownLimits known;
  if (rows[0].size() > 0) known.number = rows[0].Int(0, 0);
  std::vector<LimitRule> rules;
  for (const LimitRow& row : ReadLimitRows(rows[1])) rules.push_back(row.rule);
  known.book = LimitBook(std::move(rules));
  return known;
}

Statement LockLimits(const std::vector<const LimitRule*>& rules) {
  if (rules.empty() || IsMutant(Mutant::kNoLimitLock)) return Sql("SELECT 0");
  std::vector<LimitRule> wanted;
  for (const LimitRule* rule : rules) wanted.push_back(*rule);
  // In the order of the array, which is that of the names.
  return Sql(
      "SELECT l.kind FROM ? STRAIGHT_JOIN job_limit l FORCE INDEX (PRIMARY) ON l.kind = x.kind AND "
      "l.name = x.name "
      "FOR UPDATE",
      {RulesTable(wanted)});
}

Statement CountSlots(const LimitBook& book, const std::vector<LimitClaim>& claims) {
  std::set<std::pair<LimitKind, std::string>> names;
  for (const LimitClaim& claim : claims) {
    if (!claim.tenant.empty()) names.insert({LimitKind::kTenant, claim.tenant});
    if (!claim.key.empty()) names.insert({LimitKind::kKey, claim.key});
  }
  std::vector<LimitRule> wanted;
  for (const auto& [kind, name] : names) wanted.push_back({kind, name, 1});
  // What runs is read once, however many names there are.
  std::string sql =
      "SELECT x.kind, x.name, COALESCE(t.n, k.n, 0) + IF(x.kind = 'tenant', (SELECT COUNT(*) FROM "
      "job_slot s WHERE s.until > @NOW AND s.tenant = x.name), (SELECT COUNT(*) FROM job_slot s "
      "WHERE s.until > @NOW AND s.limit_key = x.name)) FROM ? "
      "LEFT JOIN (SELECT r.tenant, COUNT(*) AS n FROM job_watermark r FORCE INDEX "
      "(job_watermark_due) WHERE r.status = 'RUNNING' "
      "AND r.tenant IS NOT NULL GROUP BY r.tenant) t ON x.kind = 'tenant' AND t.tenant = x.name "
      "LEFT JOIN (SELECT r.limit_key, COUNT(*) AS n FROM job_watermark r FORCE INDEX "
      "(job_watermark_due) WHERE "
      "r.status = 'RUNNING' AND r.limit_key IS NOT NULL GROUP BY r.limit_key) k ON "
      "x.kind = 'key' AND k.limit_key = x.name";
  if (book.Find(LimitKind::kGlobal, "") != nullptr) {
    absl::StrAppend(&sql, " UNION ALL SELECT 'global', '', ", kRunning, kLeft,
                    ") UNION ALL SELECT 'backfill_share', '', ", kRunning, " AND r.backfill", kLeft,
                    " AND s.backfill)");
  }
  return Sql(sql, {RulesTable(wanted)});
}

// ---- acts ----

absl::StatusOr<bool> MariadbActs::SetLimits(const SetLimitsRequest& request) {
  const std::string said_key = LimitsSaidKey(UsableText(request.source));
  const std::vector<Statement> locks = {
      Sql("SELECT value FROM matins_meta WHERE name = 'limits' FOR UPDATE"), Sql(kRules),
      Sql("SELECT value FROM matins_meta WHERE name = ?", {said_key}), ReadClock()};
  const auto once = [&]() -> absl::StatusOr<bool> {
    Connection& connection = session_.connection;
    ASSIGN_OR_RETURN(const std::vector<Rows> rows, connection.Begin(locks));
    const absl::Time now = ClockOf(rows[3]).now;
    const int64_t number = rows[0].size() > 0 ? rows[0].Int(0, 0) : 0;
    std::optional<std::string> said;
    if (rows[2].size() > 0) said = rows[2].Text(0, 0);
    const absl::StatusOr<LimitChange> change = ChangeLimits(ReadLimitRows(rows[1]), said, request);
    if (!change.ok()) {
      connection.Rollback();
      return change.status();
    }
    std::vector<Statement> writes;
    const auto keep = [&](absl::string_view key, const std::string& value) {
      writes.push_back(
          Sql("INSERT INTO matins_meta (name, value) VALUES (?, ?) ON DUPLICATE KEY UPDATE "
              "value = VALUES(value)",
              {key, value}));
    };
    if (!request.source.empty() && said != change->said) keep(said_key, change->said);
    if (!change->empty()) {
      writes.push_back(
          Sql("DELETE l FROM ? STRAIGHT_JOIN job_limit l FORCE INDEX (PRIMARY) ON l.kind = x.kind "
              "AND l.name = x.name",
              {RulesTable(change->gone)}));
      writes.push_back(
          Sql("INSERT INTO job_limit (kind, name, most, source, by_whom, at) SELECT x.kind, "
              "x.name, x.most, ?, ?, ? FROM ?",
              {request.source, request.act.who, now, RulesTable(change->put)}));
      keep("limits", absl::StrCat(NextLimitsNumber(number, change->any)));
      writes.push_back(EventOf("limits", "", "", request.act, now, change->detail));
    }
    RETURN_IF_ERROR(CommitAt(session_, "act.before_commit", writes).status());
    MATINS_FAULT_POINT("act.after_commit");  // crash here: it stands, and is recorded
    return !change->empty();
  };
  ASSIGN_OR_RETURN(const bool changed, session_.Retried(once));
  if (!changed) return false;
  // Whoever waited for a limit is looked at by the new one. Behind the commit, and past rows that a
  // START has locked, which may itself be waiting for the change.
  RETURN_IF_ERROR(
      session_
          .Retried([&] {
            return session_.connection.Write({Sql(
                "UPDATE (SELECT w.job_name AS job, w.period AS period FROM job_watermark w WHERE "
                "w.status = 'PLANNED' AND (w.waits_for LIKE 'tenant/%' OR w.waits_for LIKE "
                "'key/%' OR w.waits_for IN ('global', 'backfill_share')) FOR UPDATE SKIP "
                "LOCKED) x @ROWS SET r.look_at = r.not_before, r.waits_for = NULL")});
          })
          .status());
  return true;
}

absl::StatusOr<LimitsView> MariadbActs::ReadLimits() {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session_.connection.Read({Sql(kRules), Sql(R"(
    WITH s AS (
      SELECT tenant, limit_key, backfill, 1 AS taken, 0 AS lasting FROM job_watermark
      WHERE status = 'RUNNING' UNION ALL
      SELECT tenant, limit_key, backfill, 1, 1 FROM job_slot WHERE until > @NOW),
    u AS (
      SELECT 'global' AS kind, '' AS name, taken, lasting, 0 AS waiting FROM s UNION ALL
      SELECT 'tenant', tenant, taken, lasting, 0 FROM s WHERE tenant IS NOT NULL UNION ALL
      SELECT 'key', limit_key, taken, lasting, 0 FROM s WHERE limit_key IS NOT NULL UNION ALL
      SELECT 'backfill_share', '', taken, lasting, 0 FROM s WHERE backfill UNION ALL
      SELECT SUBSTRING_INDEX(waits_for, '/', 1), IF(LOCATE('/', waits_for) = 0, '',
        SUBSTRING(waits_for, LOCATE('/', waits_for) + 1)), 0, 0, 1 FROM job_watermark
      WHERE status = 'PLANNED' AND waits_for IS NOT NULL AND
        SUBSTRING_INDEX(waits_for, '/', 1) IN ('global', 'tenant', 'key', 'backfill_share'))
    SELECT kind, name, SUM(taken), SUM(lasting), SUM(waiting) FROM u GROUP BY kind, name)")}));
  return ViewOf(ReadLimitRows(rows[0]), ReadLimitUses(rows[1]));
}

}  // namespace matins::mariadb
