#include "simulator/answer_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/time.h"
#include "job/words.h"

namespace matins {
namespace {

std::string Text(absl::Time at) {
  if (at == absl::InfinitePast()) return "past";
  if (at == absl::InfiniteFuture()) return "never";
  return absl::StrCat(ToMicros(at));
}

std::string Flags(std::initializer_list<std::pair<bool, absl::string_view>> flags) {
  std::string text;
  for (const auto& [set, word] : flags) {
    if (set) absl::StrAppend(&text, " ", word);
  }
  return text;
}

}  // namespace

std::string Text(const PeriodRow& row) {
  const std::string counts =
      absl::StrCat(" g", row.generation, " ver", row.change, " v", row.version, " a", row.attempts,
                   "/", row.attempts_total, " l", row.losses, " c", row.checkpoint);
  const std::string owner = absl::StrCat(" fence ", row.fence, " nonce ", row.nonce, " node ",
                                         row.node, " held by ", row.held_by);
  std::string times;
  for (const absl::Time at :
       {row.due, row.window_start, row.window_end, row.not_before, row.start_by, row.held_until,
        row.claimed_at, row.lease_until, row.run_until, row.wait_until, row.finished_at}) {
    absl::StrAppend(&times, " ", Text(at));
  }
  return absl::StrCat(row.key.job, " ", row.key.period, " ", Word(row.status), "(", row.reason, ")",
                      Flags({{row.held, "held"}, {row.backfill, "backfill"}, {row.manual, "hand"}}),
                      counts, owner, " by ", row.by, times);
}

std::string Text(const SkipSpan& span) {
  return absl::StrCat(Text(span.from), "..", Text(span.to), " ", span.first_period, " ",
                      span.last_period, " ", span.count, " ", span.reason, " ", span.by);
}

std::string Text(const JobState& state) {
  std::string text =
      absl::StrCat(state.job, " r", state.revision, " seen ", Text(state.first_sight), " floor ",
                   Text(state.floor), " cursor ", Text(state.cursor), " gap ",
                   Text(state.gap_from.value_or(absl::InfiniteFuture())), " pending ",
                   state.pending ? Word(*state.pending) : "none", " suspended ", state.suspended);
  for (const JobVersion& version : state.versions) {
    absl::StrAppend(&text, "\n    v", version.number, " from ", Text(version.from), " ",
                    version.definition.size());
  }
  for (const PeriodRow& row : state.rows) absl::StrAppend(&text, "\n    ", Text(row));
  for (const SkipSpan& span : state.spans) absl::StrAppend(&text, "\n    ", Text(span));
  return text;
}

std::string Text(const DueJobs& due) {
  return absl::StrCat(Text(due.now), due.frozen ? " frozen" : "", " next ", Text(due.next_look),
                      Text(due.jobs));
}

std::string Text(const JobDefinition& definition) {
  return absl::StrCat(definition.job, " v", definition.version, " ", definition.definition);
}

std::string Text(const HeldRow& row) {
  return absl::StrCat(row.key.job, " ", row.key.period, " ", Text(row.not_before), " ",
                      row.priority);
}

std::string Text(const PlanAnswers& answers) {
  std::string text = Text(answers.now);
  for (const PlanAnswer& answer : answers.jobs) {
    absl::StrAppend(&text, answer.written ? " written" : " stale", Text(answer.held));
  }
  return text;
}

std::string Text(const HoldAnswer& answer) {
  return absl::StrCat(Text(answer.now), " next ", Text(answer.next_start), " look ",
                      Text(answer.next_look), Text(answer.rows));
}

std::string Text(const StartAnswers& answers) {
  std::string text = Text(answers.now);
  for (const StartAnswer& answer : answers.rows) {
    absl::StrAppend(&text, "\n  ", answer.key.job, " ", answer.key.period, " ",
                    static_cast<int>(answer.result));
    if (!answer.claim) continue;
    const Claim& claim = *answer.claim;
    absl::StrAppend(&text, " g", claim.generation, " fence ", claim.fence, " nonce ", claim.nonce,
                    " a", claim.attempt, "/", claim.attempt_total, " l", claim.losses, " v",
                    claim.version, "/", claim.current_version, claim.backfill ? " backfill" : "");
    absl::StrAppend(&text, claim.manual ? " hand" : "", " ", claim.params, " ",
                    Text(claim.window_start), " ", Text(claim.window_end), " ", Text(claim.due),
                    " ", Text(claim.claimed_at), " ", Text(claim.lease_until), " ",
                    Text(claim.run_until), " c", claim.checkpoint, claim.checkpoint_data);
  }
  return text;
}

std::string Text(const Ticket& ticket) {
  return absl::StrCat(ticket.key.job, " ", ticket.key.period, " g", ticket.generation, " ",
                      ticket.fence, " ", ticket.nonce);
}

std::string Text(const ExtendAnswer& answer) {
  return absl::StrCat(answer.refusal.why, " ", Text(answer.now), " ", Text(answer.lease_until),
                      answer.cancel_asked ? " cancel " : "", answer.cancel_why);
}

std::string Text(const Refusal& refusal) { return refusal.why; }

std::string Text(const ResolveAnswer& answer) {
  return answer.kind == ResolveAnswer::Kind::kCommitted ? "committed" : "not committed";
}

std::string Text(const StaleRun& run) {
  return absl::StrCat(Text(run.row), " for ", absl::ToInt64Microseconds(run.stale_for),
                      run.without_lease ? " without lease" : "");
}

std::string Text(const TickAnswer& answer) {
  return absl::StrCat(
      Text(answer.now), " epoch ", answer.epoch, " nodes ", answer.live_nodes,
      Flags({{answer.frozen, "frozen"}, {answer.returned, "returned"}, {answer.idle, "idle"}}));
}

std::string Text(const ApplyAnswer& answer) {
  return absl::StrCat(
      "added ", absl::StrJoin(answer.added, ","), " changed ", absl::StrJoin(answer.changed, ","),
      " unchanged ", absl::StrJoin(answer.unchanged, ","), " pruned ",
      absl::StrJoin(answer.pruned, ","), " missing ", absl::StrJoin(answer.missing, ","));
}

std::string Text(const RunRow& run) {
  std::string text =
      absl::StrCat(run.key.job, " ", run.key.period, " g", run.generation, " fence ", run.fence,
                   " a", run.attempt, " ", run.node, " ", run.status, "(", run.reason, ")");
  for (const absl::Time at : {run.due, run.planned_at, run.dispatched_at, run.claimed_at,
                              run.started_at, run.checkpointed_at, run.finished_at}) {
    absl::StrAppend(&text, " ", Text(at));
  }
  return absl::StrCat(text, Flags({{run.backfill, "backfill"}, {run.manual, "hand"}}));
}

std::string Text(const JobRow& job) {
  return absl::StrCat(job.name, " v", job.version, " ", job.source, " seen ", Text(job.first_sight),
                      " floor ", Text(job.floor), " cursor ", Text(job.cursor), " look ",
                      Text(job.next_look), job.suspension ? " suspended " : " r", job.revision,
                      " last ", Text(job.last_success), " ", job.last_result, " ",
                      absl::ToInt64Microseconds(job.worst_duration));
}

}  // namespace matins
