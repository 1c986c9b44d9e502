#include "lab/workload.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace matins {
namespace {

constexpr int kSeconds[] = {15, 20, 30, 60};
constexpr absl::Duration kDay = absl::Hours(24);
constexpr const char* kLabels[] = {"east", "large"};

// What limits speak of, and the most that a simulation has of each: little enough to be felt.
struct Ruled {
  LimitKind kind;
  const char* name;
  int most;
};
constexpr Ruled kRuled[] = {{LimitKind::kGlobal, "", 4},       {LimitKind::kTenant, "north", 2},
                            {LimitKind::kTenant, "north*", 2}, {LimitKind::kTenant, "*", 3},
                            {LimitKind::kKey, "gate", 2},      {LimitKind::kBackfillShare, "", 2}};
const Act kLimitsAct = {"cli:somebody@somewhere", "limits"};

LimitRule RuleOf(const Ruled& ruled, Random& random) {
  const int most = 1 + static_cast<int>(random.Below(ruled.most));
  // Of back-fill the per cent.
  return {ruled.kind, ruled.name, ruled.kind == LimitKind::kBackfillShare ? 30 * most : most};
}

// A share is one of the global limit.
void WithGlobal(SetLimitsRequest& request, Random& random) {
  const auto has = [&](LimitKind kind) {
    return std::any_of(request.set.begin(), request.set.end(),
                       [kind](const LimitRule& rule) { return rule.kind == kind; });
  };
  if (has(LimitKind::kBackfillShare) && !has(LimitKind::kGlobal)) {
    request.set.push_back(RuleOf(kRuled[0], random));
  }
}

std::string ScheduleOf(int every) {
  return every == 60 ? "0 * * * * *" : absl::StrCat("*/", every, " * * * * *");
}

const SimVersion& InForce(const std::vector<SimVersion>& versions, absl::Time t) {
  size_t i = versions.size() - 1;
  while (i > 0 && versions[i].from > t) --i;
  return versions[i];
}

Job MakeJob(int number, int every, Random& random) {
  Job job;
  job.name = absl::StrCat("job-", number);
  job.schedule = ScheduleOf(every);
  job.dialect = Dialect::kSeconds6;
  job.period = PeriodKind::kFire;
  job.misfire =
      random.OneIn(2) ? Misfire::kEach : (random.OneIn(2) ? Misfire::kLatest : Misfire::kSkip);
  job.overlap = Overlap::kForbid;
  if (job.misfire == Misfire::kEach) {
    job.backfill.order = random.OneIn(3) ? Order::kNone : Order::kStrict;
    job.backfill.max_periods = 3 + static_cast<int>(random.Below(6));
    if (random.OneIn(3)) job.overlap = Overlap::kQueue;
  } else if (random.OneIn(3)) {
    job.overlap = Overlap::kReplace;
  } else if (random.OneIn(2)) {
    job.overlap = Overlap::kQueue;
  }
  if (job.overlap == Overlap::kForbid && job.backfill.order == Order::kNone && random.OneIn(4)) {
    job.overlap = Overlap::kAllow;
    job.lock.scope = LockScope::kPeriod;
    job.limit = 1 + static_cast<int>(random.Below(3));
  }
  job.start_deadline = absl::Seconds(6 + random.Below(6));
  job.lock.ttl = absl::Seconds(4 + random.Below(5));
  if (number % 2 == 1) job.lock.provider = LockProvider::kRedis;  // lying_door.h
  job.grace = absl::Seconds(1);
  job.timeout = absl::Seconds(15 + random.Below(20));
  job.retry.attempts = 1 + static_cast<int>(random.Below(3));
  job.retry.backoff_min = absl::Seconds(1);
  job.retry.backoff_max = absl::Seconds(8);
  const uint64_t recovery = random.Below(6);
  job.recovery = recovery == 0   ? Recovery::kHold
                 : recovery == 1 ? Recovery::kResume
                                 : Recovery::kRerun;
  job.max_lost = random.OneIn(3) ? 2 : 5;
  if (random.OneIn(4)) job.spread = absl::Seconds(2);
  for (const char* label : kLabels) {
    if (random.OneIn(6)) job.nodes.push_back(label);
  }
  if (random.OneIn(4)) job.commit = CommitBy::kJob;
  if (job.misfire == Misfire::kEach) {
    if (random.OneIn(4)) job.backfill.max_age = absl::Seconds(30 + random.Below(90));
    if (random.OneIn(4)) job.backfill.source_window = absl::Seconds(40 + random.Below(90));
  }
  job.run.kind = RunKind::kHandler;
  job.run.handler = "work";
  return job;
}

// Due once, within the first two minutes; it has to be done for the others of its day.
SimJob MakeDailyJob(int number, Random& random) {
  SimJob daily;
  daily.job = MakeJob(number, 60, random);
  Job& job = daily.job;
  const int minute = static_cast<int>(random.Below(2)), second = static_cast<int>(random.Below(60));
  job.schedule = absl::StrCat(second, " ", minute, " 0 * * *");
  job.misfire = Misfire::kEach;
  job.overlap = Overlap::kForbid;
  job.backfill.max_age = job.backfill.source_window = absl::InfiniteDuration();
  daily.versions = {{absl::InfinitePast(), kDay, absl::Minutes(minute) + absl::Seconds(second)}};
  return daily;
}

}  // namespace

std::vector<SimJob> MakeJobs(Random& random) {
  std::vector<SimJob> jobs;
  const int count = 2 + static_cast<int>(random.Below(3));
  for (int i = 0; i < count; ++i) {
    const int every = kSeconds[random.Below(std::size(kSeconds))];
    jobs.push_back({MakeJob(i, every, random), {{absl::InfinitePast(), absl::Seconds(every)}}});
  }
  if (random.OneIn(2)) {
    jobs.push_back(MakeDailyJob(count, random));
    jobs[random.Below(count)].job.after.push_back({jobs.back().job.name});
  }
  return jobs;
}

void GiveTenants(std::vector<SimJob>& jobs, Random& random) {
  constexpr const char* kTenants[] = {"", "north", "north-east", "south"};
  for (SimJob& sim : jobs) {
    Job& job = sim.job;
    job.tenant = kTenants[random.Below(std::size(kTenants))];
    if (random.OneIn(2)) job.limit_key = "gate";
    if (job.misfire == Misfire::kEach && job.backfill.order == Order::kNone) {
      job.backfill.max_parallel = 1 + static_cast<int>(random.Below(3));
    }
  }
}

SetLimitsRequest MakeLimits(Random& random) {
  SetLimitsRequest request;
  for (const Ruled& ruled : kRuled) {
    if (random.OneIn(3)) continue;
    request.set.push_back(RuleOf(ruled, random));
  }
  WithGlobal(request, random);
  request.act = kLimitsAct;
  return request;
}

SetLimitsRequest ChangeLimits(Random& random) {
  SetLimitsRequest request;
  const LimitRule rule = RuleOf(kRuled[random.Below(std::size(kRuled))], random);
  (random.OneIn(4) ? request.clear : request.set).push_back(rule);
  request.act = kLimitsAct;
  return request;
}

void ChangeJob(SimJob& job, absl::Time now, Random& random) {
  job.job.timeout += absl::Seconds(1 + random.Below(5));
  job.job.start_deadline += absl::Seconds(random.Below(3));
  SimVersion version = job.versions.back();
  version.from = now;
  if (random.OneIn(2) && version.every != kDay) {
    const int seconds = kSeconds[random.Below(std::size(kSeconds))];
    job.job.schedule = ScheduleOf(seconds);
    version.every = absl::Seconds(seconds);
  }
  job.versions.push_back(version);
}

bool IsDue(const std::vector<SimVersion>& versions, absl::Time t) {
  const SimVersion& version = InForce(versions, t);
  const absl::Duration since = t - absl::UnixEpoch() - version.offset;
  return since == absl::Floor(since, version.every);
}

absl::Time NextDue(const std::vector<SimVersion>& versions, absl::Time t) {
  // All of them are due on whole seconds.
  absl::Duration next = absl::Floor(t - absl::UnixEpoch(), absl::Seconds(1)) + absl::Seconds(1);
  while (!IsDue(versions, absl::UnixEpoch() + next)) next += absl::Seconds(1);
  return absl::UnixEpoch() + next;
}

std::vector<std::string> MakeLabels(bool first_node, Random& random) {
  std::vector<std::string> labels;
  for (const char* label : kLabels) {
    if (random.OneIn(2) || first_node) labels.push_back(label);
  }
  return labels;
}

int StepsOf(const std::string& job) { return 1 + static_cast<unsigned char>(job.back()) % 3; }

Fate MakeFate(const Job& job, bool trouble, Random& random) {
  Fate fate;
  fate.steps = StepsOf(job.name);
  fate.by_job = job.commit == CommitBy::kJob;
  fate.step = absl::Milliseconds(50 + random.Below(600));
  if (!trouble) return fate;
  if (random.OneIn(4)) fate.step = absl::Milliseconds(500 + random.Below(4000));
  fate.ignores_term = random.OneIn(5);
  const uint64_t end = random.Below(12);
  if (end == 0) fate.exit_code = 3;
  if (end == 1) fate.hangs = true;
  fate.forgets = end == 2;
  if (fate.by_job && random.OneIn(2)) fate.before_commit = absl::Seconds(random.Below(12));
  return fate;
}

}  // namespace matins
