// A fortnight in which everything that happens to schedulers happens: releases over the hour of the
// fire, nodes dead for half a day, a suspended job, a changed schedule, a clock change, and a night
// without any node. The auditors find every gap by its deadline, and invent none; people are told
// of each once, by one of two nodes, though the notifier is broken for half a day, and once that it
// was made good.
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "alert/beats.h"
#include "audit/beats.h"
#include "base/fault.h"
#include "base/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/json.h"
#include "simulate/simulated_node.h"
#include "store/model/model_database.h"
#include "tests/support/assert_ok.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

absl::Time At(absl::string_view text) { return ParseInstant(absl::StrCat(text, ":00Z")).value(); }

Job Make(std::string name, std::string schedule, Misfire misfire, absl::Duration done_by) {
  Job job;
  job.name = std::move(name);
  job.schedule = std::move(schedule);
  job.timezone = "Europe/Berlin";
  job.period = PeriodKind::kDay;
  job.biz_date = BizShift{-1, BizShift::Unit::kDay};
  job.misfire = misfire;
  job.done_by.after_due = done_by;
  job.run.kind = RunKind::kShell;
  job.run.shell = "true";
  if (misfire == Misfire::kEach) job.backfill.order = Order::kStrict;
  return job;
}

// One alarm of a period, from the audit that told it first to the first that no longer did.
struct Told {
  absl::Time first, last;
  std::set<std::string> kinds;
};

// Takes every message, while it is not broken.
class Mailbox final : public AlertSender {
 public:
  absl::Status Send(const Channel& channel, const AlertMessage& message) override {
    if (broken) return absl::UnavailableError("it answered 503");
    for (const AlertRow& alert : message.alerts) {
      if (message.step == AlertStep::kFire) ++fired[{alert.key, alert.episode, alert.level}];
      if (message.step == AlertStep::kResolve) ++resolved[{alert.key, alert.episode}];
      if (message.step == AlertStep::kRemind) ++reminded;
    }
    return absl::OkStatus();
  }
  absl::Status Ping(const SecretText&, absl::Duration) override { return absl::OkStatus(); }
  void Stop() override {}

  // Of how many different things: "gap recon".
  std::map<std::string, int> FiredOf() const {
    std::map<std::string, int> what;
    std::set<std::pair<AlertKey, int>> episodes;
    for (const auto& [told, times] : fired) {
      const auto& [key, episode, level] = told;
      if (episodes.insert({key, episode}).second) ++what[absl::StrCat(key.topic, " ", key.job)];
    }
    return what;
  }

  bool broken = false;
  int reminded = 0;
  std::map<std::tuple<AlertKey, int, int>, int> fired;  // by alert, episode and level
  std::map<std::pair<AlertKey, int>, int> resolved;     // by alert and episode
};

class Fortnight : public testing::Test {
 protected:
  void SetUp() override {
    DatabaseOptions options;
    options.clock = [this] { return now_; };
    database_ = std::make_unique<model::ModelDatabase>(options);
    store_ = database_->Open().value();
    acts_ = database_->OpenActs().value();
    recon_ = Make("recon", "0 1 * * *", Misfire::kEach, absl::Hours(4));
    report_ = Make("report", "30 2 * * *", Misfire::kLatest, absl::Hours(3));
    cache_ = Make("cache", "0 * * * *", Misfire::kSkip, absl::Minutes(10));
    cache_.period = PeriodKind::kHour;
    cache_.biz_date = BizShift{};
    durations_.otherwise = absl::Minutes(5);
    node_ = std::make_unique<SimulatedNode>(durations_, *store_, now_);
    beats_ = NewBeats();
    AlertConfig told;
    told.channels.emplace_back().name = "ops";
    for (const char* name : {"one", "two"}) {
      tellers_.push_back(std::make_unique<AlertBeats>(
          database_->OpenActs().value(), mailbox_,
          AlertBeatsOptions{.by = absl::StrCat("node:", name), .config = told, .tell = nullptr}));
    }
    ASSERT_OK(node_->Tick());
    weekdays_ = Make("weekdays", "0 3 * * 1-5", Misfire::kEach, absl::Hours(3));
    Apply({recon_, report_, cache_, weekdays_});
  }

  std::unique_ptr<AuditBeats> NewBeats() {
    return std::make_unique<AuditBeats>(
        database_->OpenActs().value(),
        AuditBeatsOptions{.by = "node:auditor",
                          .store_schedule = "",
                          .tell = [this](const MadeAudit& made) { Note(made); }});
  }

  void Apply(const std::vector<Job>& jobs) {
    ApplyRequest apply;
    for (const Job& job : jobs) apply.jobs.push_back({job, JobToJson(job)});
    apply.source = "jobs.yaml";
    apply.act = {"cli:alice", "a change"};
    ASSERT_OK(acts_->Apply(apply).status());
    node_->LookNow();
  }

  void Note(const MadeAudit& made) {
    EXPECT_TRUE(made.report.canary) << made.beat;
    if (made.beat != kStoreBeat) return;
    for (const AuditFinding& finding : made.report.findings) {
      if (!finding.alarm) continue;
      if (finding.kind == AuditKind::kUnwatched) {
        unwatched_.push_back(finding.why);
        continue;
      }
      for (const std::string& period : finding.periods) {
        Told& told = told_.try_emplace({finding.job, period}, Told{now_, now_, {}}).first->second;
        told.last = now_;
        told.kinds.insert(std::string(AuditWord(finding.kind)));
      }
    }
  }

  // Time goes on until `until`. Who plans and who audits are two processes.
  void Until(absl::Time until, bool plans = true, bool audits = true) {
    if (!plans) node_->Die();
    while (now_ < until) {
      if (plans) {
        ASSERT_OK(node_->Tick());
        ASSERT_OK(node_->Act());
      }
      absl::Time next = std::min(until, now_ + absl::Seconds(25));
      if (plans) next = std::min(next, node_->NextAt());
      if (audits) {
        ASSERT_OK_AND_ASSIGN(const absl::Duration wait, beats_->Step());
        next = std::min(next, now_ + std::max(wait, absl::Seconds(1)));
        ASSERT_NO_FATAL_FAILURE(Tell());
      }
      now_ = next;
    }
  }
  // Now and then, as far as a test in virtual time can afford it.
  void Tell() {
    if (now_ < told_at_ + absl::Minutes(5)) return;
    told_at_ = now_;
    for (const auto& teller : tellers_) ASSERT_OK(teller->Step().status());
  }
  void Until(absl::string_view text) { Until(At(text)); }
  void DeadUntil(absl::string_view text) {
    Until(At(text), /*plans=*/false);
    node_->LookNow();
  }

  std::vector<std::string> Alarmed(const std::string& job) const {
    std::vector<std::string> periods;
    for (const auto& [key, told] : told_) {
      if (key.first == job) periods.push_back(key.second);
    }
    return periods;
  }
  PeriodRow Row(const std::string& job, const std::string& period) {
    RowFilter filter;
    filter.job = job;
    filter.period = period;
    const auto rows = acts_->ReadRows(filter);
    return rows.ok() && !rows->empty() ? rows->front() : PeriodRow();
  }

  absl::Time now_ = At("2026-03-20T12:00");
  std::unique_ptr<model::ModelDatabase> database_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ActStore> acts_;
  SimulateRequest durations_;
  std::unique_ptr<SimulatedNode> node_;
  std::unique_ptr<AuditBeats> beats_;
  Mailbox mailbox_;
  std::vector<std::unique_ptr<AlertBeats>> tellers_;
  absl::Time told_at_ = absl::InfinitePast();
  Job recon_, report_, cache_, weekdays_;
  std::map<std::pair<std::string, std::string>, Told> told_;
  std::vector<std::string> unwatched_;
};

TEST_F(Fortnight, EveryGapIsFoundByItsDeadlineAndNoneInvented) {
  // A release over 01:00 in Berlin, which is midnight here: late to start, done in time.
  Until("2026-03-20T23:50");
  DeadUntil("2026-03-21T00:20");
  Until("2026-03-22T22:00");
  EXPECT_THAT(told_, IsEmpty());
  EXPECT_THAT(unwatched_, IsEmpty());
  EXPECT_EQ(Row("recon", "2026-03-20").claimed_at, At("2026-03-21T00:20"));

  // The nodes are dead from before the fires until noon, and for most of that so is the notifier.
  EXPECT_THAT(mailbox_.fired, IsEmpty());
  mailbox_.broken = true;
  Until(At("2026-03-23T09:00"), /*plans=*/false);
  EXPECT_THAT(mailbox_.fired, IsEmpty());
  mailbox_.broken = false;
  DeadUntil("2026-03-23T12:10");
  EXPECT_THAT(mailbox_.FiredOf(), ElementsAre(Pair("gap cache", 1), Pair("gap recon", 1),
                                              Pair("gap report", 1), Pair("gap weekdays", 1)));
  EXPECT_THAT(mailbox_.resolved, IsEmpty());
  EXPECT_THAT(Alarmed("recon"), ElementsAre("2026-03-22"));
  EXPECT_THAT(Alarmed("report"), ElementsAre("2026-03-22"));
  EXPECT_EQ(told_.at({"recon", "2026-03-22"}).first, At("2026-03-23T04:37"))
      << "by 04:00 and a beat";
  EXPECT_EQ(told_.at({"report", "2026-03-22"}).first, At("2026-03-23T04:37"));
  EXPECT_THAT(told_.at({"recon", "2026-03-22"}).kinds, ElementsAre("absent"));
  EXPECT_THAT(Alarmed("cache"), SizeIs(14)) << "22:00 to 11:00, as far as they are late by now";

  // Good again at the next audit: done late, or settled by policy.
  Until("2026-03-25T10:00");
  for (const auto& [key, told] : told_) {
    EXPECT_LT(told.last, At("2026-03-23T13:00")) << key.first << " " << key.second;
    EXPECT_GT(told.first, At("2026-03-22T22:00")) << key.first << " " << key.second;
  }
  EXPECT_EQ(Row("recon", "2026-03-22").status, PeriodStatus::kDone);
  EXPECT_EQ(Row("report", "2026-03-22").status, PeriodStatus::kDone);
  const size_t so_far = told_.size();
  EXPECT_EQ(mailbox_.resolved.size(), 4u);

  // Two nights suspended: shown, and no alarm; then made good.
  ASSERT_OK(acts_->Suspend("recon", {"cli:alice", "the bank is closed"}));
  node_->LookNow();
  Until("2026-03-27T10:00");
  ASSERT_OK(acts_->Resume("recon", std::nullopt, {"cli:alice", "open again"}));
  node_->LookNow();
  Until("2026-03-28T12:00");
  EXPECT_EQ(told_.size(), so_far);
  EXPECT_EQ(mailbox_.resolved.size(), 4u) << "a suspension of less than a week is no alarm";
  EXPECT_EQ(Row("recon", "2026-03-25").status, PeriodStatus::kDone);
  EXPECT_EQ(Row("recon", "2026-03-26").status, PeriodStatus::kDone);

  // A new hour from now on: 02:00, which the next morning does not have in Berlin. The old days are
  // judged by 01:00, the new by 02:00, that one by the first instant after the gap.
  // And what ran on weekdays runs daily: of the weekend before nothing was ever asked.
  recon_.schedule = "0 2 * * *";
  weekdays_.schedule = "0 3 * * *";
  Apply({recon_, report_, cache_, weekdays_});
  Until("2026-03-31T22:00");
  EXPECT_EQ(told_.size(), so_far);
  EXPECT_EQ(Row("recon", "2026-03-27").due, At("2026-03-28T00:00"));
  EXPECT_EQ(Row("recon", "2026-03-28").due, At("2026-03-29T01:00"));
  EXPECT_EQ(Row("recon", "2026-03-29").due, At("2026-03-30T00:00"));
  EXPECT_EQ(Row("report", "2026-03-28").due, At("2026-03-29T01:00"));
  EXPECT_THAT(unwatched_, IsEmpty());

  // A night without anybody. Who asks from outside is told; when they are back so are the others.
  Until(At("2026-04-01T06:00"), /*plans=*/false, /*audits=*/false);
  ASSERT_OK_AND_ASSIGN(const std::string outside, AuditAgeProblem(*acts_, absl::Hours(2)));
  EXPECT_THAT(outside, HasSubstr("ago: is a node"));
  Until(At("2026-04-01T10:00"), /*plans=*/false, /*audits=*/false);
  EXPECT_EQ(told_.size(), so_far);
  Until(At("2026-04-01T10:40"), /*plans=*/false);
  EXPECT_EQ(Alarmed("recon").back(), "2026-03-31");
  EXPECT_EQ(Alarmed("report").back(), "2026-03-31");
  EXPECT_THAT(unwatched_, ElementsAre(HasSubstr("no node was there to make it")));
  Until("2026-04-03T12:00");
  ASSERT_OK_AND_ASSIGN(const std::string calm, AuditAgeProblem(*acts_, absl::Hours(2)));
  EXPECT_EQ(calm, "");

  // Each thing was told once, and once that it was over.
  EXPECT_THAT(mailbox_.FiredOf(),
              ElementsAre(Pair("gap cache", 2), Pair("gap recon", 2), Pair("gap report", 2),
                          Pair("gap weekdays", 2), Pair("unwatched ", 2)));
  EXPECT_EQ(mailbox_.resolved.size(), 10u);
  for (const auto& [what, times] : mailbox_.fired) EXPECT_EQ(times, 1) << std::get<0>(what).job;
  for (const auto& [what, times] : mailbox_.resolved) EXPECT_EQ(times, 1) << what.first.job;

  // Nothing else was ever an alarm.
  EXPECT_THAT(Alarmed("recon"), ElementsAre("2026-03-22", "2026-03-31"));
  EXPECT_THAT(Alarmed("report"), ElementsAre("2026-03-22", "2026-03-31"));
  for (const auto& [key, told] : told_) {
    EXPECT_LT(told.last, At("2026-04-01T11:40")) << key.first << " " << key.second;
  }
}

// The auditors share nothing with planning: crippled, it forgets what it does not run, and is found
// out.
TEST_F(Fortnight, ACrippledPlannerIsFoundOut) {
#if MATINS_LAB
  Until("2026-03-21T22:10");
  EXPECT_THAT(told_, IsEmpty());
  SetMutant(Mutant::kSilentSkip);
  DeadUntil("2026-03-22T04:10");
  Until("2026-03-22T08:00");
  SetMutant(Mutant::kNone);
  const std::vector<std::string> missing = Alarmed("cache");
  EXPECT_THAT(missing, SizeIs(6)) << "23:00 to 04:00";
  for (const std::string& period : missing) {
    EXPECT_EQ(Row("cache", period).key.job, "") << "nothing was recorded of " << period;
    EXPECT_THAT(told_.at({"cache", period}).kinds, ElementsAre("absent"));
    EXPECT_GE(told_.at({"cache", period}).last, At("2026-03-22T07:37"))
        << "and is told until it is";
  }
#else
  GTEST_SKIP() << "needs the mutants of a lab build";
#endif
}

}  // namespace
}  // namespace matins
