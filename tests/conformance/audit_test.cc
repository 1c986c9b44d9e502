// What an audit reads, and its own rows: one audit a beat's instant, however many ask.
#include <string>

#include "absl/strings/str_cat.h"
#include "conformance/kit.h"
#include "gmock/gmock.h"
#include "store/rules.h"

namespace matins::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class Audits : public Conformance {
 protected:
  absl::Status Applied(const Job& job, absl::string_view definition, absl::string_view digest) {
    ApplyRequest request;
    request.jobs = {{job, std::string(definition)}};
    request.source = "matins.yaml";
    request.digest = std::string(digest);
    request.act = {"cli:alice", "a change"};
    return acts().Apply(request).status();
  }
};

TEST_F(Audits, ABeatsInstantIsOneAuditForAnyNumberOfNodes) {
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginAudit("store", At(0), "node:a"));
  ASSERT_NE(id, 0);
  ASSERT_OK_AND_ASSIGN(int64_t other, acts().BeginAudit("store", At(0), "node:b"));
  EXPECT_EQ(other, 0) << "another node has it";
  ASSERT_OK_AND_ASSIGN(other, acts().BeginAudit("store", At(0), "node:a"));
  EXPECT_EQ(other, 0) << "and it is not taken twice by the same";
  ASSERT_OK_AND_ASSIGN(other, acts().BeginAudit("jobs", At(0), "node:b"));
  EXPECT_NE(other, 0) << "another beat is another audit";
  AuditRow row;
  row.id = id;
  row.by = "node:a";
  row.expected = 7;
  row.done = 5;
  row.findings = 3;
  row.alarms = 2;
  row.canary = true;
  row.detail = "{\"x\":1}";
  world().SetClock(At(9));
  ASSERT_OK(acts().EndAudit(row));
  EXPECT_EQ(acts().EndAudit(row).code(), absl::StatusCode::kNotFound) << "it has ended";
  world().SetClock(At(3600));
  ASSERT_OK_AND_ASSIGN(other, acts().BeginAudit("store", At(0), "node:b"));
  EXPECT_EQ(other, 0) << "what has been made is not made again";
  ASSERT_OK_AND_ASSIGN(const std::vector<AuditRow> audits, acts().ReadAudits("store", 10));
  ASSERT_THAT(audits, SizeIs(1));
  EXPECT_EQ(audits[0].beat, "store");
  EXPECT_EQ(audits[0].due, At(0));
  EXPECT_EQ(audits[0].by, "node:a");
  EXPECT_EQ(audits[0].started_at, At(0));
  EXPECT_EQ(audits[0].finished_at, At(9));
  EXPECT_EQ(audits[0].expected, 7);
  EXPECT_EQ(audits[0].done, 5);
  EXPECT_EQ(audits[0].findings, 3);
  EXPECT_EQ(audits[0].alarms, 2);
  EXPECT_TRUE(audits[0].canary);
  EXPECT_EQ(audits[0].detail, "{\"x\":1}");
}

TEST_F(Audits, OneThatBeganLongAgoAndNeverEndedIsTakenOver) {
  ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginAudit("store", At(0), "node:dead"));
  world().SetClock(At(1) + kAuditGone);
  ASSERT_OK_AND_ASSIGN(const int64_t again, acts().BeginAudit("store", At(0), "node:b"));
  EXPECT_EQ(again, id);
  AuditRow late;
  late.id = id;
  late.by = "node:dead";
  EXPECT_EQ(acts().EndAudit(late).code(), absl::StatusCode::kNotFound)
      << "who lost it writes nothing";
  late.by = "node:b";
  ASSERT_OK(acts().EndAudit(late));
}

TEST_F(Audits, TheNewestComeFirstAndTheOldestGo) {
  for (int hour = 0; hour < 3; ++hour) {
    world().SetClock(At(hour * 3600));
    ASSERT_OK_AND_ASSIGN(const int64_t id, acts().BeginAudit("store", At(hour * 3600), "node:a"));
    AuditRow row;
    row.id = id;
    row.by = "node:a";
    ASSERT_OK(acts().EndAudit(row));
  }
  ASSERT_OK_AND_ASSIGN(std::vector<AuditRow> audits, acts().ReadAudits("", 2));
  ASSERT_THAT(audits, SizeIs(2));
  EXPECT_EQ(audits[0].due, At(7200));
  EXPECT_EQ(audits[1].due, At(3600));
}

TEST_F(Audits, FactsAreVersionsSuspensionsSpansAndTheStoresTime) {
  Job job = PlainJob("a");
  ASSERT_OK(Applied(job, R"({"name":"a","priority":1})", "one"));
  world().SetClock(At(10));
  ASSERT_OK(Applied(job, R"({"name":"a","priority":2})", "two"));
  ASSERT_OK(ApplyJobs(acts(), {PlainJob("b")}));
  world().SetClock(At(20));
  ASSERT_OK(acts().Suspend("a", {"cli:alice", "year end"}));
  world().SetClock(At(30));
  ASSERT_OK(acts().Resume("a", std::nullopt, {"cli:alice", "over"}));
  world().SetClock(At(40));
  ASSERT_OK(acts().Suspend("a", {"cli:bob", "again"}));
  ASSERT_OK_AND_ASSIGN(const JobState state, ReadState(store(), "a"));
  PlanWrite write;
  write.job = "a";
  write.expected_revision = state.revision;
  write.cursor = At(40);
  write.spans = {{At(1), At(39), "2026-10-01", "2026-10-09", 200, "cap"}};
  ASSERT_OK_AND_ASSIGN(const PlanAnswers planned, store().Plan({.writes = {write}}));
  ASSERT_TRUE(planned.jobs.at(0).written);
  ASSERT_OK_AND_ASSIGN(const AuditFacts facts, acts().ReadAuditFacts(""));
  EXPECT_EQ(facts.now, At(40));
  EXPECT_THAT(facts.versions, SizeIs(2));
  const std::vector<JobVersion>& versions = facts.versions.at("a");
  ASSERT_THAT(versions, SizeIs(2));
  EXPECT_EQ(versions[0].number, 1);
  EXPECT_EQ(versions[0].definition, R"({"name":"a","priority":1})");
  EXPECT_EQ(versions[1].from, At(10));
  const std::vector<Suspension>& suspended = facts.suspended.at("a");
  ASSERT_THAT(suspended, SizeIs(2));
  EXPECT_EQ(suspended[0].from, At(20));
  EXPECT_EQ(suspended[0].to, At(30));
  EXPECT_EQ(suspended[0].why, "year end");
  EXPECT_EQ(suspended[1].to, absl::InfiniteFuture());
  EXPECT_EQ(suspended[1].by, "cli:bob");
  ASSERT_THAT(facts.spans.at("a"), SizeIs(1));
  EXPECT_EQ(facts.spans.at("a")[0].count, 200);
  EXPECT_THAT(facts.locks, IsEmpty());
  EXPECT_THAT(facts.doubles, IsEmpty());
  ASSERT_OK_AND_ASSIGN(const AuditFacts of_b, acts().ReadAuditFacts("b"));
  EXPECT_THAT(of_b.versions, ElementsAre(Pair("b", SizeIs(1))));
  EXPECT_THAT(of_b.suspended, IsEmpty());
}

TEST_F(Audits, ALockThatOutlastsItsRunIsAmongTheFacts) {
  MATINS_NEEDS(Capability::kSql);
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK(world().DeleteRow(KeyOf("a", 0)));
  ASSERT_OK_AND_ASSIGN(const AuditFacts facts, acts().ReadAuditFacts("a"));
  ASSERT_THAT(facts.locks, SizeIs(1));
  EXPECT_EQ(facts.locks[0].key, KeyOf("a", 0));
  EXPECT_EQ(facts.locks[0].fence, claim.fence);
  EXPECT_EQ(facts.locks[0].until, claim.lease_until);
}

TEST_F(Audits, TwoAcceptedResultsOfOneGenerationAreAmongTheFacts) {
  MATINS_NEEDS(Capability::kSql);
  const Job job = PlainJob("a");
  ASSERT_OK(ApplyJobs(acts(), {job}));
  ASSERT_OK(PlanDays(store(), job, {0}).status());
  ASSERT_OK_AND_ASSIGN(const Claim claim, Claimed(store(), KeyOf("a", 0)));
  ASSERT_OK(Done(store(), TicketOf(claim)).status());
  // As no verb would: the same attempt's row once more, under another fence.
  ASSERT_OK(world().Sql(
      "INSERT INTO job_run (fence, job_name, period, biz_date, generation, attempt, "
      "attempts_total, node, status) SELECT fence + 1, job_name, period, biz_date, generation, "
      "attempt, attempts_total, node, status FROM job_run"));
  ASSERT_OK_AND_ASSIGN(const AuditFacts facts, acts().ReadAuditFacts(""));
  ASSERT_THAT(facts.doubles, SizeIs(1));
  EXPECT_EQ(facts.doubles[0].key, KeyOf("a", 0));
  EXPECT_EQ(facts.doubles[0].generation, 1);
  EXPECT_EQ(facts.doubles[0].count, 2);
}

}  // namespace
}  // namespace matins::conformance
