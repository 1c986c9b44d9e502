#include "bench/drive/stage.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "audit/beats.h"
#include "backends/backends.h"
#include "base/time.h"
#include "bench/drive/planning.h"
#include "job/parse.h"
#include "ops/jobs.h"

namespace matins::bench {
namespace {

// A text has up to 1 MiB.
constexpr int64_t kJobsAText = 4000;

std::string Columns(Stage& stage, absl::string_view table) {
  return stage.Query(
      stage.options().IsPostgres()
          ? absl::StrCat(
                "select string_agg(quote_ident(column_name), ', ') from "
                "information_schema.columns where table_schema = 'matins' and table_name = '",
                table, "' and is_generated = 'NEVER' and column_name not in ('name', 'job')")
          : absl::StrCat("SELECT group_concat('\"' || name || '\"', ', ') FROM pragma_table_info('",
                         table, "') WHERE name NOT IN ('name', 'job')"));
}

}  // namespace

Stage::Stage(const Options& options) : options_(options) {
  DatabaseOptions patient;
  patient.call_deadline = absl::Minutes(5);  // thousands of jobs are applied at once
  auto database = DatabaseFromUrl(options.Text("store"), patient);
  DieUnlessOk(database.status(), "the store's URL");
  database_ = *std::move(database);
  DieUnlessOk(database_->Migrate(), "making the schema");
  auto acts = database_->OpenActs();
  DieUnlessOk(acts.status(), "opening the store");
  acts_ = *std::move(acts);
  PlanningNode(*database_).ComeAndGo();
}

void Stage::Apply(const std::string& yaml, absl::string_view source) {
  const auto file = ParseJobText("bench", yaml);
  DieUnlessOk(file.status(), "the jobs");
  auto session = Session::Open(*database_, "bench");
  DieUnlessOk(session.status(), "opening the store");
  ApplyFileOptions apply;
  apply.source = std::string(source);
  DieUnlessOk(ApplyFile(*session, *file, apply).status(), "applying the jobs");
}

void Stage::ApplyOneOffs(int64_t count, absl::Time at, absl::string_view more,
                         absl::string_view name) {
  for (int64_t first = 0; first < count; first += kJobsAText) {
    std::string yaml = "jobs:\n";
    for (int64_t i = first; i < std::min(count, first + kJobsAText); ++i) {
      absl::StrAppend(&yaml, "  - { name: ", name, "-", i, ", at: ", FormatInstant(at), ", ", more,
                      " }\n");
    }
    Apply(yaml, absl::StrCat("bench/", name, "/", first));
  }
}

void Stage::ApplyPeriods(int64_t count, absl::string_view more) {
  // The history is counted at the end, so that no purge may take of it. So many hours, minutes and
  // seconds of the day as multiply to `count`.
  for (int64_t hours = 24; hours > 0; --hours) {
    for (int64_t minutes = 60; minutes > 0; --minutes) {
      if (count % (hours * minutes) != 0) continue;
      const int64_t seconds = count / (hours * minutes);
      if (seconds > 60) continue;
      const absl::CivilDay day = absl::ToCivilDay(absl::Now(), absl::UTCTimeZone()) - 1;
      Apply(absl::StrCat("jobs:\n  - { name: periods, schedule: \"0-", seconds - 1, " 0-",
                         minutes - 1, " 0-", hours - 1, " ", day.day(), " ", day.month(),
                         " *\", misfire: each, overlap: allow, history: { succeeded: 1000000 }, ",
                         "backfill: { start: ", FormatDay(day),
                         ", order: none, max_periods: unlimited, max_parallel: unlimited }, ", more,
                         " }\n"));
      return;
    }
  }
  Die(absl::StrCat(count, " is no product of hours, minutes and seconds of a day; try 20000"));
}

void Stage::ApplySpread(int64_t count, absl::Time first, absl::Duration apart) {
  for (int64_t begin = 0; begin < count; begin += kJobsAText) {
    std::string yaml = "jobs:\n";
    for (int64_t i = begin; i < std::min(count, begin + kJobsAText); ++i) {
      absl::StrAppend(&yaml, "  - { name: job-", i, ", at: ", FormatInstant(first + i * apart),
                      ", misfire: latest, run: { handler: noop } }\n");
    }
    Apply(yaml, absl::StrCat("bench/spread/", begin));
  }
}

void Stage::Plan() { PlanningNode(*database_).PlanDue(); }

void Stage::Rest() {
  // Of each beat the last audit is due since yesterday or this morning, whatever is measured now.
  auto acts = database_->OpenActs();
  DieUnlessOk(acts.status(), "opening the store");
  AuditBeats beats(*std::move(acts), {.by = "node:bench"});
  DieUnlessOk(beats.Step().status(), "the audits");
  if (options_.IsMariadb()) Query("ANALYZE TABLE job, job_version, job_watermark, job_run");
  if (!options_.IsPostgres()) return;
  // As the server itself does it in time: of tables that have rows. What was looked at while it was
  // empty is planned for as such.
  const std::string tables =
      Query("select coalesce(string_agg(relid::regclass::text, ','), '') from pg_stat_user_tables");
  for (absl::string_view table : absl::StrSplit(absl::StripAsciiWhitespace(tables), ',')) {
    const bool any =
        Count(absl::StrCat("select count(*) from (select from ", table, " limit 1) t")) > 0;
    if (any) Query(absl::StrCat("vacuum analyze ", table));
  }
  Query("checkpoint");
}

int64_t Stage::Count(const std::string& sql) {
  const std::string text = Query(sql);
  int64_t count = 0;
  if (!absl::SimpleAtoi(text, &count)) Die(absl::StrCat(sql, " answers '", text, "'"));
  return count;
}

std::string Stage::Numbers(int64_t count) const {
  if (options_.IsPostgres()) return absl::StrCat("generate_series(1, ", count, ") n(i)");
  return absl::StrCat("(WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < ",
                      count, ") SELECT i FROM c) n");
}

std::string Stage::Instant(absl::Duration from_now) const {
  const int64_t us = absl::ToUnixMicros(absl::Now() + from_now);
  if (!options_.IsPostgres()) return absl::StrCat(us);
  return absl::StrCat("(timestamptz 'epoch' + ", us, "::bigint * interval '1 microsecond')");
}

void Stage::FillJobs(int64_t count) {
  Apply(
      "jobs:\n  - { name: model, at: 2099-01-01T00:00:00Z, misfire: each, "
      "run: { handler: noop } }\n",
      "bench/model");
  Plan();
  for (const auto& [table, name] : {std::pair{"job", "name"}, {"job_version", "job"}}) {
    const std::string columns = Columns(*this, table);
    Query(absl::StrCat("INSERT INTO ", Table(table), " (", name, ", ", columns,
                       ") SELECT 'fill-' || n.i, ", columns, " FROM ", Table(table), ", ",
                       Numbers(count), " WHERE ", name, " = 'model'"));
  }
}

void Stage::FillPlanned(int64_t count, absl::Duration from_now) {
  std::string yaml = "jobs:\n";
  for (int i = 0; i < 1000; ++i) {
    absl::StrAppend(&yaml, "  - { name: fill-", i,
                    ", at: 2099-01-01T00:00:00Z, misfire: each, overlap: allow, "
                    "run: { handler: noop } }\n");
  }
  Apply(yaml, "bench/fill");
  Plan();  // what was applied is looked at before anything of it starts
  const std::string at = Instant(from_now);
  // Of each job a thousand seconds of a day, as its periods are called.
  const std::string second = "1767225600 + n.i / 1000";
  const std::string period =
      options_.IsPostgres()
          ? absl::StrCat("to_char(to_timestamp(", second,
                         ") at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')")
          : absl::StrCat("strftime('%Y-%m-%dT%H:%M:%SZ', ", second, ", 'unixepoch')");
  Query(absl::StrCat("INSERT INTO ", Table("job_watermark"),
                     " (job_name, period, biz_date, status, op, due_at, window_start, window_end, "
                     "nominal, not_before, look_at, version) SELECT 'fill-' || (n.i % 1000), ",
                     period, ", '2026-01-01', 'PLANNED', 'plan', ", at, ", ", at, ", ", at,
                     ", '2026-01-01 00:00:00', ", at, ", ", at, ", 1 FROM ", Numbers(count)));
}

std::string Stage::Table(absl::string_view name) const {
  return absl::StrCat(options_.IsPostgres() ? "matins." : "", name);
}

absl::Time Stage::Now() {
  const auto status = acts_->ReadStatus();
  DieUnlessOk(status.status(), "the store's clock");
  return status->now;
}

void ProveDoneAmong(Stage& stage, int64_t runs) {
  const std::string history = stage.Table("job_run");
  for (const std::string& sql :
       {absl::StrCat("SELECT count(*) FROM ", stage.Table("job_watermark"),
                     " WHERE status = 'DONE'"),
        absl::StrCat("SELECT count(*) FROM ", history, " WHERE status = 'DONE'"),
        absl::StrCat("SELECT count(*) FROM (SELECT DISTINCT job_name, period FROM ", history,
                     " WHERE status = 'DONE') d")}) {
    const int64_t count = stage.Count(sql);
    if (count != runs) Die(absl::StrCat(sql, ": ", count, " instead of ", runs));
  }
}

void ProveDone(Stage& stage, int64_t runs) {
  const int limit = static_cast<int>(runs) + 1;
  RowFilter all;
  all.limit = limit;
  const auto rows = stage.acts().ReadRows(all);
  DieUnlessOk(rows.status(), "reading the periods");
  if (static_cast<int64_t>(rows->size()) != runs) {
    Die(absl::StrCat(rows->size(), " periods instead of ", runs));
  }
  for (const PeriodRow& row : *rows) {
    if (row.status != PeriodStatus::kDone) {
      Die(absl::StrCat(row.key.job, " ", row.key.period, " is not DONE: ", row.reason));
    }
  }
  RunFilter filter;
  filter.limit = limit;
  const auto attempts = stage.acts().ReadRuns(filter);
  DieUnlessOk(attempts.status(), "reading the history");
  std::set<PeriodKey> seen;
  for (const RunRow& run : *attempts) {
    if (run.status != "DONE") Die(absl::StrCat("an attempt is ", run.status));
    if (!seen.insert(run.key).second) Die(absl::StrCat(run.key.period, " has run twice"));
  }
  if (static_cast<int64_t>(seen.size()) != runs) {
    Die(absl::StrCat(seen.size(), " periods in the history instead of ", runs));
  }
}

}  // namespace matins::bench
