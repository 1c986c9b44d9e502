#include "job/lint.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/time.h"
#include "job/key_template.h"
#include "job/resolve.h"
#include "job/words.h"

namespace matins {
namespace {

using Findings = std::vector<Finding>;

constexpr absl::Duration kShortLease = absl::Seconds(10);
constexpr absl::Duration kTwoYears = absl::Hours(24 * 731);
constexpr int kCalendarWarnDays = 60;
constexpr int kMostFires = 20'000;  // two years of half-hours, and no more
constexpr size_t kMostShown = 6;

void FindLease(const Job& job, Findings& found) {
  if (job.lock.ttl >= kShortLease) return;
  found.push_back(
      {{"lock.ttl"},
       absl::StrCat("a lease of ", DurationText(job.lock.ttl),
                    " cannot be kept by heartbeats: it must outlast a pause of the node, of the "
                    "network and a failover of the database"),
       "write ttl: 30s"});
}

void FindLocks(const Job& job, Findings& found) {
  const bool per_period = job.lock.scope == LockScope::kPeriod ||
                          (job.lock.scope == LockScope::kKey && KeyNamesPeriod(job.lock.key));
  if (per_period && job.overlap != Overlap::kAllow) {
    found.push_back({{"lock.scope", "overlap"},
                     absl::StrCat("the lock is another one for each period, so that two can run at "
                                  "once in spite of overlap: ",
                                  Word(job.overlap)),
                     "write overlap: allow, or lock: { scope: job }"});
  }
  if (job.backfill.order == Order::kStrict && job.backfill.max_parallel.value_or(2) > 1) {
    found.push_back({{"backfill.max_parallel"},
                     "strict order runs one period after the other, whatever max_parallel says",
                     "write max_parallel: 1, or order: none"});
  }
}

void FindProgram(const char* key, const RunSpec& run, const std::string& dir, Findings& found) {
  if (run.kind != RunKind::kCommand || !dir.empty() || run.command.empty()) return;
  const std::string& program = run.command[0];
  if (!absl::StrContains(program, '/') || program[0] == '/') return;
  found.push_back({{key},
                   absl::StrCat("'", program, "' is a path from the job's dir, and it has none"),
                   "write dir: /whole/path, or the program's whole path"});
}

void FindCoverage(const ResolvedJob& job, absl::Time now, Findings& found) {
  if (!job.calendar || !job.calendar->until()) return;
  const absl::CivilDay until = *job.calendar->until();
  const absl::CivilDay today = absl::ToCivilDay(now, job.schedule.zone());
  if (until - today > kCalendarWarnDays) return;
  found.push_back(
      {{"calendar"},
       absl::StrCat("calendar ", job.job.calendar, until < today ? " ended on " : " ends on ",
                    FormatDay(until), "; fires after that day are refused"),
       "extend its days, then its until:"});
}

// The days of a cron expression's day-of-month field, where only they decide: a list of numbers
// under any month and any weekday. Empty: something else.
std::vector<int> DaysOfMonth(const Schedule& schedule) {
  const std::vector<std::string> fields =
      absl::StrSplit(schedule.expression(), absl::ByAnyChar(" \t"), absl::SkipEmpty());
  const bool seconds =
      schedule.dialect() == Dialect::kSeconds6 || schedule.dialect() == Dialect::kQuartz;
  const size_t day = seconds ? 3 : 2;
  if (schedule.dialect() == Dialect::kOnCalendar || fields.size() < day + 3) return {};
  const auto any = [](const std::string& field) { return field == "*" || field == "?"; };
  if (!any(fields[day + 1]) || !any(fields[day + 2])) return {};
  std::vector<int> days;
  for (const absl::string_view part : absl::StrSplit(fields[day], ',')) {
    int value;
    if (!absl::SimpleAtoi(part, &value)) return {};
    days.push_back(value);
  }
  return days;
}

void FindMonths(const ResolvedJob& job, Findings& found) {
  if (job.job.at) return;
  const std::vector<int> days = DaysOfMonth(job.schedule);
  if (days.empty()) return;
  const int first = *std::min_element(days.begin(), days.end());
  if (first < 29) return;
  std::vector<std::string> months;
  if (first >= 30) {
    months.push_back("February");
  } else {
    months.push_back("February outside leap years");
  }
  if (first == 31) months.insert(months.end(), {"April", "June", "September", "November"});
  found.push_back(
      {{"schedule"},
       absl::StrCat("day ", first, " of the month passes over ", absl::StrJoin(months, ", ")),
       "write L (the last day, Quartz) or another day if each month is meant"});
}

// The key under which fires fall together: days, weeks or months of nominal local time.
absl::CivilDay Bucket(PeriodKind kind, absl::CivilDay day) {
  if (kind == PeriodKind::kMonth) return absl::CivilDay(absl::CivilMonth(day));
  if (kind == PeriodKind::kWeek) return absl::PrevWeekday(day + 1, absl::Weekday::monday);
  return day;
}

using Counts = std::map<absl::CivilDay, int>;

// Fires a bucket; nothing where there are too many to count.
std::optional<Counts> CountFires(const Schedule& schedule, PeriodKind kind, absl::CivilDay from,
                                 absl::CivilDay to) {
  Counts counts;
  std::optional<Fire> fire =
      schedule.Next(absl::FromCivil(from, schedule.zone()) - absl::Seconds(1));
  for (int i = 0; fire && absl::CivilDay(fire->nominal) < to; ++i) {
    if (i >= kMostFires) return std::nullopt;
    ++counts[Bucket(kind, absl::CivilDay(fire->nominal))];
    fire = schedule.Next(fire->at);
  }
  return counts;
}

std::string ShownDays(const std::vector<absl::CivilDay>& days) {
  std::vector<std::string> shown;
  for (const absl::CivilDay day : days) {
    if (shown.size() == kMostShown) {
      shown.push_back(absl::StrCat("and ", days.size() - kMostShown, " more"));
      break;
    }
    shown.push_back(FormatDay(day));
  }
  return absl::StrJoin(shown, ", ");
}

// What the zone's clock changes do, told by the same schedule under a clock that never changes:
// weekends and holidays, which are meant, are without a fire under both.
void FindClockChanges(const ResolvedJob& job, absl::Time now, Findings& found) {
  const Job& words = job.job;
  if (words.at || words.period == PeriodKind::kHour) return;
  if (absl::StartsWith(words.schedule, "@every")) return;
  Job steady_words = words;
  const std::vector<std::string> parts = absl::StrSplit(words.schedule, ' ', absl::SkipEmpty());
  if (job.schedule.dialect() == Dialect::kOnCalendar && parts.size() > 1 &&
      LoadZone(parts.back()).ok()) {
    steady_words.schedule =
        absl::StrJoin(parts.begin(), parts.end() - 1, " ");  // its own zone would win
  }
  const auto steady = ResolveSchedule(steady_words, absl::UTCTimeZone());
  if (!steady.ok()) return;
  const absl::CivilDay from = Bucket(words.period, absl::ToCivilDay(now, job.schedule.zone()));
  const absl::CivilDay to = absl::ToCivilDay(now + kTwoYears, job.schedule.zone());
  const auto meant = CountFires(*steady, words.period, from, to);
  if (!meant) return;
  const auto real = CountFires(job.schedule, words.period, from, to);
  if (!real) return;
  std::vector<absl::CivilDay> none, twice;
  for (const auto& [day, count] : *meant) {
    const auto it = real->find(day);
    const int fires = it == real->end() ? 0 : it->second;
    if (fires == 0) none.push_back(day);
    if (count == 1 && fires > 1) twice.push_back(day);
  }
  if (!none.empty()) {
    found.push_back({{"schedule"},
                     absl::StrCat("no fire on ", ShownDays(none), ": the clock of ",
                                  job.schedule.zone().name(), " jumps over its time"),
                     "take another time of day, or dst: { gap: next }"});
  }
  if (!twice.empty()) {
    found.push_back({{"schedule"},
                     absl::StrCat("two fires on ", ShownDays(twice), ": the clock of ",
                                  job.schedule.zone().name(), " shows its time twice"),
                     "take another time of day, or dst: { overlap: first }"});
  }
}

void FindNoFuture(const ResolvedJob& job, absl::Time now, Findings& found) {
  if (!job.job.at) {
    if (job.schedule.Next(now)) return;
    found.push_back({{"schedule"}, "never fires again", "write one that has a time to come"});
  } else if (*job.job.at + job.job.start_deadline < now) {
    found.push_back({{"at"},
                     absl::StrCat(FormatInstant(*job.job.at),
                                  " has passed by more than start_deadline: a job that is first "
                                  "seen after it starts nothing"),
                     "write an instant to come, or take the job out"});
  }
}

constexpr absl::Duration kAuditLook = absl::Hours(24 * 32);
constexpr int kMostAudits = 2000;
// A job that fires more often than this has no time of day without one.
constexpr absl::Duration kOften = absl::Hours(2);

bool FiresAt(const Schedule& schedule, absl::Time at) {
  const std::optional<Fire> fire = schedule.Next(at - absl::Nanoseconds(1));
  return fire && fire->at == at;
}

void FindAuditBeat(const ResolvedJob& job, absl::Time now, Findings& found) {
  const auto audit = Schedule::Parse(job.job.audit, {.zone = job.schedule.zone()});
  if (!audit.ok()) return;
  std::optional<Fire> beat = audit->Next(now);
  for (int i = 0; beat && beat->at < now + kAuditLook && i < kMostAudits; ++i) {
    const absl::Time at = beat->at;
    beat = audit->Next(at);
    if (!FiresAt(job.schedule, at)) continue;
    const std::optional<Fire> before = job.schedule.Previous(at);
    if (before && at - before->at < kOften) return;
    found.push_back({{"audit", "schedule"},
                     absl::StrCat("the audit looks at ", FormatInstant(at),
                                  ", at the very fire of its job: whatever stops the one stops "
                                  "the other"),
                     "write audit: \"0 9 * * *\", or another time than the job's"});
    return;
  }
}

}  // namespace

std::optional<Finding> FindSharedAudit(const std::vector<Job>& jobs, const std::string& store_audit,
                                       absl::Time now) {
  const auto all = Schedule::Parse(store_audit, {.zone = absl::UTCTimeZone()});
  std::set<std::pair<std::string, std::string>> seen;
  for (const Job& job : jobs) {
    if (!seen.emplace(job.audit, job.timezone).second) continue;
    const auto zone = LoadZone(job.timezone);
    if (!zone.ok() || !all.ok()) continue;
    const auto own = Schedule::Parse(job.audit, {.zone = *zone});
    if (!own.ok()) continue;
    std::optional<Fire> beat = own->Next(now);
    for (int i = 0; beat && beat->at < now + kAuditLook && i < kMostAudits; ++i) {
      if (FiresAt(*all, beat->at)) {
        return Finding{
            {"audit"},
            absl::StrCat("the audit of job '", job.name,
                         "' and that of all jobs fall "
                         "together at ",
                         FormatInstant(beat->at), ": neither sees that the other is missing"),
            absl::StrCat("write audit: \"", kStoreAudit,
                         "\" for all jobs, or another minute for the job's")};
      }
      beat = own->Next(beat->at);
    }
  }
  return std::nullopt;
}

Findings FindWarnings(const ResolvedJob& job, absl::Time now) {
  Findings found;
  FindLease(job.job, found);
  FindLocks(job.job, found);
  FindProgram("run", job.job.run, job.job.dir, found);
  if (job.job.check) FindProgram("check", *job.job.check, job.job.dir, found);
  FindNoFuture(job, now, found);
  FindCoverage(job, now, found);
  FindAuditBeat(job, now, found);
  FindMonths(job, found);
  FindClockChanges(job, now, found);
  return found;
}

}  // namespace matins
