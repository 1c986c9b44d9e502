#include "cli/shell.h"

#include <cstdio>
#include <cstdlib>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "backends/backends.h"
#include "base/status.h"
#include "base/time.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

bool IsFinite(absl::Time t) { return t != absl::InfinitePast() && t != absl::InfiniteFuture(); }

}  // namespace

void Shell::AddStoreOption(CLI::App& command) {
  command.add_option(
      "--store", store_,
      "store URL: sqlite:FILE, postgresql://... or mariadb://...; default: $MATINS_STORE");
}

void Shell::AddRedisOption(CLI::App& command) {
  command.add_option("--redis", redis_,
                     "Redis URL: redis://HOST:6379/0, rediss://..., "
                     "redis+sentinel://HOST,HOST/NAME; default: $MATINS_REDIS");
}

void Shell::AddOutputOption(CLI::App& command) {
  command.add_option("-o,--output", output_, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
}

void Shell::AddReasonOption(CLI::App& command, std::string& reason) {
  command.add_option("--reason", reason, "why; recorded with who and when");
}

void Shell::Does(CLI::App& command, std::function<absl::Status()> action) {
  command.callback([this, action = std::move(action)] {
    const absl::Status status = action();
    if (status.ok()) return;
    std::fflush(stdout);
    std::fprintf(stderr, "matins: %s\n", std::string(status.message()).c_str());
    exit_ = ExitCodeOf(status);
  });
}

absl::StatusOr<std::string> Shell::StoreUrl() const {
  if (!store_.empty()) return store_;
  if (const char* url = std::getenv("MATINS_STORE"); url != nullptr && *url != '\0')
    return std::string(url);
  return BadInput("--store", "no store is named",
                  "say --store sqlite:matins.db, or set MATINS_STORE");
}

std::string Shell::RedisUrl() const {
  if (!redis_.empty()) return redis_;
  const char* url = std::getenv("MATINS_REDIS");
  return url == nullptr ? "" : url;
}

absl::StatusOr<std::unique_ptr<Database>> Shell::OpenDatabase() const {
  ASSIGN_OR_RETURN(const std::string url, StoreUrl());
  return DatabaseFromUrl(url);
}

absl::Status Shell::WithSession(const std::function<absl::Status(Session&)>& use) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, OpenDatabase());
  ASSIGN_OR_RETURN(Session session, Session::Open(*database, absl::StrCat("cli:", WhoAmI())));
  return use(session);
}

void Shell::Print(const std::string& text) const {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Shell::PrintJson(const nlohmann::json& value) const {
  Print(value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void Shell::Tell(const nlohmann::json& value, const std::string& text) const {
  json() ? PrintJson(value) : Print(text + "\n");
}

std::string BothTimes(absl::Time t, const absl::TimeZone& zone) {
  if (!IsFinite(t)) return "-";
  if (zone == absl::UTCTimeZone()) return absl::FormatTime("%Y-%m-%d %H:%M:%SZ", t, zone);
  const bool same_day = absl::ToCivilDay(t, zone) == absl::ToCivilDay(t, absl::UTCTimeZone());
  return absl::StrCat(
      absl::FormatTime("%Y-%m-%d %H:%M:%S %Z", t, zone), " (",
      absl::FormatTime(same_day ? "%H:%M:%SZ" : "%m-%d %H:%M:%SZ", t, absl::UTCTimeZone()), ")");
}

nlohmann::json JsonTime(absl::Time t) {
  return IsFinite(t) ? nlohmann::json(FormatInstant(t)) : nlohmann::json();
}

std::string Roughly(absl::Duration d) {
  if (d < absl::ZeroDuration()) d = -d;
  if (d < absl::Seconds(1)) return absl::StrCat(absl::ToInt64Milliseconds(d), "ms");
  const absl::Duration unit = d >= absl::Hours(24)  ? absl::Hours(1)
                              : d >= absl::Hours(1) ? absl::Minutes(1)
                                                    : absl::Seconds(1);
  return DurationText(absl::Trunc(d, unit));
}

}  // namespace matins
