#include "store/postgresql/connection.h"

#include <endian.h>
#include <poll.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/postgresql/libpq.h"

namespace matins::postgresql {
namespace {

constexpr absl::string_view kStatePayload = "matins/sqlstate";
constexpr absl::string_view kConstraintPayload = "matins/constraint";
constexpr absl::string_view kBegin = "BEGIN isolation level read committed";
constexpr absl::string_view kBeginSnapshot = "BEGIN isolation level repeatable read read only";
constexpr int64_t kEpoch2000Us = 946'684'800'000'000;

// Deadlines are of the monotonic clock: a step of the wall clock must neither hang a call nor end
// it early.
absl::Time Monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

std::string PayloadText(const absl::Status& status, absl::string_view key) {
  const auto payload = status.GetPayload(key);
  return payload ? std::string(*payload) : "";
}

bool Starts(absl::string_view state, absl::string_view prefix) {
  return absl::StartsWith(state, prefix);
}

// What was prepared is not there: a pooler that hides itself gave the transaction to another
// session; or it means something else since the schema was changed.
constexpr absl::string_view kForgotten = "26000";

std::string StateOf(const PGresult* result) {
  const auto field = [result](int code) -> absl::string_view {
    const char* text = Pq().PQresultErrorField(result, code);
    return text == nullptr ? "" : text;
  };
  const absl::string_view state = field(PG_DIAG_SQLSTATE);
  const bool other_meaning =
      state == "0A000" && field(PG_DIAG_SOURCE_FUNCTION) == "RevalidateCachedQuery";
  return std::string(other_meaning ? kForgotten : state);
}

absl::Status ServerError(const PGresult* result, absl::string_view where) {
  const auto field = [result](int code) {
    const char* text = Pq().PQresultErrorField(result, code);
    return std::string(text == nullptr ? "" : text);
  };
  const std::string state = StateOf(result);
  const std::string message =
      absl::StrCat(where, ": ", field(PG_DIAG_MESSAGE_PRIMARY), " (SQLSTATE ", state, ")");
  absl::Status status;
  if (state == "42P01" || state == "3F000" || state == "42703" || state == "42883") {
    status = absl::FailedPreconditionError(absl::StrCat(
        message, "; the schema is missing or not this program's: run `matins db migrate`"));
  } else if (state == "42501") {
    status = absl::FailedPreconditionError(
        absl::StrCat(message, "; grant the user the schema's tables, or use their owner"));
  } else if (state == "25006") {
    status = StoreAwayError(
        absl::StrCat(message, "; the server is a standby: name the primary in the store's URL"));
  } else if (state == kForgotten || Starts(state, "40") || Starts(state, "53") ||
             Starts(state, "57") || Starts(state, "58") || Starts(state, "08") ||
             Starts(state, "25") || state == "55P03" || state == "55006" || state == "23505") {
    status = StoreAwayError(absl::StrCat(message, "; nothing took effect, it may be sent again"));
  } else {
    status = absl::InternalError(message);
  }
  status.SetPayload(kStatePayload, absl::Cord(state));
  status.SetPayload(kConstraintPayload, absl::Cord(field(PG_DIAG_CONSTRAINT_NAME)));
  return status;
}

bool IsFatal(const PGresult* result) {
  const char* severity = Pq().PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
  return severity == nullptr || strcmp(severity, "ERROR") != 0;
}

}  // namespace

int Rows::size() const { return Pq().PQntuples(result_.get()); }
bool Rows::IsNull(int row, int column) const {
  return Pq().PQgetisnull(result_.get(), row, column) != 0;
}
std::string Rows::Text(int row, int column) const {
  return std::string(Pq().PQgetvalue(result_.get(), row, column),
                     Pq().PQgetlength(result_.get(), row, column));
}
int64_t Rows::Int(int row, int column) const {
  const char* bytes = Pq().PQgetvalue(result_.get(), row, column);
  switch (Pq().PQgetlength(result_.get(), row, column)) {
    case 8: {
      uint64_t v;
      memcpy(&v, bytes, 8);
      return static_cast<int64_t>(be64toh(v));
    }
    case 4: {
      uint32_t v;
      memcpy(&v, bytes, 4);
      return static_cast<int32_t>(be32toh(v));
    }
    case 2: {
      uint16_t v;
      memcpy(&v, bytes, 2);
      return static_cast<int16_t>(be16toh(v));
    }
    default:
      return 0;
  }
}
bool Rows::Bool(int row, int column) const {
  return Pq().PQgetlength(result_.get(), row, column) == 1 &&
         *Pq().PQgetvalue(result_.get(), row, column) != 0;
}
double Rows::Number(int row, int column) const {
  const int64_t bits = Int(row, column);
  double v;
  memcpy(&v, &bits, 8);
  return v;
}
absl::Time Rows::Time(int row, int column, absl::Time null) const {
  if (IsNull(row, column)) return null;
  const int64_t us = Int(row, column);
  if (us == INT64_MAX) return absl::InfiniteFuture();
  if (us == INT64_MIN) return absl::InfinitePast();
  return absl::FromUnixMicros(us + kEpoch2000Us);
}
absl::CivilDay Rows::Day(int row, int column) const {
  return absl::CivilDay(2000, 1, 1) + Int(row, column);
}
int64_t Rows::affected() const {
  return std::strtoll(Pq().PQcmdTuples(result_.get()), nullptr, 10);
}

std::string SqlStateOf(const absl::Status& status) { return PayloadText(status, kStatePayload); }
bool IsContention(const absl::Status& status) {
  const std::string state = SqlStateOf(status);
  return state == "40P01" || state == "40001" || state == kForgotten;
}
bool IsUniqueViolation(const absl::Status& status, absl::string_view constraint) {
  return SqlStateOf(status) == "23505" && PayloadText(status, kConstraintPayload) == constraint;
}

Connection::Connection(ConnectionOptions options) : options_(std::move(options)) {}
Connection::~Connection() { Drop(); }

void Connection::Drop() {
  if (conn_ != nullptr) Pq().PQfinish(conn_);
  conn_ = nullptr;
  open_ = false;
  ahead_.reset();
  prepared_.Forget();
}

int Connection::socket() const { return conn_ == nullptr ? -1 : Pq().PQsocket(conn_); }

absl::Status Connection::Lost(absl::string_view what) {
  std::string message = absl::StrCat(options_.where, ": ", what);
  if (conn_ != nullptr && *Pq().PQerrorMessage(conn_) != '\0') {
    // libpq's lines, as one: a line of the log is one event.
    absl::StrAppend(&message, ": ",
                    absl::StrJoin(absl::StrSplit(Pq().PQerrorMessage(conn_),
                                                 absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty()),
                                  " "));
  }
  Drop();
  return StoreAwayError(message);
}

absl::Status Connection::Await(short events, absl::Time deadline) {
  while (true) {
    const absl::Duration left = deadline - Monotonic();
    if (left <= absl::ZeroDuration()) return Lost("no answer within the call's deadline");
    pollfd fd = {Pq().PQsocket(conn_), events, 0};
    const int n = poll(&fd, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (n > 0) return absl::OkStatus();
    if (n < 0 && errno != EINTR) return Lost("poll failed");
  }
}

absl::Status Connection::Handshake(absl::Time deadline) {
  RETURN_IF_ERROR(LoadLibpq());
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : options_.conninfo) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  for (const auto& [key, value] :
       {std::pair{"client_encoding", "UTF8"}, std::pair{"fallback_application_name", "matins"}}) {
    keys.push_back(key);
    values.push_back(value);
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  conn_ = Pq().PQconnectStartParams(keys.data(), values.data(), 0);
  if (conn_ == nullptr) return Lost("out of memory");
  Pq().PQsetNoticeProcessor(
      conn_, [](void*, const char*) {}, nullptr);
  if (Pq().PQstatus(conn_) == CONNECTION_BAD) return Lost("cannot connect");
  PostgresPollingStatusType state = PGRES_POLLING_WRITING;
  while (state != PGRES_POLLING_OK) {
    if (state == PGRES_POLLING_FAILED) return Lost("cannot connect");
    RETURN_IF_ERROR(Await(state == PGRES_POLLING_READING ? POLLIN : POLLOUT, deadline));
    state = Pq().PQconnectPoll(conn_);
  }
  if (Pq().PQsetnonblocking(conn_, 1) != 0 || Pq().PQenterPipelineMode(conn_) != 1) {
    return Lost("cannot prepare the connection");
  }
  return absl::OkStatus();
}

absl::Status Connection::Connect() {
  if (conn_ != nullptr) return absl::OkStatus();
  const absl::Time now = Monotonic();
  if (now < next_try_) {
    return StoreAwayError(absl::StrCat(options_.where, ": not reached; tried again in ",
                                       absl::FormatDuration(next_try_ - now)));
  }
  absl::Status status = Handshake(now + options_.call_deadline);
  if (status.ok()) {
    backoff_ = absl::ZeroDuration();
    return status;
  }
  backoff_ = std::clamp(backoff_ * 2, absl::Milliseconds(50), absl::Seconds(2));
  next_try_ = Monotonic() + backoff_ * (0.5 + static_cast<double>(random_.Below(1000)) / 1000);
  return status;
}

absl::Status Connection::Ready() {
  if (ahead_) {
    const absl::Time deadline = Monotonic() + options_.call_deadline;
    absl::Status status = CollectAhead(deadline);
    if (!status.ok() && Monotonic() >= deadline) return status;
  }
  if (conn_ != nullptr) {
    pollfd fd = {Pq().PQsocket(conn_), POLLIN, 0};
    // Something unasked for has come: a notice, or the end of the connection.
    if (poll(&fd, 1, 0) > 0 &&
        (Pq().PQconsumeInput(conn_) == 0 || Pq().PQstatus(conn_) == CONNECTION_BAD)) {
      Drop();
    }
  }
  return Connect();
}

absl::StatusOr<std::vector<bool>> Connection::Queue(const std::vector<Statement>& statements) {
  std::vector<bool> preparations;
  for (const Statement& statement : statements) {
    std::vector<const char*> values;
    std::vector<int> lengths, formats;
    for (const Parameter& p : statement.params) {
      values.push_back(p.value ? p.value->c_str() : nullptr);
      lengths.push_back(p.value ? static_cast<int>(p.value->size()) : 0);
      formats.push_back(p.binary ? 1 : 0);
    }
    const PreparedStatements::Use use = prepared_.Next(statement.sql, statement.comes_again);
    const char* const name = use.name.c_str();
    const char* const sql = statement.sql.c_str();
    preparations.push_back(use.how == PreparedStatements::How::kPrepare);
    if (preparations.back()) {
      preparations.push_back(false);
      if (Pq().PQsendPrepare(conn_, name, sql, 0, nullptr) != 1) return Lost("cannot send");
    }
    const int n = static_cast<int>(values.size());
    const int sent = use.how == PreparedStatements::How::kPlain
                         ? Pq().PQsendQueryParams(conn_, sql, n, nullptr, values.data(),
                                                  lengths.data(), formats.data(), 1)
                         : Pq().PQsendQueryPrepared(conn_, name, n, values.data(), lengths.data(),
                                                    formats.data(), 1);
    if (sent != 1) return Lost("cannot send");
  }
  if (Pq().PQpipelineSync(conn_) != 1) return Lost("cannot send");
  return preparations;
}

absl::StatusOr<std::vector<Rows>> Connection::Send(const std::vector<Statement>& statements) {
  const absl::Time deadline = Monotonic() + options_.call_deadline;
  ASSIGN_OR_RETURN(const std::vector<bool> preparations, Queue(statements));
  std::vector<Rows> rows;
  const absl::Status status = Collect(preparations, deadline, rows);
  prepared_.Settle();
  if (SqlStateOf(status) == kForgotten) prepared_.Stop();
  RETURN_IF_ERROR(status);
  if (rows.size() != statements.size()) return Lost("an answer is missing");
  return rows;
}

void Connection::WriteAhead(const std::vector<Statement>& statements) {
  if (conn_ == nullptr || open_ || ahead_ || prepared_.stopped()) return;
  absl::StatusOr<std::vector<bool>> queued = Queue(Framed(kBegin, statements, "COMMIT"));
  if (!queued.ok()) return;
  ahead_ = *std::move(queued);
  Pq().PQflush(conn_);  // whatever does not go now goes when the answers are taken
}

absl::Status Connection::CollectAhead(absl::Time deadline) {
  const std::vector<bool> preparations = *std::exchange(ahead_, std::nullopt);
  std::vector<Rows> rows;
  absl::Status status = Collect(preparations, deadline, rows);
  prepared_.Settle();
  if (conn_ == nullptr) return status;
  if (!status.ok()) Rollback();
  return absl::OkStatus();
}

// Reads up to the pipeline's end; the first error is answered, and what follows it was not run.
absl::Status Connection::Collect(const std::vector<bool>& preparations, absl::Time deadline,
                                 std::vector<Rows>& rows) {
  absl::Status first;
  size_t answered = 0;
  bool sending = true;
  for (bool synced = false; !synced;) {
    if (sending) {
      const int flushed = Pq().PQflush(conn_);
      if (flushed < 0) return Lost("connection lost while sending");
      sending = flushed == 1;
    }
    while (!synced && Pq().PQisBusy(conn_) == 0) {
      PGresult* raw = Pq().PQgetResult(conn_);
      if (raw == nullptr) {
        if (Pq().PQstatus(conn_) == CONNECTION_BAD) return Lost("connection lost");
        // The end of one statement's results; a second NULL in a row means more must be read.
        raw = Pq().PQisBusy(conn_) == 0 ? Pq().PQgetResult(conn_) : nullptr;
        if (raw == nullptr) break;
      }
      std::shared_ptr<PGresult> result(raw, Pq().PQclear);
      switch (Pq().PQresultStatus(raw)) {
        case PGRES_PIPELINE_SYNC:
          synced = true;
          break;
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
          if (answered < preparations.size() && preparations[answered++]) {
            prepared_.Confirm();
          } else {
            rows.emplace_back(std::move(result));
          }
          break;
        case PGRES_PIPELINE_ABORTED:
          break;
        default:
          if (IsFatal(raw) || Pq().PQstatus(conn_) == CONNECTION_BAD) {
            return Lost("connection ended by the server");
          }
          if (first.ok()) first = ServerError(raw, options_.where);
      }
    }
    if (synced) break;
    RETURN_IF_ERROR(Await(static_cast<short>(sending ? POLLIN | POLLOUT : POLLIN), deadline));
    if (Pq().PQconsumeInput(conn_) == 0) return Lost("connection lost");
  }
  return first;
}

// Its first column says whose session it is.
constexpr char kTimeOuts[] =
    "select pg_backend_pid(), set_config('statement_timeout', $1, true), "
    "set_config('lock_timeout', $2, true), "
    "set_config('idle_in_transaction_session_timeout', $1, true)";

Statement Connection::Settings() const {
  const auto ms = [](absl::Duration d) { return absl::StrCat(absl::ToInt64Milliseconds(d)); };
  constexpr char kByKeys[] =
      ", set_config('enable_seqscan', 'off', true), set_config('random_page_cost', '0.1', true), "
      "set_config('jit', 'off', true)";
  // An answer must survive a crash (I11), whatever the server's default is.
  constexpr char kFlushed[] =
      ", case current_setting('synchronous_commit') when 'off' then "
      "set_config('synchronous_commit', 'on', true) end";
  return {
      absl::StrCat(kTimeOuts, by_keys_ ? kByKeys : "", IsMutant(Mutant::kNoFlush) ? "" : kFlushed),
      {ms(options_.call_deadline), ms(options_.lock_wait)}};
}

// `statements` in a transaction; `end` "": it goes on.
std::vector<Statement> Connection::Framed(absl::string_view begin,
                                          const std::vector<Statement>& statements,
                                          absl::string_view end) const {
  std::vector<Statement> all = {{std::string(begin), {}}, Settings()};
  if (IsMutant(Mutant::kClockBeforeLock)) all.push_back({preamble_, {}});
  all.insert(all.end(), statements.begin(), statements.end());
  if (!end.empty()) all.push_back({std::string(end), {}});
  return all;
}

absl::StatusOr<std::vector<Rows>> Connection::SendFramed(absl::string_view begin,
                                                         const std::vector<Statement>& statements,
                                                         absl::string_view end) {
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, Send(Framed(begin, statements, end)));
  const std::ptrdiff_t tail = end.empty() ? 0 : 1;
  const auto head = static_cast<std::ptrdiff_t>(rows.size() - statements.size()) - tail;
  // A pooler greets with a process of its own making.
  if (conn_ != nullptr && rows[1].Int(0, 0) != Pq().PQbackendPID(conn_)) prepared_.Stop();
  return std::vector<Rows>(rows.begin() + head, rows.end() - tail);
}

absl::StatusOr<std::vector<Rows>> Connection::Read(const std::vector<Statement>& statements) {
  for (int tries = 0;; ++tries) {
    RETURN_IF_ERROR(Ready());
    auto rows = SendFramed(kBeginSnapshot, statements, "COMMIT");
    if (rows.ok()) return rows;
    const bool lost = conn_ == nullptr && !absl::StrContains(rows.status().message(), "deadline");
    Rollback();
    if (tries > 0 || (!lost && !IsContention(rows.status()))) return rows.status();
  }
}

absl::StatusOr<std::vector<Rows>> Connection::Write(const std::vector<Statement>& statements) {
  RETURN_IF_ERROR(Ready());
  auto rows = SendFramed(kBegin, statements, "COMMIT");
  if (rows.ok()) return rows;
  if (conn_ == nullptr) return InDoubtError(rows.status().message());
  Rollback();
  return rows.status();
}

absl::StatusOr<std::vector<Rows>> Connection::Open(absl::string_view begin, bool writes,
                                                   const std::vector<Statement>& statements) {
  RETURN_IF_ERROR(Ready());
  open_ = true;
  writes_ = writes;
  auto rows = SendFramed(begin, statements, "");
  if (!rows.ok()) Rollback();
  return rows;
}

absl::StatusOr<std::vector<Rows>> Connection::Begin(const std::vector<Statement>& statements) {
  return Open(kBegin, true, statements);
}

absl::StatusOr<std::vector<Rows>> Connection::BeginSnapshot(
    const std::vector<Statement>& statements) {
  return Open(kBeginSnapshot, false, statements);
}

absl::StatusOr<std::vector<Rows>> Connection::More(const std::vector<Statement>& statements) {
  if (!open_) return StoreAwayError(absl::StrCat(options_.where, ": the transaction is over"));
  auto rows = Send(statements);
  if (!rows.ok()) Rollback();
  return rows;
}

absl::StatusOr<std::vector<Rows>> Connection::Commit(const std::vector<Statement>& statements) {
  if (!open_) return StoreAwayError(absl::StrCat(options_.where, ": the transaction is over"));
  std::vector<Statement> all = statements;
  all.push_back({"COMMIT", {}});
  auto rows = Send(all);
  if (!rows.ok()) {
    if (conn_ == nullptr && writes_) return InDoubtError(rows.status().message());
    Rollback();
    return rows.status();
  }
  open_ = false;
  rows->pop_back();
  return rows;
}

void Connection::Rollback() {
  open_ = false;
  if (conn_ == nullptr || Pq().PQtransactionStatus(conn_) == PQTRANS_IDLE) return;
  if (!Send({{"ROLLBACK", {}}}).ok()) Drop();
}

absl::StatusOr<std::vector<Rows>> Connection::Bare(const std::vector<Statement>& statements) {
  RETURN_IF_ERROR(Ready());
  auto rows = Send(statements);
  if (!rows.ok()) Rollback();
  return rows;
}

absl::StatusOr<bool> Connection::IsPooled() {
  RETURN_IF_ERROR(Ready());
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, Bare({{"select pg_backend_pid()", {}}}));
  return conn_ == nullptr || rows[0].Int(0, 0) != Pq().PQbackendPID(conn_);
}

absl::StatusOr<bool> Connection::TakeNotifications() {
  if (conn_ == nullptr) return StoreAwayError(absl::StrCat(options_.where, ": not connected"));
  if (Pq().PQconsumeInput(conn_) == 0) return Lost("connection lost");
  bool any = false;
  while (PGnotify* notify = Pq().PQnotifies(conn_)) {
    any = true;
    Pq().PQfreemem(notify);
  }
  return any;
}

}  // namespace matins::postgresql
