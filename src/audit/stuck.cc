#include "audit/stuck.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "store/rules.h"

namespace matins {
namespace {

// What the lanes may take to move something, on a busy machine.
constexpr absl::Duration kSlack = absl::Minutes(1);
// Until when a row that START has to have judged may wait for its planner.
constexpr absl::Duration kJudgeSlack = absl::Minutes(10);
// Planning looks seconds ahead; further, and the cursor was written under another clock.
constexpr absl::Duration kCursorAhead = absl::Minutes(5);

const Job& Words(const AuditJob& job) { return job.versions.back().job->job; }

bool IsAlive(absl::Span<const NodeRow> nodes, const std::string& name, absl::Time now) {
  return std::any_of(nodes.begin(), nodes.end(), [&](const NodeRow& node) {
    return node.name == name && !node.left && now - node.seen_at <= kNodeGone;
  });
}

std::string RunningStuck(const AuditJob& job, const PeriodRow& row, absl::Time now) {
  if (row.lease_until == absl::InfinitePast()) {
    if (row.claimed_at == absl::InfinitePast() ||
        now - row.claimed_at <= Words(job).stale_after + kSlack) {
      return "";
    }
    return absl::StrCat("RUNNING without a lease since ", FormatInstant(row.claimed_at),
                        ", past stale_after");
  }
  if (now <= row.lease_until + kSlack) return "";
  const bool never_beat = row.lease_until <= row.claimed_at + Words(job).lock.ttl;
  return absl::StrCat(never_beat ? "claimed and never beaten: its" : "its", " lease ended at ",
                      FormatInstant(row.lease_until), " and nobody took it back");
}

std::string PlannedStuck(const AuditJob& job, const PeriodRow& row, const AuditQuestion& question) {
  if (!row.held_by.empty() && row.held_until + kSlack < question.now) {
    const bool alive = IsAlive(question.nodes, row.held_by, question.now);
    return absl::StrCat("held by ", row.held_by, alive ? "" : ", which is dead,", " since before ",
                        FormatInstant(row.held_until), ", and not started");
  }
  if (job.row.suspension || row.attempts_total > 0 || row.start_by == absl::InfiniteFuture() ||
      row.start_by + kJudgeSlack >= question.now) {
    return "";
  }
  return absl::StrCat("planned in the past: it may not start after ", FormatInstant(row.start_by),
                      ", and nobody has judged it since");
}

AuditFinding Stuck(const PeriodRow& row, std::string why) {
  return {.kind = AuditKind::kStuck,
          .period = row.key.period,
          .last_period = row.key.period,
          .due = row.due,
          .why = std::move(why)};
}

}  // namespace

std::vector<AuditFinding> FindStuck(const AuditJob& job, const AuditQuestion& question) {
  std::vector<AuditFinding> found;
  for (const PeriodRow& row : job.rows) {
    std::string why;
    if (row.status == PeriodStatus::kRunning) why = RunningStuck(job, row, question.now);
    if (row.status == PeriodStatus::kPlanned) why = PlannedStuck(job, row, question);
    if (!why.empty()) found.push_back(Stuck(row, std::move(why)));
  }
  if (job.row.cursor > question.now + kCursorAhead) {
    found.push_back(
        {.kind = AuditKind::kStuck,
         .why = absl::StrCat("its cursor is in the future, at ", FormatInstant(job.row.cursor),
                             ": the store's clock has been ahead")});
  }
  return found;
}

absl::Duration LongestLock(const AuditJob& job) {
  const Job& words = Words(job);
  return words.lock.ttl + words.grace + kSlack;
}

std::vector<AuditFinding> FindOwnership(const AuditFacts& facts, absl::Span<const AuditJob> jobs,
                                        absl::Duration longest_lock) {
  std::vector<AuditFinding> found;
  const absl::Duration longest = std::max(longest_lock, absl::Minutes(2));
  for (const AuditJob& job : jobs) {
    const Job& words = Words(job);
    int64_t alive = 0;
    std::string first, last;
    for (const PeriodRow& row : job.rows) {
      if (row.status != PeriodStatus::kRunning || row.lease_until <= facts.now) continue;
      if (alive++ == 0) first = row.key.period;
      last = row.key.period;
    }
    if (alive < 2 || words.overlap == Overlap::kAllow || words.lock.scope != LockScope::kJob) {
      continue;
    }
    found.push_back({.kind = AuditKind::kTooMany,
                     .job = job.row.name,
                     .period = first,
                     .last_period = last,
                     .count = alive,
                     .why = absl::StrCat(alive, " runs are alive at once, in spite of its lock")});
  }
  for (const AuditFacts::Double& twice : facts.doubles) {
    found.push_back(
        {.kind = AuditKind::kTooMany,
         .job = twice.key.job,
         .period = twice.key.period,
         .last_period = twice.key.period,
         .why = absl::StrCat(twice.count, " accepted results in generation ", twice.generation)});
  }
  for (const AuditFacts::Lock& lock : facts.locks) {
    if (lock.until <= facts.now + longest && lock.until != absl::InfinitePast()) continue;
    found.push_back({.kind = AuditKind::kStuck,
                     .job = lock.key.job,
                     .period = lock.key.period,
                     .last_period = lock.key.period,
                     .why = absl::StrCat("lock ", lock.lock_key, " of run ", lock.fence,
                                         " is nobody's and outlasts any lease; delete its row of "
                                         "job_lock")});
  }
  return found;
}

}  // namespace matins
