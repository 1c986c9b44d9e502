// matins demo, and demo-run (hidden), which the demo's jobs call.
#include "CLI/CLI.hpp"
#include "cli/commands.h"
#include "demo/bodies.h"
#include "demo/demo.h"

namespace matins {

void AddDemoCommand(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "demo",
      "a nightly reconciliation by business date: two nodes fill a gap of 30 days, in order");
  auto options = std::make_shared<demo::DemoOptions>();
  CLI::Option* once =
      command.add_flag("--once", options->once,
                       "stop when the newest days are DONE; exit 0 when every count is right");
  CLI::Option* days =
      command.add_option("--days", options->days, "how many business dates to fill; default 30")
          ->check(CLI::Range(1, 30));
  command
      .add_flag("--story", options->story,
                "one night the plain way, then the same with Matins, a kill -9 and a SIGSTOP")
      ->excludes(once, days);
  command.add_option("--store", options->store,
                     "sqlite:FILE, postgresql://... or mariadb://...; default: a file in --dir");
  command.add_option("--dir", options->folder,
                     "folder for ledger, job file and logs; default: a new temporary one");
  command.add_option("--pause-ms", options->pause_ms, "a rest after each step of a run, to watch")
      ->check(CLI::Range(0, 60000));
  shell.Does(command, [options] { return demo::RunDemo(*options); });

  CLI::App& body = *app.add_subcommand("demo-run", "what the demo's jobs do");
  body.group("");
  auto name = std::make_shared<std::string>();
  auto args = std::make_shared<demo::BodyOptions>();
  body.add_option("NAME", *name)->required();
  body.add_option("--plain", args->plain_day);
  shell.Does(body, [name, args] { return demo::RunBody(*name, *args); });
}

}  // namespace matins
