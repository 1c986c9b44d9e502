// matins locks: who holds what, and ending it.
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "nlohmann/json.hpp"
#include "ops/locks.h"
#include "view/table.h"

namespace matins {
namespace {

LockPlaces PlacesOf(const Shell& shell) {
  LockPlaces places;
  places.redis_url = shell.RedisUrl();
  if (const auto store = shell.StoreUrl(); store.ok()) places.store_url = *store;
  return places;
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

absl::Status PrintLocks(const Shell& shell) {
  ASSIGN_OR_RETURN(const std::vector<LockView> locks, ReadLocks(PlacesOf(shell)));
  if (shell.json()) {
    nlohmann::json list = nlohmann::json::array();
    for (const LockView& lock : locks) {
      list.push_back(
          {{"key", lock.key},
           {"in", lock.in_redis ? "redis" : "store"},
           {"holder", lock.holder},
           {"fence", absl::StrCat(lock.fence)},
           {"since", JsonTime(lock.since)},
           {"until", JsonTime(lock.until)},
           {"renewals", lock.renewals ? nlohmann::json(*lock.renewals) : nlohmann::json()},
           {"job", lock.run.job},
           {"period", lock.run.period},
           {"leftover", lock.leftover}});
    }
    shell.PrintJson(list);
    return absl::OkStatus();
  }
  Table table({"KEY", "IN", "HOLDER", "FENCE", "SINCE (UTC)", "UNTIL (UTC)", "RENEWALS", "RUN"});
  for (const LockView& lock : locks) {
    table.Add({lock.key, lock.in_redis ? "redis" : "store",
               lock.leftover ? "(its run was stopped)" : OrDash(lock.holder),
               lock.fence == 0 ? "-" : absl::StrCat(lock.fence),
               BothTimes(lock.since, absl::UTCTimeZone()),
               BothTimes(lock.until, absl::UTCTimeZone()),
               lock.renewals ? absl::StrCat(*lock.renewals) : "-",
               lock.run.job.empty() ? "-" : absl::StrCat(lock.run.job, " ", lock.run.period)});
  }
  shell.Print(table.empty() ? "no locks are held\n" : table.Text());
  return absl::OkStatus();
}

}  // namespace

void AddLocksCommands(CLI::App& app, Shell& shell) {
  CLI::App& locks = *app.add_subcommand("locks", "who holds which lock, since and until when");
  locks.require_subcommand(0, 1);
  shell.AddRedisOption(locks);
  shell.AddStoreOption(locks);
  shell.AddOutputOption(locks);
  shell.Does(locks, [&locks, &shell]() -> absl::Status {
    if (!locks.get_subcommands().empty()) return absl::OkStatus();
    return PrintLocks(shell);
  });
  CLI::App& release = *locks.add_subcommand("release", "takes a lock from its holder; recorded");
  auto key = std::make_shared<std::string>();
  auto reason = std::make_shared<std::string>();
  release.add_option("KEY", *key, "as `matins locks` shows it")->required();
  shell.AddRedisOption(release);
  shell.AddStoreOption(release);
  shell.AddReasonOption(release, *reason);
  shell.AddOutputOption(release);
  shell.Does(release, [&shell, key, reason]() -> absl::Status {
    ASSIGN_OR_RETURN(const ReleasedLock released, ReleaseLock(PlacesOf(shell), *key, *reason));
    shell.Tell({{"key", *key},
                {"holder", released.holder},
                {"fence", absl::StrCat(released.fence)},
                {"asked", released.asked}},
               released.text);
    return absl::OkStatus();
  });
}

}  // namespace matins
