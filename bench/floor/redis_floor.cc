// The limit of Redis leases: hiredis alone, the textbook's two commands and nothing else. SET NX PX
// with a value, then a script that compares it and deletes; so many in a round trip.
#include <hiredis/hiredis.h>

#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/clock.h"
#include "bench/drive/line.h"

namespace matins::bench {
namespace {

using Reply = std::unique_ptr<redisReply, void (*)(void*)>;

constexpr char kRelease[] =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) "
    "else return 0 end";

Reply Next(redisContext* redis) {
  void* reply = nullptr;
  if (redisGetReply(redis, &reply) != REDIS_OK) Die(redis->errstr);
  return {static_cast<redisReply*>(reply), freeReplyObject};
}

void Round(redisContext* redis, const std::string& sha, int64_t pipeline, int64_t number) {
  const std::string value = absl::StrCat("bench/1:", number);
  for (int64_t i = 0; i < pipeline; ++i) {
    redisAppendCommand(redis, "SET bench/%lld %s NX PX 30000", static_cast<long long>(i),  // NOLINT
                       value.c_str());
  }
  for (int64_t i = 0; i < pipeline; ++i) {
    if (Next(redis)->type != REDIS_REPLY_STATUS) Die("a free lock was refused");
  }
  for (int64_t i = 0; i < pipeline; ++i) {
    redisAppendCommand(redis, "EVALSHA %s 1 bench/%lld %s", sha.c_str(), static_cast<long long>(i),
                       value.c_str());  // NOLINT
  }
  for (int64_t i = 0; i < pipeline; ++i) {
    if (Next(redis)->integer != 1) Die("a lock was not released");
  }
}

void Run(const Options& options) {
  absl::string_view place = options.Text("store");
  absl::ConsumePrefix(&place, "redis://");
  const size_t colon = place.find(':');
  int port = 6379;
  if (colon != absl::string_view::npos && !absl::SimpleAtoi(place.substr(colon + 1), &port)) {
    Die("--store is redis://HOST:PORT");
  }
  const std::unique_ptr<redisContext, void (*)(redisContext*)> redis(
      redisConnect(std::string(place.substr(0, colon)).c_str(), port), redisFree);
  if (redis == nullptr || redis->err != 0) Die("no Redis at --store");
  redisAppendCommand(redis.get(), "SCRIPT LOAD %s", kRelease);
  const std::string sha = Next(redis.get())->str;
  const int64_t pipeline = options.Int("pipeline");
  const int64_t rounds = options.Int("pairs") / pipeline;
  const double own = OwnCpuSeconds(), store = StoreCpuSeconds();
  const absl::Duration begun = SystemClock().BootNow();
  for (int64_t i = 0; i < rounds; ++i) Round(redis.get(), sha, pipeline, i);
  const double seconds = absl::ToDoubleSeconds(SystemClock().BootNow() - begun);
  const double pairs = static_cast<double>(rounds * pipeline);
  Line line("floor", options);
  line.Add("pipeline", pipeline).Add("pairs", rounds * pipeline);
  line.Add("per_second", pairs / seconds);
  line.Add("node_cpu_us_per_run", (OwnCpuSeconds() - own) * 1e6 / pairs);
  line.Add("store_cpu_us_per_run", (StoreCpuSeconds() - store) * 1e6 / pairs).Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  matins::bench::Run(
      matins::bench::Options(argc, argv, {{"store", ""}, {"pairs", "400000"}, {"pipeline", "16"}}));
  return 0;
}
