// matins runs|logs
#include <cstdio>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "execute/output_text.h"
#include "nlohmann/json.hpp"
#include "ops/session.h"
#include "view/table.h"

namespace matins {
namespace {

std::string EndText(const RunRow& run) {
  if (run.signal) return absl::StrCat("signal ", *run.signal, " (", 128 + *run.signal, ")");
  if (run.exit_code) return absl::StrCat("exit ", *run.exit_code);
  return "-";
}

nlohmann::json JsonOf(const RunRow& run) {
  return {{"run", absl::StrCat(run.fence)},
          {"job", run.key.job},
          {"period", run.key.period},
          {"generation", run.generation},
          {"attempt", run.attempt},
          {"node", run.node},
          {"status", run.status},
          {"reason", run.reason},
          {"message", ValidUtf8(run.message)},
          {"result", run.result.empty() ? nlohmann::json()
                                        : nlohmann::json::parse(run.result, nullptr, false)},
          {"exit_code", run.exit_code ? nlohmann::json(*run.exit_code) : nlohmann::json()},
          {"signal", run.signal ? nlohmann::json(*run.signal) : nlohmann::json()},
          {"due", JsonTime(run.due)},
          {"planned_at", JsonTime(run.planned_at)},
          {"dispatched_at", JsonTime(run.dispatched_at)},
          {"claimed_at", JsonTime(run.claimed_at)},
          {"started_at", JsonTime(run.started_at)},
          {"checkpointed_at", JsonTime(run.checkpointed_at)},
          {"finished_at", JsonTime(run.finished_at)},
          {"backfill", run.backfill},
          {"manual", run.manual},
          {"output_bytes", run.output_bytes}};
}

std::string Took(const RunRow& run) {
  if (run.finished_at == absl::InfinitePast() || run.claimed_at == absl::InfinitePast()) return "-";
  return Roughly(run.finished_at - run.claimed_at);
}

// Why it did not end well, or what is to be noted of one that did, for people; the whole of it
// stands in -o json.
std::string WhyText(const RunRow& run) {
  constexpr size_t kMostBytes = 100;
  if (run.message.empty()) return "-";
  std::string why = run.message.substr(0, run.message.find('\n'));
  if (why.size() > kMostBytes) why = absl::StrCat(why.substr(0, kMostBytes), "...");
  return why;
}

absl::Status Runs(Session& session, const Shell& shell, const RunFilter& filter) {
  ASSIGN_OR_RETURN(const std::vector<RunRow> runs, session.acts().ReadRuns(filter));
  // The runs of a deleted job stay; a name that has neither is a mistake.
  if (runs.empty() && !filter.job.empty()) RETURN_IF_ERROR(ReadJob(session, filter.job).status());
  if (shell.json()) {
    nlohmann::json list = nlohmann::json::array();
    for (const RunRow& run : runs) list.push_back(JsonOf(run));
    shell.PrintJson(list);
    return absl::OkStatus();
  }
  Table table(
      {"RUN", "JOB", "PERIOD", "TRY", "STATUS", "END", "CLAIMED (UTC)", "TOOK", "NODE", "WHY"});
  for (const RunRow& run : runs) {
    table.Add({absl::StrCat(run.fence), run.key.job, run.key.period, absl::StrCat(run.attempt),
               run.reason.empty() ? run.status : absl::StrCat(run.status, "(", run.reason, ")"),
               EndText(run), BothTimes(run.claimed_at, absl::UTCTimeZone()), Took(run), run.node,
               WhyText(run)});
  }
  shell.Print(table.empty() ? "no runs\n" : table.Text());
  return absl::OkStatus();
}

// Of what is kept, the part from byte `shown` of the output on; what was cut is told by a line.
std::string From(const OutputRow& output, int64_t& shown) {
  std::string text;
  const auto head_end = static_cast<int64_t>(output.head.size());
  const int64_t tail_start = output.bytes - static_cast<int64_t>(output.tail.size());
  if (shown < head_end) {
    text = output.head.substr(shown);
    shown = head_end;
  }
  if (shown < tail_start) {
    text += CutText(output.head, tail_start - shown, output.bytes);
    shown = tail_start;
  }
  if (shown < output.bytes) {
    text += output.tail.substr(shown - tail_start);
    shown = output.bytes;
  }
  return text;
}

absl::Status Logs(Session& session, const Shell& shell, int64_t run, bool follow, bool raw) {
  int64_t shown = 0;
  for (;;) {
    ASSIGN_OR_RETURN(const OutputRow output, session.acts().ReadOutput(run));
    const std::string part = From(output, shown);
    shell.Print(raw ? part : Harmless(part, true));
    std::fflush(stdout);
    if (!follow || !output.running) return absl::OkStatus();
    session.store().AwaitChange(absl::Milliseconds(500));
  }
}

// All that is kept of it so far. Bytes that are no text become replacement characters; --raw has
// them.
absl::Status LogsJson(Session& session, const Shell& shell, int64_t run) {
  ASSIGN_OR_RETURN(const OutputRow output, session.acts().ReadOutput(run));
  int64_t shown = 0;
  shell.PrintJson({{"run", absl::StrCat(run)},
                   {"bytes", output.bytes},
                   {"running", output.running},
                   {"output", ValidUtf8(From(output, shown))}});
  return absl::OkStatus();
}

}  // namespace

void AddHistoryCommands(CLI::App& app, Shell& shell) {
  CLI::App& runs = *app.add_subcommand("runs", "attempts, newest first");
  auto filter = std::make_shared<RunFilter>();
  auto period = std::make_shared<std::string>();
  runs.add_option("JOB", filter->job, "default: all jobs");
  runs.add_option("--period", *period, "one period's attempts");
  runs.add_option("-n", filter->limit, "how many at most; default 50")
      ->check(CLI::Range(1, 100000));
  shell.AddStoreOption(runs);
  shell.AddOutputOption(runs);
  shell.Does(runs, [&shell, filter, period] {
    if (!period->empty()) filter->period = *period;
    return shell.WithSession([&](Session& session) { return Runs(session, shell, *filter); });
  });

  struct Args {
    std::string run;
    bool follow = false, raw = false;
  };
  CLI::App& logs = *app.add_subcommand(
      "logs", "a run's output, from any node; what a terminal would act upon is made harmless");
  auto args = std::make_shared<Args>();
  logs.add_option("RUN", args->run, "the run's number, as `matins runs` shows it")->required();
  logs.add_flag("-f,--follow", args->follow, "go on while it runs");
  logs.add_flag("--raw", args->raw, "the bytes as they were written");
  shell.AddStoreOption(logs);
  shell.AddOutputOption(logs);
  shell.Does(logs, [&shell, args] {
    return shell.WithSession([&](Session& session) -> absl::Status {
      int64_t run = 0;
      if (!absl::SimpleAtoi(args->run, &run)) {
        return BadInput("RUN", absl::StrCat("'", args->run, "' is not a run's number"),
                        "`matins runs` lists them");
      }
      if (shell.json() && !args->follow && !args->raw) return LogsJson(session, shell, run);
      if (shell.json()) {
        return BadInput("-o json", "goes neither with --follow nor with --raw",
                        "leave one of them out");
      }
      return Logs(session, shell, run, args->follow, args->raw);
    });
  });
}

}  // namespace matins
