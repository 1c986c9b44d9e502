#include "store/mariadb/url.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/percent.h"
#include "base/status.h"

namespace matins::mariadb {
namespace {

constexpr absl::string_view kForm = "mariadb://user@host:3306/matins";

absl::Status Bad(absl::string_view why, absl::string_view mend) {
  return BadInput("store URL", why, mend);
}

bool IsDatabaseName(absl::string_view name) {
  if (name.empty() || name.size() > 64) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && c != '_' && c != '$' && c != '-') return false;
  }
  return true;
}

absl::Status ReadAuthority(absl::string_view authority, Url& url) {
  const size_t at = authority.rfind('@');
  if (at != absl::string_view::npos) {
    const std::pair<absl::string_view, absl::string_view> user =
        absl::StrSplit(authority.substr(0, at), absl::MaxSplits(':', 1));
    url.user = PercentDecoded(user.first);
    url.password = PercentDecoded(user.second);
    authority.remove_prefix(at + 1);
  }
  absl::string_view port;
  if (absl::ConsumePrefix(&authority, "[")) {  // [::1]:3306
    const size_t end = authority.find(']');
    if (end == absl::string_view::npos)
      return Bad("'[' without ']'", absl::StrCat("write ", kForm));
    url.host = std::string(authority.substr(0, end));
    port = authority.substr(end + 1);
    absl::ConsumePrefix(&port, ":");
  } else {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(authority, absl::MaxSplits(':', 1));
    if (!parts.first.empty()) url.host = PercentDecoded(parts.first);
    port = parts.second;
  }
  if (port.empty()) return absl::OkStatus();
  if (!absl::SimpleAtoi(port, &url.port) || url.port < 1 || url.port > 65535) {
    return Bad("its port is no number from 1 to 65535", absl::StrCat("write ", kForm));
  }
  return absl::OkStatus();
}

absl::Status ReadParameter(absl::string_view name, const std::string& value, Url& url) {
  if (name == "socket") {
    url.socket = value;
  } else if (name == "tls" && (value == "off" || value == "on" || value == "verify")) {
    url.tls = value == "off" ? Tls::kOff : value == "on" ? Tls::kOn : Tls::kVerify;
  } else if (name == "tls_ca") {
    url.tls_ca = value;
  } else if (name == "tls_cert") {
    url.tls_cert = value;
  } else if (name == "tls_key") {
    url.tls_key = value;
  } else if (name == "galera" && value == "single-writer") {
    url.single_writer = true;
  } else if (name == "tls" || name == "galera") {
    return Bad(absl::StrCat(name, " has a value that is not known"),
               "tls=off, on or verify; galera=single-writer");
  } else {
    return Bad(absl::StrCat("parameter '", name, "' is not known"),
               "there are socket, tls, tls_ca, tls_cert, tls_key and galera");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Url> ParseUrl(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "mariadb://")) {
    return Bad("it does not begin with mariadb://", absl::StrCat("write ", kForm));
  }
  Url url;
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(text, absl::MaxSplits('?', 1));
  const std::pair<absl::string_view, absl::string_view> place =
      absl::StrSplit(halves.first, absl::MaxSplits('/', 1));
  RETURN_IF_ERROR(ReadAuthority(place.first, url));
  if (!place.second.empty()) url.database = PercentDecoded(place.second);
  if (!IsDatabaseName(url.database)) {
    return Bad(absl::StrCat("\"", url.database, "\" is no database name"),
               "use up to 64 letters, digits, _, $ and -");
  }
  for (const absl::string_view pair : absl::StrSplit(halves.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parameter =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    RETURN_IF_ERROR(ReadParameter(parameter.first, PercentDecoded(parameter.second), url));
  }
  if (!url.tls_ca.empty()) url.tls = Tls::kVerify;
  url.description = url.socket.empty()
                        ? absl::StrCat("mariadb://", url.host, ":", url.port, "/", url.database)
                        : absl::StrCat("mariadb:///", url.database, "?socket=", url.socket);
  return url;
}

}  // namespace matins::mariadb
