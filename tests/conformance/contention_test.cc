// Two engines' worth of stores on one database: thousands of periods, none lost, none twice.
#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "conformance/kit.h"

namespace matins::conformance {
namespace {

using Contention = Conformance;

constexpr int kJobs = 10;
constexpr int kPeriods = 200;

Job WideJob(int i) {
  Job job = PlainJob(absl::StrCat("job", i));
  job.overlap = Overlap::kAllow;
  job.lock.scope = LockScope::kPeriod;
  return job;
}

Intent MinuteIntent(const Job& job, int n) {
  Intent intent = DayIntent(job, 0);
  intent.key.period = absl::StrCat("p", n);
  intent.due = intent.not_before = T0() + absl::Milliseconds(n);
  return intent;
}

// Plans all of its jobs, then starts and finishes what it gets until all are DONE.
absl::Status Work(World& world, const std::string& node, std::atomic<int>& done,
                  std::map<PeriodKey, int>& accepted, std::mutex& mutex) {
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, world.database().Open());
  for (int i = 0; i < kJobs; ++i) {
    std::vector<Intent> intents;
    for (int n = 0; n < kPeriods; ++n) intents.push_back(MinuteIntent(WideJob(i), n));
    RETURN_IF_ERROR(PlanIntents(*store, WideJob(i).name, std::move(intents)).status());
  }
  static std::atomic<int64_t> nonce{1};
  while (done < kJobs * kPeriods) {
    StartRequest request;
    request.node.name = node;
    request.nonce = ++nonce;
    request.also_due = 100;
    ASSIGN_OR_RETURN(const StartAnswers started, store->Start(request));
    std::vector<FinishRequest> finishes;
    for (const StartAnswer& answer : started.rows) {
      if (answer.claim) finishes.push_back({TicketOf(*answer.claim), {}, node});
    }
    ASSIGN_OR_RETURN(const std::vector<Refusal> answers, store->Finish(finishes));
    std::lock_guard lock(mutex);
    for (size_t i = 0; i < answers.size(); ++i) {
      if (!answers[i].accepted()) return absl::InternalError(answers[i].why);
      ++accepted[finishes[i].ticket.key];
      ++done;
    }
  }
  return absl::OkStatus();
}

TEST_F(Contention, NoneLostNoneTwice) {
  std::vector<Job> jobs;
  for (int i = 0; i < kJobs; ++i) jobs.push_back(WideJob(i));
  ASSERT_OK(ApplyJobs(acts(), jobs));
  world().SetClock(At(3600));
  std::atomic<int> done{0};
  std::map<PeriodKey, int> accepted;
  std::mutex mutex;
  absl::Status statuses[2];
  std::thread other([&] { statuses[1] = Work(world(), "n2", done, accepted, mutex); });
  statuses[0] = Work(world(), "n1", done, accepted, mutex);
  other.join();
  ASSERT_OK(statuses[0]);
  ASSERT_OK(statuses[1]);
  EXPECT_EQ(accepted.size(), static_cast<size_t>(kJobs * kPeriods));
  for (const auto& [key, times] : accepted) EXPECT_EQ(times, 1) << key.job << " " << key.period;
  RowFilter filter;
  filter.status = PeriodStatus::kDone;
  filter.limit = 100'000;
  ASSERT_OK_AND_ASSIGN(const std::vector<PeriodRow> rows, acts().ReadRows(filter));
  EXPECT_EQ(rows.size(), static_cast<size_t>(kJobs * kPeriods));
}

TEST_F(Contention, OneStarterOfAPeriodWins) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  for (int round = 0; round < 20; ++round) {
    world().SetClock(DueOf(round));
    ASSERT_OK(PlanDays(store(), job, {round}).status());
    std::atomic<int> started{0};
    absl::StatusOr<StartAnswer> answers[2];
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> second, world().database().Open());
    std::thread other([&] { answers[1] = StartOne(*second, KeyOf("a", round), "n2"); });
    answers[0] = StartOne(store(), KeyOf("a", round), "n1");
    other.join();
    for (const auto& answer : answers) {
      ASSERT_OK(answer.status());
      if (!answer->claim) continue;
      ++started;
      ASSERT_OK(Done(store(), TicketOf(*answer->claim)).status());
    }
    EXPECT_EQ(started, 1);
  }
}

TEST_F(Contention, OnePlannerOfAJobWins) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  PlanRequest request;
  request.writes.resize(1);
  request.writes[0].job = "a";
  request.writes[0].expected_revision = state.revision;
  request.writes[0].intents = {DayIntent(job, 0)};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> second, world().database().Open());
  absl::StatusOr<PlanAnswers> answers[2];
  std::thread other([&] { answers[1] = second->Plan(request); });
  answers[0] = store().Plan(request);
  other.join();
  ASSERT_OK(answers[0].status());
  ASSERT_OK(answers[1].status());
  EXPECT_EQ(answers[0]->jobs.at(0).written + answers[1]->jobs.at(0).written, 1);
}

}  // namespace
}  // namespace matins::conformance
