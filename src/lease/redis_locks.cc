#include "lease/redis_locks.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"

namespace matins {
namespace {

// KEYS: lock, fence. ARGV: value, ttl in ms. The fence is read first: where its key is of another
// type, nothing is taken.
constexpr char kTake[] = R"lua(
local last = tonumber(redis.call('HGET', KEYS[2], 'fence') or '0')
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local fence = math.max(last + 1, now)
  redis.call('HSET', KEYS[2], 'fence', string.format('%.0f', fence), 'since',
             string.format('%.0f', now), 'renewals', 0, 'value', ARGV[1])
  return {1, fence}
end
local held = redis.call('GET', KEYS[1])
if held == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return {1, last}
end
return {0, held, redis.call('PTTL', KEYS[1]),
        redis.call('HMGET', KEYS[2], 'fence', 'since', 'renewals', 'value'), redis.call('TIME')}
)lua";

// KEYS: lock, fence. ARGV: value, ttl in ms.
constexpr char kRenew[] = R"lua(
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] then return {0, held} end
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if redis.call('HGET', KEYS[2], 'value') == held then
  redis.call('HINCRBY', KEYS[2], 'renewals', 1)
end
return {1}
)lua";

constexpr char kRelease[] = R"lua(
local held = redis.call('GET', KEYS[1])
if held ~= ARGV[1] then return {0, held} end
redis.call('DEL', KEYS[1])
return {1}
)lua";

// KEYS: lock, fence, events. ARGV: key, who, why.
constexpr char kBreak[] = R"lua(
local held = redis.call('GET', KEYS[1])
if not held then return {0} end
local left = redis.call('PTTL', KEYS[1])
local about = redis.call('HMGET', KEYS[2], 'fence', 'since', 'renewals', 'value')
redis.call('XADD', KEYS[3], 'MAXLEN', '~', 10000, '*', 'kind', 'lock_released', 'key', ARGV[1],
           'holder', held, 'fence', about[4] == held and about[1] or '0', 'who', ARGV[2], 'why',
           ARGV[3])
if about[1] then redis.call('HINCRBY', KEYS[2], 'fence', 1) end
redis.call('DEL', KEYS[1])
return {1, held, left, about, redis.call('TIME')}
)lua";

// KEYS: lock, step. ARGV: value, number, data, keep in ms.
constexpr char kStep[] = R"lua(
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 'lock' end
if tonumber(ARGV[2]) <= tonumber(redis.call('HGET', KEYS[2], 'number') or '0') then return 'step' end
redis.call('HSET', KEYS[2], 'number', ARGV[2], 'data', ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 'ok'
)lua";

constexpr int kScanCount = 1000;

std::string Millis(absl::Duration d) { return absl::StrCat(absl::ToInt64Milliseconds(d)); }

std::string WhoOf(absl::string_view value) {
  return std::string(value.substr(0, value.rfind(':')));
}

int64_t NumberOf(const RedisReply& reply) {
  int64_t number = 0;
  return absl::SimpleAtoi(reply.text, &number) ? number : 0;
}

absl::Time TimeOf(const RedisReply& reply) {
  if (reply.items.size() != 2) return absl::InfinitePast();
  return FromMicros(NumberOf(reply.items[0]) * 1'000'000 + NumberOf(reply.items[1]));
}

RedisHolder HolderOf(absl::string_view key, absl::string_view value, int64_t left_ms,
                     const RedisReply& about, absl::Time now) {
  RedisHolder holder;
  holder.key = std::string(key);
  holder.who = WhoOf(value);
  if (left_ms >= 0) {
    holder.left = absl::Milliseconds(left_ms);
    holder.until = now + holder.left;
  }
  // What stands there may be of the last one who took it with a fence.
  if (about.items.size() == 4 && about.items[3].text == value) {
    holder.fence = NumberOf(about.items[0]);
    holder.since = FromMicros(NumberOf(about.items[1]));
    holder.renewals = NumberOf(about.items[2]);
  }
  return holder;
}

// {.., value, left, about, time} from `at` on.
RedisHolder HolderOf(absl::string_view key, const RedisReply& reply) {
  if (reply.items.size() < 5) return {.key = std::string(key)};
  return HolderOf(key, reply.items[1].text, reply.items[2].integer, reply.items[3],
                  TimeOf(reply.items[4]));
}

bool SaysYes(const RedisReply& reply) {
  return !reply.items.empty() && reply.items[0].integer == 1;
}

// For SCAN's pattern, where these mean something.
std::string Quoted(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (absl::StrContains("*?[]\\^", c)) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

struct RedisLocks::Script {
  const char* source;
  std::string sha;
};

struct RedisLocks::Scripts {
  Script take{kTake, ""};
  Script renew{kRenew, ""};
  Script release{kRelease, ""};
  Script break_{kBreak, ""};
  Script step{kStep, ""};
};

RedisLocks::RedisLocks(RedisUrl url, Clock& clock)
    : connection_(std::move(url), clock), scripts_(std::make_unique<Scripts>()) {}
RedisLocks::~RedisLocks() = default;

std::string RedisLocks::NewValue(absl::string_view who, Random& random) {
  return absl::StrCat(who, ":", random.Hex128());
}

std::string RedisLocks::Name(absl::string_view kind, absl::string_view key) const {
  return absl::StrCat(url().prefix, ":", kind, ":", key);
}

absl::Status RedisLocks::Load(Script& script, absl::Duration patience) {
  const RedisCommand load = {"SCRIPT", "LOAD", script.source};
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, connection_.Call({load}, patience));
  RETURN_IF_ERROR(Annotate(replies[0].ToStatus(), absl::StrCat("Redis at ", url().description)));
  script.sha = replies[0].text;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RedisReply>> RedisLocks::Run(Script& script,
                                                        absl::Span<const Invocation> calls,
                                                        absl::Duration patience) {
  if (calls.empty()) return std::vector<RedisReply>();
  if (script.sha.empty()) RETURN_IF_ERROR(Load(script, patience));
  const std::string count = absl::StrCat(calls[0].keys.size());
  std::vector<RedisCommand> commands;
  commands.reserve(calls.size());
  for (const Invocation& call : calls) {
    RedisCommand& command = commands.emplace_back(RedisCommand{"EVALSHA", script.sha, count});
    command.insert(command.end(), call.keys.begin(), call.keys.end());
    command.insert(command.end(), call.args.begin(), call.args.end());
  }
  ASSIGN_OR_RETURN(std::vector<RedisReply> replies, connection_.Call(commands, patience));
  std::vector<size_t> again;
  std::vector<RedisCommand> repeated;
  for (size_t i = 0; i < replies.size(); ++i) {
    if (!replies[i].IsError("NOSCRIPT")) continue;
    again.push_back(i);
    repeated.push_back(commands[i]);
  }
  if (again.empty()) return replies;
  RETURN_IF_ERROR(Load(script, patience));
  ASSIGN_OR_RETURN(std::vector<RedisReply> late, connection_.Call(repeated, patience));
  for (size_t i = 0; i < again.size(); ++i) replies[again[i]] = std::move(late[i]);
  return replies;
}

absl::StatusOr<std::vector<RedisTaken>> RedisLocks::Take(absl::Span<const RedisHolding> holdings,
                                                         absl::Duration patience) {
  std::vector<Invocation> calls;
  calls.reserve(holdings.size());
  for (const RedisHolding& holding : holdings) {
    calls.push_back({{Name("lock", holding.key), Name("fence", holding.key)},
                     {holding.value, Millis(holding.ttl)}});
  }
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, Run(scripts_->take, calls, patience));
  std::vector<RedisTaken> answers(holdings.size());
  for (size_t i = 0; i < holdings.size(); ++i) {
    RedisTaken& answer = answers[i];
    answer.status = replies[i].ToStatus();
    answer.taken = answer.status.ok() && SaysYes(replies[i]);
    if (answer.taken) {
      answer.fence = replies[i].items[1].integer;
    } else if (answer.status.ok()) {
      answer.holder = HolderOf(holdings[i].key, replies[i]);
    }
  }
  return answers;
}

absl::StatusOr<std::vector<RedisTaken>> RedisLocks::TakeUnfenced(
    absl::Span<const RedisHolding> holdings, absl::Duration patience) {
  std::vector<std::string> texts;
  texts.reserve(holdings.size() * 2);
  std::vector<RedisCommand> commands;
  for (const RedisHolding& holding : holdings) {
    const std::string& name = texts.emplace_back(Name("lock", holding.key));
    const std::string& ttl = texts.emplace_back(Millis(holding.ttl));
    commands.push_back({"SET", name, holding.value, "NX", "PX", ttl});
  }
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, connection_.Call(commands, patience));
  std::vector<RedisTaken> answers(holdings.size());
  std::vector<size_t> refused;
  commands.clear();
  for (size_t i = 0; i < holdings.size(); ++i) {
    answers[i].status = replies[i].ToStatus();
    answers[i].taken = replies[i].type == RedisReply::Type::kText;
    if (answers[i].taken || !answers[i].status.ok()) continue;
    refused.push_back(i);
    commands.push_back({"GET", texts[2 * i]});
    commands.push_back({"PTTL", texts[2 * i]});
  }
  if (refused.empty()) return answers;
  ASSIGN_OR_RETURN(const std::vector<RedisReply> told, connection_.Call(commands, patience));
  for (size_t i = 0; i < refused.size(); ++i) {
    RedisTaken& answer = answers[refused[i]];
    const RedisHolding& holding = holdings[refused[i]];
    answer.status = told[2 * i].ToStatus();
    // Our own of a call whose answer was lost.
    answer.taken = told[2 * i].text == holding.value;
    answer.holder = HolderOf(holding.key, told[2 * i].text, told[2 * i + 1].integer, {}, {});
    answer.holder.until = absl::InfiniteFuture();
  }
  return answers;
}

absl::StatusOr<std::vector<RedisKept>> RedisLocks::CompareAndAct(
    Script& script, absl::Span<const RedisHolding> holdings, absl::Duration patience) {
  std::vector<Invocation> calls;
  calls.reserve(holdings.size());
  for (const RedisHolding& holding : holdings) {
    calls.push_back({{Name("lock", holding.key), Name("fence", holding.key)},
                     {holding.value, Millis(holding.ttl)}});
  }
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, Run(script, calls, patience));
  std::vector<RedisKept> answers(holdings.size());
  for (size_t i = 0; i < holdings.size(); ++i) {
    answers[i].status = replies[i].ToStatus();
    answers[i].kept = answers[i].status.ok() && SaysYes(replies[i]);
    if (answers[i].status.ok() && replies[i].items.size() == 2) {
      answers[i].now_held_by = WhoOf(replies[i].items[1].text);
    }
  }
  return answers;
}

absl::StatusOr<std::vector<RedisKept>> RedisLocks::Renew(absl::Span<const RedisHolding> holdings,
                                                         absl::Duration patience) {
  return CompareAndAct(scripts_->renew, holdings, patience);
}

absl::StatusOr<std::vector<RedisKept>> RedisLocks::Release(absl::Span<const RedisHolding> holdings,
                                                           absl::Duration patience) {
  return CompareAndAct(scripts_->release, holdings, patience);
}

absl::StatusOr<std::vector<std::string>> RedisLocks::FindLocks(absl::Duration patience) {
  const std::string prefix = Name("lock", "");
  const std::string pattern = absl::StrCat(Quoted(prefix), "*");
  const std::string count = absl::StrCat(kScanCount);
  std::vector<std::string> keys;
  std::string cursor = "0";
  do {
    const RedisCommand scan = {"SCAN", cursor, "MATCH", pattern, "COUNT", count};
    ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, connection_.Call({scan}, patience));
    RETURN_IF_ERROR(replies[0].ToStatus());
    if (replies[0].items.size() != 2) return absl::InternalError("SCAN answered something else");
    for (const RedisReply& name : replies[0].items[1].items) {
      keys.push_back(name.text.substr(prefix.size()));
    }
    cursor = replies[0].items[0].text;
  } while (cursor != "0");
  // SCAN may tell a key more than once.
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

absl::StatusOr<std::vector<RedisHolder>> RedisLocks::List(absl::Duration patience) {
  ASSIGN_OR_RETURN(const std::vector<std::string> keys, FindLocks(patience));
  std::vector<std::string> names;
  names.reserve(keys.size() * 2);
  std::vector<RedisCommand> commands = {{"TIME"}};
  for (const std::string& key : keys) {
    const std::string& lock = names.emplace_back(Name("lock", key));
    const std::string& fence = names.emplace_back(Name("fence", key));
    commands.push_back({"GET", lock});
    commands.push_back({"PTTL", lock});
    commands.push_back({"HMGET", fence, "fence", "since", "renewals", "value"});
  }
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, connection_.Call(commands, patience));
  std::vector<RedisHolder> holders;
  for (size_t i = 0; i < keys.size(); ++i) {
    const RedisReply& value = replies[1 + 3 * i];
    if (value.type != RedisReply::Type::kText) continue;  // ended meanwhile, or is no lock
    holders.push_back(HolderOf(keys[i], value.text, replies[2 + 3 * i].integer, replies[3 + 3 * i],
                               TimeOf(replies[0])));
  }
  return holders;
}

absl::StatusOr<RedisHolder> RedisLocks::Break(const std::string& key, absl::string_view who,
                                              absl::string_view why, absl::Duration patience) {
  const Invocation call = {
      {Name("lock", key), Name("fence", key), absl::StrCat(url().prefix, ":events")},
      {key, std::string(who), std::string(why)}};
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, Run(scripts_->break_, {call}, patience));
  RETURN_IF_ERROR(replies[0].ToStatus());
  if (!SaysYes(replies[0])) {
    return absl::NotFoundError(absl::StrCat("nobody holds the lock '", key,
                                            "'; `matins locks` lists those that are held"));
  }
  return HolderOf(key, replies[0]);
}

absl::StatusOr<RedisStep> RedisLocks::ReadStep(const std::string& key, absl::Duration patience) {
  const std::string name = Name("step", key);
  const RedisCommand read = {"HMGET", name, "number", "data"};
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, connection_.Call({read}, patience));
  RETURN_IF_ERROR(replies[0].ToStatus());
  if (replies[0].items.size() != 2) return RedisStep{};
  return RedisStep{NumberOf(replies[0].items[0]), replies[0].items[1].text};
}

absl::Status RedisLocks::WriteStep(const RedisHolding& holding, const RedisStep& step,
                                   absl::Duration keep, absl::Duration patience) {
  const Invocation call = {{Name("lock", holding.key), Name("step", holding.key)},
                           {holding.value, absl::StrCat(step.number), step.data, Millis(keep)}};
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, Run(scripts_->step, {call}, patience));
  RETURN_IF_ERROR(replies[0].ToStatus());
  if (replies[0].text == "ok") return absl::OkStatus();
  if (replies[0].text == "step") {
    return absl::AlreadyExistsError(
        absl::StrCat("step ", step.number, " of '", holding.key, "' is done already"));
  }
  return absl::FailedPreconditionError(absl::StrCat("the lock '", holding.key,
                                                    "' is no longer ours: step ", step.number,
                                                    " was not recorded, and will be done again"));
}

}  // namespace matins
