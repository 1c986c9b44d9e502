// PostgreSQL through libpq, pipelined: an end and the next claim are one round trip.
#include <libpq-fe.h>

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "backends/backends.h"
#include "bench/floor/floor.h"

namespace matins::bench {
namespace {

constexpr char kSchema[] = "matins";

// The same columns, no matter what Matins' schema has by now; its keys, and one way to what is due.
constexpr char kBareTables[] = R"(
  create schema bare;
  create table bare.job_watermark (like matins.job_watermark including defaults,
    primary key (job_name, period)) with (fillfactor = 70);
  create index on bare.job_watermark (look_at) where status = 'PLANNED';
  create table bare.job_run (like matins.job_run including defaults, primary key (fence));
  create sequence bare.matins_fence as bigint cache 1)";

constexpr char kPlan[] = R"(
  insert into @.job_watermark (job_name, period, biz_date, status, generation, op, op_at, due_at,
    window_start, window_end, nominal, not_before, start_by, look_at, version, by_whom, lock_key,
    planned_at)
  select case when $4 = 'jobs' then 'job-' || lpad(i::text, 8, '0') else 'job' end,
    to_char(t.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'), t.at::date, 'PLANNED', 1,
    'plan', now(), t.at, t.at - interval '1 day', t.at,
    to_char(t.at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'), t.at, t.at + interval '1 day', t.at,
    1, '', case when $4 = 'jobs' then 'job/job-' || lpad(i::text, 8, '0') end, now()
  from generate_series(0, $1::bigint - 1) i cross join lateral
    (select to_timestamp($2::float8 + i * $3::float8) as at) t)";

// Found by the index, then written where they lie.
constexpr char kSetClaimed[] = R"(
  update @.job_watermark r set status = 'RUNNING', fence = nextval('@.matins_fence'),
    nonce = 4711, node = 'floor/1', attempts = attempts + 1, attempts_total = attempts_total + 1,
    claimed_at = clock_timestamp(), op_at = clock_timestamp(), op = 'claim',
    run_until = clock_timestamp() + interval '1 hour',
    lease_until = clock_timestamp() + interval '30 s', held_by = null, held_until = null,
    wait_until = null, waits_for = null, reason = null, start_by = null, checkpointed_at = null,
    cancel_by = null, cancel_why = null, finished_at = null, ver = ver + 1, look_at = null)";
constexpr char kDue[] = R"(
  where r.ctid = any(array(select ctid from @.job_watermark where status = 'PLANNED' and
    look_at <= now() order by look_at limit $1::bigint for update skip locked))
  returning r.ctid, r.fence, r.job_name, r.period)";
constexpr char kOne[] = R"(
  where r.status = 'PLANNED' and r.ctid = (select ctid from @.job_watermark
    where status = 'PLANNED' and look_at = to_timestamp($1::float8 / 1000000) limit 1)
  returning r.ctid, r.fence, r.job_name, r.period)";

constexpr char kFinish[] = R"(
  with u as (update @.job_watermark r set status = 'DONE', held = false, reason = null,
      finished_at = clock_timestamp(), look_at = r.not_before, waits_for = null, held_by = null,
      held_until = null, lease_until = null, run_until = null, cancel_by = null,
      cancel_why = null, ver = ver + 1, op = 'commit', op_at = clock_timestamp()
    where r.ctid = any($1::tid[]) and r.status = 'RUNNING' and r.nonce = 4711 and
      r.fence between $2::bigint and $3::bigint
    returning r.*)
  insert into @.job_run (fence, job_name, period, biz_date, generation, attempt, attempts_total,
    node, due_at, planned_at, dispatched_at, claimed_at, checkpointed_at, backfill, manual,
    version, finished_at, status, started_at)
  select fence, job_name, period, biz_date, generation, attempts, attempts_total, node, due_at,
    planned_at, dispatched_at, claimed_at, checkpointed_at, backfill, manual, version, finished_at,
    'DONE', claimed_at from u)";

struct Target {
  std::string conninfo;
  std::string schema;
};

std::string In(const Target& target, absl::string_view sql) {
  return absl::StrReplaceAll(sql, {{"@", target.schema}});
}

PGconn* Open(const Target& target) {
  PGconn* connection = PQconnectdb(target.conninfo.c_str());
  if (PQstatus(connection) != CONNECTION_OK) Die(PQerrorMessage(connection));
  PQsetNoticeProcessor(
      connection, [](void*, const char*) {}, nullptr);
  return connection;
}

PGresult* Checked(PGconn* connection, PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_PIPELINE_SYNC) {
    Die(PQerrorMessage(connection));
  }
  return result;
}

class PostgresqlConnection : public Connection {
 public:
  explicit PostgresqlConnection(const Target& target, std::vector<int64_t> due)
      : connection_(Open(target)), due_(std::move(due)) {
    Prepare("claim", In(target, absl::StrCat(kSetClaimed, kDue)));
    Prepare("claim_one", In(target, absl::StrCat(kSetClaimed, kOne)));
    Prepare("finish", In(target, kFinish));
    Prepare("begin", "begin");
    Prepare("commit", "commit");
    if (PQenterPipelineMode(connection_) != 1) Die("no pipeline");
  }
  ~PostgresqlConnection() override { PQfinish(connection_); }

  int Claim(int batch) override {
    Send("claim", {absl::StrCat(batch)});
    Sync();
    const int claimed = ReadClaimed();
    ReadSync();
    return claimed;
  }
  void Finish() override {
    SendFinish();
    Sync();
    ReadFinished();
    ReadSync();
  }
  int FinishAndClaim(int batch) override {
    Send("begin", {});
    SendFinish();
    Send("claim", {absl::StrCat(batch)});
    Send("commit", {});
    Sync();
    PQclear(Next());
    ReadFinished();
    const int claimed = ReadClaimed();
    PQclear(Next());
    ReadSync();
    return claimed;
  }
  void ClaimRow(int64_t row) override {
    Send("claim_one", {absl::StrCat(due_[static_cast<size_t>(row)])});
    Sync();
    if (ReadClaimed() != 1) Die(absl::StrCat("row ", row, " could not be claimed"));
    ReadSync();
  }

 private:
  void Prepare(const char* name, const std::string& sql) {
    PQclear(Checked(connection_, PQprepare(connection_, name, sql.c_str(), 0, nullptr)));
  }
  void Send(const char* name, const std::vector<std::string>& arguments) {
    std::vector<const char*> values;
    for (const std::string& argument : arguments) values.push_back(argument.c_str());
    if (PQsendQueryPrepared(connection_, name, static_cast<int>(values.size()), values.data(),
                            nullptr, nullptr, 0) != 1) {
      Die(PQerrorMessage(connection_));
    }
  }
  void SendFinish() { Send("finish", {places_ + "}", low_, high_}); }
  void Sync() {
    if (PQpipelineSync(connection_) != 1) Die(PQerrorMessage(connection_));
  }
  // The result of the next statement of the pipeline.
  PGresult* Next() {
    PGresult* result = Checked(connection_, PQgetResult(connection_));
    if (PQgetResult(connection_) != nullptr) Die("two results of one statement");
    return result;
  }
  void ReadSync() { PQclear(Checked(connection_, PQgetResult(connection_))); }
  int ReadClaimed() {
    PGresult* result = Next();
    claimed_ = PQntuples(result);
    places_ = "{";
    int64_t low = INT64_MAX, high = 0;
    for (int i = 0; i < claimed_; ++i) {
      absl::StrAppend(&places_, i == 0 ? "\"" : ",\"", PQgetvalue(result, i, 0), "\"");
      const int64_t fence = atoll(PQgetvalue(result, i, 1));
      low = std::min(low, fence);
      high = std::max(high, fence);
    }
    low_ = absl::StrCat(low);
    high_ = absl::StrCat(high);
    PQclear(result);
    return claimed_;
  }
  void ReadFinished() {
    PGresult* result = Next();
    if (atoi(PQcmdTuples(result)) != claimed_) {
      Die(absl::StrCat("ended ", PQcmdTuples(result), " of ", claimed_));
    }
    PQclear(result);
  }

  PGconn* connection_;
  std::vector<int64_t> due_;
  std::string places_, low_, high_;
  int claimed_ = 0;
};

class PostgresqlFloor : public Floor {
 public:
  void Prepare(const Setting& setting, absl::Time first, absl::Duration apart) override {
    target_.conninfo = setting.store;
    if (absl::StrContains(setting.store, "?")) Die("the store's URL names a database alone");
    target_.schema = setting.bare ? "bare" : kSchema;
    auto database = DatabaseFromUrl(setting.store);
    if (!database.ok()) Die(database.status().ToString());
    if (auto status = (*database)->Migrate(); !status.ok()) Die(status.ToString());
    connection_ = Open(target_);
    if (setting.bare) Run(kBareTables);
    const int64_t from = absl::ToUnixSeconds(first);
    Run(kPlan, {absl::StrCat(setting.runs), absl::StrCat(from),
                absl::StrCat(absl::ToDoubleSeconds(apart)), setting.shape});
    Run("vacuum analyze @.job_watermark");
    Run("checkpoint");
    due_.clear();
    PGresult* rows =
        Checked(connection_,
                PQexec(connection_, In(target_,
                                       "select (extract(epoch from look_at) * 1000000)::bigint "
                                       "from @.job_watermark order by look_at, job_name")
                                        .c_str()));
    for (int i = 0; i < PQntuples(rows); ++i) due_.push_back(atoll(PQgetvalue(rows, i, 0)));
    PQclear(rows);
  }
  std::unique_ptr<Connection> Connect() override {
    return std::make_unique<PostgresqlConnection>(target_, due_);
  }
  int64_t Done() override {
    PGresult* rows = Checked(
        connection_, PQexec(connection_, In(target_, R"(select count(*) from @.job_watermark w
          join @.job_run r on r.fence = w.fence and r.job_name = w.job_name and
            r.period = w.period and r.status = w.status where w.status = 'DONE')")
                                             .c_str()));
    const int64_t done = atoll(PQgetvalue(rows, 0, 0));
    PQclear(rows);
    return done;
  }

 private:
  void Run(const char* sql, const std::vector<std::string>& arguments = {}) {
    std::vector<const char*> values;
    for (const std::string& argument : arguments) values.push_back(argument.c_str());
    const std::string text = In(target_, sql);
    PGresult* result =
        arguments.empty() ? PQexec(connection_, text.c_str())
                          : PQexecParams(connection_, text.c_str(), static_cast<int>(values.size()),
                                         nullptr, values.data(), nullptr, nullptr, 0);
    PQclear(Checked(connection_, result));
  }

  Target target_;
  PGconn* connection_ = nullptr;
  std::vector<int64_t> due_;
};

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  matins::bench::PostgresqlFloor floor;
  return matins::bench::Main(argc, argv, floor);
}
