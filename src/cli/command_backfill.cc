// matins backfill JOB, matins backfills [show|pause|resume|cancel]
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "ops/backfill.h"
#include "view/table.h"

namespace matins {
namespace {

struct BackfillArgs {
  BackfillRequest request;
  std::string from, to, reprocess = "failed";
  int max_parallel = 0;
  bool again = false;
};

// "2 at a time (--max-parallel), starts within 19:00-07:00, from 2026-11-29T11:00:00Z on".
std::string TermsText(const BackfillArgs& args, const BackfillAnswer& answer) {
  std::string text =
      answer.at_a_time ? absl::StrCat(*answer.at_a_time, " at a time (", answer.why_at_a_time, ")")
                       : std::string("as many at a time as there is room for");
  if (!args.request.window.empty()) {
    absl::StrAppend(&text, "; starts within ", args.request.window, " of the job's zone, from ",
                    FormatInstant(answer.opens), " on");
  }
  return absl::StrCat(text, "\n");
}

std::string BackfillText(const BackfillArgs& args, const BackfillAnswer& answer) {
  const std::string& job = args.request.job;
  if (answer.run.empty() && answer.left.empty() && answer.unfillable.empty()) {
    return absl::StrCat("no period of ", job, " from ", args.from, " to ", args.to,
                        " is due yet; `matins job show ", job, "` says when the next is\n");
  }
  std::string text = absl::StrCat(args.request.dry_run ? "would run " : "planned ",
                                  answer.run.size(), " period(s), oldest first; ",
                                  answer.left.size(), " already done, settled, running or planned");
  if (args.request.reprocess == Reprocess::kMissing) absl::StrAppend(&text, ", or failed");
  absl::StrAppend(&text, "\n");
  if (args.request.cascade) {
    absl::StrAppend(&text, "of them ", answer.later.size(), " done later, and ",
                    answer.cascade.size(), " of jobs that come after ", job,
                    args.request.dry_run ? ", would be" : ", are", " computed again\n");
  }
  for (const PeriodRow& row : answer.stale) {
    absl::StrAppend(&text, row.key.job, " ", row.key.period,
                    " was started meanwhile on what is computed again; when run ", row.fence,
                    " has ended: matins run ", row.key.job, " --date ", row.key.period,
                    " --again --reason \"...\"\n");
  }
  if (!answer.run.empty()) absl::StrAppend(&text, TermsText(args, answer));
  if (answer.id != 0) {
    absl::StrAppend(&text, "back-fill ", answer.id, ": `matins backfills show ", answer.id,
                    "` tells how far it has come\n");
  }
  if (!answer.unfillable.empty()) {
    absl::StrAppend(&text, answer.unfillable.size(), " cannot be filled, ",
                    answer.unfillable.front(), " to ", answer.unfillable.back(),
                    ": the source keeps ", DurationText(answer.source_window),
                    " (backfill.source_window); where it still has them, apply a longer one, or "
                    "`matins run ",
                    job, " --date DATE`\n");
  }
  return text;
}

nlohmann::json AnswerJson(const BackfillArgs& args, const BackfillAnswer& answer) {
  nlohmann::json cascade = nlohmann::json::array();
  for (const PeriodKey& key : answer.cascade) {
    cascade.push_back({{"job", key.job}, {"period", key.period}});
  }
  nlohmann::json stale = nlohmann::json::array();
  for (const PeriodRow& row : answer.stale) {
    stale.push_back(
        {{"job", row.key.job}, {"period", row.key.period}, {"run", absl::StrCat(row.fence)}});
  }
  return {{"job", args.request.job},
          {"stale", stale},
          {"dry_run", args.request.dry_run},
          {"backfill", answer.id == 0 ? nlohmann::json() : nlohmann::json(answer.id)},
          {"run", answer.run},
          {"later", answer.later},
          {"cascade", cascade},
          {"reopen", answer.reopen},
          {"left", answer.left},
          {"unfillable", answer.unfillable},
          {"at_a_time", answer.at_a_time ? nlohmann::json(*answer.at_a_time) : nlohmann::json()},
          {"why_at_a_time", answer.why_at_a_time},
          {"window", args.request.window},
          {"opens", JsonTime(answer.opens)}};
}

absl::Status Backfill(Session& session, Shell& shell, BackfillArgs& args) {
  static const std::map<std::string, Reprocess> kWords = {
      {"missing", Reprocess::kMissing}, {"failed", Reprocess::kFailed}, {"all", Reprocess::kAll}};
  ASSIGN_OR_RETURN(args.request.from, From("--from", ParseDay(args.from)));
  ASSIGN_OR_RETURN(args.request.to, From("--to", ParseDay(args.to)));
  args.request.reprocess = args.again ? Reprocess::kAll : kWords.at(args.reprocess);
  if (args.max_parallel != 0) args.request.max_parallel = args.max_parallel;
  ASSIGN_OR_RETURN(const BackfillAnswer answer, BackfillJob(session, args.request));
  if (shell.json()) {
    shell.PrintJson(AnswerJson(args, answer));
    return absl::OkStatus();
  }
  for (const std::string& period : answer.run) shell.Print(absl::StrCat(period, "\n"));
  for (const PeriodKey& key : answer.cascade) {
    shell.Print(absl::StrCat(key.job, " ", key.period, "\n"));
  }
  shell.Print(BackfillText(args, answer));
  return absl::OkStatus();
}

void AddBackfill(CLI::App& app, Shell& shell) {
  CLI::App& backfill = *app.add_subcommand(
      "backfill", "make good what is missing between two business dates, oldest first");
  auto args = std::make_shared<BackfillArgs>();
  backfill.add_option("JOB", args->request.job)->required();
  backfill.add_option("--from", args->from, "first business date, included")->required();
  backfill.add_option("--to", args->to, "last business date, included")->required();
  CLI::Option* reprocess =
      backfill
          .add_option("--reprocess", args->reprocess,
                      "missing: what was never run; failed: and what FAILED (default); all: and "
                      "what is DONE, or was settled long ago, once more; needs --reason")
          ->check(CLI::IsMember({"missing", "failed", "all"}));
  backfill.add_flag("--again", args->again, "as --reprocess all")->excludes(reprocess);
  backfill.add_flag("--cascade", args->request.cascade,
                    "and what is DONE after it: the job's later periods, and those of jobs that "
                    "come after it; needs --reason");
  backfill
      .add_option("--max-parallel", args->max_parallel,
                  "so many of this back-fill at a time, over all nodes; default: the job's "
                  "backfill.max_parallel")
      ->check(CLI::Range(1, 10000));
  backfill.add_option("--window", args->request.window,
                      "start its periods only then: 19:00-07:00, in the job's zone");
  backfill.add_flag("--dry-run", args->request.dry_run, "show what would run, and change nothing");
  shell.AddReasonOption(backfill, args->request.reason);
  shell.AddStoreOption(backfill);
  shell.AddOutputOption(backfill);
  shell.Does(backfill, [&shell, args] {
    return shell.WithSession([&](Session& session) { return Backfill(session, shell, *args); });
  });
}

// ---- what becomes of them ----

std::string TermsText(const BackfillRow& row) {
  std::string text = row.terms.reprocess;
  if (row.terms.cascade) absl::StrAppend(&text, ", cascade");
  if (row.terms.max_parallel) absl::StrAppend(&text, ", ", *row.terms.max_parallel, " at a time");
  if (!row.terms.window.empty()) absl::StrAppend(&text, ", ", row.terms.window);
  return text;
}

nlohmann::json RowJson(const BackfillRow& row) {
  return {{"backfill", row.id},
          {"job", row.terms.job},
          {"from", FormatDay(row.terms.from)},
          {"to", FormatDay(row.terms.to)},
          {"state", ProgressWord(row)},
          {"reprocess", row.terms.reprocess},
          {"cascade", row.terms.cascade},
          {"max_parallel",
           row.terms.max_parallel ? nlohmann::json(*row.terms.max_parallel) : nlohmann::json()},
          {"window", row.terms.window},
          {"zone", row.terms.zone},
          {"periods", row.periods},
          {"planned", row.planned},
          {"running", row.running},
          {"done", row.done},
          {"failed", row.failed},
          {"skipped", row.skipped},
          {"opened_at", JsonTime(row.opened_at)},
          {"who", row.act.who},
          {"why", row.act.why},
          {"changed_at", JsonTime(row.changed_at)},
          {"changed_by", row.changed.who},
          {"changed_why", row.changed.why}};
}

Table RowsTable(const std::vector<BackfillRow>& rows) {
  Table table({"ID", "JOB", "FROM", "TO", "STATE", "DONE", "LEFT", "FAILED", "TERMS", "BY"});
  for (const BackfillRow& row : rows) {
    table.Add({absl::StrCat(row.id), row.terms.job, FormatDay(row.terms.from),
               FormatDay(row.terms.to), ProgressWord(row), absl::StrCat(row.done, "/", row.periods),
               absl::StrCat(row.planned + row.running), absl::StrCat(row.failed), TermsText(row),
               row.act.who});
  }
  return table;
}

absl::Status PrintRows(Session& session, Shell& shell, const std::string& job, bool all) {
  ASSIGN_OR_RETURN(std::vector<BackfillRow> rows, Backfills(session, job));
  if (!all) {
    std::erase_if(rows, [](const BackfillRow& row) { return !row.open(); });
  }
  if (shell.json()) {
    nlohmann::json list = nlohmann::json::array();
    for (const BackfillRow& row : rows) list.push_back(RowJson(row));
    shell.PrintJson(list);
    return absl::OkStatus();
  }
  shell.Print(rows.empty() ? (all ? "no back-fill was asked for\n"
                                  : "no back-fill is under way; --all shows those that ended\n")
                           : RowsTable(rows).Text());
  return absl::OkStatus();
}

absl::Status PrintOne(Session& session, Shell& shell, int64_t id) {
  ASSIGN_OR_RETURN(const BackfillRow row, ReadBackfill(session, id));
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> periods, PeriodsOfBackfill(session, row));
  if (shell.json()) {
    nlohmann::json value = RowJson(row);
    value["rows"] = nlohmann::json::array();
    for (const PeriodRow& period : periods) {
      value["rows"].push_back({{"job", period.key.job},
                               {"period", period.key.period},
                               {"status", Word(period.status)},
                               {"reason", period.reason},
                               {"generation", period.generation},
                               {"run", absl::StrCat(period.fence)}});
    }
    shell.PrintJson(value);
    return absl::OkStatus();
  }
  shell.Print(RowsTable({row}).Text());
  shell.Print(absl::StrCat("asked for by ", row.act.who, " at ", FormatInstant(row.opened_at), ": ",
                           Harmless(row.act.why, false), "\n"));
  if (!row.changed.who.empty()) {
    shell.Print(absl::StrCat(row.state == BackfillState::kActive ? "resumed" : Word(row.state),
                             " by ", row.changed.who, " at ", FormatInstant(row.changed_at), ": ",
                             Harmless(row.changed.why, false), "\n"));
  }
  Table table({"JOB", "PERIOD", "STATUS", "WHY", "RUN"});
  for (const PeriodRow& period : periods) {
    table.Add({period.key.job, period.key.period, std::string(Word(period.status)), period.reason,
               period.fence == 0 ? "-" : absl::StrCat(period.fence)});
  }
  if (!table.empty()) shell.Print(table.Text());
  return absl::OkStatus();
}

void AddAct(CLI::App& parent, Shell& shell, const char* name, const char* about,
            BackfillState state, const char* told) {
  struct Args {
    int64_t id = 0;
    std::string reason;
  };
  CLI::App& act = *parent.add_subcommand(name, about);
  auto args = std::make_shared<Args>();
  act.add_option("ID", args->id, "as `matins backfills` shows it")->required();
  act.add_option("--reason", args->reason, "why; recorded with who and when")->required();
  shell.AddStoreOption(act);
  shell.AddOutputOption(act);
  shell.Does(act, [&shell, args, state, told] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      RETURN_IF_ERROR(session.acts().SetBackfill(args->id, state, session.MakeAct(args->reason)));
      shell.Tell({{"backfill", args->id}, {"state", Word(state)}},
                 absl::StrCat("back-fill ", args->id, " ", told));
      return absl::OkStatus();
    });
  });
}

void AddBackfills(CLI::App& app, Shell& shell) {
  CLI::App& list = *app.add_subcommand(
      "backfills", "back-fills that were asked for: how far they have come, pause, resume, cancel");
  list.require_subcommand(0, 1);
  struct Args {
    std::string job;
    bool all = false;
    int64_t id = 0;
  };
  auto args = std::make_shared<Args>();
  list.add_option("--job", args->job, "only this job's");
  list.add_flag("--all", args->all, "those that have ended too");
  shell.AddStoreOption(list);
  shell.AddOutputOption(list);
  shell.Does(list, [&list, &shell, args]() -> absl::Status {
    if (!list.get_subcommands().empty()) return absl::OkStatus();
    return shell.WithSession(
        [&](Session& session) { return PrintRows(session, shell, args->job, args->all); });
  });
  CLI::App& show = *list.add_subcommand("show", "one, and each of its periods");
  show.add_option("ID", args->id)->required();
  shell.AddStoreOption(show);
  shell.AddOutputOption(show);
  shell.Does(show, [&shell, args] {
    return shell.WithSession([&](Session& session) { return PrintOne(session, shell, args->id); });
  });
  AddAct(list, shell, "pause", "start none of its periods; what runs goes on",
         BackfillState::kPaused, "is paused; what runs goes on");
  AddAct(list, shell, "resume", "go on", BackfillState::kActive, "goes on");
  AddAct(list, shell, "cancel", "settle what has not started as SKIPPED; what runs goes on",
         BackfillState::kCancelled, "is cancelled: what had not started is SKIPPED");
}

}  // namespace

void AddBackfillCommands(CLI::App& app, Shell& shell) {
  AddBackfill(app, shell);
  AddBackfills(app, shell);
}

}  // namespace matins
