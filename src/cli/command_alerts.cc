// matins alerts [list|show|ack|silence|silences|unsilence|test|send]: what is wrong and who was
// told.
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "job/parse.h"
#include "nlohmann/json.hpp"
#include "ops/alerts.h"
#include "send/curl_sender.h"
#include "view/table.h"

namespace matins {
namespace {

struct AlertArgs {
  std::string job, reason, length, file, channel;
  int64_t id = 0;
  int limit = 200;
  bool all = false;
};

bool IsSet(absl::Time t) { return t != absl::InfinitePast() && t != absl::InfiniteFuture(); }

std::string At(absl::Time t) { return IsSet(t) ? FormatInstant(t) : "-"; }

// What is the matter with the telling of it.
std::string StateOf(const AlertRow& row) {
  if (!row.open()) {
    const bool waits = IsSet(row.next_at);
    return absl::StrCat("resolved", waits ? ", to be told" : "");
  }
  if (row.acked_at != absl::InfinitePast()) return absl::StrCat("known to ", row.acked_by);
  if (!row.last_error.empty()) return absl::StrCat("not told: ", row.last_error);
  return row.told() ? "told" : "to be told";
}

nlohmann::json JsonOf(const AlertRow& row) {
  return {{"alert", row.id},
          {"kind", row.kind},
          {"job", ValidUtf8(row.key.job)},
          {"period", ValidUtf8(row.period)},
          {"periods", row.count},
          {"due", JsonTime(row.due)},
          {"channel", ValidUtf8(row.channel)},
          {"text", ValidUtf8(row.text)},
          {"episode", row.episode},
          {"opened_at", JsonTime(row.opened_at)},
          {"told_at", JsonTime(row.told_at)},
          {"resolved_at", JsonTime(row.resolved_at)},
          {"resolution", ValidUtf8(row.resolution)},
          {"resolve_told_at", JsonTime(row.resolve_told_at)},
          {"next_at", JsonTime(row.next_at)},
          {"attempts", row.attempts},
          {"last_error", ValidUtf8(row.last_error)},
          {"acked_at", JsonTime(row.acked_at)},
          {"acked_by", ValidUtf8(row.acked_by)},
          {"acked_why", ValidUtf8(row.acked_why)}};
}

absl::Status List(Session& session, const Shell& shell, const AlertArgs& args) {
  AlertFilter filter;
  filter.job = args.job;
  filter.open_only = !args.all;
  filter.limit = args.limit;
  ASSIGN_OR_RETURN(const std::vector<AlertRow> rows, session.acts().ReadAlerts(filter));
  if (shell.json()) {
    nlohmann::json alerts = nlohmann::json::array();
    for (const AlertRow& row : rows) alerts.push_back(JsonOf(row));
    shell.PrintJson({{"alerts", std::move(alerts)}});
    return absl::OkStatus();
  }
  Table table({"ALERT", "KIND", "JOB", "PERIOD", "SINCE (UTC)", "CHANNEL", "STATE", "WHAT"});
  for (const AlertRow& row : rows) {
    table.Add({absl::StrCat(row.id), row.kind, row.key.job.empty() ? "-" : row.key.job,
               row.period.empty() ? "-" : row.period, At(row.opened_at), row.channel, StateOf(row),
               row.open() ? row.text : row.resolution});
  }
  shell.Print(table.empty() ? "nothing is wrong\n" : table.Text());
  return absl::OkStatus();
}

absl::Status Show(Session& session, const Shell& shell, const AlertArgs& args) {
  AlertFilter filter;
  filter.open_only = false;
  filter.limit = 1'000'000;
  ASSIGN_OR_RETURN(const std::vector<AlertRow> rows, session.acts().ReadAlerts(filter));
  for (const AlertRow& row : rows) {
    if (row.id != args.id) continue;
    if (shell.json()) {
      shell.PrintJson(JsonOf(row));
      return absl::OkStatus();
    }
    Table table({"ALERT", absl::StrCat(row.id)});
    table.Add({"what", row.text});
    table.Add({"kind", row.kind});
    table.Add({"job", row.key.job.empty() ? "-" : row.key.job});
    table.Add({"period", row.period.empty() ? "-" : row.period});
    table.Add({"channel", row.channel});
    table.Add({"state", StateOf(row)});
    table.Add({"episode", absl::StrCat(row.episode)});
    table.Add({"since", At(row.opened_at)});
    table.Add({"told", At(row.told_at)});
    table.Add({"resolved", IsSet(row.resolved_at)
                               ? absl::StrCat(At(row.resolved_at), ": ", row.resolution)
                               : "-"});
    table.Add({"next message", At(row.next_at)});
    table.Add({"attempts at it", absl::StrCat(row.attempts)});
    if (row.acked_at != absl::InfinitePast()) {
      table.Add({"known to",
                 absl::StrCat(row.acked_by, " since ", At(row.acked_at), ": ", row.acked_why)});
    }
    shell.Print(table.Text());
    return absl::OkStatus();
  }
  return absl::NotFoundError(
      absl::StrCat("no alert ", args.id, "; `matins alerts list --all` shows them"));
}

absl::Status Ack(Session& session, const Shell& shell, const AlertArgs& args) {
  RETURN_IF_ERROR(session.acts().AckAlert(args.id, session.MakeAct(args.reason)));
  shell.Tell({{"alert", args.id}, {"acked", true}},
             absl::StrCat("no more reminders of alert ", args.id,
                          "; that it is made good is told all the same"));
  return absl::OkStatus();
}

absl::Status SilenceJob(Session& session, const Shell& shell, const AlertArgs& args) {
  if (args.job.empty() != args.all) {
    return BadInput("silence", "names a JOB, or --all",
                    "write `matins alerts silence JOB --for 2h --reason R`");
  }
  ASSIGN_OR_RETURN(const absl::Duration length, From("--for", ParseDuration(args.length)));
  ASSIGN_OR_RETURN(const int64_t id, SilenceAlerts(session, {args.job, length, args.reason}));
  shell.Tell({{"silence", id}, {"job", ValidUtf8(args.job)}},
             absl::StrCat("silence ", id, ": nothing is told of ", args.all ? "any job" : args.job,
                          " for ", DurationText(length)));
  return absl::OkStatus();
}

absl::Status Silences(Session& session, const Shell& shell) {
  ASSIGN_OR_RETURN(const std::vector<SilenceRow> rows, session.acts().ReadSilences());
  nlohmann::json silences = nlohmann::json::array();
  Table table({"SILENCE", "JOB", "FROM (UTC)", "UNTIL (UTC)", "BY", "WHY", "ENDED"});
  for (const SilenceRow& row : rows) {
    silences.push_back({{"silence", row.id},
                        {"job", ValidUtf8(row.job)},
                        {"from", JsonTime(row.from)},
                        {"until", JsonTime(row.until)},
                        {"who", ValidUtf8(row.who)},
                        {"why", ValidUtf8(row.why)},
                        {"ended_at", JsonTime(row.ended_at)},
                        {"ended_by", ValidUtf8(row.ended_by)}});
    table.Add({absl::StrCat(row.id), row.job.empty() ? "(all)" : row.job, At(row.from),
               At(row.until), row.who, row.why,
               IsSet(row.ended_at) ? absl::StrCat(At(row.ended_at), " by ", row.ended_by) : "-"});
  }
  if (shell.json()) {
    shell.PrintJson({{"silences", std::move(silences)}});
  } else {
    shell.Print(table.empty() ? "no silences\n" : table.Text());
  }
  return absl::OkStatus();
}

absl::Status EndSilence(Session& session, const Shell& shell, const AlertArgs& args) {
  RETURN_IF_ERROR(session.acts().Unsilence(args.id, session.MakeAct(args.reason)));
  shell.Tell({{"silence", args.id}, {"ended", true}},
             absl::StrCat("silence ", args.id, " has ended"));
  return absl::OkStatus();
}

absl::Status Test(const Shell& shell, const AlertArgs& args) {
  ASSIGN_OR_RETURN(const JobFile file, ParseJobFile(args.file));
  const std::unique_ptr<AlertSender> sender = NewCurlSender();
  RETURN_IF_ERROR(TestChannel(file.alerts, args.channel, absl::StrCat("cli:", WhoAmI()), *sender));
  shell.Tell({{"channel", args.channel}, {"sent", true}},
             absl::StrCat("channel ", args.channel, " has taken a message"));
  return absl::OkStatus();
}

absl::Status SendOnce(Session& session, Shell& shell, const AlertArgs& args) {
  ASSIGN_OR_RETURN(const JobFile file, ParseJobFile(args.file));
  const std::unique_ptr<AlertSender> sender = NewCurlSender();
  nlohmann::json messages = nlohmann::json::array();
  std::string lines;
  RETURN_IF_ERROR(
      SendAlertsOnce(session, file.alerts, file.audit, *sender, [&](const AlertTold& told) {
        if (!told.status.ok()) shell.SetExit(kExitFailed);
        messages.push_back({{"channel", told.channel},
                            {"subject", ValidUtf8(told.message.subject)},
                            {"sent", told.status.ok()},
                            {"error", ValidUtf8(std::string(told.status.message()))}});
        absl::StrAppend(&lines, told.channel, ": ", told.message.subject,
                        told.status.ok() ? "" : ": NOT SENT: ", std::string(told.status.message()),
                        "\n");
      }));
  if (shell.json()) {
    shell.PrintJson({{"messages", std::move(messages)}});
  } else {
    shell.Print(lines.empty() ? "nothing to tell\n" : Harmless(lines, true));
  }
  return absl::OkStatus();
}

using Action = absl::Status (*)(Session&, Shell&, const AlertArgs&);

CLI::App& AddOne(CLI::App& alerts, Shell& shell, const char* name, const char* help,
                 std::shared_ptr<AlertArgs> args, Action action) {
  CLI::App& command = *alerts.add_subcommand(name, help);
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args = std::move(args), action] {
    return shell.WithSession([&](Session& session) { return action(session, shell, *args); });
  });
  return command;
}

void AddActs(CLI::App& alerts, Shell& shell) {
  auto ack = std::make_shared<AlertArgs>();
  CLI::App& acked =
      AddOne(alerts, shell, "ack", "it is known: no more reminders", ack,
             [](Session& s, Shell& out, const AlertArgs& a) { return Ack(s, out, a); });
  acked.add_option("ALERT", ack->id, "its number")->required();
  shell.AddReasonOption(acked, ack->reason);

  auto silence = std::make_shared<AlertArgs>();
  CLI::App& silenced = AddOne(
      alerts, shell, "silence", "nothing is told of a job for a time; afterwards what still stands",
      silence, [](Session& s, Shell& out, const AlertArgs& a) { return SilenceJob(s, out, a); });
  silenced.add_option("JOB", silence->job, "the job");
  silenced.add_flag("--all", silence->all, "all jobs, and the store itself");
  silenced.add_option("--for", silence->length, "how long: 2h")->required();
  shell.AddReasonOption(silenced, silence->reason);

  auto end = std::make_shared<AlertArgs>();
  CLI::App& ended =
      AddOne(alerts, shell, "unsilence", "a silence ends now", end,
             [](Session& s, Shell& out, const AlertArgs& a) { return EndSilence(s, out, a); });
  ended.add_option("SILENCE", end->id, "its number")->required();
  shell.AddReasonOption(ended, end->reason);
}

void AddSending(CLI::App& alerts, Shell& shell) {
  auto test = std::make_shared<AlertArgs>();
  CLI::App& tested =
      *alerts.add_subcommand("test", "sends a message that says it is a test, from here");
  tested.add_option("CHANNEL", test->channel, "its name in the file")->required();
  tested.add_option("--file", test->file, "the job file with alerts:")->required();
  shell.AddOutputOption(tested);
  shell.Does(tested, [&shell, test] { return Test(shell, *test); });

  auto send = std::make_shared<AlertArgs>();
  CLI::App& sent =
      AddOne(alerts, shell, "send",
             "audits where that is due, looks, and sends, once, as a node does all the time; exit "
             "code 1 where a "
             "message did not go",
             send, [](Session& s, Shell& out, const AlertArgs& a) { return SendOnce(s, out, a); });
  sent.add_option("--file", send->file, "the job file with alerts:")->required();
}

}  // namespace

void AddAlertsCommand(CLI::App& app, Shell& shell) {
  CLI::App& alerts =
      *app.add_subcommand("alerts", "what is wrong, who was told, and who is not to be told");
  alerts.require_subcommand(1);
  auto list = std::make_shared<AlertArgs>();
  CLI::App& listed =
      AddOne(alerts, shell, "list", "the alerts that stand", list,
             [](Session& s, Shell& out, const AlertArgs& a) { return List(s, out, a); });
  listed.add_option("--job", list->job, "this job alone");
  listed.add_flag("--all", list->all, "those that were made good too");
  listed.add_option("-n", list->limit, "at most so many; default 200")
      ->check(CLI::Range(1, 1000000));
  auto show = std::make_shared<AlertArgs>();
  CLI::App& shown =
      AddOne(alerts, shell, "show", "all that is known of one", show,
             [](Session& s, Shell& out, const AlertArgs& a) { return Show(s, out, a); });
  shown.add_option("ALERT", show->id, "its number")->required();
  AddOne(alerts, shell, "silences", "silences, the newest first", std::make_shared<AlertArgs>(),
         [](Session& s, Shell& out, const AlertArgs&) { return Silences(s, out); });
  AddActs(alerts, shell);
  AddSending(alerts, shell);
}

}  // namespace matins
