#include "store/postgresql/url.h"

#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/percent.h"
#include "base/status.h"
#include "store/postgresql/libpq.h"

namespace matins::postgresql {
namespace {

constexpr absl::string_view kForm = "postgresql://user@host:port/database?schema=matins";

bool IsSchemaName(absl::string_view name) {
  if (name.empty() || name.size() > 63) return false;
  if (!absl::ascii_isalpha(name[0]) && name[0] != '_') return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '$') return false;
  }
  return true;
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<Pairs> ParseConninfo(const std::string& url) {
  RETURN_IF_ERROR(LoadLibpq());
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(Pq().PQconninfoFree)> options(
      Pq().PQconninfoParse(url.c_str(), &message), Pq().PQconninfoFree);
  // libpq's message may quote the URL, and with it a password.
  if (message != nullptr) Pq().PQfreemem(message);
  if (options == nullptr) {
    return BadInput("store URL", "libpq cannot read it, or a parameter is not one of libpq's",
                    absl::StrCat("write ", kForm));
  }
  Pairs pairs;
  for (const PQconninfoOption* o = options.get(); o->keyword != nullptr; ++o) {
    if (o->val != nullptr) pairs.emplace_back(o->keyword, o->val);
  }
  return pairs;
}

std::string Describe(const Pairs& pairs, absl::string_view schema) {
  std::string host = "local", port = "5432", database;
  for (const auto& [key, value] : pairs) {
    if (key == "host" || (key == "hostaddr" && host == "local")) host = value;
    if (key == "port") port = value;
    if (key == "dbname") database = value;
  }
  return absl::StrCat("postgresql://", host, ":", port, "/", database, "?schema=", schema);
}

}  // namespace

absl::StatusOr<Url> ParseUrl(absl::string_view url) {
  if (!absl::StartsWith(url, "postgresql://") && !absl::StartsWith(url, "postgres://")) {
    return BadInput("store URL", "it does not begin with postgresql://",
                    absl::StrCat("write ", kForm));
  }
  Url parsed;
  parsed.schema = "matins";
  std::string listen_url;
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(url, absl::MaxSplits('?', 1));
  std::vector<absl::string_view> rest;
  for (const absl::string_view pair : absl::StrSplit(halves.second, '&', absl::SkipEmpty())) {
    if (absl::StartsWith(pair, "schema=")) {
      parsed.schema = PercentDecoded(pair.substr(7));
    } else if (absl::StartsWith(pair, "listen_url=")) {
      listen_url = PercentDecoded(pair.substr(11));
    } else {
      rest.push_back(pair);
    }
  }
  if (!IsSchemaName(parsed.schema)) {
    return BadInput("store URL", absl::StrCat("schema \"", parsed.schema, "\" is no schema name"),
                    "use up to 63 letters, digits and _, not beginning with a digit");
  }
  std::string plain(halves.first);
  if (!rest.empty()) absl::StrAppend(&plain, "?", absl::StrJoin(rest, "&"));
  ASSIGN_OR_RETURN(parsed.conninfo, ParseConninfo(plain));
  if (!listen_url.empty()) {
    auto listen = ParseConninfo(listen_url);
    if (!listen.ok()) return Annotate(listen.status(), "listen_url");
    parsed.listen = *std::move(listen);
  }
  parsed.description = Describe(parsed.conninfo, parsed.schema);
  return parsed;
}

}  // namespace matins::postgresql
