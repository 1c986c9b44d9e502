// Answers that are lost, connections that die, proxies that hold still.
#include <atomic>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/stage.h"
#include "tests/support/fault_proxy.h"
#include "tests/support/mariadb_server.h"

namespace matins::testing {
namespace {

using Answer = ResolveAnswer::Kind;

// At the end of a packet that writes; not the word in READ COMMITTED.
constexpr char kCommit[] = ";COMMIT";

struct Proxied {
  std::unique_ptr<FaultProxy> proxy;
  std::string url;
  Stage direct, through;

  // Each live lease ends now.
  absl::Status EndLeases() const {
    ASSIGN_OR_RETURN(const auto client, MariadbClient::Connect(url));
    return client
        ->Query("UPDATE job_watermark SET lease_until = UTC_TIMESTAMP(6) WHERE status = 'RUNNING'")
        .status();
  }
  static absl::StatusOr<Proxied> Open(absl::Duration deadline = absl::Seconds(5)) {
    Proxied p;
    p.url = TestMariadbUrl();
    ASSIGN_OR_RETURN(p.proxy, FaultProxy::Start(TestMariadbPort(), 0, FaultProxy::Wire::kMariadb));
    ASSIGN_OR_RETURN(p.direct, Stage::Open(p.url));
    RETURN_IF_ERROR(p.direct.Apply("a"));
    RETURN_IF_ERROR(p.direct.Plan("a", 0, 20));
    ASSIGN_OR_RETURN(p.through, Stage::Open(absl::StrCat("mariadb://root@127.0.0.1:",
                                                         p.proxy->port(), "/", DatabaseOf(p.url)),
                                            deadline));
    return p;
  }
};

TEST(MariadbLostAnswers, ACommitThatTookEffectIsResolvedAsCommitted) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open());
  ASSERT_OK_AND_ASSIGN(const Claim claim, p.through.Claimed(KeyOf("a", 0)));
  p.proxy->DropReply(kCommit);
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

TEST(MariadbLostAnswers, ACommitThatNeverArrivedIsMadeNowWhileTheLeaseLives) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open());
  ASSERT_OK_AND_ASSIGN(const Claim claim, p.through.Claimed(KeyOf("a", 0)));
  p.proxy->DropRequest(kCommit);
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
TEST(MariadbLostAnswers, AResolvedNoStaysNoWhenTheCommitArrivesLate) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open());
  ASSERT_OK_AND_ASSIGN(const Claim claim, p.through.Claimed(KeyOf("a", 0)));
  p.proxy->Hold(kCommit);
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
TEST(MariadbLostAnswers, RunsWithRandomlyLostAnswersEndOnceEach) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open());
  int in_doubt = 0;
  for (int n = 0; n < 20; ++n) {
    if (n % 3 == 0) p.proxy->DropReply(kCommit);
    if (n % 3 == 1) p.proxy->DropRequest(kCommit);
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
      const absl::Time until = absl::Now() + absl::Seconds(20);
      do {
        claim = p.through.Claimed(KeyOf("a", n));
      } while (!claim.ok() && absl::Now() < until);
      ASSERT_OK(claim.status());
    }
    const FinishRequest request = DoneOf(*claim);
    n % 2 == 0 ? p.proxy->DropReply(kCommit) : p.proxy->DropRequest(kCommit);
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

TEST(MariadbHalfDeadProxy, ACallEndsAtItsOwnDeadline) {
  ASSERT_OK_AND_ASSIGN(Proxied p, Proxied::Open(absl::Milliseconds(500)));
  ASSERT_OK_AND_ASSIGN(const Claim claim, p.through.Claimed(KeyOf("a", 0)));
  p.proxy->Blackhole();
  const ExtendRequest extend{TicketOf(claim), absl::Seconds(30)};
  const absl::Time before = absl::Now();
  const auto answer = p.through.store->Extend({&extend, 1});
  EXPECT_LT(absl::Now() - before, absl::Seconds(10));
  // Its first packet only locks and reads.
  EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable) << answer.status();
  EXPECT_FALSE(IsInDoubt(answer.status()));
  const auto rows = p.through.store->ReadStale(1);
  EXPECT_EQ(rows.status().code(), absl::StatusCode::kUnavailable) << rows.status();
  p.proxy->Pass();
  // C128: it comes back by itself, without a restart.
  absl::Status back;
  const absl::Time until = absl::Now() + absl::Seconds(20);
  do {
    back = p.through.store->Extend({&extend, 1}).status();
  } while (!back.ok() && absl::Now() < until);
  EXPECT_TRUE(back.ok()) << back;
}

TEST(MariadbFailures, AnAwayServerIsUnavailableNeverInDoubt) {
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

// The whole of it again and again while connections die at random: all DONE, each once.
TEST(MariadbFailures, ADrainSurvivesKilledConnections) {
  ASSERT_OK_AND_ASSIGN(const auto server, MariadbServer::Start());
  const std::string url = server->FreshUrl();
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
  ASSERT_OK_AND_ASSIGN(const auto killer, MariadbClient::Connect(url));
  while (working > 0 && kills < 60) {
    const auto victims = killer->Query(
        "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND "
        "user = 'root' ORDER BY RAND() LIMIT 1");
    if (!victims.ok() || victims->empty()) continue;
    if (killer->Query(absl::StrCat("KILL ", (*victims)[0][0])).ok()) ++kills;
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
