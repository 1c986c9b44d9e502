#include "bench/drive/stage.h"

#include <libpq-fe.h>
#include <sqlite3.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "audit/beats.h"
#include "backends/backends.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/time.h"
#include "engine/lanes.h"
#include "job/parse.h"
#include "ops/jobs.h"

namespace matins::bench {
namespace {

// For a node that plans and never starts anything.
class NoRunner final : public Runner {
  void Start(RunRequest) override {}
  void Stop(int64_t, StopReason, absl::Duration) override {}
  void MoveDeadlines(absl::Span<const DeadlineMove>) override {}
  void Reply(int64_t, int64_t, RunAnswer) override {}
  std::vector<RunnerEvent> Poll() override { return {}; }
  void SetWakeUp(std::function<void()>) override {}
};

std::string QuerySqlite(const std::string& url, const std::string& sql) {
  sqlite3* db = nullptr;
  const std::string path = url.substr(url.find(':') + 1);
  if (sqlite3_open(path.c_str(), &db) != SQLITE_OK) Die(absl::StrCat("cannot open ", path));
  sqlite3_busy_timeout(db, 10'000);
  std::string value;
  const auto first = [](void* out, int columns, char** values, char**) {
    auto& text = *static_cast<std::string*>(out);
    if (columns > 0 && values[0] != nullptr && text.empty()) text = values[0];
    return 0;
  };
  if (sqlite3_exec(db, sql.c_str(), first, &value, nullptr) != SQLITE_OK) {
    Die(absl::StrCat(sql, ": ", sqlite3_errmsg(db)));
  }
  sqlite3_close(db);
  return value;
}

// libpq does not know the store's own parameter.
std::string ServerUrl(const std::string& url) {
  const size_t question = url.find('?');
  return url.substr(0, question);
}

// A node that starts nothing.
std::unique_ptr<Lanes> OpenLanes(Database& database, Runner& runner) {
  NodeParts parts;
  parts.options.id = {"bench/plan", {}};
  parts.options.slots = 0;
  parts.clock = &SystemClock();
  parts.runner = &runner;
  parts.random = std::make_unique<SystemRandom>();
  parts.open_store = [&database](LaneKind) { return database.Open(); };
  auto lanes = Lanes::Open(std::move(parts));
  DieUnlessOk(lanes.status(), "a node that plans");
  return *std::move(lanes);
}

}  // namespace

Stage::Stage(const Options& options) : options_(options) {
  DatabaseOptions patient;
  patient.call_deadline = absl::Minutes(1);  // thousands of jobs are applied at once
  auto database = DatabaseFromUrl(options.Text("store"), patient);
  DieUnlessOk(database.status(), "the store's URL");
  database_ = *std::move(database);
  DieUnlessOk(database_->Migrate(), "making the schema");
  auto acts = database_->OpenActs();
  DieUnlessOk(acts.status(), "opening the store");
  acts_ = *std::move(acts);
  // Of a store that nodes have worked on before.
  NoRunner runner;
  const std::unique_ptr<Lanes> lanes = OpenLanes(*database_, runner);
  lanes->Step(LaneKind::kTick);
  DieUnlessOk(lanes->Leave(), "a node's leave");
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

void Stage::ApplyOneOffs(int64_t count, absl::Time at, absl::string_view more) {
  // A text has up to 1 MiB.
  constexpr int64_t kJobsAText = 4000;
  for (int64_t first = 0; first < count; first += kJobsAText) {
    std::string yaml = "jobs:\n";
    for (int64_t i = first; i < std::min(count, first + kJobsAText); ++i) {
      absl::StrAppend(&yaml, "  - { name: job-", i, ", at: ", FormatInstant(at), ", ", more,
                      " }\n");
    }
    Apply(yaml, absl::StrCat("bench/", first));
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

void Stage::Plan() {
  NoRunner runner;
  const std::unique_ptr<Lanes> lanes = OpenLanes(*database_, runner);
  absl::Duration next;
  do {
    // Read before the comparison: a compiler may read the clock first, and end with the first step.
    next = lanes->Step(LaneKind::kPlan);
  } while (next <= SystemClock().BootNow());
  if (lanes->node().counters.store_errors > 0) Die("planning failed");
}

void Stage::Rest() {
  // Of each beat the last audit is due since yesterday or this morning, whatever is measured now.
  auto acts = database_->OpenActs();
  DieUnlessOk(acts.status(), "opening the store");
  AuditBeats beats(*std::move(acts), {.by = "node:bench"});
  DieUnlessOk(beats.Step().status(), "the audits");
  if (!options_.IsPostgres()) return;
  Query("vacuum analyze");
  Query("checkpoint");
}

std::string Stage::Query(const std::string& sql) {
  if (!options_.IsPostgres()) return QuerySqlite(options_.Text("store"), sql);
  PGconn* const connection = PQconnectdb(ServerUrl(options_.Text("store")).c_str());
  PGresult* const result = PQexec(connection, sql.c_str());
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
    Die(absl::StrCat(sql, ": ", PQerrorMessage(connection)));
  }
  std::string value = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
  PQclear(result);
  PQfinish(connection);
  return value;
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
  Query(absl::StrCat("INSERT INTO ", Table("job_watermark"),
                     " (job_name, period, biz_date, status, op, due_at, not_before, look_at, "
                     "version) SELECT 'fill-' || (n.i % 1000), 'fill-' || n.i, '2026-01-01', "
                     "'PLANNED', 'plan', ",
                     at, ", ", at, ", ", at, ", 1 FROM ", Numbers(count)));
}

std::string Stage::Table(absl::string_view name) const {
  return absl::StrCat(options_.IsPostgres() ? "matins." : "", name);
}

absl::Time Stage::Now() {
  const auto status = acts_->ReadStatus();
  DieUnlessOk(status.status(), "the store's clock");
  return status->now;
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
