#include "store/mariadb/connection.h"

#include <errmsg.h>
#include <mysqld_error.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "store/mariadb/libmariadb.h"

namespace matins::mariadb {
namespace {

constexpr absl::string_view kErrorPayload = "matins/mariadb_error";
constexpr int kTooLarge = -1;  // of ours: a statement that fits no packet

// Deadlines are of the monotonic clock: a step of the wall clock must neither hang a call nor end
// it early.
absl::Time Monotonic() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

absl::Status WithError(absl::Status status, int error) {
  status.SetPayload(kErrorPayload, absl::Cord(absl::StrCat(error)));
  return status;
}

// The connection is gone with it.
bool EndsConnection(unsigned error) {
  return (error >= CR_MIN_ERROR && error <= CR_MAX_ERROR) || error == ER_SERVER_SHUTDOWN ||
         error == ER_CONNECTION_KILLED || error == ER_NET_READ_ERROR ||
         error == ER_NET_READ_INTERRUPTED || error == ER_NET_ERROR_ON_WRITE ||
         error == ER_NET_WRITE_INTERRUPTED;
}

absl::Status ServerError(unsigned error, absl::string_view text, absl::string_view where) {
  const std::string message = absl::StrCat(where, ": ", text, " (error ", error, ")");
  switch (error) {
    case ER_NO_SUCH_TABLE:
    case ER_BAD_DB_ERROR:
    case ER_SP_DOES_NOT_EXIST:
    case ER_BAD_FIELD_ERROR:
    case ER_KEY_DOES_NOT_EXISTS:  // statements name the indexes that they go by
      return absl::FailedPreconditionError(absl::StrCat(
          message, "; the schema is missing or not this program's: run `matins db migrate`"));
    case ER_DBACCESS_DENIED_ERROR:
    case ER_TABLEACCESS_DENIED_ERROR:
    case ER_COLUMNACCESS_DENIED_ERROR:
    case ER_PROCACCESS_DENIED_ERROR:
    case ER_SPECIFIC_ACCESS_DENIED_ERROR:
      return absl::FailedPreconditionError(absl::StrCat(
          message,
          "; grant the user all privileges on the database: GRANT ALL ON DATABASE.* TO ..."));
    case ER_BINLOG_CREATE_ROUTINE_NEED_SUPER:
    case ER_BINLOG_UNSAFE_ROUTINE:
      return absl::FailedPreconditionError(
          absl::StrCat(message,
                       "; with a binary log the schema's functions and triggers need SET GLOBAL "
                       "log_bin_trust_function_creators = 1, or a migration by a user with SUPER"));
    case ER_BINLOG_STMT_MODE_AND_ROW_ENGINE:
      return absl::FailedPreconditionError(
          absl::StrCat(message, "; set binlog_format = ROW (or MIXED)"));
    case ER_OPTION_PREVENTS_STATEMENT:
      return StoreAwayError(absl::StrCat(
          message,
          "; the server is read-only, a replica perhaps: name the primary in the store's URL"));
    case ER_LOCK_DEADLOCK:
    case ER_LOCK_WAIT_TIMEOUT:
    case ER_CHECKREAD:
    case ER_QUERY_INTERRUPTED:
    case ER_STATEMENT_TIMEOUT:
    case ER_CON_COUNT_ERROR:
    case ER_TOO_MANY_USER_CONNECTIONS:
    case ER_DISK_FULL:
    case ER_RECORD_FILE_FULL:
    case ER_ERROR_ON_WRITE:
    case ER_DUP_ENTRY:
      return StoreAwayError(absl::StrCat(message, "; nothing took effect, it may be sent again"));
    default:
      return absl::InternalError(message);
  }
}

absl::string_view Digits(absl::string_view text, size_t at, size_t count) {
  return text.size() >= at + count ? text.substr(at, count) : absl::string_view();
}

int Number(absl::string_view digits) {
  int value = 0;
  for (const char c : digits) value = value * 10 + (c - '0');
  return value;
}

}  // namespace

// ---- rows ----

Rows::Rows(st_mysql_res* result, int64_t affected) : affected_(affected) {
  if (result == nullptr) return;
  result_.reset(result, Client().mysql_free_result);
  columns_ = std::max(1u, Client().mysql_num_fields(result));
  cells_.reserve(columns_ * Client().mysql_num_rows(result));
  while (MYSQL_ROW row = Client().mysql_fetch_row(result)) {
    const unsigned long* lengths =
        Client().mysql_fetch_lengths(result);  // NOLINT: the client's type
    for (size_t i = 0; i < columns_; ++i) {
      cells_.push_back(row[i] == nullptr ? absl::string_view()
                                         : absl::string_view(row[i], lengths[i]));
    }
  }
}

std::string Rows::Text(int row, int column) const { return std::string(Cell(row, column)); }

int64_t Rows::Int(int row, int column) const {
  const absl::string_view cell = Cell(row, column);
  // Cells end with a zero byte that is not counted.
  return cell.data() == nullptr ? 0 : std::strtoll(cell.data(), nullptr, 10);
}

absl::CivilDay Rows::Day(int row, int column) const {
  const absl::string_view cell = Cell(row, column);
  return absl::CivilDay(Number(Digits(cell, 0, 4)), Number(Digits(cell, 5, 2)),
                        Number(Digits(cell, 8, 2)));
}

absl::Time Rows::Time(int row, int column, absl::Time null) const {
  const absl::string_view cell = Cell(row, column);
  if (cell.data() == nullptr) return null;
  // 2026-10-30 01:02:03.000000
  const absl::CivilSecond second(Number(Digits(cell, 0, 4)), Number(Digits(cell, 5, 2)),
                                 Number(Digits(cell, 8, 2)), Number(Digits(cell, 11, 2)),
                                 Number(Digits(cell, 14, 2)), Number(Digits(cell, 17, 2)));
  int64_t micros = 0;
  if (cell.size() > 20) {
    absl::string_view fraction = cell.substr(20);
    for (size_t i = 0; i < 6; ++i) {
      micros = micros * 10 + (i < fraction.size() ? fraction[i] - '0' : 0);
    }
  }
  return absl::FromCivil(second, absl::UTCTimeZone()) + absl::Microseconds(micros);
}

// ---- errors ----

int ErrorOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorPayload);
  int error = 0;
  return payload && absl::SimpleAtoi(std::string(*payload), &error) ? error : 0;
}
bool IsContention(const absl::Status& status) {
  const int error = ErrorOf(status);
  return error == ER_LOCK_DEADLOCK || error == ER_CHECKREAD;
}
bool IsLockWait(const absl::Status& status) { return ErrorOf(status) == ER_LOCK_WAIT_TIMEOUT; }
bool IsDuplicate(const absl::Status& status, absl::string_view key) {
  return ErrorOf(status) == ER_DUP_ENTRY && absl::StrContains(status.message(), key);
}
bool IsRowError(const absl::Status& status) {
  switch (ErrorOf(status)) {
    case kTooLarge:
    case ER_DATA_TOO_LONG:
    case ER_TRUNCATED_WRONG_VALUE_FOR_FIELD:
    case ER_TRUNCATED_WRONG_VALUE:
    case ER_WARN_DATA_OUT_OF_RANGE:
    case ER_BAD_NULL_ERROR:
    case ER_DUP_ENTRY:
    case ER_NET_PACKET_TOO_LARGE:
    case ER_TOO_BIG_ROWSIZE:
      return true;
    default:
      return false;
  }
}

// ---- the connection ----

Connection::Connection(ConnectionOptions options) : options_(std::move(options)) {}
Connection::~Connection() { Drop(); }

void Connection::Drop() {
  if (conn_ != nullptr) {
    // Closing says good-bye first; to a peer that holds still that must not wait.
    if (connected_) shutdown(Client().mysql_get_socket(conn_), SHUT_RDWR);
    Client().mysql_close(conn_);
  }
  conn_ = nullptr;
  connected_ = open_ = false;
}

absl::Status Connection::Lost(absl::string_view what) {
  std::string message = absl::StrCat(options_.url.description, ": ", what);
  const unsigned error = conn_ == nullptr ? 0 : Client().mysql_errno(conn_);
  if (error != 0)
    absl::StrAppend(&message, ": ", Client().mysql_error(conn_), " (error ", error, ")");
  Drop();
  return WithError(StoreAwayError(message), static_cast<int>(error));
}

absl::Status Connection::Failed() {
  const unsigned error = Client().mysql_errno(conn_);
  if (error == 0 || EndsConnection(error)) return Lost("connection lost");
  return WithError(ServerError(error, Client().mysql_error(conn_), options_.url.description),
                   static_cast<int>(error));
}

absl::StatusOr<int> Connection::Await(int wanted, absl::Time deadline) {
  const absl::Time now = Monotonic();
  absl::Time until = deadline;
  if ((wanted & MYSQL_WAIT_TIMEOUT) != 0) {
    until = std::min(until, now + absl::Milliseconds(Client().mysql_get_timeout_value_ms(conn_)));
  }
  while (true) {
    const absl::Duration left = until - Monotonic();
    if (left <= absl::ZeroDuration()) {
      if (until < deadline) return MYSQL_WAIT_TIMEOUT;
      return Lost("no answer within the call's deadline");
    }
    pollfd fd = {Client().mysql_get_socket(conn_), 0, 0};
    if ((wanted & MYSQL_WAIT_READ) != 0) fd.events |= POLLIN;
    if ((wanted & MYSQL_WAIT_WRITE) != 0) fd.events |= POLLOUT;
    if ((wanted & MYSQL_WAIT_EXCEPT) != 0) fd.events |= POLLPRI;
    const int n = poll(&fd, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (n < 0 && errno != EINTR) return Lost("poll failed");
    if (n <= 0) continue;
    int came = 0;
    if ((fd.revents & POLLIN) != 0) came |= MYSQL_WAIT_READ;
    if ((fd.revents & POLLOUT) != 0) came |= MYSQL_WAIT_WRITE;
    if ((fd.revents & POLLPRI) != 0) came |= MYSQL_WAIT_EXCEPT;
    if ((fd.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) came |= wanted & ~MYSQL_WAIT_TIMEOUT;
    return came;
  }
}

std::string Connection::Settings() const {
  const int64_t seconds = std::max<int64_t>(1, absl::ToInt64Seconds(options_.call_deadline));
  return absl::StrCat(
      "SET NAMES utf8mb4 COLLATE utf8mb4_nopad_bin;"
      "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED;"
      "SET SESSION TRANSACTION READ WRITE;"
      "SET SESSION autocommit = 1, time_zone = '+00:00', timestamp = DEFAULT, "
      "sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', completion_type = 0, "
      "sql_safe_updates = 0, sql_select_limit = DEFAULT, unique_checks = 1, "
      "group_concat_max_len = 16777216, "  // of JSON_ARRAYAGG too
      "auto_increment_increment = 1, auto_increment_offset = 1, innodb_lock_wait_timeout = 1, "
      "lock_wait_timeout = ",
      seconds, ", max_statement_time = ", absl::ToDoubleSeconds(options_.call_deadline),
      // What a stopped node had begun must not keep its locks (and DELETE by hand waiting).
      ", idle_transaction_timeout = ", seconds, ";SELECT @@max_allowed_packet");
}

void Connection::set_call_deadline(absl::Duration deadline) {
  if (deadline == options_.call_deadline) return;
  options_.call_deadline = deadline;
  Drop();
}

absl::Status Connection::Handshake(absl::Time deadline) {
  RETURN_IF_ERROR(LoadLibmariadb());
  const Url& url = options_.url;
  conn_ = Client().mysql_init(nullptr);
  if (conn_ == nullptr) return Lost("out of memory");
  Client().mysql_options(conn_, MYSQL_OPT_NONBLOCK, nullptr);
  Client().mysql_options(conn_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  const my_bool enforce = url.tls != Tls::kOff, verify = url.tls == Tls::kVerify;
  Client().mysql_options(conn_, MYSQL_OPT_SSL_ENFORCE, &enforce);
  Client().mysql_options(conn_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
  const auto text = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
  if (url.tls != Tls::kOff) {
    Client().mysql_ssl_set(conn_, text(url.tls_key), text(url.tls_cert), text(url.tls_ca), nullptr,
                           nullptr);
  }
  const bool by_socket = !url.socket.empty();
  MYSQL* done = nullptr;
  int wanted = Client().mysql_real_connect_start(
      &done, conn_, by_socket ? "localhost" : url.host.c_str(), text(url.user),
      url.password.c_str(), enter_database_ ? url.database.c_str() : nullptr,
      by_socket ? 0 : static_cast<unsigned>(url.port), text(url.socket),
      CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS);
  while (wanted != 0) {
    connected_ = true;  // there is a socket
    ASSIGN_OR_RETURN(const int came, Await(wanted, deadline));
    wanted = Client().mysql_real_connect_cont(&done, conn_, came);
  }
  connected_ = done != nullptr;
  if (done == nullptr) {
    const unsigned error = Client().mysql_errno(conn_);
    if (error == ER_BAD_DB_ERROR || error == ER_DBACCESS_DENIED_ERROR) {
      const absl::Status status = Failed();
      Drop();
      return status;
    }
    return Lost("cannot connect");
  }
  std::vector<Rows> rows;
  RETURN_IF_ERROR(SendPacket(Settings(), 5, deadline, rows));
  packet_bytes_ = static_cast<size_t>(std::max<int64_t>(rows.back().Int(0, 0), 16 * 1024));
  return absl::OkStatus();
}

absl::Status Connection::Connect() {
  if (conn_ != nullptr) return absl::OkStatus();
  const absl::Time now = Monotonic();
  if (now < next_try_) {
    return StoreAwayError(absl::StrCat(options_.url.description, ": not reached; tried again in ",
                                       absl::FormatDuration(next_try_ - now)));
  }
  absl::Status status = Handshake(now + options_.call_deadline);
  if (status.ok()) {
    backoff_ = absl::ZeroDuration();
    return status;
  }
  Drop();
  if (!absl::IsUnavailable(status)) return status;
  backoff_ = std::clamp(backoff_ * 2, absl::Milliseconds(50), absl::Seconds(2));
  next_try_ = Monotonic() + backoff_ * (0.5 + static_cast<double>(random_.Below(1000)) / 1000);
  return status;
}

absl::Status Connection::Ready() {
  if (conn_ != nullptr) {
    pollfd fd = {Client().mysql_get_socket(conn_), POLLIN, 0};
    // Nothing is ever sent to us unasked but the end of the connection.
    if (poll(&fd, 1, 0) > 0) Drop();
  }
  return Connect();
}

// ---- sending ----

absl::Status Connection::ReadResult(absl::Time deadline, std::vector<Rows>& rows) {
  MYSQL_RES* result = nullptr;
  int wanted = Client().mysql_store_result_start(&result, conn_);
  while (wanted != 0) {
    ASSIGN_OR_RETURN(const int came, Await(wanted, deadline));
    wanted = Client().mysql_store_result_cont(&result, conn_, came);
  }
  if (result == nullptr && Client().mysql_errno(conn_) != 0) return Failed();
  rows.emplace_back(
      result, result == nullptr ? static_cast<int64_t>(Client().mysql_affected_rows(conn_)) : 0);
  return absl::OkStatus();
}

absl::Status Connection::ReadNext(absl::Time deadline, bool* more) {
  int status = 0;
  int wanted = Client().mysql_next_result_start(&status, conn_);
  while (wanted != 0) {
    ASSIGN_OR_RETURN(const int came, Await(wanted, deadline));
    wanted = Client().mysql_next_result_cont(&status, conn_, came);
  }
  if (status > 0) return Failed();
  *more = status == 0;
  return absl::OkStatus();
}

absl::Status Connection::SendPacket(const std::string& packet, size_t statements,
                                    absl::Time deadline, std::vector<Rows>& rows) {
  const size_t before = rows.size();
  int status = 0;
  int wanted = Client().mysql_real_query_start(&status, conn_, packet.data(), packet.size());
  while (wanted != 0) {
    ASSIGN_OR_RETURN(const int came, Await(wanted, deadline));
    wanted = Client().mysql_real_query_cont(&status, conn_, came);
  }
  if (status != 0) return Failed();
  for (bool more = true; more;) {
    RETURN_IF_ERROR(ReadResult(deadline, rows));
    RETURN_IF_ERROR(ReadNext(deadline, &more));
  }
  if (rows.size() - before != statements) return Lost("an answer is missing");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Rows>> Connection::Send(const std::vector<Statement>& statements,
                                                   Progress* progress) {
  const absl::Time deadline = Monotonic() + options_.call_deadline;
  std::vector<Rows> rows;
  Progress ours;
  Progress& p = progress == nullptr ? ours : *progress;
  const size_t most = packet_bytes_ - 1024;
  for (size_t first = 0; first < statements.size();) {
    std::string packet;
    size_t next = first;
    while (next < statements.size() &&
           (next == first || packet.size() + statements[next].sql.size() + 1 <= most)) {
      absl::StrAppend(&packet, next == first ? "" : ";", statements[next].sql);
      ++next;
    }
    if (packet.size() > most) {
      return WithError(
          absl::ResourceExhaustedError(absl::StrCat(
              options_.url.description, ": a statement of ", packet.size(),
              " bytes is more than max_allowed_packet lets through; raise it, or keep less")),
          kTooLarge);
    }
    p.sent = next;
    const absl::Status status = SendPacket(packet, next - first, deadline, rows);
    p.reached = rows.size();
    if (!status.ok()) return status;
    first = next;
  }
  return rows;
}

std::vector<Statement> Connection::Begun(bool snapshot,
                                         const std::vector<Statement>& statements) const {
  std::vector<Statement> all;
  if (snapshot) {
    all.push_back({"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"});
    all.push_back({"START TRANSACTION READ ONLY"});
  } else {
    all.push_back({"START TRANSACTION"});
  }
  if (IsMutant(Mutant::kClockBeforeLock)) all.push_back({"SET @matins_early = matins_now()"});
  all.insert(all.end(), statements.begin(), statements.end());
  return all;
}

namespace {

// Of a transaction's answers those of its caller's statements.
std::vector<Rows> Inner(const std::vector<Rows>& rows, size_t head, size_t count) {
  const auto first = rows.begin() + static_cast<std::ptrdiff_t>(head);
  return {first, first + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

absl::StatusOr<std::vector<Rows>> Connection::Read(const std::vector<Statement>& statements) {
  std::vector<Statement> all = Begun(/*snapshot=*/true, statements);
  const size_t head = all.size() - statements.size();
  all.push_back({"COMMIT"});
  for (int tries = 0;; ++tries) {
    RETURN_IF_ERROR(Ready());
    open_ = true;
    auto rows = Send(all);
    if (rows.ok()) {
      open_ = false;
      return Inner(*rows, head, statements.size());
    }
    const bool lost = conn_ == nullptr;
    Rollback();
    if (lost && tries == 0 && !absl::StrContains(rows.status().message(), "deadline")) continue;
    return rows.status();
  }
}

absl::StatusOr<std::vector<Rows>> Connection::Open(bool snapshot,
                                                   const std::vector<Statement>& statements) {
  RETURN_IF_ERROR(Ready());
  const std::vector<Statement> all = Begun(snapshot, statements);
  open_ = true;
  writes_ = !snapshot;
  auto rows = Send(all);
  if (!rows.ok()) {
    Rollback();
    return rows.status();
  }
  return Inner(*rows, all.size() - statements.size(), statements.size());
}

absl::StatusOr<std::vector<Rows>> Connection::Begin(const std::vector<Statement>& statements) {
  return Open(/*snapshot=*/false, statements);
}

absl::StatusOr<std::vector<Rows>> Connection::BeginSnapshot(
    const std::vector<Statement>& statements) {
  return Open(/*snapshot=*/true, statements);
}

absl::StatusOr<std::vector<Rows>> Connection::More(const std::vector<Statement>& statements) {
  if (!open_) {
    return StoreAwayError(absl::StrCat(options_.url.description, ": the transaction is over"));
  }
  auto rows = Send(statements);
  if (!rows.ok()) Rollback();
  return rows;
}

absl::StatusOr<std::vector<Rows>> Connection::Commit(const std::vector<Statement>& statements) {
  if (!open_) {
    return StoreAwayError(absl::StrCat(options_.url.description, ": the transaction is over"));
  }
  std::vector<Statement> all = statements;
  all.push_back({"COMMIT"});
  Progress progress;
  auto rows = Send(all, &progress);
  if (rows.ok()) {
    open_ = false;
    rows->pop_back();
    return rows;
  }
  // COMMIT was handed over, and either its answer did not come or it says nothing definite.
  const bool sent = progress.sent == all.size();
  const bool unanswered = conn_ == nullptr || progress.reached == statements.size();
  Rollback();
  if (writes_ && sent && unanswered && !IsContention(rows.status())) {
    Drop();
    return InDoubtError(rows.status().message());
  }
  return rows.status();
}

absl::StatusOr<std::vector<Rows>> Connection::Write(const std::vector<Statement>& statements) {
  RETURN_IF_ERROR(Ready());
  std::vector<Statement> all = Begun(/*snapshot=*/false, statements);
  const size_t head = all.size() - statements.size();
  open_ = writes_ = true;
  ASSIGN_OR_RETURN(const std::vector<Rows> rows, Commit(all));
  return Inner(rows, head, statements.size());
}

void Connection::Rollback() {
  if (!open_) return;
  open_ = false;
  if (conn_ == nullptr) return;
  if (!Send({{"ROLLBACK"}}).ok()) Drop();
}

absl::StatusOr<std::vector<Rows>> Connection::Bare(const std::vector<Statement>& statements) {
  RETURN_IF_ERROR(Ready());
  return Send(statements);
}

}  // namespace matins::mariadb
