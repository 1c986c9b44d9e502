#include "ops/preflight.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "audit/beats.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "job/json.h"
#include "job/resolve.h"
#include "lease/redis_url.h"
#include "nlohmann/json.hpp"
#include "ops/jobs.h"
#include "ops/lock_lease.h"
#include "ops/node.h"
#include "store/rules.h"

namespace matins {
namespace {

constexpr char kLockKey[] = "matins-preflight";
constexpr absl::Duration kLockTtl = absl::Seconds(30);
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr absl::Duration kAuditAge = absl::Hours(26);
constexpr absl::Duration kClockOff = absl::Seconds(2);
constexpr int kRuns = 100, kDrills = 20, kAudits = 500, kEvents = 10'000;
constexpr absl::Duration kStillAge = absl::Hours(24 * 90);

absl::StatusOr<std::unique_ptr<LockLease>> Holder(const PreflightRequest& request,
                                                  absl::string_view provider) {
  LockLeaseOptions options;
  options.key = kLockKey;
  options.who = NewNodeName();
  options.ttl = kLockTtl;
  options.keep = absl::Hours(1);
  if (provider != "redis") return LockInStore(options, request.store_url, SystemClock());
  ASSIGN_OR_RETURN(RedisUrl url, ParseRedisUrl(request.redis_url));
  return LockInRedis(options, std::move(url), SystemClock());
}

// What the experiment found wrong; empty: nothing. `measured`: the figures.
absl::StatusOr<std::string> TryLock(LockLease& a, LockLease& b, std::string* measured) {
  ASSIGN_OR_RETURN(const LockLease::Taken first, a.Take(kPatience));
  if (!first.taken) {
    return absl::UnavailableError(
        absl::StrCat("the lock ", kLockKey, " is held by ", first.held_by,
                     ": another preflight, or one that died; try again in 30s"));
  }
  ASSIGN_OR_RETURN(const LockLease::Taken second, b.Take(kPatience));
  if (second.taken) return std::string("two holders had the lock at once");
  if (b.Release(nullptr).ok()) return std::string("who did not hold the lock released it");
  ASSIGN_OR_RETURN(const std::string lost, a.Renew(kPatience));
  if (!lost.empty()) return absl::StrCat("a foreign release took it from its holder: ", lost);
  RETURN_IF_ERROR(a.Release(nullptr));
  ASSIGN_OR_RETURN(const LockLease::Taken next, b.Take(kPatience));
  if (!next.taken) return std::string("a released lock was not free");
  std::string wrong;
  if (next.fence <= first.fence) {
    wrong = absl::StrCat("the second holder's fence, ", next.fence, ", is not above the first's, ",
                         first.fence);
  } else if (a.Release(nullptr).ok()) {
    wrong = "an old holder released the new one's lock";
  } else {
    ASSIGN_OR_RETURN(const std::string gone, b.Renew(kPatience));
    if (!gone.empty()) wrong = absl::StrCat("an old holder's release took it: ", gone);
  }
  RETURN_IF_ERROR(b.Release(nullptr));
  *measured = absl::StrCat("two holders, one at a time; fences ", first.fence, " and ", next.fence,
                           "; two foreign releases refused");
  return wrong;
}

absl::StatusOr<JobFacts> ReadFacts(Session& session, JobRow row, const AuditFacts& store,
                                   const std::vector<AuditRow>& audits,
                                   const std::optional<StoodStill>& still) {
  JobFacts facts;
  facts.still = still;
  facts.now = store.now;
  facts.audits = audits;
  ASSIGN_OR_RETURN(const Job definition, JobFromJson(row.definition));
  ASSIGN_OR_RETURN(facts.job, ResolveJob(definition));
  RunFilter filter;
  filter.job = row.name;
  filter.limit = kRuns;
  ASSIGN_OR_RETURN(facts.runs, session.acts().ReadRuns(filter));
  std::erase_if(facts.runs, [](const RunRow& run) { return run.status == "RUNNING"; });
  ASSIGN_OR_RETURN(facts.drills, session.acts().ReadDrills(row.name, kDrills));
  const auto versions = store.versions.find(row.name);
  facts.version_from = versions == store.versions.end() || versions->second.size() < 2
                           ? absl::InfinitePast()
                           : versions->second.back().from;
  facts.row = std::move(row);
  return facts;
}

bool IsOurs(const JobRow& row) { return row.source == "matins lock"; }

}  // namespace

absl::string_view PreflightWord(PreflightLevel level) {
  switch (level) {
    case PreflightLevel::kPass:
      return "pass";
    case PreflightLevel::kWarn:
      return "warn";
    case PreflightLevel::kFail:
      return "fail";
  }
  return "";
}

PreflightCheck CheckLock(const PreflightRequest& request, absl::string_view provider) {
  PreflightCheck check;
  check.question = absl::StrCat("lock (", provider, ")");
  const auto experiment = [&]() -> absl::StatusOr<std::string> {
    ASSIGN_OR_RETURN(const std::unique_ptr<LockLease> a, Holder(request, provider));
    ASSIGN_OR_RETURN(const std::unique_ptr<LockLease> b, Holder(request, provider));
    return TryLock(*a, *b, &check.measured);
  };
  const absl::StatusOr<std::string> wrong = experiment();
  if (!wrong.ok()) {
    check.level = PreflightLevel::kFail;
    check.measured = absl::StrCat("not measured: ", std::string(wrong.status().message()));
    check.mend = "the lock has to answer before anything rests on it";
  } else if (!wrong->empty()) {
    check.level = PreflightLevel::kFail;
    check.measured = *wrong;
    check.mend = "do not go live with this provider";
  } else {
    check.level = PreflightLevel::kPass;
  }
  return check;
}

std::vector<PreflightCheck> CheckNodes(const std::vector<NodeRow>& nodes, const StoreStatus& status,
                                       StartedBy started_by) {
  std::vector<PreflightCheck> checks;
  absl::Duration most;
  int alive = 0;
  for (const NodeRow& node : nodes) {
    if (!IsAlive(node, status.now)) continue;
    ++alive;
    most = std::max(most, absl::AbsDuration(node.clock_offset));
  }
  PreflightCheck living{"", "nodes", PreflightLevel::kPass, absl::StrCat(alive, " alive"), ""};
  PreflightCheck clocks{
      "", "clocks", PreflightLevel::kPass,
      absl::StrCat("at most ", DurationText(absl::Trunc(most, absl::Milliseconds(1))),
                   " between a node's and the store's"),
      ""};
  if (alive == 0 && started_by == StartedBy::kExec) {
    living.measured = "none is needed: `matins exec` alone starts the jobs";
    clocks.measured = "none is asked for the time: `matins exec` goes by the store's";
  } else if (alive == 0) {
    living.level = clocks.level = PreflightLevel::kFail;
    clocks.level = PreflightLevel::kWarn;
    clocks.measured = "not measured: no node is alive";
    living.mend = clocks.mend = "start `matins serve`";
  } else if (alive == 1) {
    living.level = PreflightLevel::kWarn;
    living.mend = "a second node, so that a release or a dead host is no outage";
  }
  if (alive > 0 && most > kClockOff) {
    clocks.level = PreflightLevel::kWarn;
    clocks.mend = "it decides nothing here, but in logs it misleads: NTP";
  }
  checks = {living, clocks};
  PreflightCheck settings{"", "store", PreflightLevel::kPass,
                          absl::StrCat(status.kind, " ", status.version, ", schema ", status.schema,
                                       ", no setting that weakens a promise"),
                          ""};
  if (status.frozen) {
    settings.level = PreflightLevel::kFail;
    settings.measured = absl::StrCat("its clock is frozen: ", status.frozen_why);
    settings.mend = "matins clock accept, once it is right";
  } else if (!status.warnings.empty()) {
    settings.level = PreflightLevel::kWarn;
    settings.measured = absl::StrJoin(status.warnings, "; ");
    settings.mend = "as the warning says";
  }
  checks.push_back(settings);
  return checks;
}

PreflightCheck CheckAudits(const std::vector<AuditRow>& audits, absl::Time now,
                           StartedBy started_by) {
  const bool by_exec = started_by == StartedBy::kExec;
  PreflightCheck check{"", "audit of all jobs", PreflightLevel::kFail,
                       "none was ever made by a node",
                       "let a node (`matins serve`) live, and have a monitor outside ask `matins "
                       "audit --check-age 26h`"};
  if (by_exec) {
    check.measured = "none was ever made";
    check.mend = kAuditByCron;
  }
  for (const AuditRow& audit : audits) {
    const bool counts = audit.beat == kStoreBeat || (by_exec && audit.beat == kHandBeat);
    if (!counts || audit.finished_at == absl::InfinitePast()) continue;
    const absl::Duration age = now - audit.finished_at;
    check.measured = absl::StrCat("the last, by ", audit.by, ", is ",
                                  DurationText(absl::Trunc(age, absl::Seconds(1))), " old");
    // A person's audit, or cron's, has no miss planted for it.
    if (!audit.canary && audit.beat == kStoreBeat) {
      absl::StrAppend(&check.measured, " and did not find the miss that was planted for it");
    } else if (age <= kAuditAge) {
      check.level = PreflightLevel::kPass;
      check.mend.clear();
    }
    break;
  }
  return check;
}

std::optional<StoodStill> LongestStoodStill(const std::vector<EventRow>& events, absl::Time since) {
  std::optional<StoodStill> longest;
  for (const EventRow& event : events) {
    if (event.kind != kStoodStillEvent || event.at < since) continue;
    const auto detail = nlohmann::json::parse(event.detail, nullptr, false);
    const auto ms = detail.find("ms");
    if (ms == detail.end() || !ms->is_number_integer()) continue;
    const absl::Duration length = absl::Milliseconds(ms->get<int64_t>());
    if (!longest || length > longest->length) longest = {length, event.at, event.who};
  }
  return longest;
}

absl::StatusOr<PreflightReport> Preflight(Session& session, const PreflightRequest& request) {
  std::vector<JobRow> rows;
  if (request.job.empty()) {
    ASSIGN_OR_RETURN(rows, session.acts().ReadJobs(""));
    std::erase_if(rows, IsOurs);
  } else {
    ASSIGN_OR_RETURN(JobRow row, ReadJob(session, request.job));
    rows.push_back(std::move(row));
  }
  PreflightReport report;
  report.checks.push_back(CheckLock(request, "store"));
  ASSIGN_OR_RETURN(const StoreStatus status, session.acts().ReadStatus());
  ASSIGN_OR_RETURN(const std::vector<NodeRow> nodes, session.acts().ReadNodes());
  ASSIGN_OR_RETURN(const std::vector<AuditRow> audits, session.acts().ReadAudits("", kAudits));
  ASSIGN_OR_RETURN(const AuditFacts store, session.acts().ReadAuditFacts(request.job));
  ASSIGN_OR_RETURN(const std::vector<EventRow> events, session.acts().ReadEvents("", kEvents));
  const std::optional<StoodStill> still = LongestStoodStill(events, store.now - kStillAge);
  bool redis = !request.redis_url.empty();
  StartedBy started_by = rows.empty() ? StartedBy::kNodes : StartedBy::kExec;
  std::vector<PreflightCheck> of_jobs;
  for (JobRow& row : rows) {
    const std::string name = row.name;
    const absl::StatusOr<JobFacts> facts = ReadFacts(session, std::move(row), store, audits, still);
    if (!facts.ok()) {
      of_jobs.push_back({name, "definition", PreflightLevel::kFail,
                         std::string(facts.status().message()), "mend and apply it"});
      continue;
    }
    if (facts->job->job.run.kind != RunKind::kExec) started_by = StartedBy::kNodes;
    redis = redis || facts->job->job.lock.provider == LockProvider::kRedis;
    for (PreflightCheck& check : CheckJob(*facts)) of_jobs.push_back(std::move(check));
  }
  if (redis && request.redis_url.empty()) {
    report.checks.push_back({"", "lock (redis)", PreflightLevel::kFail,
                             "not measured: a job asks Redis, and no Redis is named",
                             "--redis redis://HOST, or MATINS_REDIS"});
  } else if (redis) {
    report.checks.push_back(CheckLock(request, "redis"));
  }
  for (PreflightCheck& check : CheckNodes(nodes, status, started_by))
    report.checks.push_back(check);
  report.checks.push_back(CheckAudits(audits, status.now, started_by));
  if (rows.empty()) {
    report.checks.push_back(
        {"", "jobs", PreflightLevel::kFail, "the store has none", "matins job apply FILE"});
  }
  for (PreflightCheck& check : of_jobs) report.checks.push_back(std::move(check));
  for (const PreflightCheck& check : report.checks) {
    ++(check.level == PreflightLevel::kPass   ? report.passed
       : check.level == PreflightLevel::kWarn ? report.warned
                                              : report.failed);
  }
  return report;
}

}  // namespace matins
