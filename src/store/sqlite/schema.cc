#include "store/sqlite/schema.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/rules.h"
#include "store/sqlite/schema_sql.h"

namespace matins::sqlite {
namespace {

bool HasTable(Connection& db, absl::string_view name) {
  return db.Sql("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", name).Next();
}

std::vector<std::string> ColumnsOf(Connection& db, const char* table) {
  std::vector<std::string> columns;
  Statement rows = db.Sql("SELECT name FROM pragma_table_info(?)", table);
  while (rows.Next()) columns.push_back(rows.Text(0));
  return columns;
}

std::string Quoted(absl::string_view name) { return absl::StrCat("\"", name, "\""); }

absl::Status RequireFourColumns(const std::vector<std::string>& columns) {
  for (const char* wanted : {"job_name", "biz_date", "status", "finished_at"}) {
    if (std::find(columns.begin(), columns.end(), wanted) == columns.end()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "job_watermark has no column ", wanted,
          "; it can be taken over with the columns job_name, biz_date, status, finished_at"));
    }
  }
  return absl::OkStatus();
}

// The old table steps aside, so that the new one gets its wider key; its rows and further columns
// come along.
absl::Status TakeOver(Connection& db) {
  const std::vector<std::string> old_columns = ColumnsOf(db, "job_watermark");
  RETURN_IF_ERROR(db.status());
  RETURN_IF_ERROR(RequireFourColumns(old_columns));
  {
    Statement bad = db.Sql(
        "SELECT DISTINCT status FROM job_watermark WHERE status NOT IN ('PLANNED', 'RUNNING', "
        "'DONE', 'FAILED', 'SKIPPED') LIMIT 1");
    if (bad.Next()) {
      return absl::FailedPreconditionError(absl::StrCat(
          "job_watermark.status: '", bad.Text(0),
          "' is not a status; correct it to PLANNED, RUNNING, DONE, FAILED or SKIPPED first"));
    }
  }
  RETURN_IF_ERROR(db.Script("ALTER TABLE job_watermark RENAME TO job_watermark_before"));
  RETURN_IF_ERROR(db.Script(kWatermarkTable));
  const std::vector<std::string> new_columns = ColumnsOf(db, "job_watermark");
  std::vector<std::string> copied;
  for (const std::string& column : old_columns) {
    if (column == "period") continue;
    copied.push_back(Quoted(column));
    if (std::find(new_columns.begin(), new_columns.end(), column) != new_columns.end()) continue;
    RETURN_IF_ERROR(
        db.Script(absl::StrCat("ALTER TABLE job_watermark ADD COLUMN ", Quoted(column))));
  }
  const std::string list = absl::StrJoin(copied, ", ");
  return db.Script(absl::StrCat(
      "INSERT INTO job_watermark (period, ", list, ") SELECT biz_date, ", list,
      " FROM job_watermark_before; UPDATE job_watermark SET claimed_at = "
      "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER) WHERE status = 'RUNNING'; "
      "DROP TABLE job_watermark_before"));
}

absl::Status FirstStep(Connection& db) {
  if (HasTable(db, "job_watermark")) {
    RETURN_IF_ERROR(TakeOver(db));
  } else {
    RETURN_IF_ERROR(db.Script(kWatermarkTable));
  }
  RETURN_IF_ERROR(db.Script(kOtherTables));
  RETURN_IF_ERROR(db.Script(kIndexes));
  return db.Script(kTriggers);
}

bool HasJournal(Connection& db) {
  Statement journal = db.Sql("SELECT 1 FROM matins_meta WHERE key = 'journal' AND value = 'full'");
  return journal.Next();
}

absl::Status SecondStep(Connection& db) {
  RETURN_IF_ERROR(db.Script(kFewerIndexes));
  return HasJournal(db) ? db.Script(kEnableJournal) : db.status();
}

absl::Status ThirdStep(Connection& db) { return db.Script(kAuditTable); }
absl::Status FourthStep(Connection& db) {
  RETURN_IF_ERROR(db.Script(kLimits));
  return db.Script(kDeletedTrigger);
}
absl::Status FifthStep(Connection& db) { return db.Script(kDrills); }
absl::Status SixthStep(Connection& db) { return db.Script(kAlerts); }
absl::Status SeventhStep(Connection& db) { return db.Script(kBackfills); }
absl::Status EighthStep(Connection& db) { return db.Script(kRenewals); }
absl::Status NinthStep(Connection& db) { return db.Script(kDeletedTrigger); }

using Step = absl::Status (*)(Connection&);
constexpr Step kSteps[] = {&FirstStep, &SecondStep,  &ThirdStep,  &FourthStep, &FifthStep,
                           &SixthStep, &SeventhStep, &EighthStep, &NinthStep};
static_assert(std::size(kSteps) == kSchemaVersion);
// From this version on the journal's triggers are there only while there is a journal.
constexpr int kJournalByTriggers = 2;

absl::Status RefuseNewer(const Connection& db, int version) {
  if (version <= kSchemaVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("sqlite:", db.options().path, " has schema ",
                                                    version, ", this program knows ",
                                                    kSchemaVersion, "; use a newer matins"));
}

// Takes the write lock itself, then reads the version: of two migrating programs the second finds
// nothing to do. Answers whether a step was made.
absl::StatusOr<bool> OneStep(Connection& db) {
  db.ClearStatus();
  db.Sql("BEGIN IMMEDIATE").Run();
  RETURN_IF_ERROR(db.status());
  absl::StatusOr<int> version = SchemaVersion(db);
  absl::Status status = version.status();
  if (status.ok()) status = RefuseNewer(db, *version);
  const bool step = status.ok() && *version < kSchemaVersion;
  if (step) {
    status = kSteps[*version](db);
    if (status.ok()) {
      db.Sql("INSERT OR REPLACE INTO matins_meta (key, value) VALUES ('schema', ?)", *version + 1)
          .Run();
      status = db.status();
    }
  }
#if MATINS_LAB
  if (status.ok()) status = ReachFaultPoint("sqlite.migrate.before_commit");
#endif
  db.ClearStatus();
  db.Sql(status.ok() ? "COMMIT" : "ROLLBACK").Run();
  if (status.ok()) status = db.status();
  if (!status.ok()) return status;
  return step;
}

using Objects = std::map<std::string, std::string>;  // name to the text that made it

Objects ObjectsOf(Connection& db) {
  Objects objects;
  Statement rows = db.Sql(
      "SELECT name, type || ' ' || coalesce(sql, '') FROM sqlite_schema WHERE name LIKE 'job%' OR "
      "name = 'matins_meta'");
  while (rows.Next()) objects[rows.Text(0)] = rows.Text(1);
  return objects;
}

}  // namespace

absl::StatusOr<int> SchemaVersion(Connection& db) {
  if (!HasTable(db, "matins_meta")) {
    RETURN_IF_ERROR(db.status());
    return 0;
  }
  Statement row = db.Sql("SELECT value FROM matins_meta WHERE key = 'schema'");
  const int version = row.Next() ? static_cast<int>(row.Int(0)) : 0;
  RETURN_IF_ERROR(db.status());
  return version;
}

absl::Status MigrateSchema(Connection& db) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool stepped, OneStep(db));
    if (!stepped) return absl::OkStatus();
  }
}

absl::Status RequireSchema(Connection& db) {
  ASSIGN_OR_RETURN(const int version, SchemaVersion(db));
  RETURN_IF_ERROR(RefuseNewer(db, version));
  if (version == kSchemaVersion) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("sqlite:", db.options().path, " has ",
                   version == 0 ? "no schema yet" : absl::StrCat("schema ", version),
                   "; run `matins db migrate`"));
}

absl::StatusOr<std::vector<std::string>> SchemaProblems(Connection& db) {
  std::vector<std::string> problems;
  {
    Statement rows = db.Sql("PRAGMA integrity_check(20)");
    while (rows.Next()) {
      if (rows.Text(0) != "ok") problems.push_back(absl::StrCat("integrity: ", rows.Text(0)));
    }
  }
  const Objects found = ObjectsOf(db);
  ASSIGN_OR_RETURN(const int version, SchemaVersion(db));
  // What it must be is what this program makes in a database of its own, by as many steps: a copy
  // of a store may be older.
  ASSIGN_OR_RETURN(std::unique_ptr<Connection> fresh, Connection::OpenMemory());
  for (int i = 0; i < version; ++i) RETURN_IF_ERROR(kSteps[i](*fresh));
  if (version >= kJournalByTriggers && HasJournal(db)) {
    RETURN_IF_ERROR(fresh->Script(kEnableJournal));
  }
  for (const auto& [name, sql] : ObjectsOf(*fresh)) {
    const auto it = found.find(name);
    const std::string kind = sql.substr(0, sql.find(' '));
    if (it == found.end()) {
      problems.push_back(absl::StrCat("missing ", kind, " ", name,
                                      "; restore it from a backup, or make it again by hand"));
    } else if (kind != "table" && it->second != sql) {
      problems.push_back(absl::StrCat(kind, " ", name, " is not as this program makes it"));
    }
  }
  return problems;
}

}  // namespace matins::sqlite
