// What all commands share: where the store is, how answers are printed, and what the exit code
// becomes.
#ifndef MATINS_CLI_SHELL_H_
#define MATINS_CLI_SHELL_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "cli/exit_code.h"
#include "nlohmann/json_fwd.hpp"
#include "ops/session.h"
#include "store/database.h"

namespace CLI {
class App;
}  // namespace CLI

namespace matins {

class Shell {
 public:
  // Options that many commands take.
  void AddStoreOption(CLI::App& command);
  void AddRedisOption(CLI::App& command);
  void AddOutputOption(CLI::App& command);
  void AddReasonOption(CLI::App& command, std::string& reason);

  // Makes `action` what the command does. Its status becomes the exit code, and its message is
  // printed on standard error.
  void Does(CLI::App& command, std::function<absl::Status()> action);

  // InvalidArgument where no store is named: --store, or MATINS_STORE in the environment.
  absl::StatusOr<std::string> StoreUrl() const;
  // --redis, or MATINS_REDIS in the environment; empty: none is named.
  std::string RedisUrl() const;
  absl::StatusOr<std::unique_ptr<Database>> OpenDatabase() const;
  // Calls `use` with a session on the store.
  absl::Status WithSession(const std::function<absl::Status(Session&)>& use) const;

  bool json() const { return output_ == "json"; }
  void Print(const std::string& text) const;
  void PrintJson(const nlohmann::json& value) const;
  // What an act has done: `text` as a line for people, or `value`.
  void Tell(const nlohmann::json& value, const std::string& text) const;
  // For a command whose answer is itself a code, e.g. `wait`.
  void SetExit(int code) { exit_ = code; }
  int exit_code() const { return exit_; }
  // What stands behind "--" on the command line, for commands that run it.
  void SetRest(std::vector<std::string> rest) { rest_ = std::move(rest); }
  const std::vector<std::string>& rest() const { return rest_; }

 private:
  std::string store_;
  std::string redis_;
  std::string output_ = "table";
  std::vector<std::string> rest_;
  int exit_ = kExitOk;
};

// An instant in the job's zone and in UTC: "2026-11-29 10:00:00 CST (02:00:00Z)"; "-" for none.
std::string BothTimes(absl::Time t, const absl::TimeZone& zone);
// The same for JSON: RFC 3339 in UTC, or null.
nlohmann::json JsonTime(absl::Time t);
// "3m ago", "in 2h": a length for people, its two greatest units.
std::string Roughly(absl::Duration d);

// What `read` says, with the option that it was read from in front: "--to: 'x' is not a date; ...".
template <typename T>
absl::StatusOr<T> From(absl::string_view option, absl::StatusOr<T> read) {
  if (!read.ok()) return Annotate(read.status(), option);
  return read;
}

}  // namespace matins

#endif  // MATINS_CLI_SHELL_H_
