#include "pure.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "expect/expect.h"
#include "job/json.h"
#include "job/parse.h"
#include "job/resolve.h"
#include "plan/plan.h"
#include "schedule/schedule.h"

namespace matins::bench {
namespace {

constexpr std::pair<const char*, const char*> kExpressions[] = {
    {"every_5_minutes", "*/5 * * * *"}, {"nightly", "0 1 * * *"},
    {"first_mondays", "0 9 1-7 * 1"},   {"leap_days", "0 0 29 2 *"},
    {"in_the_gap", "0 30 2 ? 3 SUN#2"}, {"office_hours", "Mon..Fri *-*-* 08..17:0/15"},
};
constexpr int kFires = 1000;
constexpr int kJobs = 100;
const absl::Time kBegin = absl::FromUnixSeconds(1'768'000'000);  // 2026-01-09
const absl::Time kEnd = absl::FromUnixSeconds(4'000'000'000);    // 2096

// What is computed must not be optimised away.
volatile int64_t sink;

template <typename T>
T Value(absl::StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "pure: %s\n", value.status().ToString().c_str());
    std::exit(1);
  }
  return *std::move(value);
}

ScheduleOptions InNewYork() { return {.zone = Value(LoadZone("America/New_York"))}; }

void AddSchedules(std::vector<PureWork>* all) {
  const ScheduleOptions options = InNewYork();
  for (const auto& [name, expression] : kExpressions) {
    const Schedule schedule = Value(Schedule::Parse(expression, options));
    all->push_back({absl::StrCat("next/", name), expression, kFires, [schedule] {
                      absl::Time after = kBegin;
                      for (int i = 0; i < kFires; ++i) {
                        const std::optional<Fire> fire = schedule.Next(after);
                        after = fire && fire->at < kEnd ? fire->at : kBegin;
                      }
                      sink = absl::ToUnixSeconds(after);
                    }});
  }
  for (const auto& [name, expression] : kExpressions) {
    all->push_back({absl::StrCat("parse/", name), expression, 1,
                    [options, text = expression] { sink = Schedule::Parse(text, options).ok(); }});
  }
}

std::string JobsFile() {
  std::string text = "jobs:\n";
  for (int i = 0; i < kJobs; ++i) {
    absl::StrAppend(&text, "  - name: settle-", i, "\n    schedule: '", i % 60,
                    " * * * *'\n    timezone: America/New_York\n    misfire: each\n"
                    "    run: { command: [settle, --date, '{{biz_date}}'] }\n    timeout: 10m\n");
  }
  return text;
}

// What planning reads of one job, and what its definition means.
struct Planned {
  JobState state;
  std::unique_ptr<ResolvedJob> meaning;
};

std::vector<Planned> PlannedJobs(const JobFile& file) {
  std::vector<Planned> jobs;
  for (const Job& job : file.jobs) {
    Planned planned;
    planned.meaning = std::make_unique<ResolvedJob>(Value(ResolveJob(job)));
    planned.state.job = job.name;
    planned.state.revision = 7;
    planned.state.first_sight = kBegin - absl::Hours(24 * 30);
    planned.state.cursor = kBegin;
    planned.state.versions = {{1, planned.state.first_sight, ""}};
    jobs.push_back(std::move(planned));
  }
  return jobs;
}

void AddPlanning(std::vector<PureWork>* all, const JobFile& file) {
  const auto jobs = std::make_shared<std::vector<Planned>>(PlannedJobs(file));
  const auto pass = [jobs](absl::Time now) {
    int64_t intents = 0;
    for (const Planned& job : *jobs) {
      const VersionInForce version{1, job.state.first_sight, job.meaning.get()};
      intents += static_cast<int64_t>(
          Value(PlanJob({.state = &job.state, .versions = {&version, 1}, .now = now}))
              .intents.size());
    }
    sink = intents;
  };
  all->push_back({"plan/one_fire", "hourly jobs, each with one fire since", kJobs,
                  [pass] { pass(kBegin + absl::Hours(1)); }});
  all->push_back({"plan/a_day", "hourly jobs after a day's outage", kJobs,
                  [pass] { pass(kBegin + absl::Hours(24)); }});
}

// The expected set of a nightly job's year, as an audit asks for it; a thousand jobs are a thousand
// of it.
void AddExpecting(std::vector<PureWork>* all) {
  Job nightly;
  nightly.name = "settle";
  nightly.schedule = "0 1 * * *";
  nightly.timezone = "America/New_York";
  nightly.period = PeriodKind::kDay;
  nightly.biz_date = {-1, BizShift::Unit::kDay};
  nightly.misfire = Misfire::kEach;
  const auto job = std::make_shared<ResolvedJob>(Value(ResolveJob(nightly)));
  all->push_back({"expect/a_year", "a nightly job's year", 1, [job] {
                    const DatedVersion version{1, kBegin, job.get()};
                    sink = static_cast<int64_t>(ExpectPeriods({.versions = {&version, 1},
                                                               .first_sight = kBegin,
                                                               .from = absl::CivilDay(2026, 2, 1),
                                                               .to = absl::CivilDay(2027, 1, 31),
                                                               .until = kEnd})
                                                    .periods.size());
                  }});
}

void AddFiles(std::vector<PureWork>* all, const std::string& text, const JobFile& file) {
  all->push_back({"job/parse_file", "a file of 100 jobs, for each job", kJobs, [text] {
                    sink = static_cast<int64_t>(Value(ParseJobText("bench", text)).jobs.size());
                  }});
  std::vector<std::string> definitions;
  for (const Job& job : file.jobs) definitions.push_back(JobToJson(job));
  all->push_back(
      {"job/from_json", "a definition as the store has it, to its meaning", kJobs, [definitions] {
         for (const std::string& definition : definitions) {
           sink = ResolveJob(Value(StoredJob(definition))).ok();
         }
       }});
}

}  // namespace

std::vector<PureWork> AllPureWork() {
  std::vector<PureWork> all;
  AddSchedules(&all);
  const std::string text = JobsFile();
  const JobFile file = Value(ParseJobText("bench", text));
  AddPlanning(&all, file);
  AddExpecting(&all);
  AddFiles(&all, text, file);
  return all;
}

}  // namespace matins::bench
