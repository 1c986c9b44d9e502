// matins watermark: what each period of a job has come to, and up to where there is no gap.
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "cli/commands.h"
#include "job/words.h"
#include "nlohmann/json.hpp"
#include "ops/watermark.h"
#include "view/calendar_view.h"
#include "view/table.h"

namespace matins {
namespace {

struct WatermarkArgs {
  std::string job, from, to;
  int limit = 1000;
  bool calendar = false;
};

absl::Status PrintJsonOf(const Watermark& watermark, const Shell& shell) {
  nlohmann::json rows = nlohmann::json::array();
  for (const PeriodRow& row : watermark.rows) {
    rows.push_back({{"period", row.key.period},
                    {"biz_date", FormatDay(row.biz_date)},
                    {"status", Word(row.status)},
                    {"held", row.held},
                    {"reason", row.reason},
                    {"generation", row.generation},
                    {"run", absl::StrCat(row.fence)},
                    {"node", row.node},
                    {"due", JsonTime(row.due)},
                    {"window_start", JsonTime(row.window_start)},
                    {"window_end", JsonTime(row.window_end)},
                    {"finished_at", JsonTime(row.finished_at)},
                    {"attempts", row.attempts_total},
                    {"losses", row.losses},
                    {"checkpoint", row.checkpoint},
                    {"backfill", row.backfill},
                    {"manual", row.manual}});
  }
  nlohmann::json spans = nlohmann::json::array();
  for (const SkipSpan& span : watermark.spans) {
    spans.push_back({{"first_period", span.first_period},
                     {"last_period", span.last_period},
                     {"count", span.count},
                     {"reason", span.reason},
                     {"by", span.by}});
  }
  shell.PrintJson({{"job", watermark.job},
                   {"high_water_mark", watermark.high_water_mark.empty()
                                           ? nlohmann::json()
                                           : nlohmann::json(watermark.high_water_mark)},
                   {"periods", rows},
                   {"skipped_spans", spans}});
  return absl::OkStatus();
}

std::string StateText(const PeriodRow& row) {
  std::string text(Word(row.status));
  if (row.held) return absl::StrCat(text, "(held)");
  if (!row.reason.empty() && row.status != PeriodStatus::kDone)
    absl::StrAppend(&text, "(", row.reason, ")");
  return text;
}

void PrintTable(const Watermark& watermark, const Shell& shell) {
  Table table({"PERIOD", "STATUS", "DUE", "FINISHED (UTC)", "TRIES", "RUN", "NODE"});
  for (const PeriodRow& row : watermark.rows) {
    table.Add({row.key.period, StateText(row), BothTimes(row.due, watermark.zone),
               BothTimes(row.finished_at, absl::UTCTimeZone()), absl::StrCat(row.attempts_total),
               row.fence == 0 ? "-" : absl::StrCat(row.fence), row.node.empty() ? "-" : row.node});
  }
  shell.Print(table.empty() ? "no periods\n" : table.Text());
  for (const SkipSpan& span : watermark.spans) {
    shell.Print(absl::StrCat("and ", span.first_period, " to ", span.last_period, ": ", span.count,
                             " periods SKIPPED(", span.reason, ") by ", span.by, "\n"));
  }
  shell.Print(absl::StrCat(
      "high-water mark: ", watermark.high_water_mark.empty() ? "none" : watermark.high_water_mark,
      "\n"));
}

absl::Status Show(Session& session, const Shell& shell, const WatermarkArgs& args) {
  RowFilter filter;
  filter.job = args.job;
  filter.limit = args.limit;
  filter.newest_first = true;
  if (!args.from.empty()) {
    ASSIGN_OR_RETURN(filter.from, From("--from", ParseDay(args.from)));
  }
  if (!args.to.empty()) {
    ASSIGN_OR_RETURN(filter.to, From("--to", ParseDay(args.to)));
  }
  if (filter.from && filter.to && *filter.to < *filter.from) {
    return BadInput("--to", absl::StrCat(args.to, " is before --from ", args.from),
                    "both dates are included; give the older one first");
  }
  ASSIGN_OR_RETURN(const Watermark watermark, ReadWatermark(session, filter));
  if (shell.json()) return PrintJsonOf(watermark, shell);
  if (args.calendar) {
    std::map<absl::CivilDay, DayMark> days;
    for (const PeriodRow& row : watermark.rows) {
      DayMark& mark = days[row.biz_date];
      mark = Worse(mark, MarkOf(row));
    }
    shell.Print(CalendarText(days, isatty(STDOUT_FILENO) == 1));
  } else {
    PrintTable(watermark, shell);
  }
  return absl::OkStatus();
}

}  // namespace

void AddWatermarkCommand(CLI::App& app, Shell& shell) {
  CLI::App& command = *app.add_subcommand(
      "watermark", "what each period has come to, and up to where there is no gap");
  auto args = std::make_shared<WatermarkArgs>();
  command.add_option("JOB", args->job)->required();
  command.add_option("--from", args->from, "first business date");
  command.add_option("--to", args->to, "last business date");
  command.add_option("-n", args->limit, "the newest so many; default 1000")
      ->check(CLI::Range(1, 1000000));
  command.add_flag("--calendar", args->calendar, "as months of days");
  shell.AddStoreOption(command);
  shell.AddOutputOption(command);
  shell.Does(command, [&shell, args] {
    return shell.WithSession([&](Session& session) { return Show(session, shell, *args); });
  });
}

}  // namespace matins
