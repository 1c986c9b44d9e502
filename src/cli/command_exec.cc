// matins exec: one job, once through, by the process that a crontab line, a timer, a CronJob or a
// program started for it.

#include <string>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/as_command.h"
#include "cli/commands.h"
#include "cli/exec_host.h"
#include "job/names.h"
#include "job/parse.h"
#include "lease/redis_url.h"
#include "nlohmann/json.hpp"
#include "ops/exec.h"
#include "ops/node.h"

namespace matins {
namespace {

struct ExecArgs {
  ExecRequest request;
  // By their key in a job's definition: what was given.
  std::vector<std::pair<std::string, std::string>> keys;
  std::string lock, config, if_held = "skip", early = "60s", store_wait = "30s";
  bool quiet = false;
};

// The options that say what the job is, and the keys of a job file that they stand for.
constexpr std::pair<const char*, const char*> kKeys[] = {
    {"schedule", "when it is due: cron, OnCalendar, @daily, @every 90s; quote it"},
    {"misfire", "what becomes of missed periods: skip, latest or each; has to be said"},
    {"timezone", "of the schedule; default UTC, whatever the host's is"},
    {"period", "what a run is for: fire (default), hour, day, week or month"},
    {"biz_date", "the data's day, from the fire's: -1d"},
    {"start_deadline", "until when a fire is on time; default 60s"},
    {"timeout", "how long a run may take; default 2h"},
};

std::string OptionOf(absl::string_view key) {
  std::string option = absl::StrCat("--", key);
  for (char& c : option) c = c == '_' ? '-' : c;
  return option;
}

// A definition from the options, by the rules of job files.
absl::StatusOr<Job> JobOfOptions(const ExecArgs& args) {
  nlohmann::ordered_json job = {{"name", args.request.job}};
  for (const auto& [key, value] : args.keys) job[key] = value;
  if (!args.request.redis_url.empty()) job["lock"] = {{"provider", "redis"}};
  job["run"] = {{"exec", true}};
  const nlohmann::ordered_json file = {{"jobs", {job}}};
  const LintResult read = LintJobText(
      "options", file.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), {});
  if (read.file) return read.file->jobs.front();
  std::vector<std::string> errors;
  for (const Problem& problem : read.problems) {
    if (!problem.warning) errors.push_back(absl::StrCat(problem.what, "; ", problem.mend));
  }
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n  "));
}

absl::StatusOr<JobFile> ReadConfig(const ExecArgs& args) {
  ASSIGN_OR_RETURN(JobFile file, ParseJobFile(args.config));
  for (Job& job : file.jobs) {
    if (job.name != args.request.job) continue;
    if (job.run.kind != RunKind::kExec) {
      return BadInput(absl::StrCat(args.config, ", job '", job.name, "'"),
                      "its run says what nodes are to run, and this call says another thing",
                      "write run: { exec: true }");
    }
    file.jobs = {Job(std::move(job))};
    return file;
  }
  return absl::NotFoundError(
      absl::StrCat(args.config, " has no job '", args.request.job, "'; look at its name"));
}

// Which door there is before the store's lock: --lock, or what file or environment name for a job
// with `lock.provider: redis`.
absl::Status ChooseDoor(const ExecArgs& args, const std::string& otherwise, ExecRequest& request) {
  if (args.lock == "store") return absl::OkStatus();
  if (args.lock.empty()) {
    request.redis_url = otherwise;
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(From("--lock", ParseRedisUrl(args.lock)).status());
  request.redis_url = args.lock;
  request.door_wanted = true;
  if (args.config.empty() || request.definition->lock.provider == LockProvider::kRedis) {
    return absl::OkStatus();
  }
  return BadInput("--lock", absl::StrCat("the job of ", args.config, " does not ask Redis"),
                  "write lock: { provider: redis } there");
}

absl::Status Define(const Shell& shell, ExecArgs& args) {
  ExecRequest& request = args.request;
  if (!args.config.empty()) {
    ASSIGN_OR_RETURN(const JobFile file, ReadConfig(args));
    request.definition = file.jobs.front();
    request.global_limit = file.global_limit.value_or(0);
    request.store_url = file.store;
    RETURN_IF_ERROR(
        ChooseDoor(args, shell.RedisUrl().empty() ? file.redis : shell.RedisUrl(), request));
  } else {
    RETURN_IF_ERROR(ChooseDoor(args, "", request));
    if (!args.keys.empty()) {
      ASSIGN_OR_RETURN(request.definition, JobOfOptions(args));
    }
    if (args.lock.empty()) request.redis_url = shell.RedisUrl();
  }
  if (request.apply && !request.definition) {
    return BadInput("--apply", "this call does not say what the job is to be",
                    "say --schedule and --misfire, or --config FILE");
  }
  const absl::StatusOr<std::string> url = shell.StoreUrl();
  if (!url.ok() && request.store_url.empty()) return url.status();
  if (url.ok()) request.store_url = *url;
  return absl::OkStatus();
}

absl::StatusOr<ExecAnswer> Exec(const Shell& shell, ExecArgs& args) {
  ASSIGN_OR_RETURN(const std::unique_ptr<TerminalHost> host, TerminalHost::Open(args.quiet));
  ExecRequest& request = args.request;
  RETURN_IF_ERROR(CheckName("job name", request.job));
  for (const std::string& label : request.labels) RETURN_IF_ERROR(CheckName("--label", label));
  ASSIGN_OR_RETURN(request.early, From("--early", ParseDuration(args.early)));
  ASSIGN_OR_RETURN(request.store_wait, From("--store-wait", ParseDuration(args.store_wait)));
  request.if_held = args.if_held == "wait"   ? IfHeld::kWait
                    : args.if_held == "fail" ? IfHeld::kFail
                                             : IfHeld::kSkip;
  request.program.command = shell.rest();
  RETURN_IF_ERROR(FillProgram(request.program, "matins exec JOB ... -- ./recon.sh"));
  RETURN_IF_ERROR(Define(shell, args));
  request.give_back_program = OwnProgram();
  return ExecJob(request, *host);
}

}  // namespace

void AddExecCommand(CLI::App& app, Shell& shell) {
  CLI::App& command =
      *app.add_subcommand("exec",
                          "runs a command for each period that the job owes, unless another does: "
                          "matins exec JOB ... -- COMMAND");
  command.footer(
      "What follows -- is run once for each owed period, oldest first, with MATINS_BIZ_DATE and "
      "its "
      "like in the environment and\n{{biz_date}} and its like in its words. The exit code is the "
      "command's; its own are those of other commands plus 100.");
  auto args = std::make_shared<ExecArgs>();
  command.add_option("JOB", args->request.job, "its name in the store")->required();
  std::vector<CLI::Option*> keys;
  for (const auto& [key, help] : kKeys) {
    keys.push_back(command.add_option_function<std::string>(
        OptionOf(key),
        [args, key = key](const std::string& value) { args->keys.emplace_back(key, value); },
        help));
  }
  CLI::Option* config = command.add_option("--config", args->config,
                                           "a job file with this job in it, run: { exec: true }");
  for (CLI::Option* key : keys) config->excludes(key);
  CLI::Option* apply =
      command.add_flag("--apply", args->request.apply,
                       "what differs from the store becomes the store's; else it is refused");
  command.add_flag("--force", args->request.force, "--apply also what was superseded before")
      ->needs(apply);
  command
      .add_option(
          "--if-held", args->if_held,
          "where another has the period or its lock: skip (exit 0), wait or fail; default skip")
      ->check(CLI::IsMember({"skip", "wait", "fail"}));
  command.add_option("--early", args->early,
                     "a fire so far ahead by the store's clock is waited for; default 60s");
  command.add_flag("--retry", args->request.retry, "FAILED periods get new attempts now");
  command
      .add_option("--label", args->request.labels,
                  "a label of this host, for jobs with `nodes:`; may be repeated")
      ->take_all();
  command.add_option(
      "--lock", args->lock,
      "what is asked first: store (default), or redis://..., a quick door before the "
      "store's lock");
  command.add_option("--store-wait", args->store_wait,
                     "how long a store that is away is tried again; default 30s");
  command.add_flag("-q,--quiet", args->quiet, "say nothing where all went as it should");
  shell.AddStoreOption(command);
  shell.Does(command,
             [&shell, args]() -> absl::Status { return EndAsCommand(shell, Exec(shell, *args)); });
}

}  // namespace matins
