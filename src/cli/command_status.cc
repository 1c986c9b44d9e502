// matins status: the store, its nodes, and what waits.
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/commands.h"
#include "nlohmann/json.hpp"
#include "ops/jobs.h"
#include "ops/session.h"
#include "schedule/schedule.h"
#include "view/table.h"

namespace matins {
namespace {

absl::Status PrintStatusJson(const StoreStatus& status, const std::vector<NodeRow>& nodes,
                             const Shell& shell) {
  nlohmann::json list = nlohmann::json::array();
  for (const NodeRow& node : nodes) {
    list.push_back({{"name", node.name},
                    {"labels", node.labels},
                    {"started_at", JsonTime(node.started_at)},
                    {"seen_at", JsonTime(node.seen_at)},
                    {"clock_offset_seconds", absl::ToDoubleSeconds(node.clock_offset)},
                    {"left", node.left},
                    {"running", node.running}});
  }
  shell.PrintJson({{"store", status.kind},
                   {"server_version", status.version},
                   {"schema", status.schema},
                   {"now", JsonTime(status.now)},
                   {"epoch", status.epoch},
                   {"clock_frozen", status.frozen},
                   {"clock_frozen_why", status.frozen_why},
                   {"journal", status.journal},
                   {"jobs", status.jobs},
                   {"planned", status.planned},
                   {"running", status.running},
                   {"failed", status.failed},
                   {"held", status.held},
                   {"tzdata", ZoneDataVersion()},
                   {"warnings", status.warnings},
                   {"nodes", list}});
  return absl::OkStatus();
}

// No decision is a node's clock's (I23), but what people read is: its log, and its jobs' own
// `date`.
constexpr absl::Duration kSkewToTell = absl::Seconds(2);

std::vector<std::string> SkewedClocks(const std::vector<NodeRow>& nodes, absl::Time now) {
  std::vector<std::string> told;
  for (const NodeRow& node : nodes) {
    const absl::Duration skew = node.clock_offset;
    if (!IsAlive(node, now) || absl::AbsDuration(skew) <= kSkewToTell) continue;
    told.push_back(absl::StrCat(
        "the clock of node ", node.name, " is ", Roughly(skew),
        skew < absl::ZeroDuration() ? " behind" : " ahead of",
        " the store's; runs are started by the store's, but its log and its jobs read its own: set "
        "it (chronyc makestep)"));
  }
  return told;
}

std::string NodeState(const NodeRow& node, absl::Time now) {
  if (node.left) return "left";
  return IsAlive(node, now) ? "alive" : absl::StrCat("silent for ", Roughly(now - node.seen_at));
}

void PrintStatusText(const StoreStatus& status, const std::vector<NodeRow>& nodes,
                     const Shell& shell) {
  shell.Print(absl::StrCat(
      "store: ", status.kind, " ", status.version, ", schema ", status.schema, ", epoch ",
      status.epoch, ", journal ", status.journal, ", zone data ", ZoneDataVersion(),
      "\nstore's time: ", BothTimes(status.now, absl::UTCTimeZone()),
      status.frozen ? absl::StrCat("\nCLOCK FROZEN: ", status.frozen_why,
                                   "; it is taken once steady, or at once by `matins clock accept`")
                    : "",
      "\njobs ", status.jobs, ", planned ", status.planned, ", running ", status.running,
      ", failed ", status.failed, ", held ", status.held, "\n"));
  for (const std::string& warning : status.warnings)
    shell.Print(absl::StrCat("warning: ", warning, "\n"));
  Table table({"NODE", "STATE", "LABELS", "STARTED (UTC)", "CLOCK OFFSET", "RUNNING"});
  for (const NodeRow& node : nodes) {
    table.Add({node.name, NodeState(node, status.now),
               node.labels.empty() ? "-" : absl::StrJoin(node.labels, ","),
               BothTimes(node.started_at, absl::UTCTimeZone()),
               absl::StrCat(node.clock_offset < absl::ZeroDuration() ? "-" : "+",
                            Roughly(node.clock_offset)),
               absl::StrCat(node.running)});
  }
  shell.Print(table.empty() ? "no nodes\n" : table.Text());
}

}  // namespace

void AddStatusCommand(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand("status", "the store, its nodes, and what waits");
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      ASSIGN_OR_RETURN(StoreStatus status, session.acts().ReadStatus());
      ASSIGN_OR_RETURN(const std::vector<NodeRow> nodes, session.acts().ReadNodes());
      for (std::string& skewed : SkewedClocks(nodes, status.now))
        status.warnings.push_back(std::move(skewed));
      if (shell.json()) return PrintStatusJson(status, nodes, shell);
      PrintStatusText(status, nodes, shell);
      return absl::OkStatus();
    });
  });
}

}  // namespace matins
