// Answers that are lost, connections that die, proxies that hold still.
#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/server_side.h"
#include "tests/integration/stage.h"
#include "tests/support/eventually.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/shared_server.h"

namespace matins::testing {
namespace {

using Answer = ResolveAnswer::Kind;

struct Proxied {
  std::unique_ptr<FaultProxy> proxy;
  SqlSession sql;
  Stage direct, through;

  static absl::StatusOr<Proxied> Open(absl::Duration deadline = absl::Seconds(10)) {
    Proxied p;
    const std::string url = SideUrl();
    ASSIGN_OR_RETURN(p.proxy, SideProxy());
    ASSIGN_OR_RETURN(p.direct, Stage::Open(url));
    RETURN_IF_ERROR(p.direct.Apply("a"));
    RETURN_IF_ERROR(p.direct.Plan("a", 0, 20));
    ASSIGN_OR_RETURN(p.through, Stage::Open(OnPort(url, p.proxy->port()), deadline));
    ASSIGN_OR_RETURN(p.sql, ConnectTo(url));
    return p;
  }
  absl::Status EndLeases() const { return sql(Side().end_leases); }
};

TEST(LostAnswers, ACommitThatTookEffectIsResolvedAsCommitted) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open());
  ASSERT_OK_AND_ASSIGN(const Claim claim, p.through.Claimed(KeyOf("a", 0)));
  p.proxy->DropReply(Side().commit);
  const FinishRequest request = DoneOf(claim);
  const auto lost = p.through.store->Finish({&request, 1});
  EXPECT_TRUE(IsInDoubt(lost.status())) << lost.status();
  ASSERT_TRUE(p.proxy->AwaitHits(1));
  ASSERT_OK_AND_ASSIGN(const auto answers, p.through.store->Resolve({&request, 1}));
  EXPECT_EQ(answers[0].kind, Answer::kCommitted);
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, p.direct.Row(claim.key));
  EXPECT_EQ(row.status, PeriodStatus::kDone);
  EXPECT_EQ(row.fence, claim.fence);
}

TEST(LostAnswers, ACommitThatNeverArrivedIsMadeNowWhileTheLeaseLives) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open());
  ASSERT_OK_AND_ASSIGN(const Claim claim, p.through.Claimed(KeyOf("a", 0)));
  p.proxy->DropRequest(Side().commit);
  const FinishRequest request = DoneOf(claim);
  const auto lost = p.through.store->Finish({&request, 1});
  EXPECT_TRUE(IsInDoubt(lost.status())) << lost.status();
  ASSERT_OK_AND_ASSIGN(const PeriodRow before, p.direct.Row(claim.key));
  EXPECT_EQ(before.status, PeriodStatus::kRunning);
  ASSERT_OK_AND_ASSIGN(const auto answers, p.through.store->Resolve({&request, 1}));
  EXPECT_EQ(answers[0].kind, Answer::kCommitted);
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, p.direct.Row(claim.key));
  EXPECT_EQ(row.status, PeriodStatus::kDone);
}

// The lease is over when one asks: the answer is no, and stays no when the commit arrives after
// all.
TEST(LostAnswers, AResolvedNoStaysNoWhenTheCommitArrivesLate) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open());
  ASSERT_OK_AND_ASSIGN(const Claim claim, p.through.Claimed(KeyOf("a", 0)));
  p.proxy->Hold(Side().commit);
  const FinishRequest request = DoneOf(claim);
  const auto lost = p.through.store->Finish({&request, 1});
  ASSERT_TRUE(IsInDoubt(lost.status())) << lost.status();
  ASSERT_OK(p.EndLeases());
  ASSERT_OK_AND_ASSIGN(const auto answers, p.direct.store->Resolve({&request, 1}));
  EXPECT_EQ(answers[0].kind, Answer::kNotCommitted);
  p.proxy->Release();
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, p.direct.Row(claim.key));
  EXPECT_EQ(row.status, PeriodStatus::kPlanned);
  EXPECT_GT(row.fence, claim.fence);
}

// C131: at each commit point of a run, some answers lost and some requests; each run is DONE once.
TEST(LostAnswers, RunsWithRandomlyLostAnswersEndOnceEach) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open());
  int in_doubt = 0;
  for (int n = 0; n < 20; ++n) {
    if (n % 3 == 0) p.proxy->DropReply(Side().commit);
    if (n % 3 == 1) p.proxy->DropRequest(Side().commit);
    absl::StatusOr<Claim> claim = p.through.Claimed(KeyOf("a", n));
    p.proxy->Pass();
    if (!claim.ok()) {
      // Whoever got no answer owns nothing: the lease ends, and the run is taken back.
      EXPECT_TRUE(IsInDoubt(claim.status())) << claim.status();
      ++in_doubt;
      ASSERT_OK(p.EndLeases());
      ASSERT_OK_AND_ASSIGN(const auto stale, p.direct.store->ReadStale(10));
      for (const StaleRun& s : stale) {
        const ReapRequest reap{{s.row.key, s.row.generation, s.row.fence, s.row.nonce},
                               Outcome::Kind::kReturned,
                               reason::kLost,
                               "n2"};
        ASSERT_OK(p.direct.store->Reap({&reap, 1}).status());
      }
      // The server may still hold the lost transaction's lock until it sees the connection's end.
      const absl::Time until = absl::Now() + absl::Seconds(60);
      do {
        claim = p.through.Claimed(KeyOf("a", n));
      } while (!claim.ok() && absl::Now() < until);
      ASSERT_OK(claim.status());
    }
    const FinishRequest request = DoneOf(*claim);
    n % 2 == 0 ? p.proxy->DropReply(Side().commit) : p.proxy->DropRequest(Side().finish);
    const auto finished = p.through.store->Finish({&request, 1});
    p.proxy->Pass();
    ASSERT_TRUE(IsInDoubt(finished.status())) << finished.status();
    ASSERT_OK_AND_ASSIGN(const auto answers, p.through.store->Resolve({&request, 1}));
    EXPECT_EQ(answers[0].kind, Answer::kCommitted);
  }
  EXPECT_GT(in_doubt, 5);
  RunFilter filter;
  filter.limit = 1000;
  ASSERT_OK_AND_ASSIGN(const auto runs, p.direct.acts->ReadRuns(filter));
  std::multiset<std::string> done;
  for (const RunRow& run : runs) {
    if (run.status == "DONE") done.insert(run.key.period);
  }
  EXPECT_EQ(done.size(), 20u);
  EXPECT_EQ(std::set<std::string>(done.begin(), done.end()).size(), 20u);
}

TEST(HalfDeadProxy, ACallEndsAtItsOwnDeadline) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open(absl::Seconds(2)));
  ASSERT_OK_AND_ASSIGN(const Claim claim, p.direct.Claimed(KeyOf("a", 0)));
  p.proxy->Blackhole();
  const ExtendRequest extend{TicketOf(claim), absl::Seconds(30)};
  const absl::Time before = absl::Now();
  const auto answer = p.through.store->Extend({&extend, 1});
  EXPECT_LT(absl::Now() - before, absl::Seconds(30));
  if (Side().verbs_are_one_packet) {
    EXPECT_TRUE(IsInDoubt(answer.status())) << answer.status();
  } else {  // the first only locks and reads
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable) << answer.status();
    EXPECT_FALSE(IsInDoubt(answer.status()));
  }
  const auto rows = p.through.store->ReadStale(1);
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kUnavailable) << rows.status();
  p.proxy->Pass();
  // C128: it comes back by itself, without a restart.
  absl::Status back;
  const absl::Time until = absl::Now() + absl::Seconds(60);
  do {
    back = p.through.store->Extend({&extend, 1}).status();
  } while (!back.ok() && absl::Now() < until);
  EXPECT_TRUE(back.ok()) << back;
}

// Whatever a migration on such a connection may take.
TEST(HalfDeadProxy, AnOpeningEndsAtTheCallsDeadline) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open(absl::Seconds(2)));
  p.proxy->Blackhole();
  std::atomic<bool> over = false;
  absl::Status opened, migrated;
  std::thread opening([&] {
    opened = p.through.database->Open().status();
    migrated = p.through.database->Migrate();
    over = true;
  });
  EXPECT_TRUE(Eventually([&] { return over.load(); }));
  p.proxy->Pass();
  opening.join();
  EXPECT_EQ(opened.code(), absl::StatusCode::kUnavailable) << opened;
  EXPECT_EQ(migrated.code(), absl::StatusCode::kUnavailable) << migrated;
}

TEST(Failures, AnAwayServerIsUnavailableNeverInDoubt) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open());
  ASSERT_OK_AND_ASSIGN(const Claim claim, p.through.Claimed(KeyOf("a", 0)));
  p.proxy->Refuse();
  const FinishRequest request = DoneOf(claim);
  // Whether the reset is seen before anything is sent is the network's affair; once it is known,
  // nothing is sent.
  p.through.store->Finish({&request, 1}).IgnoreError();
  const auto away = p.through.store->Finish({&request, 1});
  EXPECT_EQ(away.status().code(), absl::StatusCode::kUnavailable) << away.status();
  EXPECT_FALSE(IsInDoubt(away.status()));
}

// The whole of it again and again while backends die at random: all DONE, each once.
TEST(Failures, ADrainSurvivesKilledBackends) {
  ASSERT_OK_AND_ASSIGN(const OwnServer server, StartOwnServer());
  const std::string& url = server.url;
  ASSERT_OK_AND_ASSIGN(Stage main, Stage::Open(url));
  ASSERT_OK(main.Apply("a"));
  constexpr int kPeriods = 200;
  ASSERT_OK(main.Plan("a", 0, kPeriods));
  std::atomic<int> working{2}, kills{0};
  const auto drain = [&](int id) {
    absl::StatusOr<Stage> stage = Stage::Open(url);
    while (!stage.ok()) stage = Stage::Open(url);
    const std::string node = absl::StrCat("n", id);
    int64_t nonce = id * 1'000'000;
    // Rows that a lost START took are not waited for here: their leases would outlive the test.
    for (int idle = 0; idle < 20;) {
      StartRequest start;
      start.node.name = node;
      start.nonce = ++nonce;
      start.also_due = 5;
      const auto started = stage->store->Start(start);
      if (!started.ok()) continue;
      std::vector<FinishRequest> finish;
      for (const StartAnswer& a : started->rows) {
        if (a.claim) finish.push_back({TicketOf(*a.claim), Outcome{}, node});
      }
      idle = finish.empty() ? idle + 1 : 0;
      if (finish.empty()) continue;
      absl::Status status = stage->store->Finish(finish).status();
      while (!status.ok()) status = stage->store->Resolve(finish).status();
    }
    --working;
  };
  std::thread one(drain, 1), two(drain, 2);
  while (working > 0 && kills < 60) {
    if (server.kill_a_connection()) ++kills;
  }
  one.join();
  two.join();
  EXPECT_GT(kills, 5);
  RunFilter filter;
  filter.limit = 10'000;
  ASSERT_OK_AND_ASSIGN(const auto runs, main.acts->ReadRuns(filter));
  std::map<std::string, int> done;
  for (const RunRow& run : runs) done[run.key.period] += run.status == "DONE" ? 1 : 0;
  ASSERT_OK_AND_ASSIGN(const StoreStatus status, main.acts->ReadStatus());
  EXPECT_EQ(status.planned, 0);
  for (const auto& [period, times] : done) EXPECT_LE(times, 1) << period;
  int total = 0;
  for (const auto& [period, times] : done) total += times;
  EXPECT_EQ(total + status.running, kPeriods);
}

}  // namespace
}  // namespace matins::testing
