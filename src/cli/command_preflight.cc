// matins preflight: the questions before going live.
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/commands.h"
#include "nlohmann/json.hpp"
#include "ops/preflight.h"
#include "view/table.h"

namespace matins {
namespace {

struct PreflightArgs {
  PreflightRequest request;
  bool strict = false;
};

absl::Status RunPreflight(Session& session, Shell& shell, PreflightArgs& args) {
  ASSIGN_OR_RETURN(args.request.store_url, shell.StoreUrl());
  args.request.redis_url = shell.RedisUrl();
  ASSIGN_OR_RETURN(const PreflightReport report, Preflight(session, args.request));
  if (report.failed > 0 || (args.strict && report.warned > 0)) shell.SetExit(kExitFailed);
  if (shell.json()) {
    nlohmann::json checks = nlohmann::json::array();
    for (const PreflightCheck& check : report.checks) {
      checks.push_back({{"job", check.job},
                        {"question", check.question},
                        {"answer", PreflightWord(check.level)},
                        {"measured", ValidUtf8(check.measured)},
                        {"mend", check.mend}});
    }
    shell.PrintJson({{"checks", checks},
                     {"passed", report.passed},
                     {"warned", report.warned},
                     {"failed", report.failed}});
    return absl::OkStatus();
  }
  Table table({"", "JOB", "QUESTION", "MEASURED", "MEND"});
  for (const PreflightCheck& check : report.checks) {
    table.Add({std::string(PreflightWord(check.level)), check.job.empty() ? "-" : check.job,
               check.question, check.measured, check.mend.empty() ? "-" : check.mend});
  }
  shell.Print(table.Text());
  shell.Print(absl::StrCat(report.passed, " passed, ", report.warned, " warned, ", report.failed,
                           " failed\n"));
  return absl::OkStatus();
}

}  // namespace

void AddPreflightCommand(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "preflight",
      "the questions before going live, answered by experiment and measurement; exit code 1 where "
      "one fails");
  auto args = std::make_shared<PreflightArgs>();
  command.add_option("JOB", args->request.job, "this job alone; default: all");
  command.add_flag("--strict", args->strict, "a warning is a failure too");
  shell.AddStoreOption(command);
  shell.AddRedisOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args] {
    return shell.WithSession([&](Session& session) { return RunPreflight(session, shell, *args); });
  });
}

}  // namespace matins
