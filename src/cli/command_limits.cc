// matins limits [set|clear]: how many runs may be alive at a time, beside a job's own limit.
#include <algorithm>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "cli/commands.h"
#include "job/limits.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "store/limit_rules.h"
#include "view/table.h"

namespace matins {
namespace {

std::string SetBy(const LimitRow& row) {
  return row.source.empty() ? row.by : absl::StrCat(row.source, " (", row.by, ")");
}

// What may be taken, in runs; nothing where no rule speaks of it.
std::optional<int64_t> RoomOf(const LimitBook& book, const LimitUse& use) {
  if (use.kind == LimitKind::kBackfillShare) return book.MostBackfills();
  const LimitRule* rule = book.Find(use.kind, use.name);
  if (rule == nullptr) return std::nullopt;
  return rule->most;
}

LimitBook BookOf(const LimitsView& view) {
  std::vector<LimitRule> rules;
  for (const LimitRow& row : view.rules) rules.push_back(row.rule);
  return LimitBook(std::move(rules));
}

nlohmann::json JsonOf(const LimitsView& view, const LimitBook& book) {
  nlohmann::json limits = nlohmann::json::array(), uses = nlohmann::json::array();
  for (const LimitRow& row : view.rules) {
    limits.push_back({{"limit", ValidUtf8(LimitName(row.rule))},
                      {"most", row.rule.most},
                      {"share", row.rule.kind == LimitKind::kBackfillShare},
                      {"source", ValidUtf8(row.source)},
                      {"by", ValidUtf8(row.by)},
                      {"at", JsonTime(row.at)}});
  }
  for (const LimitUse& use : view.uses) {
    nlohmann::json one = {{"limit", ValidUtf8(LimitName(use.kind, use.name))},
                          {"taken", use.taken},
                          {"left", use.left},
                          {"waiting", use.waiting}};
    const std::optional<int64_t> room = RoomOf(book, use);
    one["most"] = room ? nlohmann::json(*room) : nlohmann::json();
    uses.push_back(std::move(one));
  }
  return {{"limits", std::move(limits)}, {"uses", std::move(uses)}};
}

absl::Status Show(Session& session, const Shell& shell) {
  ASSIGN_OR_RETURN(const LimitsView view, session.acts().ReadLimits());
  const LimitBook book = BookOf(view);
  if (shell.json()) {
    shell.PrintJson(JsonOf(view, book));
    return absl::OkStatus();
  }
  Table rules({"LIMIT", "MOST", "SET BY", "SINCE (UTC)"});
  for (const LimitRow& row : view.rules) {
    rules.Add({LimitName(row.rule), MostText(row.rule.kind, row.rule.most), SetBy(row),
               BothTimes(row.at, absl::UTCTimeZone())});
  }
  Table uses({"TAKEN OF", "RUNS", "MOST", "LEFT BEHIND", "WAITING"});
  for (const LimitUse& use : view.uses) {
    const std::optional<int64_t> room = RoomOf(book, use);
    uses.Add({LimitName(use.kind, use.name), absl::StrCat(use.taken),
              room ? absl::StrCat(*room) : "-", absl::StrCat(use.left), absl::StrCat(use.waiting)});
  }
  shell.Print(rules.empty() ? "no limits but the jobs' own\n" : rules.Text());
  if (!uses.empty()) shell.Print(absl::StrCat("\n", uses.Text()));
  return absl::OkStatus();
}

struct LimitArgs {
  std::string name, most, reason;
};

absl::Status Set(Session& session, const Shell& shell, const LimitArgs& args) {
  ASSIGN_OR_RETURN(LimitRule rule, From("LIMIT", ParseLimitName(args.name)));
  if (rule.kind == LimitKind::kBackfillShare) {
    ASSIGN_OR_RETURN(rule.most, From("MOST", ParseShare(args.most)));
  } else if (!absl::SimpleAtoi(args.most, &rule.most) || rule.most < 1 || rule.most > kMostRuns) {
    return BadInput(absl::StrCat("MOST '", Harmless(args.most, false), "'"), "is no number of runs",
                    absl::StrCat("write one from 1 to ", kMostRuns, "; `matins limits clear ",
                                 LimitName(rule), "` takes the limit away"));
  }
  RETURN_IF_ERROR(
      session.acts().SetLimits({{rule}, {}, "", session.MakeAct(args.reason)}).status());
  shell.Tell({{"limit", LimitName(rule)}, {"most", rule.most}},
             absl::StrCat(LimitName(rule), " is ", MostText(rule.kind, rule.most)));
  return absl::OkStatus();
}

absl::Status Clear(Session& session, const Shell& shell, const LimitArgs& args) {
  ASSIGN_OR_RETURN(const LimitRule rule, From("LIMIT", ParseLimitName(args.name)));
  ASSIGN_OR_RETURN(const bool changed,
                   session.acts().SetLimits({{}, {rule}, "", session.MakeAct(args.reason)}));
  if (!changed) {
    return absl::NotFoundError(absl::StrCat("there is no limit ", LimitName(rule),
                                            "; `matins limits` shows those that are"));
  }
  shell.Tell({{"limit", LimitName(rule)}, {"cleared", true}},
             absl::StrCat(LimitName(rule), " is limited no more"));
  return absl::OkStatus();
}

}  // namespace

void AddLimitsCommand(CLI::App& app, Shell& shell) {
  CLI::App& limits = *app.add_subcommand(
      "limits", "runs at a time of the store, a tenant, a key, and of back-fill: what is taken");
  limits.require_subcommand(0, 1);
  shell.AddStoreOption(limits);
  shell.AddOutputOption(limits);
  shell.Does(limits, [&limits, &shell]() -> absl::Status {
    if (!limits.get_subcommands().empty()) return absl::OkStatus();
    return shell.WithSession([&](Session& session) { return Show(session, shell); });
  });

  CLI::App& set = *limits.add_subcommand("set", "from now on; what runs above it goes on");
  auto args = std::make_shared<LimitArgs>();
  set.add_option("LIMIT", args->name,
                 "global, tenant/NAME, key/NAME or backfill_share; a name may end with *")
      ->required();
  set.add_option("MOST", args->most, "runs at a time; of backfill_share a part of global, as 50%")
      ->required();
  shell.AddReasonOption(set, args->reason);
  shell.AddStoreOption(set);
  shell.AddOutputOption(set);
  shell.Does(set, [&shell, args] {
    return shell.WithSession([&](Session& session) { return Set(session, shell, *args); });
  });

  CLI::App& clear = *limits.add_subcommand("clear", "no such limit from now on");
  auto gone = std::make_shared<LimitArgs>();
  clear.add_option("LIMIT", gone->name, "as `matins limits` shows it")->required();
  shell.AddReasonOption(clear, gone->reason);
  shell.AddStoreOption(clear);
  shell.AddOutputOption(clear);
  shell.Does(clear, [&shell, gone] {
    return shell.WithSession([&](Session& session) { return Clear(session, shell, *gone); });
  });
}

}  // namespace matins
