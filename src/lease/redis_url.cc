#include "lease/redis_url.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/percent.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr absl::string_view kForm = "write redis://host:6379/0";
constexpr absl::string_view kSentinelForm = "write redis+sentinel://host:26379,host:26379/mymaster";
constexpr int kPort = 6379;
constexpr int kSentinelPort = 26379;

absl::Status Bad(absl::string_view why, absl::string_view mend) {
  return BadInput("Redis URL", why, mend);
}

absl::StatusOr<std::string> FileText(absl::string_view parameter, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return Bad(absl::StrCat(parameter, ": ", path, " cannot be read"), "name a file");
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (absl::EndsWith(text, "\n")) text.pop_back();
  if (absl::EndsWith(text, "\r")) text.pop_back();
  return text;
}

absl::Status ReadUser(absl::string_view text, RedisUrl& url) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos) {
    return Bad("a user stands before @ without a password",
               "write redis://:PASSWORD@host, or redis://USER:PASSWORD@host");
  }
  url.user = PercentDecoded(text.substr(0, colon));
  url.password = PercentDecoded(text.substr(colon + 1));
  if (url.password.empty()) {
    return Bad("the password before @ is empty",
               "take the user out, or name the file: ?password_file=/run/secrets/redis");
  }
  return absl::OkStatus();
}

absl::StatusOr<RedisPlace> ReadPlace(absl::string_view text, int default_port) {
  RedisPlace place{"", default_port};
  absl::string_view port;
  if (absl::ConsumePrefix(&text, "[")) {  // [::1]:6379
    const size_t end = text.find(']');
    if (end == absl::string_view::npos) return Bad("'[' without ']'", kForm);
    place.host = std::string(text.substr(0, end));
    port = text.substr(end + 1);
    if (!port.empty() && !absl::ConsumePrefix(&port, ":")) return Bad("text after ']'", kForm);
  } else {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(text, absl::MaxSplits(':', 1));
    place.host = PercentDecoded(parts.first);
    port = parts.second;
  }
  if (place.host.empty()) return Bad("it names no host", kForm);
  if (port.empty()) return place;
  if (!absl::SimpleAtoi(port, &place.port) || place.port < 1 || place.port > 65535) {
    return Bad("its port is no number from 1 to 65535", kForm);
  }
  return place;
}

absl::Status ReadDatabase(absl::string_view text, RedisUrl& url) {
  if (text.empty()) return absl::OkStatus();
  if (!absl::SimpleAtoi(text, &url.database) || url.database < 0 || url.database > 1'000'000) {
    return Bad(absl::StrCat("'", text, "' is no number of a database"), kForm);
  }
  return absl::OkStatus();
}

absl::Status ReadParameter(absl::string_view name, const std::string& value, RedisUrl& url) {
  std::pair<absl::string_view, std::string*> texts[] = {
      {"prefix", &url.prefix},
      {"sentinel_user", &url.sentinel_user},
      {"sentinel_password", &url.sentinel_password},
      {"tls_ca", &url.tls_ca},
      {"tls_cert", &url.tls_cert},
      {"tls_key", &url.tls_key}};
  for (const auto& [key, to] : texts) {
    if (name != key) continue;
    *to = value;
    return absl::OkStatus();
  }
  std::string* const secret = name == "password_file"            ? &url.password
                              : name == "sentinel_password_file" ? &url.sentinel_password
                                                                 : nullptr;
  if (secret == nullptr) {
    return Bad(absl::StrCat("parameter '", name, "' is not known"),
               "there are prefix, password_file, sentinel_user, sentinel_password, "
               "sentinel_password_file, tls_ca, tls_cert and tls_key");
  }
  ASSIGN_OR_RETURN(*secret, FileText(name, value));
  return absl::OkStatus();
}

absl::Status CheckTogether(const RedisUrl& url) {
  if (url.prefix.empty() || absl::StrContains(url.prefix, '{')) {
    return Bad("prefix is empty or has a brace in it", "write prefix=matins");
  }
  if (!url.tls && !(url.tls_ca + url.tls_cert + url.tls_key).empty()) {
    return Bad("tls_ca, tls_cert and tls_key are for TLS", "write rediss:// or rediss+sentinel://");
  }
  if (url.tls_cert.empty() != url.tls_key.empty()) {
    return Bad("tls_cert and tls_key go together", "give both, or neither");
  }
  if (url.master.empty() && !(url.sentinel_user + url.sentinel_password).empty()) {
    return Bad("there is no sentinel to log in to", kSentinelForm);
  }
  return absl::OkStatus();
}

std::string Description(const RedisUrl& url) {
  std::string text =
      absl::StrCat(url.tls ? "rediss" : "redis", url.master.empty() ? "" : "+sentinel", "://");
  absl::StrAppend(&text, absl::StrJoin(url.places, ",", [](std::string* out, const RedisPlace& p) {
    const bool six = absl::StrContains(p.host, ':');
    absl::StrAppend(out, six ? "[" : "", p.host, six ? "]" : "", ":", p.port);
  }));
  if (!url.master.empty()) absl::StrAppend(&text, "/", url.master);
  if (url.database != 0) absl::StrAppend(&text, "/", url.database);
  return text;
}

}  // namespace

bool LooksLikeRedisUrl(absl::string_view text) {
  return absl::StartsWith(text, "redis:") || absl::StartsWith(text, "rediss:") ||
         absl::StartsWith(text, "redis+sentinel:") || absl::StartsWith(text, "rediss+sentinel:");
}

absl::StatusOr<RedisUrl> ParseRedisUrl(absl::string_view text) {
  RedisUrl url;
  const size_t scheme_end = text.find("://");
  const absl::string_view scheme =
      scheme_end == absl::string_view::npos ? "" : text.substr(0, scheme_end);
  const bool sentinel = absl::EndsWith(scheme, "+sentinel");
  const absl::string_view base = absl::StripSuffix(scheme, "+sentinel");
  if (base != "redis" && base != "rediss") {
    return Bad(
        "it does not begin with redis://, rediss://, redis+sentinel:// or rediss+sentinel://",
        kForm);
  }
  url.tls = base == "rediss";
  const std::pair<absl::string_view, absl::string_view> halves =
      absl::StrSplit(text.substr(scheme_end + 3), absl::MaxSplits('?', 1));
  absl::string_view rest = halves.first;
  // A password may have / or @ in it where it was not encoded: the last @ counts.
  if (const size_t at = rest.rfind('@'); at != absl::string_view::npos) {
    RETURN_IF_ERROR(ReadUser(rest.substr(0, at), url));
    rest.remove_prefix(at + 1);
  }
  std::vector<absl::string_view> path = absl::StrSplit(rest, '/');
  for (const absl::string_view place : absl::StrSplit(path[0], ',')) {
    ASSIGN_OR_RETURN(url.places.emplace_back(), ReadPlace(place, sentinel ? kSentinelPort : kPort));
  }
  path.erase(path.begin());
  if (sentinel) {
    if (path.empty() || path[0].empty()) {
      return Bad("it does not say by which name the sentinels know the server", kSentinelForm);
    }
    url.master = PercentDecoded(path[0]);
    path.erase(path.begin());
  } else if (url.places.size() > 1) {
    return Bad("it names several servers", absl::StrCat("name one; for sentinels ", kSentinelForm));
  }
  if (!path.empty()) {
    RETURN_IF_ERROR(ReadDatabase(path[0], url));
    path.erase(path.begin());
  }
  if (!path.empty())
    return Bad("text after the database's number", sentinel ? kSentinelForm : kForm);
  for (const absl::string_view pair : absl::StrSplit(halves.second, '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parameter =
        absl::StrSplit(pair, absl::MaxSplits('=', 1));
    RETURN_IF_ERROR(ReadParameter(parameter.first, PercentDecoded(parameter.second), url));
  }
  RETURN_IF_ERROR(CheckTogether(url));
  url.description = Description(url);
  return url;
}

}  // namespace matins
