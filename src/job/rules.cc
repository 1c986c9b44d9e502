#include "job/rules.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/time.h"
#include "job/words.h"

namespace matins {
namespace {

using Findings = std::vector<Finding>;

void FindInTime(const Job& job, Findings& found) {
  if (job.schedule.empty() == !job.at.has_value()) {
    found.push_back({{"schedule", "at"},
                     job.at ? "schedule and at are both given" : "neither schedule nor at is given",
                     job.at
                         ? "keep one of them"
                         : "write schedule: \"0 1 * * *\", or at: 2026-11-29T02:00:00Z for once"});
  }
  if (job.biz_date.unit == BizShift::Unit::kBusinessDay && job.calendar.empty()) {
    found.push_back({{"biz_date", "calendar"},
                     absl::StrCat("biz_date ", BizShiftText(job.biz_date),
                                  " counts business days, and the job has no calendar"),
                     "name one: calendar: NAME, or count days: -1d"});
  }
}

void FindInOrder(const Job& job, Findings& found) {
  const bool strict = job.backfill.order == Order::kStrict;
  if (strict && job.misfire != Misfire::kEach) {
    found.push_back({{"backfill.order", "misfire"},
                     absl::StrCat("order: strict with misfire: ", Word(job.misfire),
                                  ": a period that is skipped cannot be waited for"),
                     "write misfire: each, or order: none"});
  }
  if (job.overlap == Overlap::kReplace && job.misfire == Misfire::kEach) {
    found.push_back(
        {{"overlap", "misfire"},
         "overlap: replace with misfire: each: what replace cuts short, each wants whole",
         "write overlap: forbid or queue, or misfire: latest"});
  } else if (job.overlap == Overlap::kReplace && strict) {
    found.push_back(
        {{"overlap", "backfill.order"},
         "overlap: replace with order: strict: the newer period cannot start before the "
         "one it replaces is done",
         "write overlap: forbid or queue, or order: none"});
  }
  if (job.overlap == Overlap::kAllow && job.lock.scope == LockScope::kJob) {
    found.push_back({{"lock.scope", "overlap"},
                     "lock scope: job with overlap: allow: the lock forbids what overlap allows",
                     "write scope: period, or overlap: forbid"});
  }
}

void FindInRun(const Job& job, Findings& found) {
  if (job.retry.backoff_min > job.retry.backoff_max) {
    found.push_back({{"retry.backoff"},
                     "backoff's least is longer than its most",
                     "write the shorter one first: 30s..10m"});
  }
  for (const After& after : job.after) {
    if (after.job == job.name) {
      found.push_back({{"after"}, "the job waits for itself", "take it out of after"});
    }
  }
  if (job.run.kind != RunKind::kHandler) {
    if (job.on_lease_lost == OnLeaseLost::kAbortProcess) {
      found.push_back(
          {{"on_lease_lost", "run"},
           "on_lease_lost: abort_process is for handlers; a command is killed by itself",
           "take it out"});
    }
    return;
  }
  const std::pair<const char*, bool> of_processes[] = {
      {"dir", !job.dir.empty()}, {"user", !job.user.empty()}, {"umask", job.umask.has_value()}};
  for (const auto& [key, given] : of_processes) {
    if (given) {
      found.push_back({{key, "run"},
                       absl::StrCat(key, " is for processes; a handler runs in the program itself"),
                       "take it out, or run a command"});
    }
  }
}

std::optional<absl::Duration> LengthOf(PeriodKind kind) {
  switch (kind) {
    case PeriodKind::kFire:
      return std::nullopt;
    case PeriodKind::kHour:
      return absl::Hours(1);
    case PeriodKind::kDay:
      return absl::Hours(24);
    case PeriodKind::kWeek:
      return absl::Hours(7 * 24);
    case PeriodKind::kMonth:
      return absl::Hours(31 * 24);
  }
  return std::nullopt;
}

constexpr int kMostFires = 400;

// The shortest step, or any step that is not longer than `enough`; nothing: fewer than two fires.
std::optional<absl::Duration> ShortestStep(const Schedule& schedule, absl::Duration enough) {
  std::optional<absl::Duration> shortest;
  std::optional<Fire> fire = schedule.Next(absl::FromUnixSeconds(1'735'689'600));  // 2025
  for (int i = 0; fire && i < kMostFires; ++i) {
    const std::optional<Fire> next = schedule.Next(fire->at);
    if (!next) break;
    const absl::Duration step = next->at - fire->at;
    if (!shortest || step < *shortest) shortest = step;
    if (*shortest <= enough) break;
    fire = next;
  }
  return shortest;
}

}  // namespace

Order DefaultOrder(Misfire misfire) {
  return misfire == Misfire::kEach ? Order::kStrict : Order::kNone;
}

LockScope DefaultScope(Overlap overlap) {
  return overlap == Overlap::kAllow ? LockScope::kPeriod : LockScope::kJob;
}

Findings FindContradictions(const Job& job) {
  Findings found;
  FindInTime(job, found);
  FindInOrder(job, found);
  FindInRun(job, found);
  return found;
}

Findings FindScheduleContradictions(const ResolvedJob& job) {
  const std::optional<absl::Duration> length = LengthOf(job.job.period);
  if (!length || job.job.at) return {};
  const std::optional<absl::Duration> step = ShortestStep(job.schedule, *length);
  if (!step || *step <= *length) return {};
  return {{{"period", "schedule"},
           absl::StrCat("period: ", Word(job.job.period), " is shorter than the schedule's step (",
                        DurationText(*step), " at least): most periods would never have a fire"),
           "take a longer period, or period: fire"}};
}

}  // namespace matins
