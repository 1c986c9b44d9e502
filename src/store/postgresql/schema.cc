#include "store/postgresql/schema.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/postgresql/schema_sql.h"
#include "store/rules.h"

namespace matins::postgresql {
namespace {

constexpr char kServer[] =
    "select current_setting('server_version_num')::int, pg_is_in_recovery(), "
    "current_setting('server_encoding'), current_setting('server_version')";
constexpr char kVersion[] =
    "select coalesce(max(value::int), 0) from @.matins_meta where key = 'schema'";

std::vector<Statement> Statements(const Session& session, const std::vector<std::string>& texts) {
  std::vector<Statement> out;
  for (const std::string& text : texts) out.push_back(session.Of(text));
  return out;
}

absl::Status NewerSchema(int version) {
  return absl::FailedPreconditionError(
      absl::StrCat("schema version ", version, " is newer than this program's ", kSchemaVersion,
                   "; a newer matins has been here: use that, or a newer one"));
}

// Under the table's lock: of two programs one makes the step, and the other finds it made.
absl::StatusOr<int> Step(Session& session) {
  Connection& c = session.connection;
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      c.Begin({session.Of("lock table @.matins_meta in exclusive mode"), session.Of(kVersion),
               session.Of("select to_regclass('@.job_watermark') is not null")}));
  const int version = static_cast<int>(rows[1].Int(0, 0));
  if (version >= kSchemaVersion) {
    c.Rollback();
    return version;
  }
  std::vector<Statement> step;
  if (version == 0 && rows[2].Bool(0, 0)) step = Statements(session, TakeOverWatermark());
  for (Statement& s : Statements(session, *SchemaSteps()[version])) step.push_back(std::move(s));
  step.push_back(
      session.Of("insert into @.matins_meta(key, value) values ('schema', $1) "
                 "on conflict (key) do update set value = excluded.value",
                 {absl::StrCat(version + 1)}));
  if (absl::Status fault = [&]() -> absl::Status {
        MATINS_FAULT_POINT("migrate.before_commit");  // crash here: the step is not made, whole
        return absl::OkStatus();
      }();
      !fault.ok()) {
    c.Rollback();
    return fault;
  }
  RETURN_IF_ERROR(c.Commit(step).status());
  MATINS_FAULT_POINT("migrate.after_commit");  // crash here: the next start finds it made
  return version + 1;
}

absl::Status JudgeServer(const Rows& r) {
  if (r.Int(0, 0) < 130000) {
    return absl::FailedPreconditionError(
        absl::StrCat("PostgreSQL ", r.Text(0, 3), " is too old; use 13 or newer"));
  }
  if (r.Bool(0, 1)) {
    return absl::FailedPreconditionError(
        "the server is a standby, where nothing can be written; name the primary in the store's "
        "URL (or target_session_attrs=read-write with several hosts)");
  }
  if (r.Text(0, 2) != "UTF8") {
    return absl::FailedPreconditionError(absl::StrCat("the database's encoding is ", r.Text(0, 2),
                                                      "; create one with ENCODING 'UTF8'"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> SchemaVersion(Session& session) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> found,
      session.connection.Read({session.Of("select to_regclass('@.matins_meta') is not null")}));
  if (!found[0].Bool(0, 0)) return 0;
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session.connection.Read({session.Of(kVersion)}));
  return static_cast<int>(rows[0].Int(0, 0));
}

absl::StatusOr<int> CheckedVersion(Session& session) {
  auto both = session.connection.Read({{kServer, {}}, session.Of(kVersion)});
  if (SqlStateOf(both.status()) == "42P01") {  // no schema
    ASSIGN_OR_RETURN(const std::vector<Rows> server, session.connection.Read({{kServer, {}}}));
    RETURN_IF_ERROR(JudgeServer(server[0]));
    return 0;
  }
  RETURN_IF_ERROR(both.status());
  RETURN_IF_ERROR(JudgeServer((*both)[0]));
  return static_cast<int>((*both)[1].Int(0, 0));
}

absl::Status MigrateSchema(Session& session) {
  ASSIGN_OR_RETURN(int version, CheckedVersion(session));
  if (version > kSchemaVersion) return NewerSchema(version);
  if (version == kSchemaVersion) return absl::OkStatus();
  const std::string schema = session.sql("@.");
  auto made = session.connection.Write(
      {{absl::StrCat("create schema if not exists ", schema.substr(0, schema.size() - 1)), {}},
       session.Of("create table if not exists @.matins_meta(key text primary key, value text) "
                  "with (fillfactor = 50)")});
  // Two programs may make it at once; the loser's error says that it exists.
  if (!made.ok() && SqlStateOf(made.status()) != "23505" && SqlStateOf(made.status()) != "42P06" &&
      SqlStateOf(made.status()) != "42P07") {
    return made.status();
  }
  session.connection.set_lock_wait(absl::Seconds(30));
  session.connection.set_call_deadline(kDefinitionDeadline);
  while (version < kSchemaVersion) {
    ASSIGN_OR_RETURN(version, session.Retried([&] { return Step(session); }));
  }
  return version > kSchemaVersion ? NewerSchema(version) : absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ServerWarnings(Session& session) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows,
                   session.connection.Read(
                       {{"select current_setting('fsync'), current_setting('full_page_writes'), "
                         "(select reset_val from pg_settings where name = 'synchronous_commit'), "
                         "(select count(*) from pg_stat_replication)",
                         {}}}));
  const Rows& r = rows[0];
  std::vector<std::string> warnings;
  if (r.Text(0, 0) != "on") {
    warnings.push_back(
        "fsync is off: a crash of the machine loses or spoils what was acknowledged (I11); set "
        "fsync = on");
  }
  if (r.Text(0, 1) != "on") {
    warnings.push_back(
        "full_page_writes is off: a crash of the machine may spoil pages (I11); set "
        "full_page_writes = on");
  }
  if (r.Text(0, 2) == "off") {
    warnings.push_back(
        "synchronous_commit is off at the server: Matins turns it on in its own transactions, "
        "jobs with `commit: job` must do so themselves (I11); set synchronous_commit = on");
  }
  if (r.Int(0, 3) > 0 && r.Text(0, 2) == "local") {
    warnings.push_back(
        "synchronous_commit is local with standbys attached: a failover may lose what was "
        "acknowledged; run `matins epoch bump` after one, or set synchronous_commit = on");
  }
  return warnings;
}

absl::StatusOr<SchemaCheck> CheckSchema(Session& session) {
  SchemaCheck check;
  check.wanted = kSchemaVersion;
  ASSIGN_OR_RETURN(check.version, SchemaVersion(session));
  ASSIGN_OR_RETURN(check.problems, ServerWarnings(session));
  if (check.version != kSchemaVersion) return check;
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session.connection.Read(
          {session.Of(R"(select i.name from (values ('job_watermark_pkey'),
             ('job_watermark_due'), ('job_watermark_running'), ('job_watermark_lock'),
             ('job_watermark_open'), ('job_watermark_day'), ('job_watermark_waiting'),
             ('job_next_look'), ('job_audit_beat'), ('job_alert_key'), ('job_alert_next'),
             ('job_watermark_failed'), ('job_run_lost'),
             ('job_limit_pkey'), ('job_slot_pkey'), ('job_watermark_tenant'),
             ('job_watermark_key'), ('job_watermark_turn'), ('job_watermark_queue'),
             ('job_run_pkey'), ('job_run_period'), ('job_event_reopened')) as i(name)
           where not exists (select from pg_class c join pg_index x on x.indexrelid = c.oid
             where c.relname = i.name and x.indisvalid
               and c.relnamespace = (select relnamespace from pg_class
                                     where oid = '@.matins_meta'::regclass)))"),
           session.Of("select count(*) from @.job_watermark where status not in "
                      "('PLANNED','RUNNING','DONE','FAILED','SKIPPED')"),
           session.Of("select count(*) from @.job_watermark r where r.status = 'RUNNING' and "
                      "r.fence > 0 and r.lease_until is null"),
           session.Of("select count(*) from pg_trigger where "
                      "tgrelid = '@.job_watermark'::regclass and tgname in "
                      "('matins_row_deleted', 'matins_foreign_insert') and tgenabled <> 'D'")}));
  for (int i = 0; i < rows[0].size(); ++i) {
    check.problems.push_back(absl::StrCat("index ", rows[0].Text(i, 0),
                                          " is missing or not valid: create it again, or restore"));
  }
  if (rows[1].Int(0, 0) > 0) {
    check.problems.push_back(
        absl::StrCat(rows[1].Int(0, 0),
                     " rows of job_watermark have a status that is none of PLANNED, RUNNING, "
                     "DONE, FAILED, SKIPPED: mend or delete them"));
  }
  if (rows[2].Int(0, 0) > 0) {
    check.problems.push_back(absl::StrCat(
        rows[2].Int(0, 0), " running rows have a fence and no lease: delete them to run again"));
  }
  if (rows[3].Int(0, 0) != 2) {
    check.problems.push_back(
        "a trigger of job_watermark is missing or disabled: deleted rows would not be filled "
        "again; enable it with ALTER TABLE ... ENABLE TRIGGER ALL");
  }
  return check;
}

}  // namespace matins::postgresql
