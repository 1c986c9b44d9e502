#include "store/postgresql/limits.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "job/words.h"
#include "store/json_rows.h"
#include "store/postgresql/acts.h"
#include "store/rules.h"
#include "store/server_rows.h"

namespace matins::postgresql {
namespace {

// Fits both with and without the last three columns.
constexpr char kRules[] = "select kind, name, most, source, by_whom, at from @.job_limit";

std::string NamesOf(const std::set<std::string>& names) {
  return JsonStrings({names.begin(), names.end()});
}

JsonRows RulesJson(const std::vector<LimitRule>& rules) {
  JsonRows json;
  for (const LimitRule& rule : rules) {
    json.Row().Add("kind", Word(rule.kind)).Add("name", rule.name).AddInt("most", rule.most);
  }
  return json;
}

// Runs that are alive by their rows, and those whose slot outlives the row.
constexpr char kRunning[] = "(select count(*) from @.job_watermark r where r.status = 'RUNNING'";
constexpr char kLeft[] = ") + (select count(*) from @.job_slot s where s.until > (select @NOW)";

}  // namespace

const char kLimitsNumber[] =
    "case when exists (select from @.job_limit l where l.kind = '' for key share) or "
    "exists (select from @.job_limit) then (select m.value::bigint from @.matins_meta m where "
    "m.key = 'limits') else 0 end";

absl::StatusOr<KnownLimits> ReadKnownLimits(Session& session) {
  // One snapshot for both.
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session.connection.Read(
          {session.Of("select coalesce((select m.value::bigint from @.matins_meta m where "
                      "m.key = 'limits' and exists (select from @.job_limit)), 0)"),
           session.Of(kRules)}));
  KnownLimits known;
  known.number = rows[0].Int(0, 0);
  std::vector<LimitRule> rules;
  for (const LimitRow& row : ReadLimitRows(rows[1])) rules.push_back(row.rule);
  known.book = LimitBook(std::move(rules));
  return known;
}

Statement LockLimits(const Session& session, const std::vector<const LimitRule*>& rules) {
  if (rules.empty() || IsMutant(Mutant::kNoLimitLock)) return session.Of("select");
  std::vector<LimitRule> wanted;
  for (const LimitRule* rule : rules) wanted.push_back(*rule);
  return session.Of(
      "select l.kind from json_to_recordset($1::json) as x(kind text, name text) join @.job_limit "
      "l on l.kind = x.kind and l.name = x.name order by l.kind, l.name for no key update of l",
      {RulesJson(wanted).Take()});
}

Statement CountSlots(const Session& session, const LimitBook& book,
                     const std::vector<LimitClaim>& claims) {
  std::set<std::string> tenants, keys;
  for (const LimitClaim& claim : claims) {
    if (!claim.tenant.empty()) tenants.insert(claim.tenant);
    if (!claim.key.empty()) keys.insert(claim.key);
  }
  const bool global = book.Find(LimitKind::kGlobal, "") != nullptr;
  return session.Of(
      absl::StrCat("select 'tenant', x.name, ", kRunning, " and r.tenant = x.name", kLeft,
                   " and s.tenant = x.name) from json_array_elements_text($1::json) as x(name) "
                   "union all select 'key', x.name, ",
                   kRunning, " and r.limit_key = x.name", kLeft,
                   " and s.limit_key = x.name) from json_array_elements_text($2::json) as x(name)",
                   global ? absl::StrCat(" union all select 'global', '', ", kRunning, kLeft,
                                         ") union all select 'backfill_share', '', ", kRunning,
                                         " and r.backfill", kLeft, " and s.backfill)")
                          : ""),
      {NamesOf(tenants), NamesOf(keys)});
}

// ---- acts ----

absl::StatusOr<bool> PostgresActs::SetLimits(const SetLimitsRequest& request) {
  const std::string said_key = LimitsSaidKey(UsableText(request.source));
  const auto once = [&]() -> absl::StatusOr<bool> {
    Connection& connection = session_.connection;
    ASSIGN_OR_RETURN(
        const std::vector<Rows> rows,
        connection.Begin({session_.Of("lock table @.job_limit in exclusive mode"),
                          session_.Of(kRules),
                          session_.Of("select key, value from @.matins_meta where key in "
                                      "('limits', $1) for update",
                                      {said_key})}));
    std::optional<std::string> said;
    int64_t number = 0;
    for (int i = 0; i < rows[2].size(); ++i) {
      if (rows[2].Text(i, 0) == said_key) {
        said = rows[2].Text(i, 1);
      } else {
        (void)absl::SimpleAtoi(rows[2].Text(i, 1), &number);
      }
    }
    absl::StatusOr<LimitChange> change = ChangeLimits(ReadLimitRows(rows[1]), said, request);
    if (change.ok()) {
      if (absl::Status fault = Reach("act.before_commit"); !fault.ok()) change = fault;
    }
    if (!change.ok()) {
      connection.Rollback();
      return change.status();
    }
    std::vector<Statement> writes;
    const auto keep = [&](absl::string_view key, std::string value) {
      writes.push_back(
          session_.Of("insert into @.matins_meta (key, value) values ($1, $2) on conflict (key) do "
                      "update set value = excluded.value",
                      {std::string(key), std::move(value)}));
    };
    if (!request.source.empty() && said != change->said) keep(said_key, change->said);
    if (!change->empty()) {
      writes.push_back(session_.Of(
          "delete from @.job_limit l using json_to_recordset($1::json) as x(kind text, name text) "
          "where l.kind = x.kind and l.name = x.name",
          {RulesJson(change->gone).Take()}));
      writes.push_back(session_.Of(
          "insert into @.job_limit (kind, name, most, source, by_whom, at) select x.kind, x.name, "
          "x.most, $2, $3, @NOW from json_to_recordset($1::json) as x(kind text, name text, most "
          "int)",
          {RulesJson(change->put).Take(), UsableText(request.source),
           UsableText(request.act.who)}));
      keep("limits", absl::StrCat(NextLimitsNumber(number, change->any)));
      writes.push_back(EventOf(session_, "limits", "", "", request.act, change->detail));
    }
    RETURN_IF_ERROR(connection.Commit(writes).status());
    MATINS_FAULT_POINT("act.after_commit");  // crash here: it stands, and is recorded
    return !change->empty();
  };
  ASSIGN_OR_RETURN(const bool changed, session_.Retried(once));
  if (!changed) return false;
  // Whoever waited for a limit is looked at by the new one. Behind the commit, and past rows that a
  // START has locked, which may itself be waiting for the change.
  RETURN_IF_ERROR(session_
                      .Retried([&] {
                        return session_.connection.Write({session_.Of(R"(
    with l as materialized (select r.job_name, r.period from @.job_watermark r
      where r.status = 'PLANNED' and r.waits_for is not null and (r.waits_for like 'tenant/%' or
        r.waits_for like 'key/%' or r.waits_for in ('global', 'backfill_share'))
      order by r.job_name, r.period for update of r skip locked)
    update @.job_watermark r set look_at = r.not_before, waits_for = null
    from l where r.job_name = l.job_name and r.period = l.period)")});
                      })
                      .status());
  session_.Notify();
  return true;
}

absl::StatusOr<LimitsView> PostgresActs::ReadLimits() {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session_.connection.Read({session_.Of(kRules), session_.Of(R"(
    with s as materialized (
      select tenant, limit_key, backfill, 1 as taken, 0 as "left" from @.job_watermark
      where status = 'RUNNING' union all
      select tenant, limit_key, backfill, 1, 1 from @.job_slot where until > (select @NOW)),
    u as (
      select 'global' as kind, '' as name, taken, "left", 0 as waiting from s union all
      select 'tenant', tenant, taken, "left", 0 from s where tenant is not null union all
      select 'key', limit_key, taken, "left", 0 from s where limit_key is not null union all
      select 'backfill_share', '', taken, "left", 0 from s where backfill union all
      select split_part(waits_for, '/', 1), substr(waits_for, strpos(waits_for || '/', '/') + 1), 0,
        0, 1 from @.job_watermark where status = 'PLANNED' and waits_for is not null and
        split_part(waits_for, '/', 1) in ('global', 'tenant', 'key', 'backfill_share'))
    select kind, name, sum(taken), sum("left"), sum(waiting) from u group by 1, 2)")}));
  return ViewOf(ReadLimitRows(rows[0]), ReadLimitUses(rows[1]));
}

}  // namespace matins::postgresql
