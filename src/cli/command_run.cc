// matins run|wait|cancel|skip|backfill
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

struct BackfillArgs {
  BackfillRequest request;
  std::string from, to;
};

std::string BackfillText(const BackfillArgs& args, const BackfillAnswer& answer) {
  if (answer.run.empty() && answer.left.empty() && answer.unfillable.empty()) {
    return absl::StrCat("no period of ", args.request.job, " from ", args.from, " to ", args.to,
                        " is due yet; `matins job show ", args.request.job,
                        "` says when the next is\n");
  }
  std::string text =
      absl::StrCat(args.request.dry_run ? "would run " : "planned ", answer.run.size(),
                   " period(s), oldest first; ", answer.left.size(),
                   " already done, settled, running or planned\n");
  if (!answer.unfillable.empty()) {
    absl::StrAppend(&text, answer.unfillable.size(), " cannot be filled, ",
                    answer.unfillable.front(), " to ", answer.unfillable.back(),
                    ": the source keeps ", DurationText(answer.source_window),
                    " (backfill.source_window); where it still has them, apply a longer one, or "
                    "`matins run ",
                    args.request.job, " --date DATE`\n");
  }
  return text;
}

void AddBackfill(CLI::App& app, Shell& shell) {
  CLI::App& backfill = *app.add_subcommand(
      "backfill", "make good what is missing between two business dates, oldest first");
  auto args = std::make_shared<BackfillArgs>();
  backfill.add_option("JOB", args->request.job)->required();
  backfill.add_option("--from", args->from, "first business date, included")->required();
  backfill.add_option("--to", args->to, "last business date, included")->required();
  backfill.add_flag("--dry-run", args->request.dry_run, "show what would run, and change nothing");
  backfill.add_flag("--again", args->request.again,
                    "run what is DONE, or was settled long ago, once more; needs --reason");
  shell.AddReasonOption(backfill, args->request.reason);
  shell.AddStoreOption(backfill);
  shell.AddOutputOption(backfill);
  shell.Does(backfill, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(args->request.from, From("--from", ParseDay(args->from)));
      ASSIGN_OR_RETURN(args->request.to, From("--to", ParseDay(args->to)));
      ASSIGN_OR_RETURN(const BackfillAnswer answer, BackfillJob(session, args->request));
      if (shell.json()) {
        shell.PrintJson({{"job", args->request.job},
                         {"dry_run", args->request.dry_run},
                         {"run", answer.run},
                         {"reopen", answer.reopen},
                         {"left", answer.left},
                         {"unfillable", answer.unfillable}});
        return absl::OkStatus();
      }
      for (const std::string& period : answer.run) shell.Print(absl::StrCat(period, "\n"));
      shell.Print(BackfillText(*args, answer));
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddRunCommands(CLI::App& app, Shell& shell) {
  AddRun(app, shell);
  AddWait(app, shell);
  AddCancelAndSkip(app, shell);
  AddBackfill(app, shell);
}

}  // namespace matins
