// Alerts: what a look finds, who sends, and what a row comes to; in every store the same.
#include <map>
#include <set>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/barrier.h"
#include "conformance/kit.h"
#include "gmock/gmock.h"
#include "store/rules.h"

namespace matins::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class Alerts : public Conformance {
 protected:
  static AlertRaise Gap(int n, absl::string_view channel = "ops") {
    AlertRaise raise;
    raise.key = {"gap", "a", KeyOf("a", n).period};
    raise.channel = std::string(channel);
    raise.kind = "failed";
    raise.level = 2;
    raise.period = raise.key.about;
    raise.due = DueOf(n);
    raise.text = absl::StrCat("a ", raise.period, " FAILED: \"exit\"");
    raise.seen_at = At(0);
    raise.remind = absl::Hours(24);
    return raise;
  }
  AlertCounts Put(std::vector<AlertRaise> raise, std::vector<AlertResolve> resolve = {}) {
    AlertChanges changes;
    changes.raise = std::move(raise);
    changes.resolve = std::move(resolve);
    return acts().PutAlerts(changes).value();
  }
  std::vector<AlertRow> Claim(absl::string_view by, absl::string_view channel = "ops") {
    return acts().ClaimAlerts({std::string(by), std::string(channel), 100}).value().rows;
  }
  AlertRow Only() { return acts().ReadAlerts({.open_only = false}).value().at(0); }
  AlertFacts Look(absl::Time since = At(-3600)) {
    return acts().ReadAlertFacts({since, {}}).value();
  }
  // A failed attempt of day n, which ends as `kind`.
  void FailDay(const Job& job, int n, Outcome::Kind kind = Outcome::Kind::kFailed) {
    ASSERT_OK(PlanDays(store(), job, {n}).status());
    ASSERT_OK_AND_ASSIGN(const matins::Claim claim, Claimed(store(), KeyOf(job.name, n)));
    Outcome outcome;
    outcome.kind = kind;
    outcome.reason = reason::kExit;
    outcome.message = "exit code 3";
    ASSERT_OK(FinishOne(store(), TicketOf(claim), outcome).status());
  }
};

TEST_F(Alerts, ARowKeepsAllThatWasSaid) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  EXPECT_EQ(Put({Gap(1)}).raised, 1);
  const AlertRow row = Only();
  EXPECT_EQ(row.key, Gap(1).key);
  EXPECT_EQ(row.channel, "ops");
  EXPECT_EQ(row.episode, 1);
  EXPECT_EQ(row.kind, "failed");
  EXPECT_EQ(row.level, 2);
  EXPECT_EQ(row.period, Gap(1).period);
  EXPECT_EQ(row.due, DueOf(1));
  EXPECT_EQ(row.text, Gap(1).text);
  EXPECT_EQ(row.opened_at, At(0));
  EXPECT_EQ(row.seen_at, At(0));
  EXPECT_EQ(row.next_at, At(0));
  EXPECT_EQ(row.remind, absl::Hours(24));
  EXPECT_TRUE(row.open());
  EXPECT_FALSE(row.told());
  EXPECT_FALSE(row.by_job || row.by_audit || row.momentary);
}

TEST_F(Alerts, WhatIsSeenAgainIsOneAlertAChannel) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  EXPECT_EQ(Put({Gap(1), Gap(1), Gap(2), Gap(1, "night")}).raised, 3);
  EXPECT_EQ(Put({Gap(1), Gap(2), Gap(1, "night")}).raised, 0);
  ASSERT_OK_AND_ASSIGN(const std::vector<AlertRow> rows, acts().ReadAlerts({}));
  EXPECT_THAT(rows, SizeIs(3));
}

TEST_F(Alerts, OfTwoNodesOneHasAMessage) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  Put({Gap(1), Gap(1, "night")});
  EXPECT_THAT(Claim("n1"), SizeIs(1));
  EXPECT_THAT(Claim("n2"), IsEmpty()) << "it is claimed";
  EXPECT_THAT(Claim("n2", "night"), SizeIs(1)) << "another channel is another message";
  EXPECT_EQ(Only().attempts, 1);
}

TEST_F(Alerts, OfTwoNodesThatRaceOneHasEach) {
  MATINS_NEEDS(Capability::kReopenable);
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  constexpr int kAlerts = 40;
  std::vector<AlertRaise> raises;
  for (int n = 0; n < kAlerts; ++n) raises.push_back(Gap(n));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Database> other, world().OpenAgain());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ActStore> others, other->OpenActs());
  auto* barrier = new absl::Barrier(2);
  std::vector<int64_t> had[2];
  const auto node = [&](ActStore& acts, int which) {
    AlertChanges changes;
    changes.raise = raises;
    if (barrier->Block()) delete barrier;
    ASSERT_OK(acts.PutAlerts(changes).status());
    for (int turn = 0; turn < kAlerts; ++turn) {
      ASSERT_OK_AND_ASSIGN(const AlertClaimed claimed,
                           acts.ClaimAlerts({absl::StrCat("n", which, "/", turn), "ops", 3}));
      for (const AlertRow& row : claimed.rows) had[which].push_back(row.id);
    }
  };
  std::thread second([&] { node(*others, 1); });
  node(acts(), 0);
  second.join();
  std::set<int64_t> all(had[0].begin(), had[0].end());
  all.insert(had[1].begin(), had[1].end());
  EXPECT_EQ(all.size(), kAlerts) << "each is sent";
  EXPECT_EQ(had[0].size() + had[1].size(), kAlerts) << "and by one of them";
}

TEST_F(Alerts, AClaimWhoseNodeDiedIsTakenOverAndTheDeadSaysNothing) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  Put({Gap(1)});
  const std::vector<AlertRow> dead = Claim("dead");
  ASSERT_THAT(dead, SizeIs(1));
  world().SetClock(At(119));
  EXPECT_THAT(Claim("n2"), IsEmpty());
  world().SetClock(At(121));
  ASSERT_THAT(Claim("n2"), SizeIs(1));
  const AlertSent sent{dead[0].id, AlertStep::kFire, ""};
  ASSERT_OK_AND_ASSIGN(std::vector<bool> ended, acts().EndAlerts("dead", {&sent, 1}));
  EXPECT_THAT(ended, ElementsAre(false));
  ASSERT_OK_AND_ASSIGN(ended, acts().EndAlerts("n2", {&sent, 1}));
  EXPECT_THAT(ended, ElementsAre(true));
  EXPECT_EQ(Only().told_at, At(121));
  EXPECT_EQ(Only().next_at, At(121) + absl::Hours(24));
}

TEST_F(Alerts, AFailedMessageIsTriedAgainLater) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  Put({Gap(1)});
  const AlertSent sent{Claim("n1").at(0).id, AlertStep::kFire, "it answered 503"};
  ASSERT_OK(acts().EndAlerts("n1", {&sent, 1}).status());
  EXPECT_EQ(Only().last_error, "it answered 503");
  EXPECT_EQ(Only().next_at, At(30));
  EXPECT_THAT(Claim("n1"), IsEmpty());
  world().SetClock(At(30));
  EXPECT_THAT(Claim("n2"), SizeIs(1)) << "by whichever node";
}

TEST_F(Alerts, AFailedRowIsFoundByWhenItFailed) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  world().SetClock(At(10));
  FailDay(job, -1);
  FailDay(job, -2, Outcome::Kind::kHeld);
  const AlertFacts facts = Look(At(5));
  EXPECT_EQ(facts.now, At(10));
  ASSERT_THAT(facts.troubles, SizeIs(2));
  for (const AlertTrouble& trouble : facts.troubles) {
    EXPECT_EQ(trouble.kind, AlertTrouble::Kind::kFailed);
    EXPECT_EQ(trouble.at, At(10));
    EXPECT_EQ(trouble.held, trouble.key == KeyOf("a", -2));
    EXPECT_THAT(trouble.why, HasSubstr("exit code 3"));
    EXPECT_THAT(trouble.definition, HasSubstr("\"a\""));
  }
  EXPECT_THAT(Look(At(11)).troubles, IsEmpty());
}

TEST_F(Alerts, ALostRunIsFoundThoughItsPeriodIsPlannedAgain) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {-1}).status());
  ASSERT_OK_AND_ASSIGN(const matins::Claim claim, Claimed(store(), KeyOf("a", -1)));
  world().SetClock(At(60));
  ASSERT_OK_AND_ASSIGN(const bool reaped, ReapOne(store(), TicketOf(claim)));
  ASSERT_TRUE(reaped);
  const AlertFacts facts = Look(At(30));
  ASSERT_THAT(facts.troubles, SizeIs(1));
  EXPECT_EQ(facts.troubles[0].kind, AlertTrouble::Kind::kLost);
  EXPECT_EQ(facts.troubles[0].key, KeyOf("a", -1));
  EXPECT_EQ(facts.troubles[0].fence, claim.fence);
  EXPECT_EQ(facts.troubles[0].at, At(60));
  EXPECT_EQ(facts.troubles[0].node, "n1");
}

TEST_F(Alerts, ARefusedZombieIsFoundWhereItWasRecorded) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  world().SetClock(At(5));
  ASSERT_OK(acts().Record("zombie", KeyOf("a", -1), {"node:n1", "fence"}, "42"));
  const AlertFacts facts = Look(At(0));
  ASSERT_THAT(facts.troubles, SizeIs(1));
  EXPECT_EQ(facts.troubles[0].kind, AlertTrouble::Kind::kZombie);
  EXPECT_EQ(facts.troubles[0].key, KeyOf("a", -1));
  EXPECT_EQ(facts.troubles[0].fence, 42);
  EXPECT_EQ(facts.troubles[0].node, "node:n1");
  EXPECT_EQ(facts.troubles[0].why, "fence");
  EXPECT_EQ(facts.troubles[0].at, At(5));
  EXPECT_THAT(Look(At(6)).troubles, IsEmpty());
}

TEST_F(Alerts, AStepOfTheClockIsFoundAndIsMadeGoodWhenTheClockIsSteady) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  TickRequest tick;
  tick.node = {"n1", {}};
  ASSERT_OK(store().Tick(tick).status());
  world().SetClock(At(-60));
  ASSERT_OK_AND_ASSIGN(const TickAnswer ticked, store().Tick(tick));
  ASSERT_TRUE(ticked.frozen);
  AlertFacts facts = Look();
  EXPECT_THAT(facts.frozen_why, HasSubstr("back"));
  ASSERT_THAT(facts.troubles, SizeIs(1));
  EXPECT_EQ(facts.troubles[0].kind, AlertTrouble::Kind::kClock);
  AlertRaise raise;
  raise.key = {"clock", "", ""};
  raise.channel = "ops";
  raise.kind = "clock";
  raise.seen_at = facts.troubles[0].at;
  Put({raise});
  EXPECT_THAT(Look().made_good, IsEmpty());
  ASSERT_OK(acts().AcceptClock({"cli:ann", "it was NTP"}));
  facts = Look();
  EXPECT_EQ(facts.frozen_why, "");
  EXPECT_THAT(facts.troubles, SizeIs(1)) << "that it was accepted is no step";
  ASSERT_THAT(facts.made_good, SizeIs(1));
  EXPECT_EQ(facts.made_good[0].key, raise.key);
  EXPECT_EQ(Put({}, {{raise.key, facts.now, "steady"}}).resolved, 1)
      << "though it was raised in what is now the future";
}

TEST_F(Alerts, WhatIsDoneOrSkippedIsMadeGood) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job, PlainJob("b")}));
  FailDay(job, -1, Outcome::Kind::kHeld);
  FailDay(job, -2);
  FailDay(job, -3);
  AlertRaise other = Gap(-1);
  other.key.job = "b";
  Put({Gap(-1), Gap(-2), Gap(-3), other});
  EXPECT_THAT(Look().made_good, IsEmpty());
  world().SetClock(At(10));
  ASSERT_OK(acts().Reopen(KeyOf("a", -1), "", {"cli:ann", "again"}));
  EXPECT_THAT(Look().made_good, IsEmpty()) << "it is planned again, which is not done";
  ASSERT_OK_AND_ASSIGN(const matins::Claim claim, Claimed(store(), KeyOf("a", -1)));
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  const PeriodKey skipped = KeyOf("a", -2);
  ASSERT_OK(acts().Skip({&skipped, 1}, {"cli:ann", "not needed"}));
  AlertFacts facts = Look();
  ASSERT_THAT(facts.made_good, SizeIs(2));
  std::map<std::string, std::string> good;
  for (const AlertMadeGood& one : facts.made_good) good[one.key.about] = one.resolution;
  EXPECT_THAT(good[KeyOf("a", -1).period], HasSubstr("DONE at 2026-10-30"));
  EXPECT_THAT(good[KeyOf("a", -2).period], HasSubstr("SKIPPED"));
  EXPECT_THAT(good[KeyOf("a", -2).period], HasSubstr("cli:ann"));
  std::vector<AlertResolve> resolve;
  for (const AlertMadeGood& one : facts.made_good) {
    resolve.push_back({one.key, facts.now, one.resolution});
  }
  EXPECT_EQ(Put({}, resolve).resolved, 2);
  EXPECT_EQ(Put({}, resolve).resolved, 0);
  EXPECT_THAT(Look().made_good, IsEmpty());
  ASSERT_OK(acts().Delete("b", false, {"cli:ann", "gone"}));
  facts = Look();
  ASSERT_THAT(facts.made_good, SizeIs(1));
  EXPECT_EQ(facts.made_good[0].key.job, "b");
}

TEST_F(Alerts, OfAWholeJobALaterPeriodDoneMakesGood) {
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  FailDay(job, -2);
  AlertRaise raise = Gap(-2);
  raise.key.about = "";
  raise.by_job = true;
  Put({raise});
  const PeriodKey skipped = KeyOf("a", -2);
  ASSERT_OK(acts().Skip({&skipped, 1}, {"policy", "superseded"}));
  EXPECT_THAT(Look().made_good, IsEmpty()) << "that the next takes its place makes nothing good";
  ASSERT_OK(PlanDays(store(), job, {-1}).status());
  ASSERT_OK_AND_ASSIGN(const matins::Claim claim, Claimed(store(), KeyOf("a", -1)));
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  const AlertFacts facts = Look();
  ASSERT_THAT(facts.made_good, SizeIs(1));
  EXPECT_THAT(facts.made_good[0].resolution, HasSubstr("DONE at 2026-10-30"));
}

TEST_F(Alerts, ASilencedJobsMessagesWaitAndAreToldAfterwards) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a"), PlainJob("b")}));
  EXPECT_EQ(acts().Silence("none", absl::Hours(1), {"cli:ann", "?"}).status().code(),
            absl::StatusCode::kNotFound);
  ASSERT_OK_AND_ASSIGN(const int64_t id,
                       acts().Silence("a", absl::Hours(1), {"cli:ann", "the bank is down"}));
  AlertRaise other = Gap(1);
  other.key.job = "b";
  Put({Gap(1), Gap(2), other});
  ASSERT_THAT(Look().due, SizeIs(1));
  const std::vector<AlertRow> claimed = Claim("n1");
  ASSERT_THAT(claimed, SizeIs(1));
  EXPECT_EQ(claimed[0].key.job, "b");
  Put({}, {{Gap(2).key, At(0), "DONE"}});
  world().SetClock(At(3600));
  const std::vector<AlertRow> after = Claim("n1");
  std::vector<std::string> told;
  for (const AlertRow& row : after) {
    if (row.key.job == "a") told.push_back(row.period);
  }
  EXPECT_THAT(told, ElementsAre(Gap(1).period)) << "what came and went in silence is not told";
  ASSERT_OK_AND_ASSIGN(std::vector<SilenceRow> silences, acts().ReadSilences());
  ASSERT_THAT(silences, SizeIs(1));
  EXPECT_EQ(silences[0].id, id);
  EXPECT_EQ(silences[0].job, "a");
  EXPECT_EQ(silences[0].from, At(0));
  EXPECT_EQ(silences[0].until, At(3600));
  EXPECT_EQ(silences[0].who, "cli:ann");
  EXPECT_EQ(silences[0].why, "the bank is down");
  EXPECT_EQ(acts().Unsilence(id, {"cli:ann", "up"}).code(), absl::StatusCode::kNotFound)
      << "it has ended";
}

TEST_F(Alerts, ASilenceOfAllIsTakenBackAndBothAreRecorded) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  ASSERT_OK_AND_ASSIGN(const int64_t id,
                       acts().Silence("", absl::Hours(1), {"cli:ann", "moving house"}));
  Put({Gap(1)});
  EXPECT_THAT(Look().due, IsEmpty());
  EXPECT_THAT(Claim("n1"), IsEmpty());
  world().SetClock(At(60));
  ASSERT_OK(acts().Unsilence(id, {"cli:bob", "moved"}));
  EXPECT_THAT(Claim("n1"), SizeIs(1));
  ASSERT_OK_AND_ASSIGN(const std::vector<SilenceRow> silences, acts().ReadSilences());
  EXPECT_EQ(silences.at(0).ended_at, At(60));
  EXPECT_EQ(silences.at(0).ended_by, "cli:bob");
  ASSERT_OK_AND_ASSIGN(const std::vector<EventRow> events, acts().ReadEvents("", 10));
  std::vector<std::string> acts_of;
  for (const EventRow& event : events) {
    if (absl::StrContains(event.kind, "silence")) {
      acts_of.push_back(absl::StrCat(event.kind, " ", event.who, " ", event.why));
    }
  }
  EXPECT_THAT(acts_of, testing::UnorderedElementsAre("silenced cli:ann moving house",
                                                     "unsilenced cli:bob moved"));
}

TEST_F(Alerts, AnAcknowledgementIsOfEveryChannelAndRecorded) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  Put({Gap(1), Gap(1, "night"), Gap(2)});
  ASSERT_OK_AND_ASSIGN(std::vector<AlertRow> rows, acts().ReadAlerts({}));
  const int64_t id = rows.back().id;
  ASSERT_EQ(rows.back().key, Gap(1).key);
  ASSERT_OK(acts().AckAlert(id, {"cli:ann", "on it"}));
  EXPECT_EQ(acts().AckAlert(id, {"cli:bob", "too"}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(acts().AckAlert(999, {"cli:bob", "?"}).code(), absl::StatusCode::kNotFound);
  ASSERT_OK_AND_ASSIGN(rows, acts().ReadAlerts({}));
  int acked = 0;
  for (const AlertRow& row : rows) {
    if (row.acked_at == absl::InfinitePast()) continue;
    ++acked;
    EXPECT_EQ(row.key, Gap(1).key);
    EXPECT_EQ(row.acked_by, "cli:ann");
    EXPECT_EQ(row.acked_why, "on it");
  }
  EXPECT_EQ(acked, 2);
  EXPECT_THAT(Claim("n1"), SizeIs(1));
  EXPECT_THAT(Claim("n1", "night"), IsEmpty());
  ASSERT_OK_AND_ASSIGN(const std::vector<EventRow> events, acts().ReadEvents("a", 10));
  EXPECT_EQ(events.at(0).kind, "acked");
  EXPECT_EQ(events.at(0).period, Gap(1).period);
}

TEST_F(Alerts, ALookReadsAuditsThatEndedSince) {
  for (const char* beat : {"store", "hand", "jobs"}) {
    ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginAudit(beat, At(0), "node:a"));
    AuditRow row;
    row.id = id;
    row.by = "node:a";
    row.alarms = 2;
    row.detail = "{}";
    ASSERT_OK(acts().EndAudit(row));
  }
  ASSERT_OK(acts().BeginAudit("store", At(60), "node:a").status());
  const AlertFacts facts = Look(At(0));
  ASSERT_THAT(facts.audits, SizeIs(2)) << "neither a person's nor one that has not ended";
  EXPECT_EQ(facts.audits[0].beat, "store");
  EXPECT_EQ(facts.audits[0].alarms, 2);
  ASSERT_OK_AND_ASSIGN(const AlertFacts again,
                       acts().ReadAlertFacts({At(0), {facts.audits[0].id, facts.audits[1].id}}));
  EXPECT_THAT(again.audits, IsEmpty());
  EXPECT_THAT(Look(At(1)).audits, IsEmpty());
}

TEST_F(Alerts, HowFarALookHasComeIsKept) {
  EXPECT_EQ(Look().looked, absl::InfinitePast());
  AlertChanges changes;
  changes.looked = At(77);
  ASSERT_OK(acts().PutAlerts(changes).status());
  EXPECT_EQ(Look().looked, At(77));
}

TEST_F(Alerts, ARenamedJobKeepsItsAlertsAndSilences) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  Put({Gap(1)});
  ASSERT_OK(acts().Silence("a", absl::Hours(1), {"cli:ann", "quiet"}).status());
  ASSERT_OK(acts().Rename("a", "c", {"cli:ann", "a better name"}));
  EXPECT_EQ(Only().key.job, "c");
  EXPECT_THAT(Claim("n1"), IsEmpty());
  EXPECT_THAT(Look().made_good, IsEmpty());
}

TEST_F(Alerts, WhatIsLongOverGoes) {
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("a")}));
  Put({Gap(1), Gap(2)});
  for (const AlertStep step : {AlertStep::kFire, AlertStep::kResolve}) {
    const std::vector<AlertRow> claimed = Claim("n1");
    ASSERT_FALSE(claimed.empty());
    std::vector<AlertSent> sent;
    for (const AlertRow& row : claimed) sent.push_back({row.id, step, ""});
    ASSERT_OK(acts().EndAlerts("n1", sent).status());
    Put({}, {{Gap(1).key, At(0), "DONE"}});
  }
  world().SetClock(At(1) + kAlertKept);
  ASSERT_OK(acts().EndAlerts("n1", {}).status());
  ASSERT_OK_AND_ASSIGN(const std::vector<AlertRow> rows, acts().ReadAlerts({.open_only = false}));
  ASSERT_THAT(rows, SizeIs(1));
  EXPECT_EQ(rows[0].key, Gap(2).key) << "what stands stays";
}

}  // namespace
}  // namespace matins::conformance
