// Redis leases: pairs of taking and releasing a second, so many in a round trip. By default with a
// fence, as `matins lock` takes them; `--unfenced` as the quick door before a store does.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/random.h"
#include "bench/drive/line.h"
#include "lease/redis_locks.h"

namespace matins::bench {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(10);

class Leases {
 public:
  Leases(const Options& options, RedisLocks& locks)
      : locks_(locks), unfenced_(options.Flag("unfenced")) {
    for (int64_t i = 0; i < options.Int("pipeline"); ++i) {
      batch_.push_back({absl::StrCat("bench/", i), "", absl::Seconds(30)});
    }
    fences_.resize(batch_.size());
  }

  size_t size() const { return batch_.size(); }

  // One pair each; every one has to be granted, with a greater fence than the last.
  void Round() {
    for (RedisHolding& holding : batch_) holding.value = RedisLocks::NewValue("bench/1", random_);
    const auto taken =
        unfenced_ ? locks_.TakeUnfenced(batch_, kPatience) : locks_.Take(batch_, kPatience);
    DieUnlessOk(taken.status(), "taking");
    const auto released = locks_.Release(batch_, kPatience);
    DieUnlessOk(released.status(), "releasing");
    for (size_t i = 0; i < batch_.size(); ++i) {
      if (!(*taken)[i].taken || !(*released)[i].kept) Die("a free lock was refused");
      if (!unfenced_ && (*taken)[i].fence <= fences_[i]) Die("a fence did not rise");
      fences_[i] = (*taken)[i].fence;
    }
  }

 private:
  RedisLocks& locks_;
  const bool unfenced_;
  // The kernel's random numbers cost a system call each, here as in Matins.
  SystemRandom random_;
  std::vector<RedisHolding> batch_;
  std::vector<int64_t> fences_;
};

void Run(const Options& options) {
  auto url = ParseRedisUrl(options.Text("store"));
  DieUnlessOk(url.status(), "reading --store");
  RedisLocks locks(*std::move(url), SystemClock());
  Leases leases(options, locks);
  leases.Round();  // connects, and loads the scripts
  const int64_t rounds = options.Int("pairs") / static_cast<int64_t>(leases.size());
  const double own = OwnCpuSeconds(), store = StoreCpuSeconds();
  const absl::Duration begun = SystemClock().BootNow();
  for (int64_t i = 0; i < rounds; ++i) leases.Round();
  const double seconds = absl::ToDoubleSeconds(SystemClock().BootNow() - begun);
  const double pairs = static_cast<double>(rounds) * static_cast<double>(leases.size());
  Line line("leases", options);
  line.Add("pipeline", options.Int("pipeline")).Add("unfenced", options.Flag("unfenced"));
  line.Add("pairs", static_cast<int64_t>(pairs)).Add("per_second", pairs / seconds);
  line.Add("node_cpu_us_per_run", (OwnCpuSeconds() - own) * 1e6 / pairs);
  line.Add("store_cpu_us_per_run", (StoreCpuSeconds() - store) * 1e6 / pairs).Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  matins::bench::Run(matins::bench::Options(
      argc, argv, {{"store", ""}, {"pairs", "400000"}, {"pipeline", "16"}, {"unfenced", "false"}}));
  return 0;
}
