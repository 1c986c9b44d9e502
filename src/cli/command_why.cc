// matins why: how far a period has come, and what stands in its way.
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "ops/why.h"
#include "view/table.h"

namespace matins {
namespace {

void PrintWhyJson(const WhyAnswer& why, const Shell& shell) {
  nlohmann::json phases = nlohmann::json::array();
  for (const WhyPhase& phase : why.phases) {
    phases.push_back({{"phase", phase.name},
                      {"reached", phase.reached},
                      {"at", JsonTime(phase.at)},
                      {"owner", phase.owner}});
  }
  shell.PrintJson({{"job", why.job},
                   {"period", why.period},
                   {"status", why.row ? nlohmann::json(Word(why.row->status)) : nlohmann::json()},
                   {"phases", phases},
                   {"missing", why.missing},
                   {"truths", why.truths}});
}

void PrintWhy(const WhyAnswer& why, const Shell& shell) {
  Table table({"PHASE", "AT (UTC)", "BY"});
  for (const WhyPhase& phase : why.phases) {
    const std::string at = phase.at == absl::InfinitePast() ? "yes" : FormatInstant(phase.at);
    table.Add({phase.name,
               phase.reached               ? at
               : phase.name == why.missing ? "missing"
                                           : "-",
               phase.owner.empty() ? "-" : phase.owner});
  }
  shell.Print(table.Text());
  for (const std::string& truth : why.truths) {
    shell.Print(absl::StrCat(Harmless(truth, false), "\n"));
  }
}

}  // namespace

void AddWhyCommand(CLI::App& app, Shell& shell) {
  struct Args {
    std::string job, date;
  };
  CLI::App& command = *app.add_subcommand(
      "why", "how far a period has come, the first phase that is missing, and what is in the way");
  auto args = std::make_shared<Args>();
  command.add_option("JOB", args->job)->required();
  command.add_option("DATE", args->date, "a business date, or a period's key")->required();
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(const WhyAnswer why, Why(session, args->job, args->date));
      if (shell.json()) {
        PrintWhyJson(why, shell);
      } else {
        PrintWhy(why, shell);
      }
      return absl::OkStatus();
    });
  });
}

}  // namespace matins
