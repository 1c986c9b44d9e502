// matins run|wait|cancel|skip|retry|hold
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "ops/runs.h"
#include "view/table.h"

namespace matins {
namespace {

std::string RowText(const PeriodRow& row) {
  std::string text = absl::StrCat(row.key.job, " ", row.key.period, " ", Word(row.status));
  if (row.held) absl::StrAppend(&text, "(held)");
  if (!row.reason.empty()) absl::StrAppend(&text, ": ", row.reason);
  if (row.fence != 0) absl::StrAppend(&text, " (run ", row.fence, ")");
  return text;
}

// Waits, shows what changes, and makes the period's end the exit code.
absl::Status WaitAndTell(Session& session, Shell& shell, const PeriodKey& key,
                         absl::Duration timeout, int64_t failed_change = 0) {
  const auto tell = [&](const PeriodRow& now) {
    if (!shell.json()) std::fprintf(stderr, "%s\n", RowText(now).c_str());
  };
  ASSIGN_OR_RETURN(const PeriodRow row, WaitForPeriod(session, key, timeout, tell, failed_change));
  RunFilter filter;
  filter.fence = row.fence;
  ASSIGN_OR_RETURN(const std::vector<RunRow> runs, session.acts().ReadRuns(filter));
  const std::string message = runs.empty() ? "" : ValidUtf8(runs.front().message);
  if (!shell.json() && row.status != PeriodStatus::kDone && !message.empty()) {
    std::fprintf(stderr, "%s\n", Harmless(message, true).c_str());
  }
  if (shell.json()) {
    shell.PrintJson({{"job", key.job},
                     {"period", key.period},
                     {"status", Word(row.status)},
                     {"reason", row.reason},
                     {"message", message},
                     {"run", absl::StrCat(row.fence)}});
  }
  if (row.status != PeriodStatus::kDone) shell.SetExit(kExitFailed);
  return absl::OkStatus();
}

void AddRun(CLI::App& app, Shell& shell) {
  struct Args {
    RunByHandRequest request;
    std::vector<std::string> params;
    bool wait = false;
    std::string timeout = "1d";
  };
  CLI::App& run = *app.add_subcommand(
      "run", "run a period by hand; a daemon or this store's next node does the work");
  auto args = std::make_shared<Args>();
  run.add_option("JOB", args->request.job)->required();
  run.add_option("--date", args->request.date,
                 "date or period key; default: the newest period that is due");
  run.add_option("--param", args->params,
                 "k=v, given to the run as MATINS_PARAM_k; may be repeated")
      ->take_all();
  run.add_flag("--again", args->request.again,
               "run a DONE period, or one settled long ago, once more; needs --reason");
  CLI::Option* wait =
      run.add_flag("--wait", args->wait, "wait for its end; the exit code tells how it went");
  run.add_option("--timeout", args->timeout, "how long --wait waits; default 1d")->needs(wait);
  shell.AddReasonOption(run, args->request.reason);
  shell.AddStoreOption(run);
  shell.AddOutputOption(run);
  shell.Does(run, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      for (const std::string& param : args->params) {
        const std::pair<std::string, std::string> sides =
            absl::StrSplit(param, absl::MaxSplits('=', 1));
        if (sides.first.empty() || param.find('=') == std::string::npos) {
          return BadInput("--param", absl::StrCat("'", Harmless(param, false), "' is not k=v"),
                          "write it like --param region=eu");
        }
        args->request.params.push_back(sides);
      }
      ASSIGN_OR_RETURN(const absl::Duration timeout,
                       From("--timeout", ParseDuration(args->timeout)));
      ASSIGN_OR_RETURN(const RunByHandAnswer answer, RunByHand(session, args->request));
      if (args->wait)
        return WaitAndTell(session, shell, {args->request.job, answer.period}, timeout,
                           answer.failed_change);
      if (shell.json()) {
        shell.PrintJson(
            {{"job", args->request.job}, {"period", answer.period}, {"what", answer.what}});
      } else {
        shell.Print(absl::StrCat(args->request.job, " ", answer.period, ": ", answer.what, "\n"));
      }
      return absl::OkStatus();
    });
  });
}

void AddWait(CLI::App& app, Shell& shell) {
  struct Args {
    std::string job, date, timeout = "1d";
  };
  CLI::App& wait =
      *app.add_subcommand("wait", "wait until a period has ended; exit 0 when it is DONE");
  auto args = std::make_shared<Args>();
  wait.add_option("JOB", args->job)->required();
  wait.add_option("DATE", args->date, "date or period key")->required();
  wait.add_option("--timeout", args->timeout, "default 1d");
  shell.AddStoreOption(wait);
  shell.AddOutputOption(wait);
  shell.Does(wait, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const absl::Duration timeout,
                       From("--timeout", ParseDuration(args->timeout)));
      ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, args->job));
      ASSIGN_OR_RETURN(const std::string period, KeyFor(planned.current(), args->date));
      return WaitAndTell(session, shell, {args->job, period}, timeout);
    });
  });
}

void AddCancelAndSkip(CLI::App& app, Shell& shell) {
  struct Args {
    std::string what, date, reason;
  };
  CLI::App& cancel =
      *app.add_subcommand("cancel", "stop a run: SIGTERM, then SIGKILL after its grace");
  auto args = std::make_shared<Args>();
  cancel.add_option("RUN", args->what, "the run's number, as `matins runs` shows it")->required();
  shell.AddReasonOption(cancel, args->reason);
  shell.AddStoreOption(cancel);
  shell.AddOutputOption(cancel);
  shell.Does(cancel, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      int64_t run = 0;
      if (!absl::SimpleAtoi(args->what, &run)) {
        return BadInput("RUN", absl::StrCat("'", args->what, "' is not a run's number"),
                        "`matins runs` lists them");
      }
      RETURN_IF_ERROR(CancelRun(session, run, args->reason));
      shell.Tell({{"run", absl::StrCat(run)}, {"cancel_asked", true}},
                 absl::StrCat("run ", run, " is asked to stop; its node sees it at its next beat"));
      return absl::OkStatus();
    });
  });

  CLI::App& skip =
      *app.add_subcommand("skip", "settle a period as SKIPPED, so that later ones may go on");
  auto gone = std::make_shared<Args>();
  skip.add_option("JOB", gone->what)->required();
  skip.add_option("DATE", gone->date, "date or period key")->required();
  skip.add_option("--reason", gone->reason, "why; recorded with who and when")->required();
  shell.AddStoreOption(skip);
  shell.AddOutputOption(skip);
  shell.Does(skip, [&shell, gone] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const std::string period,
                       SkipPeriod(session, gone->what, gone->date, gone->reason));
      shell.Tell({{"job", gone->what}, {"period", period}, {"status", "SKIPPED"}},
                 absl::StrCat(gone->what, " ", period, " SKIPPED"));
      return absl::OkStatus();
    });
  });
}

// retry JOB DATE, hold [release JOB DATE]
struct ByReason {
  std::string job, date, reason;
};

void AddByReason(CLI::App& command, Shell& shell, const std::shared_ptr<ByReason>& args,
                 absl::string_view what,
                 absl::StatusOr<std::string> (*act)(Session&, absl::string_view, absl::string_view,
                                                    absl::string_view)) {
  command.add_option("JOB", args->job)->required();
  command.add_option("DATE", args->date, "date or period key")->required();
  command.add_option("--reason", args->reason, "why; recorded with who and when")->required();
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args, act, what = std::string(what)] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const std::string period, act(session, args->job, args->date, args->reason));
      shell.Tell({{"job", args->job}, {"period", period}, {"what", what}},
                 absl::StrCat(args->job, " ", period, ": ", what));
      return absl::OkStatus();
    });
  });
}

absl::Status PrintHeld(Session& session, Shell& shell, const std::string& job) {
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> held, HeldPeriods(session, job));
  if (shell.json()) {
    nlohmann::json list = nlohmann::json::array();
    for (const PeriodRow& row : held) {
      list.push_back({{"job", row.key.job},
                      {"period", row.key.period},
                      {"reason", row.reason},
                      {"since", JsonTime(row.finished_at)},
                      {"run", absl::StrCat(row.fence)}});
    }
    shell.PrintJson(list);
    return absl::OkStatus();
  }
  Table table({"JOB", "PERIOD", "WHY", "SINCE"});
  for (const PeriodRow& row : held) {
    table.Add(
        {row.key.job, row.key.period, row.reason, BothTimes(row.finished_at, absl::UTCTimeZone())});
  }
  shell.Print(held.empty() ? "nothing is held\n" : table.Text());
  return absl::OkStatus();
}

void AddRetryAndHold(CLI::App& app, Shell& shell) {
  CLI::App& retry = *app.add_subcommand(
      "retry", "give a FAILED period new attempts now, in its generation and with its checkpoint");
  AddByReason(retry, shell, std::make_shared<ByReason>(), "given new attempts", RetryPeriod);

  CLI::App& hold = *app.add_subcommand("hold", "the periods that `recovery: hold` has stopped");
  hold.require_subcommand(0, 1);
  auto job = std::make_shared<std::string>();
  hold.add_option("--job", *job, "only this job's");
  shell.AddStoreOption(hold);
  shell.AddOutputOption(hold);
  shell.Does(hold, [&hold, &shell, job]() -> absl::Status {
    if (!hold.get_subcommands().empty()) return absl::OkStatus();
    return shell.WithSession([&](Session& session) { return PrintHeld(session, shell, *job); });
  });
  CLI::App& release = *hold.add_subcommand(
      "release", "run a held period again, once you know what its lost run has done");
  AddByReason(release, shell, std::make_shared<ByReason>(), "released, in a new generation",
              ReleaseHold);
}

}  // namespace

void AddRunCommands(CLI::App& app, Shell& shell) {
  AddRun(app, shell);
  AddWait(app, shell);
  AddCancelAndSkip(app, shell);
  AddRetryAndHold(app, shell);
}

}  // namespace matins
