// matins next: the instants at which a schedule is due.
#include <iostream>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "schedule/batch.h"
#include "schedule/schedule.h"
#include "view/table.h"

namespace matins {
namespace {

struct NextOptions {
  std::string expression;
  std::string zone = "UTC";
  std::string from;
  std::string dialect = "auto";
  int count = 1;
  bool batch = false;
};

absl::Status Batch(absl::Time now) {
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) std::cout << AnswerBatchLine(line, now) << '\n';
  std::cout.flush();
  if (!std::cout) return absl::UnavailableError("standard output cannot be written");
  return absl::OkStatus();
}

absl::Status Next(const NextOptions& options, const Shell& shell) {
  const absl::Time now = SystemClock().WallNow();
  if (options.batch) return Batch(now);
  if (options.expression.empty()) {
    return BadInput("EXPR", "is missing",
                    "give a schedule in quotes, or lines on standard input with --batch");
  }
  ScheduleOptions parse;
  ASSIGN_OR_RETURN(parse.zone, LoadZone(options.zone));
  const std::optional<Dialect> dialect = FromWord<Dialect>(options.dialect);
  if (!dialect) {
    return BadInput("--dialect", absl::StrCat("'", options.dialect, "' is not known"),
                    absl::StrCat("write one of ", absl::StrJoin(Words<Dialect>(), ", ")));
  }
  parse.dialect = *dialect;
  absl::Time from = now;
  if (!options.from.empty()) {
    ASSIGN_OR_RETURN(from, From("--from", ParseInstant(options.from)));
  }
  ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Parse(options.expression, parse));
  nlohmann::json fires = nlohmann::json::array();
  Table table({"UTC", "LOCAL"});
  for (int i = 0; i < options.count; ++i) {
    const std::optional<Fire> fire = schedule.Next(from);
    if (!fire) break;
    fires.push_back(FormatInstant(fire->at));
    table.Add({FormatInstant(fire->at), FormatLocal(fire->at, schedule.zone())});
    from = fire->at;
  }
  if (shell.json()) {
    shell.PrintJson(
        {{"expr", options.expression}, {"description", schedule.Describe()}, {"next", fires}});
  } else {
    shell.Print(absl::StrCat(schedule.Describe(), "\n",
                             table.empty() ? "never due again\n" : table.Text()));
  }
  return absl::OkStatus();
}

}  // namespace

void AddNextCommand(CLI::App& app, Shell& shell) {
  CLI::App& command =
      *app.add_subcommand("next", "when a schedule is due next, and what it says in words");
  auto options = std::make_shared<NextOptions>();
  CLI::Option* expression =
      command.add_option("EXPR", options->expression,
                         "cron of 5 or 6 fields, Quartz, OnCalendar, @daily, \"@every 90s\"");
  CLI::Option* zone = command.add_option("--tz", options->zone, "IANA zone; default UTC");
  CLI::Option* from = command.add_option("--from", options->from,
                                         "instant to start from, not included; default now");
  CLI::Option* count =
      command.add_option("-n", options->count, "how many at most")->check(CLI::Range(1, 100000));
  CLI::Option* dialect = command.add_option("--dialect", options->dialect,
                                            "auto, vixie5, seconds6, quartz or oncalendar");
  command
      .add_flag("--batch", options->batch,
                "read {\"expr\",\"dialect\",\"tz\",\"from\",\"n\"} a line, write "
                "{\"next\":[...]} or {\"error\":...} a line; each line says all for itself")
      ->excludes(expression)
      ->excludes(zone)
      ->excludes(from)
      ->excludes(count)
      ->excludes(dialect);
  shell.AddOutputOption(command);
  shell.Does(command, [options, &shell] { return Next(*options, shell); });
}

}  // namespace matins
