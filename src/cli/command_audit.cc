// matins audit: what the schedules demanded, less what is DONE; and whether anybody still looks.
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "nlohmann/json.hpp"
#include "ops/audit.h"
#include "view/table.h"

namespace matins {
namespace {

struct AuditArgs {
  std::string job, date, from, to, report, check_age;
  int limit = 1000;
};

std::string Periods(const AuditFinding& finding) {
  if (finding.period.empty()) return "-";
  if (finding.count <= 1) return finding.period;
  return absl::StrCat(finding.period, " to ", finding.last_period, " (", finding.count, ")");
}

std::string Deadline(const AuditFinding& finding) {
  const bool none =
      finding.deadline == absl::InfinitePast() || finding.deadline == absl::InfiniteFuture();
  return none ? "-" : FormatInstant(finding.deadline);
}

void PrintFindings(const AuditReport& report, const Shell& shell, int limit) {
  Table table({"", "FINDING", "JOB", "PERIOD", "DUE", "BY", "WHY"});
  int shown = 0;
  for (const AuditFinding& finding : report.findings) {
    if (shown++ == limit) break;
    table.Add({finding.alarm ? "!" : "", std::string(AuditWord(finding.kind)),
               finding.job.empty() ? "-" : finding.job, Periods(finding),
               finding.due == absl::InfinitePast() ? "-" : FormatInstant(finding.due),
               Deadline(finding), finding.why});
  }
  if (!table.empty()) shell.Print(table.Text());
  if (report.findings.size() > static_cast<size_t>(limit)) {
    shell.Print(absl::StrCat("and ", report.findings.size() - static_cast<size_t>(limit),
                             " more; -n shows them\n"));
  }
}

void PrintMonths(const AuditReport& report, const Shell& shell) {
  Table table({"MONTH", "JOB", "EXPECTED", "DONE", "LATE", "SKIPPED", "SUSPENDED", "UNFILLABLE",
               "MISSING", "OPEN"});
  for (const auto& [of, tally] : report.months) {
    table.Add({FormatDay(absl::CivilDay(of.first)).substr(0, 7), of.second,
               absl::StrCat(tally.expected), absl::StrCat(tally.done), absl::StrCat(tally.late),
               absl::StrCat(tally.skipped), absl::StrCat(tally.suspended),
               absl::StrCat(tally.unfillable), absl::StrCat(tally.missing),
               absl::StrCat(tally.open)});
  }
  shell.Print(table.empty() ? "nothing was expected\n" : table.Text());
}

absl::StatusOr<AuditScope> ScopeOf(const AuditArgs& args) {
  AuditScope scope;
  scope.job = args.job;
  if (!args.date.empty()) {
    ASSIGN_OR_RETURN(scope.from, From("--date", ParseDay(args.date)));
    scope.to = scope.from;
  }
  if (!args.from.empty()) {
    ASSIGN_OR_RETURN(scope.from, From("--from", ParseDay(args.from)));
  }
  if (!args.to.empty()) {
    ASSIGN_OR_RETURN(scope.to, From("--to", ParseDay(args.to)));
  }
  if (scope.from && scope.to && *scope.to < *scope.from) {
    return BadInput("--to", absl::StrCat(args.to, " is before --from ", args.from),
                    "both dates are included; give the older one first");
  }
  return scope;
}

absl::Status CheckAge(Session& session, Shell& shell, const std::string& text) {
  ASSIGN_OR_RETURN(const absl::Duration age, From("--check-age", ParseDuration(text)));
  ASSIGN_OR_RETURN(const std::string problem, AuditAgeProblem(session.acts(), age));
  if (!problem.empty()) shell.SetExit(kExitFailed);
  shell.Tell({{"ok", problem.empty()}, {"problem", problem}},
             problem.empty() ? absl::StrCat("audited within ", text) : problem);
  return absl::OkStatus();
}

absl::Status RunAudit(Session& session, Shell& shell, const AuditArgs& args) {
  ASSIGN_OR_RETURN(const AuditScope scope, ScopeOf(args));
  ASSIGN_OR_RETURN(const AuditReport report, AuditNow(session, scope));
  if (report.alarms > 0) shell.SetExit(kExitFailed);
  if (shell.json()) {
    shell.PrintJson(nlohmann::json::parse(ReportJson(report, static_cast<size_t>(args.limit))));
    return absl::OkStatus();
  }
  if (args.report == "month") {
    PrintMonths(report, shell);
  } else {
    PrintFindings(report, shell, args.limit);
  }
  shell.Print(absl::StrCat(report.jobs, " job(s), ", report.total.expected, " period(s) expected, ",
                           report.total.done, " done, ", report.findings.size(), " finding(s), ",
                           report.alarms, " alarm(s)\n"));
  return absl::OkStatus();
}

}  // namespace

void AddAuditCommand(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "audit",
      "what the schedules demanded and is not DONE; exit code 1 where a person should act");
  auto args = std::make_shared<AuditArgs>();
  command.add_option("--job", args->job, "this job alone");
  CLI::Option* date = command.add_option("--date", args->date, "this business date alone");
  command.add_option("--from", args->from, "first business date; default: 35 days ago")
      ->excludes(date);
  command.add_option("--to", args->to, "last business date; default: the newest that is due")
      ->excludes(date);
  command.add_option("--report", args->report, "month: figures by month and job")
      ->check(CLI::IsMember({"month"}));
  command.add_option("-n", args->limit, "at most so many findings are shown; default 1000")
      ->check(CLI::Range(1, 1000000));
  command.add_option("--check-age", args->check_age,
                     "audit nothing; exit code 1 unless a node has audited within this time "
                     "(26h), for a monitor outside");
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args] {
    return shell.WithSession([&](Session& session) {
      if (!args->check_age.empty()) return CheckAge(session, shell, args->check_age);
      return RunAudit(session, shell, *args);
    });
  });
}

}  // namespace matins
