// Drills: what was DONE is deleted and kept in one step, and put back by whoever comes.
#include "store/drill.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "conformance/kit.h"
#include "gmock/gmock.h"

namespace matins::conformance {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kLease = absl::Seconds(30);

class Drills : public Conformance {
 protected:
  void SetUp() override {
    Conformance::SetUp();
    ASSERT_OK(ApplyJobs(acts(), {job_}));
    ASSERT_OK_AND_ASSIGN(const bool planned, PlanDays(store(), job_, {1, 2, 3}));
    ASSERT_TRUE(planned);
    world().SetClock(DueOf(3) + absl::Seconds(1));
    for (int day : {1, 2, 3}) Fill(day, 10 + day);
    world().SetClock(DueOf(4));
  }

  void Fill(int day, double figure) {
    ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("j", day)));
    Outcome outcome;
    outcome.figures = {{"differences", figure}, {"a", 0.5}};
    ASSERT_OK_AND_ASSIGN(const std::string why, FinishOne(store(), TicketOf(claim), outcome));
    ASSERT_EQ(why, "");
  }

  BeginDrillRequest RequestOf(const std::vector<int>& days) {
    BeginDrillRequest request;
    request.job = "j";
    request.lease = kLease;
    request.act = {"cli:alice", "before going live"};
    for (int day : days) {
      const absl::StatusOr<PeriodRow> row = RowOf(acts(), KeyOf("j", day));
      if (row.ok()) request.periods.push_back({row->key.period, row->generation, row->fence});
    }
    return request;
  }
  absl::StatusOr<EndDrillAnswer> End(int64_t id, bool owner, std::string result = "failed") {
    return acts().EndDrill({id, owner, result, "{\"report\":1}", {"cli:bob", "it died"}});
  }
  std::string State(int day) {
    const absl::StatusOr<PeriodRow> row = RowOf(acts(), KeyOf("j", day));
    if (absl::IsNotFound(row.status())) return "gone";
    return row.ok() ? StateText(*row) : row.status().ToString();
  }

  const Job job_ = PlainJob("j");
};

TEST_F(Drills, WhatIsDeletedIsKeptAndComesBackAsItWas) {
  ASSERT_OK_AND_ASSIGN(const PeriodRow before, RowOf(acts(), KeyOf("j", 2)));
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginDrill(RequestOf({2, 3})));
  EXPECT_EQ(State(1), "DONE");
  EXPECT_EQ(State(2), "gone");
  EXPECT_EQ(State(3), "gone");
  ASSERT_OK_AND_ASSIGN(std::vector<DrillRow> drills, acts().ReadDrills("j", 5));
  ASSERT_THAT(drills, SizeIs(1));
  EXPECT_EQ(drills[0].id, id);
  EXPECT_EQ(drills[0].by, "cli:alice");
  EXPECT_EQ(drills[0].why, "before going live");
  EXPECT_EQ(drills[0].started_at, DueOf(4));
  EXPECT_EQ(drills[0].until, DueOf(4) + kLease);
  EXPECT_FALSE(drills[0].over());
  EXPECT_THAT(drills[0].periods, ElementsAre(Field(&DrillPeriod::period, KeyOf("j", 2).period),
                                             Field(&DrillPeriod::period, KeyOf("j", 3).period)));

  ASSERT_OK_AND_ASSIGN(const EndDrillAnswer answer, End(id, true));
  EXPECT_TRUE(answer.ended);
  EXPECT_THAT(answer.put_back, ElementsAre(KeyOf("j", 2).period, KeyOf("j", 3).period));
  ASSERT_OK_AND_ASSIGN(PeriodRow after, RowOf(acts(), KeyOf("j", 2)));
  EXPECT_EQ(after.generation, before.generation + 1) << "the deletion is history, and stays so";
  after.generation = before.generation;
  after.change = before.change;
  after.changed_at = before.changed_at;
  EXPECT_EQ(StateText(after), "DONE");
  EXPECT_EQ(after.finished_at, before.finished_at);
  EXPECT_EQ(after.biz_date, before.biz_date);
  EXPECT_EQ(after.due, before.due);
  EXPECT_EQ(after.window_start, before.window_start);
  EXPECT_EQ(after.window_end, before.window_end);
  EXPECT_EQ(after.nominal, before.nominal);
  EXPECT_EQ(after.not_before, before.not_before);
  EXPECT_EQ(after.start_by, before.start_by);
  EXPECT_EQ(after.version, before.version);
  EXPECT_EQ(after.attempts_total, before.attempts_total);
  EXPECT_EQ(after.fence, before.fence);
  EXPECT_EQ(after.node, before.node);
  EXPECT_EQ(after.claimed_at, before.claimed_at);
  EXPECT_EQ(after.by, before.by);
  EXPECT_EQ(after.reason, before.reason);
  ASSERT_OK_AND_ASSIGN(drills, acts().ReadDrills("", 5));
  ASSERT_THAT(drills, SizeIs(1));
  EXPECT_TRUE(drills[0].over());
  EXPECT_EQ(drills[0].result, "failed");
  EXPECT_EQ(drills[0].detail, "{\"report\":1}");
  ASSERT_OK_AND_ASSIGN(const std::vector<EventRow> events, acts().ReadEvents("j", 20));
  EXPECT_THAT(events,
              Contains(AllOf(Field(&EventRow::kind, "drill"), Field(&EventRow::who, "cli:alice"),
                             Field(&EventRow::why, "before going live"))));
  EXPECT_THAT(events,
              Contains(AllOf(Field(&EventRow::kind, "restored"),
                             Field(&EventRow::period, KeyOf("j", 3).period),
                             Field(&EventRow::generation, 2), Field(&EventRow::who, "cli:bob"))));
}

TEST_F(Drills, WhatIsNotDoneAsItWasSeenIsNotDrilled) {
  BeginDrillRequest request = RequestOf({2, 3});
  ++request.periods[1].fence;
  EXPECT_EQ(acts().BeginDrill(request).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(State(2), "DONE") << "all or nothing";
  request = RequestOf({2, 3});
  ASSERT_OK_AND_ASSIGN(const bool planned, PlanDays(store(), job_, {4}));
  ASSERT_TRUE(planned);
  request.periods.push_back({KeyOf("j", 4).period, 1, 0});
  EXPECT_EQ(acts().BeginDrill(request).status().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(State(4), "PLANNED");
  request.job = "nobody";
  EXPECT_EQ(acts().BeginDrill(request).status().code(), absl::StatusCode::kNotFound);
  ASSERT_OK_AND_ASSIGN(const std::vector<DrillRow> drills, acts().ReadDrills("", 5));
  EXPECT_THAT(drills, IsEmpty());
}

TEST_F(Drills, AJobHasOneDrillAtATimeAndItsLeaseIsItsOwners) {
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginDrill(RequestOf({3})));
  EXPECT_EQ(acts().BeginDrill(RequestOf({2})).status().code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(State(2), "DONE");
  EXPECT_EQ(End(id, false).status().code(), absl::StatusCode::kFailedPrecondition)
      << "its owner lives";
  EXPECT_EQ(State(3), "gone");
  world().SetClock(DueOf(4) + absl::Seconds(20));
  ASSERT_OK(acts().ExtendDrill(id, kLease));
  world().SetClock(DueOf(4) + absl::Seconds(49));
  EXPECT_EQ(End(id, false).status().code(), absl::StatusCode::kFailedPrecondition);
  world().SetClock(DueOf(4) + absl::Seconds(50));
  EXPECT_EQ(acts().ExtendDrill(id, kLease).code(), absl::StatusCode::kFailedPrecondition)
      << "nothing revives a lease";
  EXPECT_EQ(End(id, true).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(const EndDrillAnswer answer, End(id, false, "abandoned"));
  EXPECT_THAT(answer.put_back, ElementsAre(KeyOf("j", 3).period));
  EXPECT_EQ(End(id, false).status().code(), absl::StatusCode::kFailedPrecondition) << "it is over";
  EXPECT_EQ(State(3), "DONE");
  ASSERT_OK(acts().BeginDrill(RequestOf({3})).status());
  EXPECT_EQ(acts().ExtendDrill(99, kLease).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(End(99, true).status().code(), absl::StatusCode::kNotFound);
}

// Filled by the drill, tried in vain, running, settled by a person, never planned: of these five
// each has its own way back.
TEST_F(Drills, WhatWasFilledStaysAndTheRestIsPutBackHoweverFarItCame) {
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginDrill(RequestOf({1, 2, 3})));
  ASSERT_OK_AND_ASSIGN(const bool planned, PlanDays(store(), job_, {1, 2}));
  ASSERT_TRUE(planned);
  Fill(1, 99);
  ASSERT_OK_AND_ASSIGN(const Claim failed, Claimed(store(), KeyOf("j", 2)));
  Outcome outcome;
  outcome.kind = Outcome::Kind::kFailed;
  outcome.reason = reason::kExit;
  ASSERT_OK_AND_ASSIGN(const std::string why, FinishOne(store(), TicketOf(failed), outcome));
  ASSERT_EQ(why, "");
  ASSERT_EQ(State(2), "FAILED(exit)");

  ASSERT_OK_AND_ASSIGN(const EndDrillAnswer answer, End(id, true));
  EXPECT_TRUE(answer.ended);
  EXPECT_THAT(answer.put_back, ElementsAre(KeyOf("j", 2).period, KeyOf("j", 3).period));
  EXPECT_EQ(State(1), "DONE");
  EXPECT_EQ(State(2), "DONE");
  EXPECT_EQ(State(3), "DONE");
  ASSERT_OK_AND_ASSIGN(const PeriodRow filled, RowOf(acts(), KeyOf("j", 1)));
  EXPECT_EQ(filled.finished_at, DueOf(4)) << "the drill's own result stands";
  ASSERT_OK_AND_ASSIGN(const PeriodRow back, RowOf(acts(), KeyOf("j", 2)));
  EXPECT_EQ(back.finished_at, DueOf(3) + absl::Seconds(1));
  EXPECT_EQ(back.fence, failed.fence) << "no fence goes back (I6)";
  // The attempt that failed must not hear that the DONE which stands there now is its own.
  ASSERT_OK_AND_ASSIGN(const auto resolved,
                       store().Resolve({{{TicketOf(failed), Outcome(), "n1"}}}));
  EXPECT_EQ(resolved[0].kind, ResolveAnswer::Kind::kNotCommitted);
}

TEST_F(Drills, WhatRunsIsWaitedForAndWhatAPersonSettledStands) {
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginDrill(RequestOf({1, 2, 3})));
  ASSERT_OK_AND_ASSIGN(const bool planned, PlanDays(store(), job_, {1, 2}));
  ASSERT_TRUE(planned);
  ASSERT_OK(acts().Skip({{KeyOf("j", 2)}}, {"cli:carol", "not that one"}));
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("j", 1)));
  ASSERT_OK_AND_ASSIGN(EndDrillAnswer answer, End(id, true));
  EXPECT_FALSE(answer.ended);
  EXPECT_THAT(answer.running, ElementsAre(KeyOf("j", 1).period));
  EXPECT_THAT(answer.left, ElementsAre(KeyOf("j", 2).period));
  EXPECT_THAT(answer.put_back, ElementsAre(KeyOf("j", 3).period));
  ASSERT_OK_AND_ASSIGN(std::vector<DrillRow> drills, acts().ReadDrills("j", 1));
  EXPECT_FALSE(drills[0].over());
  EXPECT_EQ(acts().ExtendDrill(id, kLease).code(), absl::StatusCode::kFailedPrecondition);

  Outcome outcome;
  outcome.kind = Outcome::Kind::kFailed;
  ASSERT_OK(FinishOne(store(), TicketOf(claim), outcome).status());
  ASSERT_OK_AND_ASSIGN(answer, End(id, false, "abandoned"));
  EXPECT_TRUE(answer.ended);
  EXPECT_THAT(answer.put_back, ElementsAre(KeyOf("j", 1).period));
  EXPECT_EQ(State(1), "DONE");
  EXPECT_EQ(State(2), "SKIPPED(not that one)");
  ASSERT_OK_AND_ASSIGN(drills, acts().ReadDrills("j", 1));
  EXPECT_EQ(drills[0].result, "failed") << "the owner's own word stands";
}

TEST_F(Drills, APutBackRowMayBeDrilledAgainAndAgain) {
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginDrill(RequestOf({3})));
    ASSERT_OK_AND_ASSIGN(const EndDrillAnswer answer, End(id, true));
    ASSERT_THAT(answer.put_back, SizeIs(1));
    ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("j", 3)));
    EXPECT_EQ(row.generation, i + 2);
  }
}

TEST_F(Drills, TheJournalTakesWhatIsPutBack) {
  MATINS_NEEDS(Capability::kJournal);
  ASSERT_OK(acts().SetJournal(true));
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginDrill(RequestOf({2, 3})));
  ASSERT_OK_AND_ASSIGN(const bool planned, PlanDays(store(), job_, {2}));
  ASSERT_TRUE(planned);
  ASSERT_OK_AND_ASSIGN(const EndDrillAnswer answer, End(id, true));
  ASSERT_THAT(answer.put_back, SizeIs(2));
  if (!TheBackend().capabilities().contains(Capability::kSql)) return;
  ASSERT_OK_AND_ASSIGN(
      const SqlRows rows,
      world().Query("SELECT period, generation, ver, status FROM job_journal WHERE op = 'restored' "
                    "ORDER BY period"));
  EXPECT_THAT(rows, ElementsAre(ElementsAre(KeyOf("j", 2).period, "2", "2", "DONE"),
                                ElementsAre(KeyOf("j", 3).period, "2", "1", "DONE")));
}

TEST_F(Drills, AnotherProgramsOwnColumnComesBackToo) {
  MATINS_NEEDS(Capability::kSql);
  ASSERT_OK(world().Sql("ALTER TABLE job_watermark ADD COLUMN note VARCHAR(40)"));
  ASSERT_OK(world().Sql("UPDATE job_watermark SET note = 'by hand, \"quoted\"' WHERE period = '" +
                        KeyOf("j", 3).period + "'"));
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginDrill(RequestOf({2, 3})));
  ASSERT_OK(End(id, true).status());
  ASSERT_OK_AND_ASSIGN(
      const SqlRows rows,
      world().Query("SELECT note FROM job_watermark WHERE period >= '2026-10-03' ORDER BY period"));
  EXPECT_THAT(rows, ElementsAre(ElementsAre("NULL"), ElementsAre("by hand, \"quoted\"")));
}

TEST_F(Drills, FiguresAreReadByFenceAndName) {
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginDrill(RequestOf({3})));
  ASSERT_OK_AND_ASSIGN(const bool planned, PlanDays(store(), job_, {3}));
  ASSERT_TRUE(planned);
  Fill(3, 26);
  ASSERT_OK_AND_ASSIGN(const std::vector<FigureRow> figures, acts().ReadFigures(KeyOf("j", 3)));
  ASSERT_THAT(figures, SizeIs(4));
  EXPECT_EQ(figures[0].name, "a");
  EXPECT_EQ(figures[1].name, "differences");
  EXPECT_EQ(figures[1].value, 13);
  EXPECT_EQ(figures[1].generation, 1);
  EXPECT_EQ(figures[3].value, 26);
  EXPECT_EQ(figures[3].generation, 2);
  EXPECT_LT(figures[1].fence, figures[3].fence);
  ASSERT_OK_AND_ASSIGN(const EndDrillAnswer answer, End(id, true, "passed"));
  EXPECT_THAT(answer.put_back, IsEmpty());
}

TEST_F(Drills, ADrillFollowsItsJobsNewName) {
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginDrill(RequestOf({3})));
  ASSERT_OK(acts().Rename("j", "k", {"cli:alice", "a better name"}));
  ASSERT_OK(End(id, true).status());
  ASSERT_OK_AND_ASSIGN(const PeriodRow row, RowOf(acts(), KeyOf("k", 3)));
  EXPECT_EQ(StateText(row), "DONE");
  ASSERT_OK_AND_ASSIGN(const std::vector<DrillRow> drills, acts().ReadDrills("k", 5));
  EXPECT_THAT(drills, SizeIs(1));
}

}  // namespace
}  // namespace matins::conformance
