#include "store/attempt.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/fault.h"

namespace matins {
namespace {

bool SameAttempt(const PeriodRow& row, const Ticket& ticket) {
  return row.generation == ticket.generation && row.fence == ticket.fence &&
         row.nonce == ticket.nonce;
}

const char* OpOf(Outcome::Kind kind) {
  switch (kind) {
    case Outcome::Kind::kDone:
    case Outcome::Kind::kDoneByJob:
      return "commit";
    case Outcome::Kind::kReturned:
      return "burn";
    default:
      return "fail";
  }
}

}  // namespace

bool OwnedBy(const PeriodRow& row, const Ticket& ticket) {
  if (row.status != PeriodStatus::kRunning) return false;
  return IsMutant(Mutant::kNoFenceCheck) || SameAttempt(row, ticket);
}

bool DoneBy(const PeriodRow& row, const Ticket& ticket) {
  return row.status == PeriodStatus::kDone && SameAttempt(row, ticket);
}

std::string RefusalOf(const PeriodRow* row, const Ticket& ticket, absl::Time now, Asked asked) {
  if (row == nullptr) return "gone";
  if (!OwnedBy(*row, ticket)) return "fence";
  if (IsMutant(Mutant::kNoLeaseCheck)) return "";
  if (asked == Asked::kExtend && IsMutant(Mutant::kReviveLease)) return "";
  if (row->run_until <= now) return "deadline";
  if (row->lease_until <= now) return "lease";
  return "";
}

Ending EndingOf(const Outcome& outcome) {
  Ending ending;
  ending.outcome = outcome;
  ending.run_word = std::string(RunWord(outcome));
  ending.op = OpOf(outcome.kind);
  ending.burn = outcome.kind == Outcome::Kind::kReturned;
  ending.loss = IsLoss(outcome);
  return ending;
}

Ending TakenBack(const PeriodRow& row, const std::optional<LossRule>& rule, absl::Time now) {
  Ending ending;
  ending.outcome.kind =
      rule ? LossOf(*rule, row.losses, row.checkpoint > 0) : Outcome::Kind::kReturned;
  ending.outcome.reason =
      ending.outcome.kind == Outcome::Kind::kHeld ? reason::kHeld : reason::kLost;
  ending.outcome.message = "its end was not known, and it was not committed";
  ending.run_word = "LOST";
  ending.op = row.lease_until > now ? "burn" : "reclaim";
  ending.loss = ending.burn = true;
  if (row.lease_until > now) ending.wait_until = row.lease_until;
  return ending;
}

Ending ReplacedBy(absl::string_view period) {
  Ending ending;
  ending.outcome.reason = reason::kReplaced;
  ending.outcome.message = absl::StrCat("replaced by ", period);
  ending.run_word = "REPLACED";
  ending.op = "skip";
  ending.skip = ending.burn = true;
  return ending;
}

std::optional<absl::Time> DeadSince(const PeriodRow& row,
                                    const std::optional<absl::Duration>& stale_after) {
  if (row.lease_until != absl::InfinitePast()) return row.lease_until;
  if (!stale_after || row.claimed_at == absl::InfinitePast()) return std::nullopt;
  return row.claimed_at + *stale_after;
}

bool MayReap(const PeriodRow& row, const Ticket& ticket,
             const std::optional<absl::Duration>& stale_after, absl::Time now) {
  if (IsMutant(Mutant::kBlindReap)) return true;
  if (row.status != PeriodStatus::kRunning || !SameAttempt(row, ticket)) return false;
  const std::optional<absl::Time> dead = DeadSince(row, stale_after);
  return dead && *dead <= now;
}

Ending ReapedBy(const ReapRequest& request) {
  Ending ending;
  ending.outcome.kind = request.to;
  ending.outcome.reason = request.reason;
  ending.outcome.message = absl::StrCat("the lease ended; taken back by ", request.node);
  ending.run_word = "LOST";
  ending.op = "reclaim";
  ending.loss = ending.burn = true;
  return ending;
}

AfterEnd EndOf(const AttemptRow& row, const Ending& ending, absl::Time now) {
  AfterEnd after;
  after.reason = ending.outcome.reason;
  // Another program's row has none.
  after.not_before = row.not_before != absl::InfinitePast() ? row.not_before
                     : row.due != absl::InfinitePast()      ? row.due
                                                            : now;
  after.attempts = row.attempts;
  after.losses = row.losses + (ending.loss ? 1 : 0);
  after.burn = ending.burn && !IsMutant(Mutant::kNoFenceBump);
  if (ending.skip) {
    after.status = PeriodStatus::kSkipped;
    return after;
  }
  switch (ending.outcome.kind) {
    case Outcome::Kind::kDone:
    case Outcome::Kind::kDoneByJob:
      break;
    case Outcome::Kind::kRetry:
      after.status = PeriodStatus::kPlanned;
      after.not_before = now + ending.outcome.backoff;
      break;
    case Outcome::Kind::kHeld:
      after.held = true;
      [[fallthrough]];
    case Outcome::Kind::kFailed:
      after.status = PeriodStatus::kFailed;
      break;
    case Outcome::Kind::kReturned:
      after.status = PeriodStatus::kPlanned;
      after.attempts = std::max(0, row.attempts - 1);
      break;
  }
  // What a person asked to cancel is not tried again.
  if (row.cancel_asked && after.status == PeriodStatus::kPlanned) {
    after.status = PeriodStatus::kFailed;
    after.reason = reason::kCancelled;
  }
  after.final = after.status != PeriodStatus::kPlanned;
  return after;
}

absl::Time StartedWithin(const AttemptRow& row, absl::Time started, absl::Time now) {
  if (started == absl::InfinitePast()) return started;
  return std::min(std::max(started, row.claimed_at), now);
}

Claim ClaimFrom(const PeriodRow& row) {
  Claim claim;
  claim.key = row.key;
  claim.generation = row.generation;
  claim.losses = row.losses;
  claim.version = row.version;
  claim.biz_date = row.biz_date;
  claim.window_start = row.window_start;
  claim.window_end = row.window_end;
  claim.due = row.due;
  claim.nominal = row.nominal;
  claim.backfill = row.backfill;
  claim.manual = row.manual;
  claim.params = row.params;
  return claim;
}

RunRow RunOf(const AttemptRow& row) {
  RunRow run;
  run.key = row.key;
  run.generation = row.generation;
  run.fence = row.fence;
  run.attempt = row.attempts;
  run.node = row.node;
  run.status = "RUNNING";
  run.due = row.due;
  run.planned_at = row.planned_at;
  run.dispatched_at = row.dispatched_at;
  run.claimed_at = row.claimed_at;
  run.started_at = absl::InfinitePast();
  run.checkpointed_at = row.checkpointed_at;
  run.finished_at = absl::InfinitePast();
  run.backfill = row.backfill;
  run.manual = row.manual;
  return run;
}

ResolveVerdict JudgeResolve(const FinishRequest& request, const PeriodRow* row,
                            const std::optional<std::string>& run_status, absl::Time now) {
  const Outcome::Kind kind = request.outcome.kind;
  const bool by_job = kind == Outcome::Kind::kDoneByJob;
  // The attempt's row is there since the job's own commit: it may still lack what its node knows.
  if (by_job && row != nullptr && DoneBy(*row, request.ticket)) return ResolveVerdict::kComplete;
  if (run_status) {
    return *run_status == RunWord(request.outcome) ? ResolveVerdict::kYes : ResolveVerdict::kNo;
  }
  if (row == nullptr) return ResolveVerdict::kNo;
  if (DoneBy(*row, request.ticket)) {
    // Committed by this attempt; where its own row is gone, history took it.
    return kind == Outcome::Kind::kDone ? ResolveVerdict::kYes : ResolveVerdict::kNo;
  }
  if (IsMutant(Mutant::kNaiveResolve)) return ResolveVerdict::kNo;
  if (row->status != PeriodStatus::kRunning || !SameAttempt(*row, request.ticket)) {
    return ResolveVerdict::kNo;
  }
  return row->lease_until > now && !by_job ? ResolveVerdict::kComplete : ResolveVerdict::kBurn;
}

}  // namespace matins
