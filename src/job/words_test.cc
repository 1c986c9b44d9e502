#include "job/words.h"

#include "gtest/gtest.h"

namespace matins {
namespace {

// The last enumerator has the last word: an enum that grew without its table shows here.
template <typename E>
void ExpectTable(E last, absl::string_view word) {
  ASSERT_EQ(Words<E>().size(), static_cast<size_t>(last) + 1) << word;
  EXPECT_EQ(Word(last), word);
  for (size_t i = 0; i < Words<E>().size(); ++i) {
    EXPECT_EQ(FromWord<E>(Words<E>()[i]), static_cast<E>(i)) << Words<E>()[i];
  }
}

TEST(Words, EachTableIsAsLongAsItsEnumAndReadsBack) {
  ExpectTable(PeriodStatus::kSkipped, "SKIPPED");
  ExpectTable(Trigger::kPerson, "person");
  ExpectTable(Outcome::Kind::kReturned, "returned");
  ExpectTable(Misfire::kEach, "each");
  ExpectTable(Overlap::kQueue, "queue");
  ExpectTable(Recovery::kHold, "hold");
  ExpectTable(CommitBy::kJob, "job");
  ExpectTable(Order::kStrict, "strict");
  ExpectTable(LockScope::kKey, "key");
  ExpectTable(LockProvider::kRedis, "redis");
  ExpectTable(Mask::kHash, "hash");
  ExpectTable(OnLeaseLost::kAbortProcess, "abort_process");
  ExpectTable(RunKind::kExec, "exec");
  ExpectTable(PeriodKind::kMonth, "month");
  ExpectTable(Dialect::kOnCalendar, "oncalendar");
  ExpectTable(GapRule::kShift, "shift");
  ExpectTable(OverlapRule::kBoth, "both");
}

TEST(Words, EachEnumeratorHasItsOwn) {
  EXPECT_EQ(Word(PeriodStatus::kPlanned), "PLANNED");
  EXPECT_EQ(Word(PeriodStatus::kRunning), "RUNNING");
  EXPECT_EQ(Word(PeriodStatus::kDone), "DONE");
  EXPECT_EQ(Word(PeriodStatus::kFailed), "FAILED");
  EXPECT_EQ(Word(Trigger::kReturn), "return");
  EXPECT_EQ(Word(Misfire::kLatest), "latest");
  EXPECT_EQ(Word(Overlap::kReplace), "replace");
  EXPECT_EQ(Word(Recovery::kResume), "resume");
  EXPECT_EQ(Word(RunKind::kShell), "shell");
  EXPECT_EQ(Word(PeriodKind::kWeek), "week");
  EXPECT_EQ(Word(Dialect::kSeconds6), "seconds6");
}

TEST(Words, OnlyTheExactWordIsRead) {
  EXPECT_EQ(FromWord<PeriodStatus>("done"), std::nullopt);
  EXPECT_EQ(FromWord<Misfire>("Each"), std::nullopt);
  EXPECT_EQ(FromWord<Misfire>(""), std::nullopt);
  EXPECT_EQ(FromWord<Misfire>("each "), std::nullopt);
}

}  // namespace
}  // namespace matins
