#include "engine/outcome.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "plan/plan.h"

namespace matins {
namespace {

Outcome Failure(absl::string_view why, std::string message) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::kFailed;
  outcome.reason = std::string(why);
  outcome.message = std::move(message);
  return outcome;
}

void Describe(const RunEnded& ended, Outcome& outcome) {
  if (ended.signal != 0) {
    outcome.signal = ended.signal;
  } else if (ended.exit_code >= 0) {
    outcome.exit_code = ended.exit_code;
  }
  outcome.output_head = ended.output.head;
  outcome.output_tail = ended.output.tail;
  outcome.output_bytes = ended.output.total_bytes;
}

Outcome Judge(const LiveRun& run, const RunEnded& ended, Outcome failure) {
  Describe(ended, failure);
  if (!ended.tree_dead) {
    absl::StrAppend(
        &failure.message,
        "; something of it may still be alive: its writes are refused, look at the node");
  }
  return AfterFailure(run.job(), run.claim.attempt, run.claim.fence, std::move(failure));
}

std::string EndText(const RunEnded& ended) {
  if (!ended.status.ok()) return std::string(ended.status.message());
  return ended.Text();
}

}  // namespace

std::optional<Outcome> OutcomeOf(const LiveRun& run, const RunEnded& ended) {
  switch (ended.stopped) {
    case StopReason::kLeaseLost:
    case StopReason::kReplaced:
    case StopReason::kNodeDied:
      return std::nullopt;
    case StopReason::kShutdown: {
      Outcome outcome;
      outcome.kind = Outcome::Kind::kReturned;
      outcome.reason = reason::kHandedOver;
      outcome.message = "its node was shut down";
      Describe(ended, outcome);
      return outcome;
    }
    case StopReason::kCancelled: {
      // A person's word is no failure to be retried at this trigger.
      Outcome outcome = Failure(reason::kCancelled, EndText(ended));
      Describe(ended, outcome);
      return outcome;
    }
    case StopReason::kTimeOut:
      return Judge(run, ended, Failure(reason::kTimeout, EndText(ended)));
    case StopReason::kNone:
      break;
  }
  if (!ended.Succeeded()) {
    return Judge(run, ended,
                 Failure(ended.signal != 0 ? reason::kSignal : reason::kExit, EndText(ended)));
  }
  Outcome outcome;
  outcome.kind = Outcome::Kind::kDone;
  Describe(ended, outcome);
  return outcome;
}

Outcome OutcomeOf(const LiveRun& run, const absl::Status& not_started, int exit_code) {
  if (absl::IsUnavailable(not_started) || IsInDoubt(not_started)) {
    Outcome outcome;
    outcome.kind = Outcome::Kind::kReturned;
    outcome.reason = reason::kHandedOver;
    outcome.message = absl::StrCat("its definition could not be read: ", not_started.message());
    return outcome;
  }
  Outcome failure = Failure(reason::kStartFailed, std::string(not_started.message()));
  if (exit_code > 0) failure.exit_code = exit_code;
  if (run.definition == nullptr) return failure;
  return AfterFailure(run.job(), run.claim.attempt, run.claim.fence, std::move(failure));
}

Outcome DoneByJob(const RunEnded& ended) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::kDoneByJob;
  Describe(ended, outcome);
  if (!ended.Succeeded()) {
    outcome.message = absl::StrCat("DONE was written by the job; after it: ", EndText(ended));
  }
  return outcome;
}

std::optional<Outcome> WithoutCommit(const LiveRun& run, std::optional<Outcome> otherwise) {
  if (!otherwise.has_value() || otherwise->kind != Outcome::Kind::kDone) return otherwise;
  otherwise->kind = Outcome::Kind::kFailed;
  otherwise->reason = reason::kNoCommit;
  otherwise->message =
      "it ended well without writing DONE; with `commit: job` the job's own transaction does that, "
      "see `matins fence sql`";
  return AfterFailure(run.job(), run.claim.attempt, run.claim.fence, *std::move(otherwise));
}

std::vector<std::pair<std::string, double>> FiguresOf(absl::string_view output) {
  std::vector<std::pair<std::string, double>> figures;
  const nlohmann::json object =
      nlohmann::json::parse(output.begin(), output.end(), nullptr, /*allow_exceptions=*/false);
  if (object.is_object()) {
    for (const auto& [name, value] : object.items()) {
      if (value.is_number()) figures.emplace_back(name, value.get<double>());
    }
    return figures;
  }
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    const bool named = line.find('=') != absl::string_view::npos;
    const absl::string_view name = named ? absl::StripAsciiWhitespace(sides.first) : "value";
    double value;
    if (!name.empty() && absl::SimpleAtod(named ? sides.second : line, &value)) {
      figures.emplace_back(std::string(name), value);
    }
  }
  return figures;
}

}  // namespace matins
