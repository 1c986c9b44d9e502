#include "demo/demo.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "demo/ledger.h"
#include "demo/stage.h"
#include "demo/story.h"
#include "job/words.h"
#include "ops/watermark.h"
#include "view/calendar_view.h"

namespace matins::demo {
namespace {

constexpr int kOlderThanTheCap = 5;

std::atomic<bool> interrupted{false};
void Interrupt(int) { interrupted = true; }

absl::StatusOr<std::map<absl::CivilDay, PeriodRow>> ReconRows(Stage& stage) {
  RowFilter filter;
  filter.job = "recon";
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, stage.session().acts().ReadRows(filter));
  std::map<absl::CivilDay, PeriodRow> by_day;
  for (const PeriodRow& row : rows) by_day[row.biz_date] = row;
  return by_day;
}

// The first business date of [first, last] that can no longer become DONE by itself.
absl::Status FirstFailure(const std::map<absl::CivilDay, PeriodRow>& rows, absl::CivilDay first,
                          absl::CivilDay last) {
  for (const auto& [day, row] : rows) {
    if (day < first || day > last) continue;
    if (row.status == PeriodStatus::kFailed || row.status == PeriodStatus::kSkipped) {
      return absl::FailedPreconditionError(
          absl::StrCat("recon ", FormatDay(day), " is ", Word(row.status), ": ", row.reason,
                       "; see `matins runs recon` on the demo's store"));
    }
  }
  return absl::OkStatus();
}

void ShowProgress(int64_t done, int64_t wanted, const std::map<absl::CivilDay, PeriodRow>& rows) {
  std::string running;
  for (const auto& [day, row] : rows) {
    if (row.status == PeriodStatus::kRunning)
      absl::StrAppend(&running, " ", FormatDay(day), " on ", row.node);
  }
  constexpr int64_t kWidth = 30;
  const int64_t full = done * kWidth / wanted;
  std::printf("\r\x1b[Kfilling the gap, oldest first: [%s%s] %lld/%lld%s",
              std::string(static_cast<size_t>(full), '#').c_str(),
              std::string(static_cast<size_t>(kWidth - full), ' ').c_str(),
              static_cast<long long>(done), static_cast<long long>(wanted), running.c_str());
  std::fflush(stdout);
}

absl::Status FillTheGap(Stage& stage, absl::CivilDay first, absl::CivilDay last) {
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  std::set<absl::CivilDay> told;
  const int64_t wanted = last - first + 1;
  while (!interrupted) {
    RETURN_IF_ERROR(stage.AllAlive());
    ASSIGN_OR_RETURN(const auto rows, ReconRows(stage));
    RETURN_IF_ERROR(FirstFailure(rows, first, last));
    int64_t done = 0;
    for (const auto& [day, row] : rows) {
      if (row.status != PeriodStatus::kDone || day < first || day > last) continue;
      ++done;
      if (!terminal && told.insert(day).second) {
        std::printf("DONE %s by %s, run %lld\n", FormatDay(day).c_str(), row.node.c_str(),
                    static_cast<long long>(row.fence));
      }
    }
    if (terminal) ShowProgress(done, wanted, rows);
    if (done >= wanted) {
      if (terminal) std::printf("\n");
      return absl::OkStatus();
    }
    stage.session().store().AwaitChange(absl::Milliseconds(200));
  }
  return absl::CancelledError("interrupted");
}

// Per day: what was booked, counted from the ledger now, against what the generator planted.
absl::Status ShowCounts(Stage& stage, absl::CivilDay first, absl::CivilDay last) {
  absl::Status verdict;
  Count all;
  std::printf("\nBUSINESS DATE  DIFFERENCES  PLANTED  BOOKED TWICE\n");
  for (absl::CivilDay day = first; day <= last; ++day) {
    ASSIGN_OR_RETURN(const Count count, CountDay(stage.ledger(), day));
    const int64_t planted = PlantedOn(day).Differences();
    std::printf("%s %15lld %8lld %13lld\n", FormatDay(day).c_str(),
                static_cast<long long>(count.differences), static_cast<long long>(planted),
                static_cast<long long>(count.twice));
    all.differences += count.differences;
    all.twice += count.twice;
    if (verdict.ok() && (count.differences != planted || count.twice != 0)) {
      verdict = absl::FailedPreconditionError(
          absl::StrCat("recon ", FormatDay(day), ": ", count.differences, " differences, ", planted,
                       " planted, ", count.twice, " booked twice"));
    }
  }
  std::printf("in all %19lld %22lld\n\n", static_cast<long long>(all.differences),
              static_cast<long long>(all.twice));
  return verdict;
}

absl::Status ShowCalendar(Stage& stage) {
  ASSIGN_OR_RETURN(const auto rows, ReconRows(stage));
  std::map<absl::CivilDay, DayMark> days;
  for (const auto& [day, row] : rows) days[day] = MarkOf(row);
  std::printf("watermark of recon\n%s\n", CalendarText(days, isatty(STDOUT_FILENO) == 1).c_str());
  return absl::OkStatus();
}

// Tells each attempt as it ends, until a person has seen enough.
absl::Status ServeOn(Stage& stage) {
  std::printf(
      "Two nodes go on serving. Try in another terminal:\n\n"
      "  export MATINS_STORE='%s'\n"
      "  matins job list;  matins watermark recon --calendar;  matins runs;  matins status\n\n"
      "Ctrl-C ends the demo.\n\n",
      stage.store_url().c_str());
  int64_t newest = 0;
  while (!interrupted) {
    RETURN_IF_ERROR(stage.AllAlive());
    ASSIGN_OR_RETURN(std::vector<RunRow> runs, stage.session().acts().ReadRuns(RunFilter{}));
    std::reverse(runs.begin(), runs.end());
    for (const RunRow& run : runs) {
      if (run.fence <= newest || run.status == "RUNNING") continue;
      if (newest != 0)
        std::printf("%s %s %s %s\n", FormatInstant(run.finished_at).c_str(), run.key.job.c_str(),
                    run.key.period.c_str(), run.status.c_str());
      newest = run.fence;
    }
    if (newest == 0) newest = 1;
    std::fflush(stdout);
    stage.session().store().AwaitChange(absl::Milliseconds(500));
  }
  std::printf("\nstopping: runs end first\n");
  return absl::OkStatus();
}

}  // namespace

absl::Status RunDemo(const DemoOptions& options) {
  if (options.story) return RunStory(options);
  signal(SIGINT, Interrupt);
  signal(SIGTERM, Interrupt);
  ASSIGN_OR_RETURN(const std::unique_ptr<Stage> stage, Stage::Open(options, "demo"));
  std::printf("folder: %s\nstore: %s\n", stage->folder().c_str(),
              stage->session().database().Describe().c_str());
  const absl::CivilDay last = NewestDueDay(), first = last - options.days + 1;
  RETURN_IF_ERROR(stage->Fill(first - kOlderThanTheCap, last));
  RETURN_IF_ERROR(stage->Apply({.first_day = first - kOlderThanTheCap,
                                .max_periods = options.days,
                                .pause_ms = options.pause_ms}));
  for (int node = 0; node < 2; ++node) RETURN_IF_ERROR(stage->StartNode());
  absl::Status status = FillTheGap(*stage, first, last);
  if (status.ok()) status = ShowCounts(*stage, first, last);
  if (status.ok()) status = ShowCalendar(*stage);
  if (status.ok() && !options.once) status = ServeOn(*stage);
  status.Update(stage->StopNodes());
  return absl::IsCancelled(status) && !options.once ? absl::OkStatus() : status;
}

}  // namespace matins::demo
