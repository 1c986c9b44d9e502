// matins timeline: the six phases of each attempt at a period, drawn.
#include "cli/command_timeline.h"

#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "ops/attempts.h"
#include "view/timeline_view.h"

namespace matins {
namespace {

constexpr int kWidth = 79;

struct Phase {
  char letter;
  const char* name;
  absl::Time at;
};

std::vector<Phase> PhasesOf(const RunRow& run) {
  return {{'P', "planned", run.planned_at},           {'D', "dispatched", run.dispatched_at},
          {'C', "claimed", run.claimed_at},           {'S', "started", run.started_at},
          {'K', "checkpointed", run.checkpointed_at}, {'F', "finished", run.finished_at}};
}

bool IsKnown(absl::Time t) { return t != absl::InfinitePast() && t != absl::InfiniteFuture(); }

std::string StatusText(const RunRow& run) {
  return run.reason.empty() ? run.status : absl::StrCat(run.status, "(", run.reason, ")");
}

TimelineBar BarOf(const AttemptStory& attempt) {
  const RunRow& run = attempt.run;
  TimelineBar bar;
  bar.title = absl::StrCat("run ", run.fence, "  gen ", run.generation, " try ", run.attempt, "  ",
                           StatusText(run), "  ", run.node);
  for (const Phase& phase : PhasesOf(run)) {
    if (IsKnown(phase.at)) bar.marks.push_back({phase.letter, phase.name, phase.at});
  }
  if (IsKnown(run.claimed_at)) {
    bar.lease_from = run.claimed_at;
    bar.lease_until = IsKnown(attempt.lease_until) ? attempt.lease_until : run.finished_at;
    if (!IsKnown(bar.lease_until)) bar.lease_until = run.claimed_at;
  }
  if (IsKnown(attempt.lease_until)) {
    bar.notes.push_back(absl::StrCat("lease until ", FormatInstant(attempt.lease_until)));
  }
  for (const AttemptRefusal& refusal : attempt.refusals) {
    bar.notes.push_back(absl::StrCat("refused at ", FormatInstant(refusal.at), " ", refusal.node,
                                     refusal.why.empty() ? "" : ": ", refusal.why));
  }
  if (!run.message.empty()) {
    bar.notes.push_back(run.message.substr(0, run.message.find('\n')));
  }
  return bar;
}

// What waits, or was never claimed, has no attempt to draw.
std::string RowText(const PeriodStory& story) {
  if (!story.row) return "no row";
  std::string text(Word(story.row->status));
  if (story.row->held) absl::StrAppend(&text, "(held)");
  if (!story.row->reason.empty()) absl::StrAppend(&text, ": ", story.row->reason);
  return text;
}

void Draw(const PeriodStory& story, const Shell& shell) {
  std::vector<TimelineBar> bars;
  for (const AttemptStory& attempt : story.attempts) bars.push_back(BarOf(attempt));
  const std::string title =
      absl::StrCat(story.key.job, " ", story.key.period, "  ", RowText(story), "  ", bars.size(),
                   bars.size() == 1 ? " attempt" : " attempts");
  shell.Print(TimelineText(title, bars, kWidth));
}

nlohmann::json JsonOf(const PeriodStory& story) {
  nlohmann::json attempts = nlohmann::json::array();
  for (const AttemptStory& attempt : story.attempts) {
    const RunRow& run = attempt.run;
    nlohmann::json phases = nlohmann::json::object();
    for (const Phase& phase : PhasesOf(run)) phases[phase.name] = JsonTime(phase.at);
    nlohmann::json refusals = nlohmann::json::array();
    for (const AttemptRefusal& refusal : attempt.refusals) {
      refusals.push_back(
          {{"at", JsonTime(refusal.at)}, {"node", refusal.node}, {"why", refusal.why}});
    }
    attempts.push_back({{"run", absl::StrCat(run.fence)},
                        {"generation", run.generation},
                        {"attempt", run.attempt},
                        {"node", run.node},
                        {"status", run.status},
                        {"reason", run.reason},
                        {"due", JsonTime(run.due)},
                        {"phases", phases},
                        {"lease_until", JsonTime(attempt.lease_until)},
                        {"refusals", refusals}});
  }
  return {{"job", story.key.job},
          {"period", story.key.period},
          {"status", story.row ? nlohmann::json(Word(story.row->status)) : nlohmann::json()},
          {"attempts", attempts}};
}

}  // namespace

void AddTimelineCommand(CLI::App& app, Shell& shell) {
  struct Args {
    std::string job, date;
  };
  CLI::App& command = *app.add_subcommand(
      "timeline", "the six phases of each attempt at a period, drawn, with nodes and leases");
  auto args = std::make_shared<Args>();
  command.add_option("JOB", args->job)->required();
  command.add_option("--date", args->date, "a business date, or a period's key")->required();
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  command.footer(
      "P planned, D dispatched, C claimed, S started, K checkpointed, F finished; === its lease.");
  shell.Does(command, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, args->job));
      ASSIGN_OR_RETURN(const std::vector<std::string> periods,
                       PeriodsOfDate(session, planned, args->date));
      ASSIGN_OR_RETURN(const std::vector<PeriodStory> stories,
                       ReadStories(session, planned, periods));
      nlohmann::json list = nlohmann::json::array();
      for (const PeriodStory& story : stories) {
        if (shell.json()) {
          list.push_back(JsonOf(story));
        } else {
          Draw(story, shell);
        }
      }
      if (shell.json()) shell.PrintJson(list);
      if (!shell.json() && stories.empty()) {
        shell.Print(absl::StrCat("no period of ", args->job, " for ", args->date,
                                 " has a row; `matins why ", args->job, " PERIOD` says why\n"));
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace matins
