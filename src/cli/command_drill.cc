// matins drill: whether back-fill works, tried out.
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/as_command.h"
#include "cli/commands.h"
#include "cli/exec_host.h"
#include "nlohmann/json.hpp"
#include "ops/drill.h"
#include "view/table.h"

namespace matins {
namespace {

struct DrillArgs {
  DrillRequest request;
  std::string timeout = "1h";
  bool restore = false, list = false;
};

std::string FiguresText(const DrillFigures& figures) {
  if (figures.empty()) return "-";
  return absl::StrJoin(figures, " ", [](std::string* out, const auto& figure) {
    absl::StrAppend(out, figure.first, "=", nlohmann::json(figure.second).dump());
  });
}

void PrintReport(const DrillReport& report, const Shell& shell) {
  Table table({"PERIOD", "STATUS", "RUN", "WORK", "FIGURES", "BEFORE", "PROBLEM"});
  for (const DrilledPeriod& period : report.periods) {
    table.Add({period.period, period.status, period.run == 0 ? "-" : absl::StrCat(period.run),
               period.evidence.empty() ? "-" : period.evidence, FiguresText(period.figures),
               FiguresText(period.old_figures), period.problem.empty() ? "-" : period.problem});
  }
  shell.Print(table.Text());
  std::string text =
      absl::StrCat("drill ", report.id, " of ", report.job, report.passed ? " passed" : " failed");
  if (!report.problem.empty()) absl::StrAppend(&text, ": ", report.problem);
  if (!report.put_back.empty()) {
    absl::StrAppend(&text, "; put back: ", absl::StrJoin(report.put_back, ", "));
  }
  if (!report.running.empty()) {
    absl::StrAppend(&text, "; still running: ", absl::StrJoin(report.running, ", "),
                    " (`matins drill ", report.job, " --restore` when it has ended)");
  }
  shell.Print(absl::StrCat(text, "\n"));
}

absl::Status RunDrill(Session& session, Shell& shell, DrillArgs& args) {
  ASSIGN_OR_RETURN(args.request.timeout, From("--timeout", ParseDuration(args.timeout)));
  ASSIGN_OR_RETURN(args.request.store_url, shell.StoreUrl());
  if (!shell.rest().empty()) {
    args.request.here = true;
    args.request.program.command = shell.rest();
    args.request.program.pass_streams = false;  // standard output is the report's
    RETURN_IF_ERROR(FillProgram(args.request.program, "matins drill JOB -- ./recon.sh"));
  }
  if (args.request.reason.empty()) args.request.reason = "a drill";
  ASSIGN_OR_RETURN(const std::unique_ptr<TerminalHost> host, TerminalHost::Open(shell.json()));
  ASSIGN_OR_RETURN(const DrillReport report, Drill(session, args.request, *host));
  if (!report.passed) shell.SetExit(kExitFailed);
  if (shell.json()) {
    shell.PrintJson(nlohmann::json::parse(DrillReportJson(report)));
  } else {
    PrintReport(report, shell);
  }
  return absl::OkStatus();
}

absl::Status Restore(Session& session, Shell& shell, const DrillArgs& args) {
  const std::string why = args.request.reason.empty() ? "by hand" : args.request.reason;
  if (!args.request.job.empty()) RETURN_IF_ERROR(ReapRunsOf(session, args.request.job));
  ASSIGN_OR_RETURN(const std::vector<RestoredDrill> restored,
                   RestoreDrills(session.acts(), args.request.job, session.MakeAct(why)));
  nlohmann::json all = nlohmann::json::array();
  for (const RestoredDrill& one : restored) {
    if (one.under_way || !one.answer.ended) shell.SetExit(kExitRefused);
    all.push_back({{"drill", one.drill.id},
                   {"job", one.drill.job},
                   {"under_way", one.under_way},
                   {"ended", one.answer.ended},
                   {"put_back", one.answer.put_back},
                   {"running", one.answer.running},
                   {"left", one.answer.left}});
    if (!shell.json()) shell.Print(absl::StrCat(RestoredText(one), "\n"));
  }
  if (shell.json()) {
    shell.PrintJson(all);
  } else if (restored.empty()) {
    shell.Print("every drill is over; nothing had to be put back\n");
  }
  return absl::OkStatus();
}

absl::Status List(Session& session, Shell& shell, const DrillArgs& args) {
  constexpr int kMost = 100;
  ASSIGN_OR_RETURN(const std::vector<DrillRow> drills,
                   session.acts().ReadDrills(args.request.job, kMost));
  Table table({"DRILL", "JOB", "AT", "BY", "RESULT", "PERIODS"});
  nlohmann::json all = nlohmann::json::array();
  for (const DrillRow& drill : drills) {
    const std::string periods = absl::StrJoin(
        drill.periods, ", ",
        [](std::string* out, const DrillPeriod& period) { absl::StrAppend(out, period.period); });
    const std::string result = drill.over() ? drill.result : "not over";
    table.Add({absl::StrCat(drill.id), drill.job, FormatInstant(drill.started_at), drill.by, result,
               periods});
    const nlohmann::json report = nlohmann::json::parse(drill.detail, nullptr, false);
    all.push_back({{"drill", drill.id},
                   {"job", drill.job},
                   {"started_at", JsonTime(drill.started_at)},
                   {"finished_at", JsonTime(drill.finished_at)},
                   {"by", drill.by},
                   {"why", drill.why},
                   {"result", drill.over() ? drill.result : ""},
                   {"report", report.is_discarded() ? nlohmann::json() : report}});
  }
  if (shell.json()) {
    shell.PrintJson(all);
  } else {
    shell.Print(table.empty() ? "no drill yet\n" : table.Text());
  }
  return absl::OkStatus();
}

}  // namespace

void AddDrillCommand(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "drill",
      "delete a job's newest DONE periods, have them filled again, and compare; exit code 1 where "
      "that fails");
  command.footer(
      "Of a job that calls of `matins exec` run, the command is said as there: matins drill JOB "
      "--days 3 -- ./recon.sh");
  auto args = std::make_shared<DrillArgs>();
  command.add_option("JOB", args->request.job, "the job; not needed with --list and --restore");
  command.add_option("--days", args->request.days, "how many periods; default 3")
      ->check(CLI::Range(1, 366));
  CLI::Option* here = command.add_flag(
      "--here", args->request.here, "fill them by this very call; else the nodes that serve do it");
  command
      .add_option("--label", args->request.labels,
                  "a label of this host, for a job with `nodes:`; may be repeated")
      ->take_all()
      ->needs(here);
  command.add_option("--timeout", args->timeout,
                     "how long they may take before they are put back; default 1h");
  command.add_flag("--restore", args->restore, "put back what drills that died have left undone");
  command.add_flag("--list", args->list, "the drills so far, newest first");
  shell.AddReasonOption(command, args->request.reason);
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      if (args->list) return List(session, shell, *args);
      if (args->restore) return Restore(session, shell, *args);
      if (args->request.job.empty()) {
        return BadInput("JOB", "is missing", "name the job to drill: matins drill recon --days 3");
      }
      return RunDrill(session, shell, *args);
    });
  });
}

}  // namespace matins
