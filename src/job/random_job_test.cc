// Jobs drawn at random: what a job file can say reads back from JSON and YAML as the same job.
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/json.h"
#include "job/parse.h"
#include "job/print.h"
#include "job/rules.h"
#include "job/words.h"

namespace matins {
namespace {

class JobMaker {
 public:
  explicit JobMaker(uint64_t seed) : random_(seed) {}

  Job Make() {
    Job job;
    job.name = absl::StrCat("job-", random_.Below(1000));
    if (Coin()) job.tenant = Pick<std::string>({"payments", "no", "\u5bf9\u8d26", "7"});
    MakeTime(job);
    MakeRules(job);
    MakePlace(job);
    return job;
  }

 private:
  bool Coin() { return random_.OneIn(2); }
  template <typename T>
  T Pick(const std::vector<T>& all) {
    return all[random_.Below(all.size())];
  }
  template <typename E>
  E Any() {
    return static_cast<E>(random_.Below(Words<E>().size()));
  }
  absl::Duration Length(int64_t least_ms) {
    const int64_t scale = Pick<int64_t>({1, 1000, 60'000, 3'600'000});
    return absl::Milliseconds(least_ms + static_cast<int64_t>(random_.Below(23)) * scale);
  }
  std::string Text() {
    static const std::vector<std::string> kParts = {
        "a",  " ",    "\"",     "'",          "\\",   "\n",   "\t",     ": ",     " #",
        "{ ", "}",    "[",      "- ",         "*",    "&",    "!",      "%",      "~",
        "no", "1:30", "\u00e9", "\U0001F552", "\x7f", "\x01", "\u2028", "\u0085", "\ufeff"};
    std::string text = "x";
    for (uint64_t i = random_.Below(8); i > 0; --i) text += Pick(kParts);
    return text;
  }

  void MakeTime(Job& job) {
    if (Coin()) {
      job.at = absl::FromUnixMillis(static_cast<int64_t>(random_.Below(4'000'000'000'000)));
    } else {
      job.schedule = Pick<std::string>({"0 1 * * *", "*/5 * * * *", "0 0 1 * * ?", "@daily"});
      job.dst = {Any<GapRule>(), Any<OverlapRule>()};
    }
    job.timezone = Pick<std::string>({"UTC", "Asia/Shanghai", "America/New_York"});
    job.period = Pick<PeriodKind>({PeriodKind::kFire, PeriodKind::kDay, PeriodKind::kMonth});
    job.biz_date = {-static_cast<int>(random_.Below(3)), Any<PeriodKind>() == PeriodKind::kDay
                                                             ? BizShift::Unit::kWeek
                                                             : BizShift::Unit::kDay};
    job.start_deadline = Length(1000);
    if (Coin()) job.done_by.time_of_day = absl::Seconds(random_.Below(86'400));
    job.spread = Length(0);
  }

  void MakeRules(Job& job) {
    job.misfire = Any<Misfire>();
    job.overlap = job.misfire == Misfire::kEach ? Overlap::kForbid : Any<Overlap>();
    job.backfill.order = job.misfire == Misfire::kEach ? Any<Order>() : Order::kNone;
    if (Coin()) job.backfill.max_periods.reset();
    if (Coin()) job.backfill.max_parallel = 1 + static_cast<int>(random_.Below(9));
    if (Coin()) job.backfill.max_age = Length(1000);
    if (Coin()) job.backfill.start = absl::CivilDay(2026, 1, 1) + random_.Below(400);
    job.lock.scope = job.overlap == Overlap::kAllow ? LockScope::kPeriod : Any<LockScope>();
    if (job.lock.scope == LockScope::kKey) job.lock.key = "k-{{biz_date}}";
    job.lock.ttl = Length(1000);
    job.lock.provider = Any<LockProvider>();
    job.mask = Any<Mask>();
    if (Coin()) job.limit = 1 + static_cast<int>(random_.Below(9));
    if (Coin()) job.limit_key = Coin() ? "bank" : "bank-{{biz_date}}";
    job.timeout = Length(1000);
    job.retry = {1 + static_cast<int>(random_.Below(5)), absl::Seconds(1), Length(1000)};
    job.recovery = Any<Recovery>();
    job.commit = Any<CommitBy>();
    job.suspend = Coin();
  }

  void MakePlace(Job& job) {
    if (Coin()) job.after = {{"settle"}, {"other"}};
    if (Coin()) job.nodes = {"db-east", "7"};
    job.priority = static_cast<int>(random_.Below(5)) - 2;
    if (Coin()) job.env = {{"A", {Text(), ""}}, {"B", {"", "/run/t"}}, {"C", {"", ""}}};
    job.run.kind = Any<RunKind>();
    if (job.run.kind == RunKind::kHandler) {
      job.run.handler = "h";
      return;
    }
    if (job.run.kind == RunKind::kShell) job.run.shell = Text();
    if (job.run.kind == RunKind::kCommand) job.run.command = {Text(), Text(), ""};
    if (Coin()) job.dir = "/srv/a b";
    if (Coin()) job.umask = static_cast<int>(random_.Below(512));
    if (Coin()) job.check = RunSpec{RunKind::kShell, {}, Text(), ""};
    job.output_keep_bytes = static_cast<int64_t>(random_.Below(3) << random_.Below(22));
  }

  SeededRandom random_;
};

TEST(RandomJob, ReadsBackFromJsonAndYamlAsTheSame) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Job job = JobMaker(seed).Make();
    const std::string json = JobToJson(job);
    const absl::StatusOr<Job> back = JobFromJson(json);
    ASSERT_TRUE(back.ok()) << "seed " << seed << ": " << back.status() << "\n" << json;
    ASSERT_EQ(*back, job) << "seed " << seed << "\n" << json << "\n" << JobToJson(*back);
    ASSERT_EQ(json.find('\n'), std::string::npos);
    const std::string yaml = "jobs:\n" + JobToYaml(job);
    const absl::StatusOr<JobFile> file = ParseJobText("x.yaml", yaml);
    ASSERT_TRUE(file.ok()) << "seed " << seed << ": " << file.status() << "\n" << yaml;
    ASSERT_THAT(file->jobs, ::testing::ElementsAre(job)) << "seed " << seed << "\n" << yaml;
  }
}

}  // namespace
}  // namespace matins
