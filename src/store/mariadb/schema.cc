#include "store/mariadb/schema.h"

#include <mysqld_error.h>

#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/mariadb/schema_sql.h"
#include "store/rules.h"

namespace matins::mariadb {
namespace {

absl::Status NewerSchema(int version) {
  return absl::FailedPreconditionError(
      absl::StrCat("schema version ", version, " is newer than this program's ", kSchemaVersion,
                   "; a newer matins has been here: use that, or a newer one"));
}

absl::Status Run(Session& session, const std::string& sql) {
  return session.connection.Bare({{sql}}).status();
}

absl::StatusOr<std::set<std::string>> Names(Session& session, absl::string_view sql) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, session.connection.Bare({Sql(sql)}));
  std::set<std::string> names;
  for (int i = 0; i < rows[0].size(); ++i) names.insert(rows[0].Text(i, 0));
  return names;
}

absl::StatusOr<std::set<std::string>> ColumnNames(Session& session) {
  return Names(session,
               "SELECT LOWER(column_name) FROM information_schema.columns WHERE "
               "table_schema = DATABASE() AND table_name = 'job_watermark'");
}

// What stands in the way of our primary key: the old one, and keys that would forbid two periods on
// a day. A column that counts by itself keeps a key of its own.
absl::StatusOr<std::vector<std::string>> OldKeys(Session& session) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session.connection.Bare(
          {Sql("SELECT index_name, GROUP_CONCAT(LOWER(column_name) ORDER BY seq_in_index) FROM "
               "information_schema.statistics WHERE table_schema = DATABASE() AND "
               "table_name = 'job_watermark' AND non_unique = 0 GROUP BY index_name"),
           Sql("SELECT column_name FROM information_schema.columns WHERE "
               "table_schema = DATABASE() AND table_name = 'job_watermark' AND "
               "extra LIKE '%auto_increment%'")}));
  std::vector<std::string> changes;
  bool primary = false;
  for (int i = 0; i < rows[0].size(); ++i) {
    const std::string name = rows[0].Text(i, 0);
    if (name == "PRIMARY" && rows[0].Text(i, 1) == "job_name,period") {
      primary = true;
    } else if (name == "PRIMARY") {
      changes.push_back("DROP PRIMARY KEY");
    } else if (name != "job_watermark_lock" && !absl::StartsWith(name, "matins_")) {
      changes.push_back(absl::StrCat("DROP KEY `", name, "`"));
    }
  }
  if (!primary) changes.push_back("ADD PRIMARY KEY (job_name, period)");
  if (!primary && rows[1].size() > 0) {
    changes.push_back(absl::StrCat("ADD UNIQUE KEY matins_counted (`", rows[1].Text(0, 0), "`)"));
  }
  return changes;
}

// A table that another program made: its rows stay, columns are added, the key is widened. Each
// part looks at what is there, so that it can be taken again.
absl::Status TakeOver(Session& session) {
  ASSIGN_OR_RETURN(std::set<std::string> columns, ColumnNames(session));
  for (const char* known : {"job_name", "biz_date", "status", "finished_at"}) {
    if (columns.contains(known)) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("there is a table job_watermark without the column ", known,
                     "; rename that table, or use another database"));
  }
  if (!columns.contains("period")) {
    RETURN_IF_ERROR(Run(session, absl::StrCat("ALTER TABLE job_watermark ENGINE=InnoDB, MODIFY ",
                                              absl::StrJoin(KnownColumns(), ", MODIFY "),
                                              ", ADD COLUMN ", kPeriodColumn)));
  }
  MATINS_FAULT_POINT("migrate.taken_over");  // crash here: periods are filled in by the next start
  RETURN_IF_ERROR(Run(session,
                      "UPDATE job_watermark SET period = DATE_FORMAT(biz_date, '%Y-%m-%d') WHERE "
                      "period = ''"));
  ASSIGN_OR_RETURN(std::vector<std::string> changes, OldKeys(session));
  for (const auto& [name, type] : WatermarkColumns()) {
    if (!columns.contains(name)) changes.push_back(absl::StrCat("ADD COLUMN ", name, " ", type));
  }
  ASSIGN_OR_RETURN(const std::set<std::string> keys,
                   Names(session,
                         "SELECT DISTINCT index_name FROM information_schema.statistics WHERE "
                         "table_schema = DATABASE() AND table_name = 'job_watermark'"));
  for (const auto& [name, key] : WatermarkKeys()) {
    if (!keys.contains(name)) changes.push_back(absl::StrCat("ADD ", key));
  }
  if (changes.empty()) return absl::OkStatus();
  const absl::Status status =
      Run(session, absl::StrCat("ALTER TABLE job_watermark ", absl::StrJoin(changes, ", ")));
  if (ErrorOf(status) == ER_DUP_ENTRY) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job_watermark has two rows for one job and date; delete one of them: ", status.message()));
  }
  return status;
}

// Under the migration's lock.
absl::Status Make(Session& session) {
  RETURN_IF_ERROR(Run(session,
                      "CREATE TABLE IF NOT EXISTS matins_meta (name VARCHAR(64) CHARACTER SET "
                      "utf8mb4 COLLATE utf8mb4_nopad_bin PRIMARY KEY, value LONGTEXT CHARACTER SET "
                      "utf8mb4 COLLATE utf8mb4_nopad_bin) ENGINE=InnoDB"));
  ASSIGN_OR_RETURN(const int version, SchemaVersion(session));
  if (version > kSchemaVersion) return NewerSchema(version);
  if (version == kSchemaVersion) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::set<std::string> columns, ColumnNames(session));
  if (columns.empty()) {
    RETURN_IF_ERROR(Run(session, CreateWatermark()));
  } else {
    RETURN_IF_ERROR(TakeOver(session));
  }
  MATINS_FAULT_POINT("migrate.before_commit");  // crash here: the next start takes the steps again
  for (const std::string& sql : CreateRest()) RETURN_IF_ERROR(Run(session, sql));
  // Last: before it the schema is none.
  RETURN_IF_ERROR(session.connection
                      .Bare({Sql("INSERT INTO matins_meta (name, value) VALUES ('schema', ?) ON "
                                 "DUPLICATE KEY UPDATE value = VALUES(value)",
                                 {absl::StrCat(kSchemaVersion)})})
                      .status());
  MATINS_FAULT_POINT("migrate.after_commit");  // crash here: the next start finds it made
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> SchemaVersion(Session& session) {
  const auto rows =
      session.connection.Bare({Sql("SELECT value FROM matins_meta WHERE name = 'schema'")});
  if (!rows.ok()) {
    const int error = ErrorOf(rows.status());
    if (error == ER_NO_SUCH_TABLE || error == ER_BAD_DB_ERROR) return 0;
    return rows.status();
  }
  return (*rows)[0].size() == 0 ? 0 : static_cast<int>((*rows)[0].Int(0, 0));
}

absl::Status MigrateSchema(Session& session) {
  RETURN_IF_ERROR(CheckServer(session));
  ASSIGN_OR_RETURN(const int version, SchemaVersion(session));
  if (version > kSchemaVersion) return NewerSchema(version);
  if (version == kSchemaVersion) return absl::OkStatus();
  Connection& c = session.connection;
  const std::string database = c.options().url.database;
  c.Drop();
  c.set_enter_database(false);
  c.set_call_deadline(kDefinitionDeadline);
  const absl::Status made =
      Run(session, absl::StrCat("CREATE DATABASE IF NOT EXISTS `", database,
                                "` CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"));
  c.Drop();
  c.set_enter_database(true);
  // Who may not make databases may have been given one.
  if (!made.ok() && ErrorOf(made) != ER_DBACCESS_DENIED_ERROR) return made;
  return UnderSchemaLock(session, [&] { return Make(session); });
}

absl::Status UnderSchemaLock(Session& session, const std::function<absl::Status()>& change) {
  Connection& c = session.connection;
  // The lock is the connection's: it ends with it.
  const std::string lock = absl::StrCat("matins/", c.options().url.database).substr(0, 64);
  ASSIGN_OR_RETURN(const std::vector<Rows> got, c.Bare({Sql("SELECT GET_LOCK(?, 60)", {lock})}));
  if (!got[0].Bool(0, 0)) {
    return StoreAwayError(
        "another program is changing this database's tables; try again when it "
        "is done");
  }
  const absl::Status status = change();
  c.Drop();
  return status;
}

// ---- the server ----

namespace {

absl::StatusOr<std::map<std::string, std::string>> Variables(Session& session) {
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session.connection.Bare(
          {Sql("SHOW GLOBAL VARIABLES WHERE variable_name IN ('version', 'read_only', 'wsrep_on', "
               "'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'binlog_format', "
               "'innodb_doublewrite', 'max_allowed_packet', 'innodb_read_only')")}));
  std::map<std::string, std::string> variables;
  for (int i = 0; i < rows[0].size(); ++i) {
    variables[rows[0].Text(i, 0)] = absl::AsciiStrToLower(rows[0].Text(i, 1));
  }
  return variables;
}

bool IsOn(const std::string& value) { return value == "on" || value == "1"; }

// "10.11.19-mariadb-..." -> 1011.
int VersionOf(const std::string& text) {
  const std::vector<std::string> parts =
      absl::StrSplit(text, absl::MaxSplits(absl::ByAnyChar(".-"), 2));
  int major = 0, minor = 0;
  if (parts.size() < 2 || !absl::SimpleAtoi(parts[0], &major) ||
      !absl::SimpleAtoi(parts[1], &minor)) {
    return 0;
  }
  return major * 100 + minor;
}

}  // namespace

absl::Status CheckServer(Session& session) {
  Connection& c = session.connection;
  c.Drop();
  c.set_enter_database(false);
  auto variables = Variables(session);
  c.Drop();
  c.set_enter_database(true);
  if (!variables.ok()) return variables.status();
  auto& v = *variables;
  if (!absl::StrContains(v["version"], "mariadb")) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the server is version ", v["version"], " and no MariaDB; use MariaDB 10.6 or newer"));
  }
  if (VersionOf(v["version"]) < 1006) {
    return absl::FailedPreconditionError(
        absl::StrCat("MariaDB ", v["version"], " is too old (no SKIP LOCKED); use 10.6 or newer"));
  }
  if (IsOn(v["read_only"]) || IsOn(v["innodb_read_only"])) {
    return absl::FailedPreconditionError(
        "the server is read-only, a replica perhaps, where nothing can be written; name the "
        "primary in the store's URL");
  }
  if (IsOn(v["wsrep_on"]) && !c.options().url.single_writer) {
    return absl::FailedPreconditionError(
        "the server is a node of a Galera cluster: with writers on several nodes acknowledged "
        "commits and fences are lost; send all writes to one node and say so with "
        "galera=single-writer in the store's URL, or use a server of its own");
  }
  if (IsOn(v["log_bin"]) && v["binlog_format"] == "statement") {
    return absl::FailedPreconditionError(
        "binlog_format is STATEMENT, which InnoDB refuses under READ COMMITTED; set "
        "binlog_format = ROW or MIXED");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ServerWarnings(Session& session) {
  ASSIGN_OR_RETURN(auto v, Variables(session));
  std::vector<std::string> warnings;
  const std::string flush = v["innodb_flush_log_at_trx_commit"];
  if (flush != "1" && flush != "3") {
    warnings.push_back(absl::StrCat(
        "innodb_flush_log_at_trx_commit is ", flush,
        ": a crash loses the last second of what was acknowledged (I11); set it to 1"));
  }
  if (!IsOn(v["innodb_doublewrite"])) {
    warnings.push_back(
        "innodb_doublewrite is off: a crash of the machine may spoil pages (I11); set it to ON");
  }
  if (IsOn(v["log_bin"]) && v["sync_binlog"] != "1") {
    warnings.push_back(absl::StrCat(
        "sync_binlog is ", v["sync_binlog"],
        ": after a crash replicas may lack what was acknowledged; set it to 1, and run `matins "
        "epoch bump` after a failover"));
  }
  if (IsOn(v["wsrep_on"])) {
    warnings.push_back(
        "the server is a node of a Galera cluster: a crash of several nodes may lose what was "
        "acknowledged; write to one node alone, and run `matins epoch bump` after a failover");
  }
  int64_t packet = 0;
  if (absl::SimpleAtoi(v["max_allowed_packet"], &packet) && packet < (4 << 20)) {
    warnings.push_back(
        absl::StrCat("max_allowed_packet is ", packet,
                     ": output of some runs will not fit; set it to 16M, the default, or more"));
  }
  return warnings;
}

absl::StatusOr<SchemaCheck> CheckSchema(Session& session) {
  SchemaCheck check;
  check.wanted = kSchemaVersion;
  ASSIGN_OR_RETURN(check.version, SchemaVersion(session));
  if (check.version == 0) return check;
  ASSIGN_OR_RETURN(check.problems, ServerWarnings(session));
  if (check.version != kSchemaVersion) return check;
  ASSIGN_OR_RETURN(const std::set<std::string> keys,
                   Names(session,
                         "SELECT DISTINCT CONCAT(table_name, ' ', index_name) FROM "
                         "information_schema.statistics WHERE table_schema = DATABASE()"));
  std::vector<std::string> wanted = {"job_watermark PRIMARY",   "job_run PRIMARY",
                                     "job_run job_run_period",  "job_event job_event_reopened",
                                     "job_alert job_alert_key", "job_run job_run_lost"};
  for (const auto& [name, key] : WatermarkKeys()) {
    wanted.push_back(absl::StrCat("job_watermark ", name));
  }
  for (const std::string& key : wanted) {
    if (keys.contains(key)) continue;
    const std::vector<std::string> parts = absl::StrSplit(key, ' ');
    check.problems.push_back(absl::StrCat("index ", parts[1], " of ", parts[0],
                                          " is missing: create it again, or restore"));
  }
  ASSIGN_OR_RETURN(
      const std::vector<Rows> rows,
      session.connection.Bare(
          {Sql("SELECT COUNT(*) FROM job_watermark WHERE status NOT IN "
               "('PLANNED', 'RUNNING', 'DONE', 'FAILED', 'SKIPPED')"),
           Sql("SELECT COUNT(*) FROM job_watermark WHERE status = 'RUNNING' AND fence > 0 AND "
               "lease_until IS NULL"),
           Sql("SELECT COUNT(*) FROM information_schema.triggers WHERE "
               "trigger_schema = DATABASE() AND trigger_name IN ('matins_row_deleted', "
               "'matins_foreign_insert', 'matins_foreign_update')"),
           Sql("SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND "
               "(table_name LIKE 'job%' OR table_name LIKE 'matins%') AND engine <> 'InnoDB'")}));
  if (rows[0].Int(0, 0) > 0) {
    check.problems.push_back(
        absl::StrCat(rows[0].Int(0, 0),
                     " rows of job_watermark have a status that is none of PLANNED, RUNNING, "
                     "DONE, FAILED, SKIPPED: mend or delete them"));
  }
  if (rows[1].Int(0, 0) > 0) {
    check.problems.push_back(absl::StrCat(
        rows[1].Int(0, 0), " running rows have a fence and no lease: delete them to run again"));
  }
  if (rows[2].Int(0, 0) != 3) {
    check.problems.push_back(
        "a trigger of job_watermark is missing: deleted rows would not be filled again; restore "
        "the database's triggers from a dump (mariadb-dump --triggers)");
  }
  if (rows[3].Int(0, 0) > 0) {
    check.problems.push_back(
        absl::StrCat(rows[3].Int(0, 0),
                     " tables are not InnoDB, which alone has transactions: ALTER TABLE ... "
                     "ENGINE=InnoDB"));
  }
  return check;
}

}  // namespace matins::mariadb
