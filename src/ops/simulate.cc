#include "ops/simulate.h"

#include <algorithm>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/time.h"
#include "job/calendar_fires.h"
#include "job/json.h"
#include "job/resolve.h"
#include "ops/exec.h"

namespace matins {
namespace {

constexpr int kLookBack = 500;

std::string KeyOf(const ResolvedJob& job, const CalendarFire& fire) {
  if (!fire.covered) return "";
  const std::optional<Fire> before = PreviousFire(job, fire.fire.at);
  const absl::StatusOr<Period> period = PeriodOf(
      job.period_rule, fire.fire, before ? std::optional<absl::Time>(before->at) : std::nullopt);
  return period.ok() ? period->key : "";
}

// The fires in [from, to), at most `most` and one more.
std::map<absl::Time, std::string> FiresOf(const ResolvedJob& job, absl::Time from, absl::Time to,
                                          int most) {
  std::map<absl::Time, std::string> fires;
  absl::Time after = from - absl::Microseconds(1);
  while (static_cast<int>(fires.size()) <= most) {
    const std::optional<CalendarFire> next = NextFire(job, after);
    if (!next || next->fire.at >= to) break;
    fires[next->fire.at] = KeyOf(job, *next);
    after = next->fire.at;
  }
  return fires;
}

void Compare(const std::map<absl::Time, std::string>& before,
             const std::map<absl::Time, std::string>& after, JobDiff& diff, int most) {
  std::vector<FireChange> changes;
  // Beyond the end of the shorter list nobody knows.
  const auto full = [&](const std::map<absl::Time, std::string>& fires) {
    return static_cast<int>(fires.size()) > most;
  };
  absl::Time end = absl::InfiniteFuture();
  if (full(before)) end = std::min(end, before.rbegin()->first);
  if (full(after)) end = std::min(end, after.rbegin()->first);
  for (const auto& [at, period] : before) {
    const auto other = after.find(at);
    if (at < end && (other == after.end() || other->second != period)) {
      changes.push_back({at, false, period});
    }
  }
  for (const auto& [at, period] : after) {
    const auto other = before.find(at);
    if (at < end && (other == before.end() || other->second != period)) {
      changes.push_back({at, true, period});
    }
  }
  std::sort(changes.begin(), changes.end(), [](const FireChange& a, const FireChange& b) {
    return std::tie(a.at, a.added) < std::tie(b.at, b.added);
  });
  diff.more = end != absl::InfiniteFuture() || static_cast<int>(changes.size()) > most;
  if (static_cast<int>(changes.size()) > most) changes.resize(most);
  diff.fires = std::move(changes);
}

}  // namespace

absl::StatusOr<JobDurations> ParseDurations(absl::string_view text) {
  JobDurations durations;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const size_t colon = line.find(':');
    if (colon == absl::string_view::npos) {
      return BadInput(absl::StrCat("line ", number), absl::StrCat("'", line, "' names no duration"),
                      "write it like recon: 12m, or recon: 10m, 12m, 45m");
    }
    const std::string job(absl::StripAsciiWhitespace(line.substr(0, colon)));
    for (absl::string_view word : absl::StrSplit(line.substr(colon + 1), ',')) {
      absl::StatusOr<absl::Duration> d = ParseDuration(absl::StripAsciiWhitespace(word));
      if (!d.ok()) return Annotate(d.status(), absl::StrCat("line ", number));
      durations[job].push_back(*d);
    }
  }
  return durations;
}

absl::StatusOr<JobDurations> DurationsFromHistory(Session& session,
                                                  const std::vector<std::string>& jobs) {
  JobDurations durations;
  for (const std::string& job : jobs) {
    RunFilter filter;
    filter.job = job;
    filter.limit = kLookBack;
    ASSIGN_OR_RETURN(const std::vector<RunRow> runs, session.acts().ReadRuns(filter));
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
      if (run->status != "DONE" || run->claimed_at == absl::InfinitePast()) continue;
      durations[job].push_back(std::max(absl::ZeroDuration(), run->finished_at - run->claimed_at));
    }
  }
  return durations;
}

absl::StatusOr<std::vector<JobDiff>> DiffJobs(const std::vector<Job>& before,
                                              const std::vector<Job>& after, absl::Time from,
                                              absl::Time to, int most) {
  std::map<std::string, std::pair<const Job*, const Job*>> jobs;
  for (const Job& job : before) jobs[job.name].first = &job;
  for (const Job& job : after) jobs[job.name].second = &job;
  std::vector<JobDiff> diffs;
  for (const auto& [name, of] : jobs) {
    JobDiff diff;
    diff.job = name;
    std::map<absl::Time, std::string> old_fires, new_fires;
    if (of.first != nullptr) {
      ASSIGN_OR_RETURN(const ResolvedJob job, ResolveJob(*of.first));
      old_fires = FiresOf(job, from, to, most);
    }
    if (of.second != nullptr) {
      ASSIGN_OR_RETURN(const ResolvedJob job, ResolveJob(*of.second));
      new_fires = FiresOf(job, from, to, most);
    }
    if (of.first != nullptr && of.second != nullptr) {
      if (*of.first == *of.second) continue;
      diff.what = JobDiff::What::kChanged;
      diff.differences = DifferencesOf(JobToJson(*of.first), JobToJson(*of.second));
    } else {
      diff.what = of.first == nullptr ? JobDiff::What::kAdded : JobDiff::What::kRemoved;
    }
    Compare(old_fires, new_fires, diff, most);
    diffs.push_back(std::move(diff));
  }
  return diffs;
}

}  // namespace matins
