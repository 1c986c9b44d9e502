// matins lock: a command under a lock.
#include <cstdlib>
#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/as_command.h"
#include "cli/commands.h"
#include "cli/exec_host.h"
#include "job/key_template.h"
#include "ops/lock.h"

namespace matins {
namespace {

struct LockArgs {
  LockRequest request;
  std::string key, date, ttl = "30s", grace = "10s", if_held = "skip", wait, keep = "30d",
                         server_wait = "10s", mask = "none";
  int64_t step = 0;
  bool quiet = false;
};

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// The values come from options, or from the run that this is called in.
absl::StatusOr<std::string> KeyOf(const LockArgs& args) {
  RETURN_IF_ERROR(CheckKey(args.key));
  const std::string job = Variable("MATINS_JOB"), tenant = Variable("MATINS_TENANT"),
                    period = Variable("MATINS_PERIOD");
  const std::string date = args.date.empty() ? Variable("MATINS_BIZ_DATE") : args.date;
  const std::pair<absl::string_view, const std::string*> known[] = {
      {"job", &job}, {"tenant", &tenant}, {"period", &period}, {"biz_date", &date}};
  for (const auto& [name, value] : known) {
    if (!KeyNames(args.key, name) || !value->empty()) continue;
    return BadInput("KEY", absl::StrCat("it names ", name, ", and nothing here says which"),
                    name == "biz_date" ? "say --date 2026-10-30"
                                       : "call it from a run, or write the name itself");
  }
  KeyValues values{job, tenant, period, {}};
  if (!date.empty()) {
    ASSIGN_OR_RETURN(values.biz_date, From("--date", ParseDay(date)));
  }
  ASSIGN_OR_RETURN(const std::string key, ExpandKey(args.key, values));
  return MaskKey(args.mask == "hash" ? Mask::kHash : Mask::kNone, key);
}

absl::Status ReadLengths(LockArgs& args) {
  LockRequest& request = args.request;
  ASSIGN_OR_RETURN(request.ttl, From("--ttl", ParseDuration(args.ttl)));
  ASSIGN_OR_RETURN(request.grace, From("--grace", ParseDuration(args.grace)));
  ASSIGN_OR_RETURN(request.keep, From("--keep", ParseDuration(args.keep)));
  ASSIGN_OR_RETURN(request.server_wait, From("--server-wait", ParseDuration(args.server_wait)));
  if (!args.wait.empty()) {
    ASSIGN_OR_RETURN(request.wait, From("--wait", ParseDuration(args.wait)));
  }
  if (request.ttl < absl::Seconds(1) || request.ttl > absl::Hours(24)) {
    return BadInput("--ttl", "it is not between 1s and 24h",
                    "30s outlasts most pauses; it is renewed by itself for as long as it takes");
  }
  return absl::OkStatus();
}

absl::Status ReadServer(const Shell& shell, const CLI::App& command, LockRequest& request) {
  request.redis_url = shell.RedisUrl();
  // What the command line names counts before the environment; of two, the store.
  const bool redis_alone = command.count("--redis") > 0 && command.count("--store") == 0;
  if (const auto store = shell.StoreUrl(); store.ok() && !redis_alone) request.store_url = *store;
  if (!request.redis_url.empty() || !request.store_url.empty()) return absl::OkStatus();
  return BadInput("--redis", "no server is named that could hold the lock",
                  "say --redis redis://HOST:6379, or --store URL, or set MATINS_REDIS");
}

absl::StatusOr<ExecAnswer> Lock(const Shell& shell, const CLI::App& command, LockArgs& args) {
  LockRequest& request = args.request;
  ASSIGN_OR_RETURN(request.key, KeyOf(args));
  RETURN_IF_ERROR(ReadLengths(args));
  RETURN_IF_ERROR(ReadServer(shell, command, request));
  request.if_held = args.if_held == "wait"   ? IfHeld::kWait
                    : args.if_held == "fail" ? IfHeld::kFail
                                             : IfHeld::kSkip;
  if (args.step > 0) request.step = args.step;
  request.program.command = shell.rest();
  RETURN_IF_ERROR(FillPlace(request.program, "matins lock KEY ... -- ./load.sh"));
  ASSIGN_OR_RETURN(const std::unique_ptr<TerminalHost> host, TerminalHost::Open(args.quiet));
  return RunUnderLock(request, *host);
}

}  // namespace

void AddLockCommand(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "lock", "a command under a lock, in Redis or in a store: matins lock KEY -- COMMAND...");
  auto args = std::make_shared<LockArgs>();
  command
      .add_option("KEY", args->key, "the lock's name, or a template: job:recon:{biz_date:%Y%m%d}")
      ->required();
  shell.AddRedisOption(command);
  shell.AddStoreOption(command);
  command.add_option("--ttl", args->ttl, "the lease, renewed at every quarter of it; default 30s");
  command.add_option("--grace", args->grace, "between SIGTERM and SIGKILL; default 10s");
  command
      .add_option("--if-held", args->if_held,
                  "where another has it: skip (ends with 0), wait, or fail (104)")
      ->check(CLI::IsMember({"skip", "wait", "fail"}));
  command.add_option("--wait", args->wait, "with --if-held wait: for so long at most");
  command
      .add_option("--step", args->step,
                  "this is that step of a long job, from 1: done once, after the one before it")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 52));
  command.add_option("--keep", args->keep, "how long a step is remembered; default 30d");
  command.add_option("--server-wait", args->server_wait,
                     "how long a server that is away is tried again; default 10s");
  command.add_option("--date", args->date, "the biz_date of the key's template");
  command.add_option("--mask", args->mask, "hash: the key is hashed before anybody is told it")
      ->check(CLI::IsMember({"none", "hash"}));
  command.add_flag("-q,--quiet", args->quiet, "says nothing of what went as it should");
  shell.Does(command, [&shell, &command, args]() -> absl::Status {
    return EndAsCommand(shell, Lock(shell, command, *args));
  });
}

}  // namespace matins
