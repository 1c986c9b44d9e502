#include "ops/locks.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/backends.h"
#include "base/clock.h"
#include "base/status.h"
#include "lease/redis_locks.h"
#include "ops/session.h"

namespace matins {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(5);

absl::Status CheckPlaces(const LockPlaces& places) {
  if (!places.redis_url.empty() || !places.store_url.empty()) return absl::OkStatus();
  return BadInput("--redis", "neither a Redis nor a store is named",
                  "say --redis redis://HOST:6379 or --store URL, or set MATINS_REDIS or "
                  "MATINS_STORE");
}

LockView ViewOf(const RedisHolder& holder) {
  LockView view;
  view.key = holder.key;
  view.in_redis = true;
  view.holder = holder.who;
  view.fence = holder.fence;
  view.since = holder.since;
  view.until = holder.until;
  view.renewals = holder.renewals;
  return view;
}

LockView ViewOf(const LockRow& row) {
  LockView view;
  view.key = row.key;
  view.holder = row.node;
  view.fence = row.fence;
  view.since = row.since;
  view.until = row.until;
  view.run = row.run;
  view.leftover = row.leftover;
  if (!row.leftover) view.renewals = row.renewals;
  return view;
}

absl::Status InStore(const std::string& url, const std::function<absl::Status(Session&)>& use) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Database> database, DatabaseFromUrl(url));
  ASSIGN_OR_RETURN(Session session, Session::Open(*database, absl::StrCat("cli:", WhoAmI())));
  return use(session);
}

absl::StatusOr<ReleasedLock> ReleaseInRedis(const std::string& url, const std::string& key,
                                            absl::string_view why) {
  ASSIGN_OR_RETURN(RedisUrl parsed, ParseRedisUrl(url));
  RedisLocks locks(std::move(parsed), SystemClock());
  ASSIGN_OR_RETURN(const RedisHolder holder,
                   locks.Break(key, absl::StrCat("cli:", WhoAmI()), why, kPatience));
  return ReleasedLock{holder.who, holder.fence, false,
                      absl::StrCat("released: ", key, " was held by ", holder.who,
                                   ", which learns of it at its next renewal; its fence ",
                                   holder.fence, " is burnt")};
}

absl::StatusOr<ReleasedLock> ReleaseInStore(const std::string& url, const std::string& key,
                                            absl::string_view why) {
  ReleasedLock released;
  RETURN_IF_ERROR(InStore(url, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<LockRow> rows, session.acts().ReadLocks());
    const auto row =
        std::find_if(rows.begin(), rows.end(), [&](const LockRow& one) { return one.key == key; });
    if (row == rows.end()) {
      return absl::NotFoundError(absl::StrCat("nobody holds the lock '", key,
                                              "'; `matins locks` lists those that are held"));
    }
    released.holder = row->node;
    released.fence = row->fence;
    if (row->leftover) {
      return absl::FailedPreconditionError(
          absl::StrCat("the lock '", key,
                       "' is what a stopped run left: its processes may still be alive, and "
                       "it is free when they are known to be dead or their lease has ended"));
    }
    released.asked = true;
    released.text = absl::StrCat("asked ", row->node, " to stop run ", row->fence, " (",
                                 row->run.job, " ", row->run.period, "), which holds ", key,
                                 "; the lock is free when it has, or when its lease ends");
    return session.acts().Cancel(row->fence, session.MakeAct(why));
  }));
  return released;
}

}  // namespace

absl::StatusOr<std::vector<LockView>> ReadLocks(const LockPlaces& places) {
  RETURN_IF_ERROR(CheckPlaces(places));
  std::vector<LockView> views;
  if (!places.redis_url.empty()) {
    ASSIGN_OR_RETURN(RedisUrl url, ParseRedisUrl(places.redis_url));
    RedisLocks locks(std::move(url), SystemClock());
    ASSIGN_OR_RETURN(const std::vector<RedisHolder> holders, locks.List(kPatience));
    for (const RedisHolder& holder : holders) views.push_back(ViewOf(holder));
  }
  if (places.store_url.empty()) return views;
  RETURN_IF_ERROR(InStore(places.store_url, [&](Session& session) -> absl::Status {
    ASSIGN_OR_RETURN(const std::vector<LockRow> rows, session.acts().ReadLocks());
    for (const LockRow& row : rows) views.push_back(ViewOf(row));
    return absl::OkStatus();
  }));
  return views;
}

absl::StatusOr<ReleasedLock> ReleaseLock(const LockPlaces& places, const std::string& key,
                                         absl::string_view why) {
  RETURN_IF_ERROR(CheckPlaces(places));
  if (why.empty()) {
    return BadInput("--reason", "why is this lock taken from its holder?",
                    "say --reason TEXT; it is recorded");
  }
  if (!places.redis_url.empty()) {
    auto released = ReleaseInRedis(places.redis_url, key, why);
    if (!absl::IsNotFound(released.status()) || places.store_url.empty()) return released;
  }
  return ReleaseInStore(places.store_url, key, why);
}

}  // namespace matins
