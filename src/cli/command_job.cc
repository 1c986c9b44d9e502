// matins job list|show|apply|suspend|resume|rename|delete
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "job/json.h"
#include "job/parse.h"
#include "job/print.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "ops/jobs.h"
#include "view/table.h"

namespace matins {
namespace {

absl::TimeZone ZoneOf(const Job& job) {
  const auto zone = LoadZone(job.timezone);
  return zone.ok() ? *zone : absl::UTCTimeZone();
}

std::string StateOf(const JobSummary& job) {
  if (!job.unreadable.empty()) return absl::StrCat("cannot be read: ", job.unreadable);
  if (job.row.suspension) return absl::StrCat("suspended: ", job.row.suspension->why);
  if (job.running > 0) return absl::StrCat("running ", job.running);
  if (!job.unserved.empty())
    return absl::StrCat("no living node has ", absl::StrJoin(job.unserved, ", "));
  if (job.calendar_ended) return absl::StrCat("its calendar ended: extend ", job.job.calendar);
  return job.next_fire || job.gaps > 0 ? "waiting" : "no further fires";
}

nlohmann::json JsonOf(const JobSummary& job) {
  nlohmann::json json = {
      {"name", job.row.name},
      {"version", job.row.version},
      {"state", StateOf(job)},
      {"timezone", job.job.timezone},
      {"last_success", JsonTime(job.row.last_success)},
      {"last_result", job.row.last_result},
      {"next_fire", job.next_fire ? JsonTime(job.next_fire->at) : nlohmann::json()},
      {"lag_seconds", absl::ToDoubleSeconds(job.lag)},
      {"gaps", job.gaps},
      {"late", job.late},
      {"running", job.running},
      {"unserved", job.unserved},
      {"suspended", job.row.suspension.has_value()},
      {"source", job.row.source},
      {"first_sight", JsonTime(job.row.first_sight)},
      {"floor", JsonTime(job.row.floor)}};
  return json;
}

absl::Status List(Session& session, const Shell& shell) {
  ASSIGN_OR_RETURN(const std::vector<JobSummary> jobs, ListJobs(session, ""));
  if (shell.json()) {
    nlohmann::json list = nlohmann::json::array();
    for (const JobSummary& job : jobs) list.push_back(JsonOf(job));
    shell.PrintJson(list);
    return absl::OkStatus();
  }
  if (jobs.empty()) {
    shell.Print("no jobs; `matins job apply FILE` adds some\n");
    return absl::OkStatus();
  }
  Table table({"JOB", "STATE", "LAST SUCCESS", "LAST RESULT", "NEXT FIRE", "LAG", "GAPS", "LATE"});
  for (const JobSummary& job : jobs) {
    const absl::TimeZone zone = ZoneOf(job.job);
    table.Add({job.row.name, StateOf(job), BothTimes(job.row.last_success, zone),
               job.row.last_result.empty() ? "-" : job.row.last_result,
               job.next_fire ? BothTimes(job.next_fire->at, zone) : "-",
               job.gaps > 0 ? Roughly(job.lag) : "-", absl::StrCat(job.gaps),
               absl::StrCat(job.late)});
  }
  shell.Print(table.Text());
  return absl::OkStatus();
}

absl::Status Show(Session& session, const Shell& shell, const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<JobSummary> jobs, ListJobs(session, name));
  const JobSummary& job = jobs.front();
  if (shell.json()) {
    nlohmann::json json = JsonOf(job);
    json["definition"] = nlohmann::json::parse(job.row.definition, nullptr, false);
    shell.PrintJson(json);
    return absl::OkStatus();
  }
  if (!job.unreadable.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job '", name, "' cannot be read: ", job.unreadable,
                     "; use the matins that wrote it, or see it as it is with -o json"));
  }
  const absl::TimeZone zone = ZoneOf(job.job);
  shell.Print(absl::StrCat(
      JobToYaml(job.job), "\n# version ", job.row.version, " from ", job.row.source,
      "\n# state: ", StateOf(job), "\n# first sight: ", BothTimes(job.row.first_sight, zone),
      "\n# last success: ", BothTimes(job.row.last_success, zone),
      "\n# last result: ", job.row.last_result.empty() ? "-" : job.row.last_result,
      "\n# next fire: ", job.next_fire ? BothTimes(job.next_fire->at, zone) : "-",
      "\n# gaps: ", job.gaps, ", past their deadline: ", job.late, "\n"));
  return absl::OkStatus();
}

absl::Status Apply(Session& session, const Shell& shell, const std::string& path,
                   const ApplyFileOptions& options) {
  ParseOptions parse;
  parse.now = SystemClock().WallNow();
  ASSIGN_OR_RETURN(const JobFile file, ParseJobFile(path, parse));
  ASSIGN_OR_RETURN(const ApplyAnswer answer, ApplyFile(session, file, options));
  std::vector<std::string> warnings;
  for (const Problem& warning : file.warnings) warnings.push_back(warning.Text());
  if (shell.json()) {
    shell.PrintJson({{"added", answer.added},
                     {"changed", answer.changed},
                     {"unchanged", answer.unchanged},
                     {"pruned", answer.pruned},
                     {"missing", answer.missing},
                     {"warnings", warnings}});
    return absl::OkStatus();
  }
  for (const std::string& warning : warnings) shell.Print(absl::StrCat(warning, "\n"));
  const auto line = [&shell](absl::string_view what, const std::vector<std::string>& names) {
    if (!names.empty()) shell.Print(absl::StrCat(what, ": ", absl::StrJoin(names, ", "), "\n"));
  };
  line("added", answer.added);
  line("changed", answer.changed);
  line("unchanged", answer.unchanged);
  line("deleted", answer.pruned);
  line("no longer in the file, and left alone (--prune deletes them)", answer.missing);
  return absl::OkStatus();
}

void AddListAndShow(CLI::App& job, Shell& shell) {
  CLI::App& list = *job.add_subcommand(
      "list", "all jobs: last success, last result, next fire, lag, gaps and what is late");
  shell.AddStoreOption(list);
  shell.AddOutputOption(list);
  shell.Does(list, [&shell] {
    return shell.WithSession([&](Session& session) { return List(session, shell); });
  });

  CLI::App& show = *job.add_subcommand("show", "one job's definition and state");
  auto name = std::make_shared<std::string>();
  show.add_option("JOB", *name)->required();
  shell.AddStoreOption(show);
  shell.AddOutputOption(show);
  shell.Does(show, [&shell, name] {
    return shell.WithSession([&](Session& session) { return Show(session, shell, *name); });
  });
}

void AddApply(CLI::App& job, Shell& shell) {
  CLI::App& apply = *job.add_subcommand(
      "apply", "write a file's jobs to the store; a change takes effect from now");
  auto path = std::make_shared<std::string>();
  auto options = std::make_shared<ApplyFileOptions>();
  apply.add_option("FILE", *path)->required();
  apply.add_option("--source", options->source,
                   "what this set of jobs is called; default: the file's name");
  apply.add_flag("--force", options->force,
                 "apply a file whose content was superseded by a later one");
  apply.add_flag("--prune", options->prune, "delete jobs of this file that are no longer in it");
  apply.add_flag("--take-over", options->take_over,
                 "make jobs of another source this one's, instead of refusing the file");
  shell.AddStoreOption(apply);
  shell.AddOutputOption(apply);
  shell.Does(apply, [&shell, path, options] {
    options->refuse_past = !options->force;
    if (options->source.empty()) options->source = path->substr(path->find_last_of('/') + 1);
    return shell.WithSession(
        [&](Session& session) { return Apply(session, shell, *path, *options); });
  });
}

void AddSuspendAndResume(CLI::App& job, Shell& shell) {
  struct Args {
    std::string name, reason, missed;
  };
  CLI::App& suspend = *job.add_subcommand("suspend", "start no more runs; what runs goes on");
  auto args = std::make_shared<Args>();
  suspend.add_option("JOB", args->name)->required();
  suspend.add_option("--reason", args->reason, "why; recorded with who and when")->required();
  shell.AddStoreOption(suspend);
  shell.AddOutputOption(suspend);
  shell.Does(suspend, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      RETURN_IF_ERROR(SuspendJob(session, args->name, args->reason));
      shell.Tell({{"job", args->name}, {"suspended", true}}, args->name + " suspended");
      return absl::OkStatus();
    });
  });

  CLI::App& resume = *job.add_subcommand("resume", "end a suspension");
  auto back = std::make_shared<Args>();
  resume.add_option("JOB", back->name)->required();
  resume
      .add_option("--missed", back->missed,
                  "run or skip what came due meanwhile; needed where something did")
      ->check(CLI::IsMember({"run", "skip"}));
  shell.AddReasonOption(resume, back->reason);
  shell.AddStoreOption(resume);
  shell.AddOutputOption(resume);
  shell.Does(resume, [&shell, back] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      const Missed missed = back->missed == "run"    ? Missed::kRun
                            : back->missed == "skip" ? Missed::kSkip
                                                     : Missed::kNotSaid;
      ASSIGN_OR_RETURN(const ResumeAnswer answer,
                       ResumeJob(session, back->name, missed, back->reason));
      shell.Tell(
          {{"job", back->name}, {"suspended", false}, {"owed", answer.owed}},
          absl::StrCat(back->name, " resumed; ", answer.owed, " period(s) came due meanwhile"));
      return absl::OkStatus();
    });
  });
}

void AddRenameAndDelete(CLI::App& job, Shell& shell) {
  struct Args {
    std::string name, to, reason;
    bool force = false;
  };
  CLI::App& rename = *job.add_subcommand(
      "rename", "another name for the same job: its history and first sight go along");
  auto args = std::make_shared<Args>();
  rename.add_option("JOB", args->name)->required();
  rename.add_option("NAME", args->to)->required();
  shell.AddReasonOption(rename, args->reason);
  shell.AddStoreOption(rename);
  shell.AddOutputOption(rename);
  shell.Does(rename, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      RETURN_IF_ERROR(RenameJob(session, args->name, args->to, args->reason));
      shell.Tell({{"job", args->to}, {"was", args->name}}, args->name + " is now " + args->to);
      return absl::OkStatus();
    });
  });

  CLI::App& remove =
      *job.add_subcommand("delete", "the definition goes; runs and watermark stay as history");
  auto gone = std::make_shared<Args>();
  remove.add_option("JOB", gone->name)->required();
  remove.add_flag("--force", gone->force, "also while it runs");
  shell.AddReasonOption(remove, gone->reason);
  shell.AddStoreOption(remove);
  shell.AddOutputOption(remove);
  shell.Does(remove, [&shell, gone] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      RETURN_IF_ERROR(DeleteJob(session, gone->name, gone->force, gone->reason));
      shell.Tell({{"job", gone->name}, {"deleted", true}}, gone->name + " deleted");
      return absl::OkStatus();
    });
  });
}

}  // namespace

void AddJobCommands(CLI::App& app, Shell& shell) {
  CLI::App& job =
      *app.add_subcommand("job", "definitions: list, show, apply, suspend, resume, rename, delete");
  job.require_subcommand(1);
  AddListAndShow(job, shell);
  AddApply(job, shell);
  AddSuspendAndResume(job, shell);
  AddRenameAndDelete(job, shell);
}

}  // namespace matins
