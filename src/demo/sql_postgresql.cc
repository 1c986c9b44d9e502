#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "demo/sql_open.h"
#include "store/postgresql/libpq.h"

namespace matins::demo {
namespace {

using postgresql::Pq;

struct Result {
  PGresult* result;
  ~Result() { Pq().PQclear(result); }
};

// "?" becomes "$1", "$2", ...
std::string Numbered(absl::string_view text) {
  std::string out;
  int count = 0;
  for (const char c : text) {
    if (c == '?') {
      absl::StrAppend(&out, "$", ++count);
    } else {
      out += c;
    }
  }
  return out;
}

class PostgresqlSql final : public Sql {
 public:
  explicit PostgresqlSql(PGconn* connection) : connection_(connection) {}
  ~PostgresqlSql() override { Pq().PQfinish(connection_); }

  FenceDialect dialect() const override { return FenceDialect::kPostgresql; }

  absl::Status DoAll(absl::string_view script) override {
    const Result result{Pq().PQexec(connection_, std::string(script).c_str())};
    return StatusOf(result.result, script);
  }

  absl::StatusOr<Answer> Do(absl::string_view text, const std::vector<Param>& params) override {
    std::vector<const char*> values;
    for (const Param& param : params) values.push_back(param.text().c_str());
    const Result result{Pq().PQexecParams(connection_, Numbered(text).c_str(),
                                          static_cast<int>(values.size()), nullptr, values.data(),
                                          nullptr, nullptr, 0)};
    RETURN_IF_ERROR(StatusOf(result.result, text));
    Answer answer;
    for (int i = 0; i < Pq().PQntuples(result.result); ++i) {
      std::vector<std::string>& row = answer.rows.emplace_back();
      for (int j = 0; j < Pq().PQnfields(result.result); ++j)
        row.emplace_back(Pq().PQgetvalue(result.result, i, j));
    }
    (void)absl::SimpleAtoi(Pq().PQcmdTuples(result.result), &answer.changed);
    return answer;
  }

 private:
  absl::Status StatusOf(const PGresult* result, absl::string_view text) const {
    const ExecStatusType status = Pq().PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY)
      return absl::OkStatus();
    const std::string message =
        absl::StrCat("ledger: ", absl::StripAsciiWhitespace(Pq().PQerrorMessage(connection_)),
                     ", in: ", text.substr(0, 120));
    const char* state = Pq().PQresultErrorField(result, PG_DIAG_SQLSTATE);
    if (Pq().PQstatus(connection_) != CONNECTION_OK || state == nullptr)
      return absl::UnavailableError(message);
    const absl::string_view code = state;
    if (code == "40001" || code == "40P01" || code == "55P03") return absl::AbortedError(message);
    return absl::InternalError(message);
  }

  PGconn* const connection_;
};

// libpq refuses words of a URL's query that it does not know: ours is taken out.
std::string WithoutSchema(const std::string& url, std::string& schema) {
  const std::pair<std::string, std::string> sides = absl::StrSplit(url, absl::MaxSplits('?', 1));
  std::vector<std::string> kept;
  for (absl::string_view word : absl::StrSplit(sides.second, '&', absl::SkipEmpty())) {
    if (absl::StartsWith(word, "schema=")) {
      schema = std::string(word.substr(7));
    } else {
      kept.emplace_back(word);
    }
  }
  return kept.empty() ? sides.first : absl::StrCat(sides.first, "?", absl::StrJoin(kept, "&"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Sql>> OpenPostgresql(const std::string& url) {
  RETURN_IF_ERROR(postgresql::LoadLibpq());
  std::string schema = "ledger";
  PGconn* const connection = Pq().PQconnectdb(WithoutSchema(url, schema).c_str());
  auto sql = std::make_unique<PostgresqlSql>(connection);
  if (Pq().PQstatus(connection) != CONNECTION_OK) {
    return absl::UnavailableError(
        absl::StrCat("the ledger's database cannot be reached: ",
                     absl::StripAsciiWhitespace(Pq().PQerrorMessage(connection))));
  }
  for (const char c : schema) {
    if (!absl::ascii_isalnum(c) && c != '_') {
      return BadInput("schema", absl::StrCat("'", schema, "' is not a plain name"),
                      "use letters, digits and _");
    }
  }
  RETURN_IF_ERROR(
      sql->DoAll(absl::StrCat("SET client_min_messages = warning; CREATE SCHEMA IF NOT EXISTS \"",
                              schema, "\"; SET search_path = \"", schema, "\"")));
  return sql;
}

}  // namespace matins::demo
