// What nodes tell of a store in memory under a clock that is told the time: each thing once, over
// any number of nodes, restarts and broken channels.
#include "alert/beats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "audit/beats.h"
#include "audit/world_test_support.h"
#include "base/fault.h"
#include "base/time.h"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Keeps what it is given; or does not, where it is broken.
class FakeSender final : public AlertSender {
 public:
  absl::Status Send(const Channel& channel, const AlertMessage& message) override {
    ++asked;
    if (broken) return absl::UnavailableError("it answered 503");
    told.push_back(absl::StrCat(channel.name, ": ", message.subject));
    messages.push_back(message);
    return absl::OkStatus();
  }
  absl::Status Ping(const SecretText&, absl::Duration) override { return absl::OkStatus(); }
  void Stop() override {}

  std::vector<std::string> Take() { return std::exchange(told, {}); }

  bool broken = false;
  int asked = 0;
  std::vector<std::string> told;
  std::vector<AlertMessage> messages;
};

class Told : public AuditWorld {
 protected:
  static AlertConfig Config() {
    AlertConfig config;
    Channel ops;
    ops.name = "ops";
    config.channels = {ops};
    return config;
  }
  std::unique_ptr<AlertBeats> Node(const std::string& name, AlertConfig config = Config()) {
    return std::make_unique<AlertBeats>(
        database_->OpenActs().value(), sender_,
        AlertBeatsOptions{
            .by = absl::StrCat("node:", name), .config = std::move(config), .tell = nullptr});
  }
  // Starts what is due, and ends it so.
  void Run(Outcome::Kind kind) {
    PlanAll();
    StartRequest start;
    start.node = {"n1", {}};
    start.nonce = 7;
    start.also_due = 1000;
    const StartAnswers started = store_->Start(start).value();
    for (const StartAnswer& answer : started.rows) {
      if (!answer.claim) continue;
      claims_.push_back(*answer.claim);
      Outcome outcome;
      outcome.kind = kind;
      outcome.reason = kind == Outcome::Kind::kDone ? "" : reason::kExit;
      FinishRequest finish{TicketOf(*answer.claim), outcome, "n1"};
      ASSERT_TRUE(store_->Finish({&finish, 1}).value().at(0).accepted());
    }
  }
  static std::unique_ptr<AuditBeats> Auditor(ActStore*, Database& database) {
    return std::make_unique<AuditBeats>(
        database.OpenActs().value(),
        AuditBeatsOptions{.by = "node:n1", .store_schedule = "", .tell = nullptr});
  }
  void StepAll() {
    for (AlertBeats* node : nodes_) ASSERT_OK(node->Step().status());
  }
  void Until(absl::string_view instant, absl::Duration step = absl::Minutes(1)) {
    const absl::Time end = ParseInstant(instant).value();
    while (now_ < end) {
      now_ = std::min(end, now_ + step);
      if (auditor_ != nullptr) ASSERT_OK(auditor_->Step().status());
      StepAll();
    }
  }

  FakeSender sender_;
  std::vector<AlertBeats*> nodes_;
  std::unique_ptr<AuditBeats> auditor_;
  std::vector<Claim> claims_;
};

TEST_F(Told, AFailedPeriodOnceByOneOfThreeNodesAndOnceWhenItIsDone) {
  Apply(Daily("recon"));
  const auto a = Node("a"), b = Node("b"), c = Node("c");
  nodes_ = {a.get(), b.get(), c.get()};
  StepAll();
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kFailed);
  StepAll();
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: recon 2026-10-30 failed"));
  EXPECT_THAT(sender_.messages.back().text, HasSubstr("recon 2026-10-30 FAILED on n1: exit"));
  Until("2026-10-30T01:20:00Z");
  EXPECT_THAT(sender_.Take(), IsEmpty());
  ASSERT_OK(acts_->TriggerNow("recon", {"cli:ann", "again"}));
  Run(Outcome::Kind::kDone);
  StepAll();
  StepAll();
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: resolved: recon 2026-10-30 failed"));
  EXPECT_THAT(sender_.messages.back().text, HasSubstr("made good: DONE at 2026-10-30T01:20"));
}

TEST_F(Told, AHeldOneAtOnceAndAFailedOneAgainWhenItIsHeld) {
  Apply(Daily("recon"));
  const auto node = Node("a");
  nodes_ = {node.get()};
  StepAll();
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kFailed);
  StepAll();
  Sleep(absl::Minutes(5));
  ASSERT_OK(acts_->TriggerNow("recon", {"cli:ann", "again"}));
  Run(Outcome::Kind::kHeld);
  StepAll();
  EXPECT_THAT(sender_.Take(),
              ElementsAre("ops: recon 2026-10-30 failed", "ops: recon 2026-10-30 held"));
}

TEST_F(Told, ALostRunAtOnceThoughItRunsAgain) {
  Apply(Daily("recon"));
  const auto node = Node("a");
  nodes_ = {node.get()};
  StepAll();
  Until("2026-10-30T01:00:01Z");
  PlanAll();
  StartRequest start;
  start.node = {"n9", {}};
  start.nonce = 7;
  start.also_due = 10;
  const StartAnswers started = store_->Start(start).value();
  ASSERT_THAT(started.rows, SizeIs(1));
  Sleep(absl::Minutes(1));
  ReapRequest reap;
  reap.ticket = TicketOf(*started.rows[0].claim);
  reap.reason = reason::kLost;
  reap.node = "n2";
  ASSERT_TRUE(store_->Reap({&reap, 1}).value().at(0));
  StepAll();
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: recon 2026-10-30 lost"));
  EXPECT_THAT(sender_.messages.back().text, HasSubstr("on n9"));
  Run(Outcome::Kind::kDone);
  StepAll();
  StepAll();
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: resolved: recon 2026-10-30 lost"));
}

TEST_F(Told, ARefusedZombieOnceAndNeverResolved) {
  Apply(Daily("recon"));
  const auto node = Node("a"), other = Node("b");
  nodes_ = {node.get(), other.get()};
  StepAll();
  ASSERT_OK(acts_->Record("zombie", {"recon", "2026-10-29"}, {"node:n9", "fence"}, "77"));
  Until("2026-10-30T06:00:00Z");
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: recon 2026-10-29 zombie"));
  EXPECT_THAT(sender_.messages.back().text,
              AllOf(HasSubstr("run 77"), HasSubstr("node:n9"), HasSubstr("fence")));
}

TEST_F(Told, AStepOfTheClockAndThatItIsSteadyAgain) {
  Apply(Daily("recon"));
  const auto node = Node("a");
  nodes_ = {node.get()};
  TickRequest tick;
  tick.node = {"n1", {}};
  ASSERT_OK(store_->Tick(tick).status());
  StepAll();
  Sleep(-absl::Minutes(40));
  ASSERT_OK(store_->Tick(tick).status());
  StepAll();
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: the store clock"));
  ASSERT_OK(acts_->AcceptClock({"cli:ann", "NTP"}));
  const auto restarted = Node("a");
  for (int i = 0; i < 200; ++i) {
    Sleep(absl::Seconds(30));
    StepAll();
    ASSERT_OK(restarted->Step().status());
  }
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: resolved: the store clock"));
}

TEST_F(Told, AMissByTheAuditOnceAndOnceWhenItIsDone) {
  Apply(Daily("recon"));
  const auto a = Node("a"), b = Node("b");
  nodes_ = {a.get(), b.get()};
  auditor_ = Auditor(acts_.get(), *database_);
  Until("2026-10-30T12:00:00Z");
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: recon 2026-10-30 absent"));
  EXPECT_THAT(sender_.messages.back().text, AllOf(HasSubstr("there is no row at all"),
                                                  HasSubstr("to be done by 2026-10-30T09:00:00")));
  Run(Outcome::Kind::kDone);
  Until("2026-10-30T14:00:00Z");
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: resolved: recon 2026-10-30 absent"));
}

TEST_F(Told, EachGapOnceThoughTheAuditSaysThemInOneLine) {
  Apply(Daily("recon"));
  AlertConfig config = Config();
  config.channels[0].remind = absl::InfiniteDuration();
  const auto node = Node("a", config);
  nodes_ = {node.get()};
  auditor_ = Auditor(acts_.get(), *database_);
  Until("2026-10-31T12:00:00Z", absl::Minutes(5));
  EXPECT_THAT(sender_.Take(),
              ElementsAre("ops: recon 2026-10-30 absent", "ops: recon 2026-10-31 absent"));
  ASSERT_OK_AND_ASSIGN(const std::vector<AlertRow> open, acts_->ReadAlerts({}));
  EXPECT_THAT(open, SizeIs(2));
}

TEST_F(Told, WhatAnAuditDoesNotFindAnyMoreIsResolved) {
  Apply(Daily("recon"));
  const auto node = Node("a");
  nodes_ = {node.get()};
  auditor_ = Auditor(acts_.get(), *database_);
  Until("2026-10-30T12:00:00Z");
  sender_.Take();
  // A row's span, as skipping many leaves it: no row says that it is settled.
  const JobState state =
      store_->ReadDue({.ahead = {}, .limit = 1, .jobs = {"recon"}}).value().jobs.at(0);
  PlanWrite write;
  write.job = "recon";
  write.expected_revision = state.revision;
  write.cursor = now_;
  write.spans = {{now_ - absl::Hours(12), now_, "2026-10-30", "2026-10-30", 1, "cap"}};
  ASSERT_TRUE(store_->Plan({.writes = {write}}).value().jobs.at(0).written);
  Until("2026-10-30T14:00:00Z");
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: resolved: recon 2026-10-30 absent"));
  EXPECT_THAT(sender_.messages.back().text, HasSubstr("the audit finds it no more"));
}

TEST_F(Told, OfTwentyFailuresInARowOneEpisode) {
  Job job = Daily("pulse");
  job.schedule = "*/10 * * * *";
  job.period = PeriodKind::kFire;
  job.misfire = Misfire::kLatest;
  job.backfill.order = Order::kNone;
  job.done_by = {};
  job.done_by.after_due = absl::Minutes(5);
  Apply(job);
  const auto a = Node("a"), b = Node("b"), c = Node("c");
  nodes_ = {a.get(), b.get(), c.get()};
  auditor_ = Auditor(acts_.get(), *database_);
  StepAll();
  for (int fire = 0; fire < 20; ++fire) {
    Until(FormatInstant(ParseInstant("2026-10-30T00:10:01Z").value() + fire * absl::Minutes(10)));
    Run(Outcome::Kind::kFailed);
    StepAll();
  }
  EXPECT_THAT(sender_.Take(), ElementsAre(AllOf(HasSubstr("pulse"), HasSubstr("failed"))));
  Until("2026-10-30T03:30:01Z");
  Run(Outcome::Kind::kDone);
  Until("2026-10-30T06:00:00Z", absl::Minutes(10));
  const std::vector<std::string> after = sender_.Take();
  ASSERT_FALSE(after.empty());
  EXPECT_THAT(after[0], AllOf(HasSubstr("resolved: pulse"), HasSubstr("failed")));
}

TEST_F(Told, InABrokenChannelLaterAndLaterAndOnceWhenItIsMendedOverRestarts) {
  Apply(Daily("recon"));
  auto node = Node("a");
  nodes_ = {node.get()};
  StepAll();
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kHeld);
  sender_.broken = true;
  Until("2026-10-30T04:00:00Z", absl::Seconds(30));
  EXPECT_GT(sender_.asked, 5);
  EXPECT_LT(sender_.asked, 12) << "later and later";
  ASSERT_OK_AND_ASSIGN(const std::vector<AlertRow> open, acts_->ReadAlerts({}));
  EXPECT_EQ(open.at(0).last_error, "it answered 503");
  node.reset();
  sender_.broken = false;
  node = Node("b");
  nodes_ = {node.get()};
  Until("2026-10-30T06:00:00Z");
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: recon 2026-10-30 held"));
}

TEST_F(Told, WhatFailedWhileNoNodeWasThere) {
  Apply(Daily("recon"));
  {
    const auto node = Node("a");
    nodes_ = {node.get()};
    Until("2026-10-30T01:00:01Z");
  }
  nodes_.clear();
  Run(Outcome::Kind::kHeld);
  Until("2026-10-30T08:00:00Z");
  const auto node = Node("b");
  ASSERT_OK(node->Step().status());
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: recon 2026-10-30 held"));
}

TEST_F(Told, NothingInSilenceAndAfterwardsWhatStillStands) {
  Apply(Daily("recon"));
  Apply(Daily("other"));
  const auto node = Node("a");
  nodes_ = {node.get()};
  StepAll();
  ASSERT_OK(acts_->Silence("recon", absl::Hours(3), {"cli:ann", "the bank is down"}).status());
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kHeld);
  StepAll();
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: other 2026-10-30 held"));
  Until("2026-10-30T02:59:00Z");
  EXPECT_THAT(sender_.Take(), IsEmpty());
  Until("2026-10-30T03:01:00Z");
  EXPECT_THAT(sender_.Take(), ElementsAre("ops: recon 2026-10-30 held"));
}

TEST_F(Told, OfAThousandJobsAtOnceInOneMessage) {
  for (int i = 0; i < 1000; ++i) Apply(Daily(absl::StrCat("job-", i)));
  const auto a = Node("a"), b = Node("b");
  nodes_ = {a.get(), b.get()};
  auditor_ = Auditor(acts_.get(), *database_);
  StepAll();
  now_ = ParseInstant("2026-10-30T09:00:01Z").value();
  ASSERT_OK(auditor_->Step().status());
  now_ = ParseInstant("2026-10-30T09:37:01Z").value();
  ASSERT_OK(auditor_->Step().status());
  StepAll();
  StepAll();
  ASSERT_THAT(sender_.told, ElementsAre("ops: 1000 alerts: 1000 absent"));
  EXPECT_THAT(sender_.messages[0].text,
              AllOf(HasSubstr("job-0 2026-10-30 absent"), HasSubstr("and 990 more")));
  ASSERT_OK_AND_ASSIGN(const std::vector<AlertRow> open, acts_->ReadAlerts({}));
  for (const AlertRow& row : open) EXPECT_TRUE(row.told());
}

TEST_F(Told, AgainWhereTheNodeDiesWhileItSendsWithTheSameId) {
  Apply(Daily("recon"));
  auto dead = Node("a");
  const auto node = Node("b");
  ASSERT_OK(dead->Step().status());
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kHeld);
  SetFaultHook([](absl::string_view point) {
    return point == "alert.after_send" ? absl::UnavailableError("dead") : absl::OkStatus();
  });
  EXPECT_FALSE(dead->Step().ok());
  SetFaultHook(nullptr);
  dead.reset();
  nodes_ = {node.get()};
  StepAll();
  EXPECT_THAT(sender_.told, SizeIs(1)) << "its claim stands";
  Sleep(kAlertLease + absl::Seconds(1));
  StepAll();
  ASSERT_THAT(sender_.messages, SizeIs(2));
  EXPECT_EQ(sender_.messages[0].id, sender_.messages[1].id);
  Sleep(kAlertLease * 3);
  StepAll();
  EXPECT_THAT(sender_.messages, SizeIs(2));
}

TEST_F(Told, WhereTheNodeDiesBeforeItSends) {
  Apply(Daily("recon"));
  auto dead = Node("a");
  const auto node = Node("b");
  ASSERT_OK(dead->Step().status());
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kHeld);
  SetFaultHook([](absl::string_view point) {
    return point == "alert.before_send" ? absl::UnavailableError("dead") : absl::OkStatus();
  });
  EXPECT_FALSE(dead->Step().ok());
  SetFaultHook(nullptr);
  Sleep(kAlertLease + absl::Seconds(1));
  nodes_ = {node.get()};
  StepAll();
  EXPECT_THAT(sender_.told, SizeIs(1));
}

TEST_F(Told, AgainEachDayUntilSomebodySaysThatItIsKnown) {
  Apply(Daily("recon"));
  const auto a = Node("a"), b = Node("b");
  nodes_ = {a.get(), b.get()};
  StepAll();
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kHeld);
  Until("2026-11-01T02:00:00Z", absl::Minutes(30));
  EXPECT_THAT(sender_.Take(),
              ElementsAre("ops: recon 2026-10-30 held", "ops: still: recon 2026-10-30 held",
                          "ops: still: recon 2026-10-30 held"));
  std::set<std::string> ids;
  for (const AlertMessage& message : sender_.messages) ids.insert(message.id);
  EXPECT_THAT(ids, SizeIs(3));
  ASSERT_OK_AND_ASSIGN(const std::vector<AlertRow> open, acts_->ReadAlerts({}));
  ASSERT_OK(acts_->AckAlert(open.at(0).id, {"cli:ann", "the bank knows"}));
  Until("2026-11-05T02:00:00Z", absl::Minutes(30));
  EXPECT_THAT(sender_.Take(), IsEmpty());
}

TEST_F(Told, AForgottenSuspensionOnceAndOnceWhenItEnds) {
  Apply(Daily("recon"));
  AlertConfig config = Config();
  config.channels[0].remind = absl::InfiniteDuration();
  const auto node = Node("a", config);
  nodes_ = {node.get()};
  auditor_ = Auditor(acts_.get(), *database_);
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kDone);
  ASSERT_OK(acts_->Suspend("recon", {"cli:ann", "year end"}));
  Until("2026-11-05T00:00:00Z", absl::Minutes(10));
  EXPECT_THAT(sender_.Take(), IsEmpty()) << "it is not alarmed of for a week";
  Until("2026-11-12T00:00:00Z", absl::Minutes(10));
  EXPECT_THAT(sender_.Take(), ElementsAre(HasSubstr("suspended")));
  EXPECT_THAT(sender_.messages.back().text, HasSubstr("by cli:ann: year end"));
  ASSERT_OK(acts_->Resume("recon", std::nullopt, {"cli:ann", "over"}));
  for (int i = 0; i < 20; ++i) Run(Outcome::Kind::kDone);
  Until("2026-11-12T06:00:00Z", absl::Minutes(10));
  EXPECT_THAT(sender_.Take(), ElementsAre(HasSubstr("resolved: recon")));
}

TEST_F(Told, InTheChannelsThatTheJobNames) {
  Job night = Daily("night");
  night.alerts = std::vector<std::string>{"page"};
  Job quiet = Daily("quiet");
  quiet.alerts = std::vector<std::string>{};
  Apply(Daily("recon"));
  Apply(night);
  Apply(quiet);
  AlertConfig config = Config();
  Channel page;
  page.name = "page";
  page.is_default = false;
  config.channels.push_back(page);
  const auto node = Node("a", config);
  nodes_ = {node.get()};
  StepAll();
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kHeld);
  StepAll();
  EXPECT_THAT(sender_.Take(),
              ElementsAre("ops: recon 2026-10-30 held", "page: night 2026-10-30 held"));
}

TEST_F(Told, ByNodesThatKnowTheChannelAlone) {
  Job night = Daily("night");
  night.alerts = std::vector<std::string>{"page"};
  Apply(night);
  AlertConfig config;
  Channel page;
  page.name = "page";
  config.channels = {page};
  const auto without = Node("a");
  nodes_ = {without.get()};
  StepAll();
  Until("2026-10-30T01:00:01Z");
  Run(Outcome::Kind::kHeld);
  Until("2026-10-30T03:00:00Z");
  EXPECT_THAT(sender_.Take(), IsEmpty());
  const auto with = Node("b", config);
  ASSERT_OK(with->Step().status());
  EXPECT_THAT(sender_.Take(), ElementsAre("page: night 2026-10-30 held"));
}

}  // namespace
}  // namespace matins
