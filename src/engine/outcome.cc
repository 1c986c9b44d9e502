#include "engine/outcome.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "base/fault.h"
#include "base/status.h"
#include "job/utf8.h"
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

// Stores take names that are text, each once, and numbers that can be compared.
class FigureReader {
 public:
  // False: it is no figure.
  bool Take(absl::string_view name, double value) {
    const bool text = !name.empty() && FindNotUtf8(name) == absl::string_view::npos &&
                      std::none_of(name.begin(), name.end(), absl::ascii_iscntrl);
    if (!text || !std::isfinite(value) || !names_.insert(std::string(name)).second) return false;
    figures_.values.emplace_back(name, value);
    return true;
  }
  void PassOver(absl::string_view what) {
    constexpr size_t kMostShown = 60;
    if (passed_over_++ > 0) return;
    first_ = absl::Utf8SafeCHexEscape(what.substr(0, kMostShown));
    if (what.size() > kMostShown) first_ += "...";
  }
  Figures Done() {
    if (passed_over_ > 0) {
      figures_.note =
          absl::StrCat(passed_over_, passed_over_ == 1 ? " line is" : " lines are",
                       " no figures (name=number, each name once), the first: '", first_, "'");
    } else if (figures_.values.empty()) {
      figures_.note = "it printed no figures (name=number)";
    }
    return std::move(figures_);
  }

 private:
  Figures figures_;
  absl::flat_hash_set<std::string> names_;
  int64_t passed_over_ = 0;
  std::string first_;
};

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
  if (MayBeAskedAgain(not_started)) {
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
  if (IsMutant(Mutant::kExitIsDone)) return otherwise;
  otherwise->kind = Outcome::Kind::kFailed;
  otherwise->reason = reason::kNoCommit;
  otherwise->message =
      "it ended well without writing DONE; with `commit: job` the job's own transaction does that, "
      "see `matins fence sql`";
  return AfterFailure(run.job(), run.claim.attempt, run.claim.fence, *std::move(otherwise));
}

Figures FiguresOf(absl::string_view output) {
  FigureReader reader;
  const nlohmann::json object =
      nlohmann::json::parse(output.begin(), output.end(), nullptr, /*allow_exceptions=*/false);
  if (object.is_object()) {
    for (const auto& [name, value] : object.items()) {
      if (!value.is_number() || !reader.Take(name, value.get<double>()))
        reader.PassOver(absl::StrCat("\"", name, "\": ", value.dump()));
    }
    return reader.Done();
  }
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(line, absl::MaxSplits('=', 1));
    const bool named = absl::StrContains(line, '=');
    const absl::string_view name = named ? absl::StripAsciiWhitespace(sides.first) : "value";
    double value;
    if (!absl::SimpleAtod(named ? sides.second : line, &value) || !reader.Take(name, value))
      reader.PassOver(line);
  }
  return reader.Done();
}

}  // namespace matins
