// matins why: how far a period has come, and what stands in its way.
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/command_timeline.h"
#include "cli/commands.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "ops/twice.h"
#include "ops/why.h"
#include "view/table.h"

namespace matins {
namespace {

void PrintWhyJson(const WhyAnswer& why, const Shell& shell) {
  nlohmann::json phases = nlohmann::json::array();
  for (const WhyPhase& phase : why.phases) {
    phases.push_back({{"phase", phase.name},
                      {"reached", phase.reached},
                      {"at", JsonTime(phase.at)},
                      {"owner", phase.owner}});
  }
  shell.PrintJson({{"job", why.job},
                   {"period", why.period},
                   {"status", why.row ? nlohmann::json(Word(why.row->status)) : nlohmann::json()},
                   {"phases", phases},
                   {"missing", why.missing},
                   {"truths", why.truths}});
}

void PrintWhy(const WhyAnswer& why, const Shell& shell) {
  Table table({"PHASE", "AT (UTC)", "BY"});
  for (const WhyPhase& phase : why.phases) {
    const std::string at = phase.at == absl::InfinitePast() ? "yes" : FormatInstant(phase.at);
    table.Add({phase.name,
               phase.reached               ? at
               : phase.name == why.missing ? "missing"
                                           : "-",
               phase.owner.empty() ? "-" : phase.owner});
  }
  shell.Print(table.Text());
  for (const std::string& truth : why.truths) {
    shell.Print(absl::StrCat(Harmless(truth, false), "\n"));
  }
}

// ---- --twice ----

std::string SpanText(const AttemptStory& attempt) {
  const RunRow& run = attempt.run;
  const auto known = [](absl::Time t) { return t != absl::InfinitePast(); };
  if (!known(run.claimed_at)) return "-";
  std::string text = absl::StrCat(FormatInstant(run.claimed_at), " to ");
  if (known(attempt.lease_until)) return absl::StrCat(text, FormatInstant(attempt.lease_until));
  return absl::StrCat(text, known(run.finished_at) ? FormatInstant(run.finished_at) : "now");
}

void PrintTwiceJson(const PeriodStory& story, const TwiceAnswer& answer, const Shell& shell) {
  nlohmann::json attempts = nlohmann::json::array();
  for (const AttemptStory& attempt : story.attempts) {
    nlohmann::json refusals = nlohmann::json::array();
    for (const AttemptRefusal& refusal : attempt.refusals) {
      refusals.push_back(
          {{"at", JsonTime(refusal.at)}, {"node", refusal.node}, {"why", refusal.why}});
    }
    attempts.push_back({{"run", absl::StrCat(attempt.run.fence)},
                        {"generation", attempt.run.generation},
                        {"attempt", attempt.run.attempt},
                        {"node", attempt.run.node},
                        {"status", attempt.run.status},
                        {"reason", attempt.run.reason},
                        {"key", IdempotencyKey(story.key)},
                        {"claimed_at", JsonTime(attempt.run.claimed_at)},
                        {"finished_at", JsonTime(attempt.run.finished_at)},
                        {"lease_until", JsonTime(attempt.lease_until)},
                        {"refusals", refusals}});
  }
  nlohmann::json guards = nlohmann::json::array();
  for (const Guard& guard : answer.guards) {
    guards.push_back(
        {{"guard", guard.name}, {"state", Word(guard.state)}, {"evidence", guard.evidence}});
  }
  shell.PrintJson({{"job", story.key.job},
                   {"period", story.key.period},
                   {"verdict", Word(answer.verdict)},
                   {"missing", answer.missing},
                   {"says", answer.says},
                   {"guards", guards},
                   {"attempts", attempts}});
}

void PrintTwice(const PeriodStory& story, const TwiceAnswer& answer, const Shell& shell) {
  shell.Print(absl::StrCat(Harmless(answer.says, false), "\n"));
  Table guards({"GUARD", "", "EVIDENCE"});
  for (const Guard& guard : answer.guards) {
    guards.Add({guard.name, std::string(Word(guard.state)), guard.evidence});
  }
  shell.Print(guards.Text());
  Table table({"RUN (FENCE)", "GEN", "TRY", "STATUS", "NODE", "OWNED (UTC)", "KEY"});
  for (const AttemptStory& attempt : story.attempts) {
    const RunRow& run = attempt.run;
    table.Add({absl::StrCat(run.fence), absl::StrCat(run.generation), absl::StrCat(run.attempt),
               run.reason.empty() ? run.status : absl::StrCat(run.status, "(", run.reason, ")"),
               run.node, SpanText(attempt), IdempotencyKey(story.key)});
  }
  if (!table.empty()) shell.Print(table.Text());
  for (const AttemptStory& attempt : story.attempts) {
    for (const AttemptRefusal& refusal : attempt.refusals) {
      shell.Print(absl::StrCat("refused: run ", attempt.run.fence, " at ",
                               FormatInstant(refusal.at), " by ", Harmless(refusal.node, false),
                               refusal.why.empty() ? "" : ": ", Harmless(refusal.why, false),
                               "\n"));
    }
  }
}

absl::Status Twice(Session& session, Shell& shell, const std::string& job,
                   const std::string& date) {
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, job));
  ASSIGN_OR_RETURN(const std::string key, KeyFor(planned.current(), date));
  ASSIGN_OR_RETURN(const std::vector<PeriodStory> stories, ReadStories(session, planned, {key}));
  const TwiceAnswer answer = JudgeTwice(stories.front());
  if (shell.json()) {
    PrintTwiceJson(stories.front(), answer, shell);
  } else {
    PrintTwice(stories.front(), answer, shell);
  }
  if (answer.verdict == TwiceAnswer::Verdict::kDoubled) shell.SetExit(kExitFailed);
  return absl::OkStatus();
}

}  // namespace

void AddWhyCommand(CLI::App& app, Shell& shell) {
  struct Args {
    std::string job, date;
    bool twice = false;
  };
  CLI::App& command = *app.add_subcommand(
      "why", "how far a period has come, the first phase that is missing, and what is in the way");
  auto args = std::make_shared<Args>();
  command.add_option("JOB", args->job)->required();
  command.add_option("DATE", args->date, "a business date, or a period's key")->required();
  command.add_flag("--twice", args->twice,
                   "whether its result was doubled, and which guard was missing: key, lease, fence "
                   "or commit condition; exit 1 where it was");
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      if (args->twice) return Twice(session, shell, args->job, args->date);
      ASSIGN_OR_RETURN(const WhyAnswer why, Why(session, args->job, args->date));
      if (shell.json()) {
        PrintWhyJson(why, shell);
      } else {
        PrintWhy(why, shell);
      }
      return absl::OkStatus();
    });
  });
  AddTimelineCommand(app, shell);
}

}  // namespace matins
