// A store in memory under a clock that is told the time, for tests of the audit.
#ifndef MATINS_AUDIT_WORLD_TEST_SUPPORT_H_
#define MATINS_AUDIT_WORLD_TEST_SUPPORT_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "audit/audit.h"
#include "job/json.h"
#include "job/resolve.h"
#include "plan/plan.h"
#include "store/model/model_database.h"
#include "tests/support/assert_ok.h"

namespace matins {

class AuditWorld : public ::testing::Test {
 protected:
  void SetUp() override {
    DatabaseOptions options;
    options.clock = [this] { return now_; };
    database_ = std::make_unique<model::ModelDatabase>(options);
    ASSERT_OK(database_->Migrate());
    acts_ = database_->OpenActs().value();
    store_ = database_->Open().value();
  }

  // 01:00 UTC each day, for that day; to be done by 09:00.
  static Job Daily(const std::string& name) {
    Job job;
    job.name = name;
    job.schedule = "0 1 * * *";
    job.period = PeriodKind::kDay;
    job.misfire = Misfire::kEach;
    job.backfill.order = Order::kStrict;
    job.done_by.time_of_day = absl::Hours(9);
    job.run.kind = RunKind::kShell;
    job.run.shell = "true";
    return job;
  }

  void ApplyText(const std::string& name, const std::string& definition) {
    Job job = Daily(name);
    ApplyRequest request;
    request.jobs = {{job, definition}};
    request.source = name;
    request.digest = definition;
    request.act = {"cli:test", "a test"};
    ASSERT_OK(acts_->Apply(request).status());
  }
  void Apply(const Job& job) {
    ApplyRequest request;
    request.jobs = {{job, JobToJson(job)}};
    request.source = job.name;
    request.digest = JobToJson(job);
    request.act = {"cli:test", "a test"};
    ASSERT_OK(acts_->Apply(request).status());
  }

  void Sleep(absl::Duration d) { now_ += d; }

  // What a node's planning would write now.
  void PlanAll() {
    const DueJobs due = store_->ReadDue({}).value();
    for (const JobState& state : due.jobs) {
      std::vector<std::unique_ptr<ResolvedJob>> meanings;
      std::vector<VersionInForce> versions;
      for (const JobVersion& version : state.versions) {
        meanings.push_back(std::make_unique<ResolvedJob>(
            ResolveJob(JobFromJson(version.definition).value()).value()));
        versions.push_back({version.number, version.from, meanings.back().get()});
      }
      PlanRequest request;
      request.writes = {PlanJob({.state = &state, .versions = versions, .now = due.now}).value()};
      ASSERT_TRUE(store_->Plan(request).value().jobs.at(0).written);
    }
  }

  void RunAllDue() {
    PlanAll();
    StartRequest start;
    start.node = {"n1", {}};
    start.nonce = 7;
    start.also_due = 100;
    const StartAnswers started = store_->Start(start).value();
    for (const StartAnswer& answer : started.rows) {
      if (!answer.claim) continue;
      FinishRequest finish{TicketOf(*answer.claim), {}, "n1"};
      ASSERT_TRUE(store_->Finish({&finish, 1}).value().at(0).accepted());
    }
  }

  AuditReport Report(const AuditScope& scope) { return Audit(*acts_, scope).value(); }

  // "recon absent 2026-10-30 x3"
  static std::vector<std::string> Told(const AuditReport& report) {
    std::vector<std::string> told;
    for (const AuditFinding& finding : report.findings) {
      told.push_back(absl::StrCat(finding.job, " ", AuditWord(finding.kind), " ", finding.period,
                                  finding.count > 1 ? absl::StrCat(" x", finding.count) : ""));
    }
    return told;
  }

  absl::Time now_ = absl::FromUnixSeconds(1793318400);  // 2026-10-30T00:00:00Z
  std::unique_ptr<model::ModelDatabase> database_;
  std::unique_ptr<ActStore> acts_;
  std::unique_ptr<Store> store_;
};

}  // namespace matins

#endif  // MATINS_AUDIT_WORLD_TEST_SUPPORT_H_
