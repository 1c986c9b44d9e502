#include "store/start_rules.h"

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/time.h"

namespace matins {
namespace {

void Refuse(Judged& judged, StartResult result, std::string blocker, std::string waits_for = "") {
  judged.answer.result = result;
  judged.answer.blocker = std::move(blocker);
  judged.waits_for = std::move(waits_for);
  judged.put_off = true;
}

}  // namespace

std::vector<Judged> StartRules::Judge(const std::vector<PeriodKey>& keys, size_t named) {
  std::vector<Judged> judged;
  std::set<PeriodKey> seen;
  int extra = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i >= named && (facts_.frozen || extra >= request_.also_due)) break;
    Judged& one = judged.emplace_back();
    one.answer.key = keys[i];
    if (seen.insert(keys[i]).second) JudgeOne(one);
    if (i >= named && one.answer.result == StartResult::kStarted) ++extra;
  }
  return judged;
}

bool StartRules::Ready(const RowFacts& facts, const JobFacts* job, Judged& judged) const {
  const PeriodRow& row = facts.row;
  StartAnswer& answer = judged.answer;
  // What was tried, or asked for by hand, is not judged again.
  const bool tried = row.manual || row.attempts_total > 0;
  if (row.status != PeriodStatus::kPlanned) {
    answer.blocker = row.node;
  } else if (!row.held_by.empty() && row.held_by != request_.node.name &&
             row.held_until > facts_.now) {
    answer.blocker = row.held_by;
  } else if (job == nullptr) {
    answer.blocker = "its job is deleted";
  } else if (job->suspended) {
    Refuse(judged, StartResult::kSuspended, row.key.job);
  } else if (row.not_before > facts_.now && !IsMutant(Mutant::kNoDueCheck)) {
    answer.result = StartResult::kNotDue;
    answer.blocker = FormatInstant(row.not_before);
  } else if (PlanningIsBehind(request_, job->next_look, facts_.now) || (job->asked && !tried)) {
    Refuse(judged, StartResult::kGap, "planning is behind");
  } else if (row.start_by < facts_.now && row.attempts_total == 0) {
    // What was tried is not judged missed again while its attempts last.
    Refuse(judged, StartResult::kMissed, FormatInstant(row.start_by));
  } else if (row.wait_until > facts_.now && !IsMutant(Mutant::kNoOldLease)) {
    Refuse(judged, StartResult::kOldLease, FormatInstant(row.wait_until));
    judged.look_at = row.wait_until;
  } else if (!job->labels) {
    answer.result = StartResult::kLabels;
  } else {
    return true;
  }
  return false;
}

bool StartRules::InOrder(const RowFacts& facts, const JobFacts& job, Judged& judged) const {
  if (!job.strict || IsMutant(Mutant::kNoOrder)) return true;
  if (job.gap_from && *job.gap_from < facts.row.due) {
    Refuse(judged, StartResult::kGap, FormatInstant(*job.gap_from));
  } else if (job.cursor < facts.row.due) {
    Refuse(judged, StartResult::kGap, "older periods are not planned yet");
  } else if (!facts.older.empty()) {
    Refuse(judged, StartResult::kBlocked, facts.older, absl::StrCat("job/", facts.row.key.job));
  } else {
    return true;
  }
  return false;
}

bool StartRules::Free(const RowFacts& facts, const JobFacts& job, Judged& judged) const {
  const std::string own = absl::StrCat("job/", facts.row.key.job);
  const auto backfill = facts_.backfills.find(facts.row.backfill_id);
  const bool asked_for = backfill != facts_.backfills.end();
  // Its own number stands in the job's place.
  const bool own_number = asked_for && backfill->second.terms.max_parallel;
  const std::string lock = absl::StrCat("lock/", facts.lock_key);
  if (!facts.after.empty()) {
    Refuse(judged, StartResult::kAfter, facts.after, absl::StrCat("after/", facts.after));
  } else if (!facts.holder.empty() || locks_taken_.contains(facts.lock_key)) {
    Refuse(judged, StartResult::kBusy, facts.holder.empty() ? facts.lock_key : facts.holder, lock);
  } else if (!facts.leftover.empty() && !IsMutant(Mutant::kNoOldLease)) {
    Refuse(judged, StartResult::kBusy, facts.leftover, lock);
  } else if (std::optional<BackfillStop> stop =
                 asked_for ? StopOf(backfill->first, backfill->second, facts.row, facts_.now)
                           : std::nullopt) {
    Refuse(judged, StartResult::kBackfill, std::move(stop->blocker));
    judged.look_at = stop->look_at;
  } else if (IsMutant(Mutant::kNoLimit)) {
    return true;
  } else if (job.limit && job.running >= *job.limit) {
    Refuse(judged, StartResult::kFull, absl::StrCat("limits.job ", *job.limit), own);
  } else if (facts.row.backfill && !own_number && job.max_parallel &&
             job.backfills >= *job.max_parallel) {
    Refuse(judged, StartResult::kFull, absl::StrCat("backfill.max_parallel ", *job.max_parallel),
           own);
  } else if (request_.global_limit > 0 && facts_.alive >= request_.global_limit) {
    Refuse(judged, StartResult::kFull, absl::StrCat("limits.global ", request_.global_limit),
           "global");
  } else if (auto full = FirstFull(facts_.limits, facts_.taken, ClaimOf(facts))) {
    Refuse(judged, StartResult::kFull, std::move(full->blocker), std::move(full->waits_for));
  } else {
    return true;
  }
  return false;
}

void StartRules::JudgeOne(Judged& judged) {
  if (facts_.frozen) {
    judged.answer.result = StartResult::kFrozen;
    judged.answer.blocker = "the clock stepped; `matins clock accept`";
    return;
  }
  const auto found = facts_.rows.find(judged.answer.key);
  if (found == facts_.rows.end()) return;  // kTaken: gone, or another has it locked
  const RowFacts& facts = found->second;
  judged.row = &facts.row;
  const auto job = facts_.jobs.find(facts.row.key.job);
  JobFacts* const j = job == facts_.jobs.end() ? nullptr : &job->second;
  if (!Ready(facts, j, judged) || !InOrder(facts, *j, judged) || !Free(facts, *j, judged)) return;
  judged.answer.result = StartResult::kStarted;
  ++j->running;
  j->backfills += facts.row.backfill ? 1 : 0;
  const auto backfill = facts_.backfills.find(facts.row.backfill_id);
  if (backfill != facts_.backfills.end()) ++backfill->second.running;
  ++facts_.alive;
  facts_.taken.Add(ClaimOf(facts));
  if (!facts.lock_key.empty()) locks_taken_.insert(facts.lock_key);
}

}  // namespace matins
