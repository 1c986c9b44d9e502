// matins lint FILE: every error and warning of a file of jobs, without a store.
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "cli/commands.h"
#include "job/parse.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

nlohmann::json JsonOf(const Problem& problem) {
  return {{"severity", problem.warning ? "warning" : "error"},
          {"file", problem.at.file ? *problem.at.file : ""},
          {"line", problem.at.line},
          {"column", problem.at.column},
          {"what", problem.what},
          {"mend", problem.mend}};
}

absl::Status Lint(Shell& shell, const std::string& path, bool strict) {
  ParseOptions options;
  options.now = SystemClock().WallNow();
  const LintResult result = LintJobFile(path, options);
  size_t warnings = 0;
  nlohmann::json problems = nlohmann::json::array();
  for (const Problem& problem : result.problems) {
    warnings += problem.warning;
    problems.push_back(JsonOf(problem));
    if (!shell.json()) shell.Print(absl::StrCat(problem.Text(), "\n"));
  }
  const size_t errors = result.problems.size() - warnings,
               jobs = result.file ? result.file->jobs.size() : 0;
  if (shell.json()) {
    shell.PrintJson({{"file", path},
                     {"jobs", jobs},
                     {"errors", errors},
                     {"warnings", warnings},
                     {"problems", problems}});
  } else {
    shell.Print(absl::StrCat(path, ": ", jobs, " job(s), ", errors, " error(s), ", warnings,
                             " warning(s)\n"));
  }
  if (errors > 0) shell.SetExit(kExitUsage);
  if (errors == 0 && strict && warnings > 0) shell.SetExit(kExitFailed);
  return absl::OkStatus();
}

}  // namespace

void AddLintCommand(CLI::App& app, Shell& shell) {
  CLI::App& command =
      *app.add_subcommand("lint", "check a file of jobs: errors, and what will surprise");
  auto path = std::make_shared<std::string>();
  auto strict = std::make_shared<bool>(false);
  command.add_option("FILE", *path, "a job file; - is standard input")->required();
  command.add_flag("--strict", *strict, "warnings count as failures");
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, path, strict] { return Lint(shell, *path, *strict); });
}

}  // namespace matins
