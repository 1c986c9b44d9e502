// matins simulate and diff: what a job file would do, before it does it.
#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "job/deadline.h"
#include "job/parse.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "ops/simulate.h"
#include "simulate/simulate.h"
#include "view/table.h"

namespace matins {
namespace {

// An instant, or the first of a day in UTC.
absl::StatusOr<absl::Time> ReadInstant(absl::string_view option, absl::string_view text) {
  if (const auto day = ParseDay(text); day.ok()) return absl::FromCivil(*day, absl::UTCTimeZone());
  absl::StatusOr<absl::Time> instant = ParseInstant(text);
  if (instant.ok()) return instant;
  return BadInput(option, absl::StrCat("'", Harmless(text, false), "' is neither date nor instant"),
                  "write 2026-11-01 (in UTC) or 2026-11-01T01:00:00Z");
}

absl::StatusOr<Outage> ReadOutage(absl::string_view text) {
  const std::vector<absl::string_view> ends = absl::StrSplit(text, '/');
  if (ends.size() != 2) {
    return BadInput("--outage", absl::StrCat("'", Harmless(text, false), "' is no START/END"),
                    "write 2026-11-03T00:50:00Z/2026-11-03T02:10:00Z");
  }
  Outage outage;
  ASSIGN_OR_RETURN(outage.from, ReadInstant("--outage", ends[0]));
  if (const auto length = ParseDuration(ends[1]); length.ok()) {
    outage.to = outage.from + *length;
    return outage;
  }
  ASSIGN_OR_RETURN(outage.to, ReadInstant("--outage", ends[1]));
  return outage;
}

absl::StatusOr<std::string> ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) return BadInput(path, "cannot be read", "look at the path");
  return text.str();
}

// ---- simulate -----------------------------------------------------------------------------------

struct SimulateArgs {
  std::string file, from, to, durations, otherwise = "1s";
  std::vector<std::string> outages;
  bool history = false, all = false;
  int slots = 64, limit = 100;
};

absl::StatusOr<SimulateRequest> RequestOf(const SimulateArgs& args, const Shell& shell) {
  SimulateRequest request;
  ASSIGN_OR_RETURN(JobFile file, ParseJobFile(args.file));
  request.jobs = std::move(file.jobs);
  request.limits = file.limits.value_or(std::vector<LimitRule>());
  ASSIGN_OR_RETURN(request.from, ReadInstant("--from", args.from));
  ASSIGN_OR_RETURN(request.to, ReadInstant("--to", args.to));
  for (const std::string& outage : args.outages) {
    ASSIGN_OR_RETURN(Outage one, ReadOutage(outage));
    request.outages.push_back(one);
  }
  ASSIGN_OR_RETURN(request.otherwise, From("--otherwise", ParseDuration(args.otherwise)));
  request.slots = args.slots;
  std::vector<std::string> names;
  for (const Job& job : request.jobs) names.push_back(job.name);
  if (args.history) {
    RETURN_IF_ERROR(shell.WithSession([&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(request.durations, DurationsFromHistory(session, names));
      return absl::OkStatus();
    }));
  }
  if (args.durations.empty()) return request;
  ASSIGN_OR_RETURN(const std::string text, ReadText(args.durations));
  ASSIGN_OR_RETURN(const JobDurations said, From(args.durations, ParseDurations(text)));
  for (const auto& [job, durations] : said) {
    if (std::find(names.begin(), names.end(), job) == names.end()) {
      return BadInput(args.durations, absl::StrCat("there is no job '", job, "' in ", args.file),
                      absl::StrCat("its jobs are: ", absl::StrJoin(names, ", ")));
    }
    request.durations[job] = durations;
  }
  return request;
}

std::string Skipped(const SimulatedJob& job) {
  if (job.skipped.empty()) return "-";
  return absl::StrJoin(job.skipped, " ", [](std::string* out, const auto& skipped) {
    absl::StrAppend(out, skipped.first, "=", skipped.second);
  });
}

std::string What(const SimulatedPeriod& period) {
  std::string what = absl::StrCat(Word(period.status));
  if (!period.reason.empty()) absl::StrAppend(&what, "(", period.reason, ")");
  if (period.backfill) absl::StrAppend(&what, ", back-filled");
  if (period.lost > 0) absl::StrAppend(&what, ", lost ", period.lost, " time(s)");
  if (period.late) absl::StrAppend(&what, ", late");
  return what;
}

bool IsPlain(const SimulatedPeriod& period) {
  return period.status == PeriodStatus::kDone && !period.backfill && !period.late &&
         period.lost == 0;
}

std::string Instant(absl::Time t) {
  return t == absl::InfinitePast() || t == absl::InfiniteFuture() ? "-" : FormatInstant(t);
}

std::string Length(absl::Duration d) { return DurationText(absl::Trunc(d, absl::Seconds(1))); }

void PrintPeriods(const SimulateReport& report, const SimulateArgs& args, const Shell& shell) {
  Table table({"DUE", "JOB", "PERIOD", "STARTED", "FINISHED", "WHAT"});
  int shown = 0, more = 0;
  for (const SimulatedPeriod& period : report.periods) {
    if (!args.all && IsPlain(period)) continue;
    if (shown == args.limit) {
      ++more;
      continue;
    }
    ++shown;
    table.Add({Instant(period.due), period.key.job, period.key.period, Instant(period.started),
               Instant(period.finished), What(period)});
  }
  for (const SimulatedSpan& span : report.spans) {
    table.Add({Instant(span.from), span.job,
               absl::StrCat(span.first_period, " to ", span.last_period), "-", "-",
               absl::StrCat(span.count, " SKIPPED(", span.reason, ")")});
  }
  if (table.empty()) return shell.Print("every period would be DONE on time\n");
  shell.Print(table.Text());
  if (more > 0) shell.Print(absl::StrCat("and ", more, " more; -n shows them\n"));
}

void PrintSummary(const SimulateReport& report, const SimulateArgs& args, const Shell& shell) {
  Table jobs({"JOB", "DUE", "DONE", "BACK-FILLED", "LATE", "FAILED", "LOST", "OPEN", "SKIPPED",
              "LONGEST WAIT"});
  for (const SimulatedJob& job : report.jobs) {
    jobs.Add({job.name, absl::StrCat(job.due), absl::StrCat(job.done), absl::StrCat(job.backfilled),
              absl::StrCat(job.late), absl::StrCat(job.failed), absl::StrCat(job.lost),
              absl::StrCat(job.open), Skipped(job), Length(job.longest_wait)});
  }
  shell.Print(absl::StrCat("\n", jobs.Text()));
  if (!report.piles.empty()) {
    Table piles({"PILES UP FROM", "TO", "JOB", "WAITING"});
    int shown = 0;
    for (const Pile& pile : report.piles) {
      if (shown++ == args.limit) break;
      piles.Add({Instant(pile.from), Instant(pile.to), pile.job, absl::StrCat(pile.most)});
    }
    shell.Print(absl::StrCat("\n", piles.Text()));
  }
  shell.Print(absl::StrCat(
      "\nat most ", report.most_running, " at a time",
      report.most_running > 0 ? absl::StrCat(", first at ", Instant(report.most_running_at)) : "",
      "\n"));
  for (const SimulatedJob& job : report.jobs) {
    if (!job.problem.empty()) shell.Print(absl::StrCat(job.name, ": ", job.problem, "\n"));
  }
}

nlohmann::json ReportJson(const SimulateReport& report) {
  using nlohmann::json;
  json periods = json::array(), spans = json::array(), jobs = json::array(), piles = json::array();
  for (const SimulatedPeriod& p : report.periods) {
    periods.push_back({{"job", p.key.job},
                       {"period", p.key.period},
                       {"biz_date", FormatDay(p.biz_date)},
                       {"due", JsonTime(p.due)},
                       {"started", JsonTime(p.started)},
                       {"finished", JsonTime(p.finished)},
                       {"status", Word(p.status)},
                       {"reason", p.reason},
                       {"backfill", p.backfill},
                       {"late", p.late},
                       {"attempts", p.attempts},
                       {"lost", p.lost}});
  }
  for (const SimulatedSpan& s : report.spans) {
    spans.push_back({{"job", s.job},
                     {"first", s.first_period},
                     {"last", s.last_period},
                     {"count", s.count},
                     {"reason", s.reason}});
  }
  for (const SimulatedJob& j : report.jobs) {
    jobs.push_back({{"job", j.name},
                    {"due", j.due},
                    {"done", j.done},
                    {"backfilled", j.backfilled},
                    {"late", j.late},
                    {"failed", j.failed},
                    {"lost", j.lost},
                    {"open", j.open},
                    {"skipped", j.skipped},
                    {"longest_wait", absl::ToDoubleSeconds(j.longest_wait)},
                    {"problem", j.problem}});
  }
  for (const Pile& p : report.piles) {
    piles.push_back(
        {{"job", p.job}, {"from", JsonTime(p.from)}, {"to", JsonTime(p.to)}, {"waiting", p.most}});
  }
  return {{"periods", periods},
          {"spans", spans},
          {"jobs", jobs},
          {"piles", piles},
          {"most_running", report.most_running},
          {"most_running_at", JsonTime(report.most_running_at)}};
}

void AddSimulate(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "simulate", "what a job file would have run, skipped and made good; nothing is run");
  auto args = std::make_shared<SimulateArgs>();
  command.add_option("FILE", args->file, "a job file")->required();
  command
      .add_option("--from", args->from, "date (UTC) or instant at which the jobs are first seen")
      ->required();
  command.add_option("--to", args->to, "date (UTC) or instant at which it ends")->required();
  command
      .add_option("--outage", args->outages,
                  "START/END or START/LENGTH in which no node is alive; may be repeated")
      ->take_all();
  command.add_option("--durations", args->durations,
                     "a file of lines \"JOB: 12m\", or \"JOB: 10m, 45m\" in turn");
  command.add_flag("--from-history", args->history,
                   "runs take what the store's last attempts of the same name took");
  command.add_option("--otherwise", args->otherwise, "how long all other runs take; default 1s");
  command.add_option("--slots", args->slots, "runs at a time; default 64")
      ->check(CLI::Range(1, 1000000));
  command.add_flag("--all", args->all, "list also what would be DONE on time");
  command.add_option("-n", args->limit, "at most so many lines of a table; default 100")
      ->check(CLI::Range(1, 10000000));
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args]() -> absl::Status {
    ASSIGN_OR_RETURN(const SimulateRequest request, RequestOf(*args, shell));
    ASSIGN_OR_RETURN(const SimulateReport report, SimulateJobs(request));
    if (shell.json()) {
      shell.PrintJson(ReportJson(report));
      return absl::OkStatus();
    }
    PrintPeriods(report, *args, shell);
    PrintSummary(report, *args, shell);
    return absl::OkStatus();
  });
}

// ---- diff ---------------------------------------------------------------------------------------

struct DiffArgs {
  std::string before, after, from, to;
  int limit = 20;
};

absl::string_view WhatText(JobDiff::What what) {
  switch (what) {
    case JobDiff::What::kAdded:
      return "added";
    case JobDiff::What::kRemoved:
      return "removed";
    case JobDiff::What::kChanged:
      return "changed";
    case JobDiff::What::kSame:
      return "same";
  }
  return "";
}

nlohmann::json DiffJson(const std::vector<JobDiff>& diffs) {
  nlohmann::json all = nlohmann::json::array();
  for (const JobDiff& diff : diffs) {
    nlohmann::json fires = nlohmann::json::array();
    for (const FireChange& fire : diff.fires) {
      fires.push_back({{"at", JsonTime(fire.at)}, {"added", fire.added}, {"period", fire.period}});
    }
    all.push_back({{"job", diff.job},
                   {"what", WhatText(diff.what)},
                   {"fires", fires},
                   {"more", diff.more},
                   {"differences", diff.differences}});
  }
  return all;
}

void PrintDiffs(const std::vector<JobDiff>& diffs, const Shell& shell) {
  if (diffs.empty()) return shell.Print("no job differs\n");
  for (const JobDiff& diff : diffs) {
    shell.Print(absl::StrCat(diff.job, ": ", WhatText(diff.what),
                             diff.fires.empty() ? ", no fire changes" : "", "\n"));
    for (const std::string& line : diff.differences) {
      shell.Print(absl::StrCat("    ", Harmless(line, false), "\n"));
    }
    for (const FireChange& fire : diff.fires) {
      shell.Print(absl::StrCat("  ", fire.added ? "+ " : "- ", FormatInstant(fire.at),
                               fire.period.empty() ? "" : absl::StrCat("  ", fire.period), "\n"));
    }
    if (diff.more) shell.Print("  and so on; -n shows more\n");
  }
}

void AddDiff(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "diff", "which fires differ between two job files; exit code 1 where any does");
  auto args = std::make_shared<DiffArgs>();
  command.add_option("OLD", args->before, "a job file")->required();
  command.add_option("NEW", args->after, "a job file")->required();
  command.add_option("--from", args->from, "date (UTC) or instant; default: now");
  command.add_option("--to", args->to, "date (UTC) or instant; default: a year after --from");
  command.add_option("-n", args->limit, "look at so many fires of a job; default 20")
      ->check(CLI::Range(1, 100000));
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args]() -> absl::Status {
    absl::Time from = SystemClock().WallNow();
    if (!args->from.empty()) {
      ASSIGN_OR_RETURN(from, ReadInstant("--from", args->from));
    }
    absl::Time to = from + absl::Hours(24 * 366);
    if (!args->to.empty()) {
      ASSIGN_OR_RETURN(to, ReadInstant("--to", args->to));
    }
    ASSIGN_OR_RETURN(const JobFile before, ParseJobFile(args->before));
    ASSIGN_OR_RETURN(const JobFile after, ParseJobFile(args->after));
    ASSIGN_OR_RETURN(const std::vector<JobDiff> diffs,
                     DiffJobs(before.jobs, after.jobs, from, to, args->limit));
    const bool any = std::any_of(diffs.begin(), diffs.end(),
                                 [](const JobDiff& diff) { return !diff.fires.empty(); });
    if (any) shell.SetExit(kExitFailed);
    if (shell.json()) {
      shell.PrintJson(DiffJson(diffs));
    } else {
      PrintDiffs(diffs, shell);
    }
    return absl::OkStatus();
  });
}

}  // namespace

void AddSimulateCommands(CLI::App& app, Shell& shell) {
  AddSimulate(app, shell);
  AddDiff(app, shell);
}

}  // namespace matins
