#include "demo/story.h"

#include <signal.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "demo/ledger.h"
#include "demo/reconcile.h"
#include "demo/stage.h"
#include "job/words.h"
#include "ops/node.h"

namespace matins::demo {
namespace {

constexpr absl::Duration kLease = absl::Seconds(3);
constexpr absl::Duration kPatience = absl::Minutes(2);
constexpr int64_t kPauseMs =
    250;  // a night of seconds instead of minutes, and long enough to be killed in
constexpr int64_t kInTheMiddle = 4;  // the step after which things go wrong

void Say(const std::string& text) {
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

std::string Figures(const Count& count, int64_t planted) {
  return absl::StrCat(count.differences, " rows booked for ", planted, " differences, ",
                      count.twice, " of them once too often");
}

// Asks again and again until `there` says yes; DeadlineExceeded names what was waited for.
absl::Status Await(const std::string& what, const std::function<absl::StatusOr<bool>()>& there) {
  const absl::Duration until = SystemClock().BootNow() + kPatience;
  while (SystemClock().BootNow() < until) {
    ASSIGN_OR_RETURN(const bool yes, there());
    if (yes) return absl::OkStatus();
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("waited ", DurationText(kPatience), " for ", what));
}

// ---- the plain way ----

struct Plain {
  Count same_instant, nobody;
};

absl::StatusOr<Plain> ThePlainWay(const DemoOptions& options, absl::CivilDay first,
                                  absl::CivilDay second) {
  Say("== The plain way: the same script in the crontab of two instances ==");
  ASSIGN_OR_RETURN(const std::unique_ptr<Stage> stage, Stage::Open(options, "plain"));
  RETURN_IF_ERROR(stage->Fill(first, second));
  Plain plain;
  Say(absl::StrCat("\nNight of ", FormatDay(first),
                   ": a release covers 01:00, neither instance is alive."));
  ASSIGN_OR_RETURN(plain.nobody, CountDay(stage->ledger(), first));
  Say(absl::StrCat("  in the ledger: ", Figures(plain.nobody, PlantedOn(first).Differences()),
                   "; no error, no record, nobody knows"));

  Say(absl::StrCat("\nNight of ", FormatDay(second),
                   ": both instances are alive, and start at the same instant."));
  std::vector<Process> instances;
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(
        Process instance,
        Process::Start({OwnProgram(), "demo-run", "recon", "--plain", FormatDay(second)},
                       absl::StrCat(stage->folder(), "/plain-", i + 1, ".log"),
                       {{"LEDGER", stage->ledger_url()}}));
    instances.push_back(std::move(instance));
  }
  for (Process& instance : instances) {
    const pid_t pid = instance.pid();
    Say(absl::StrCat("  process ", pid, " ends with ", instance.Wait()));
  }
  ASSIGN_OR_RETURN(plain.same_instant, CountDay(stage->ledger(), second));
  Say(absl::StrCat("  in the ledger: ",
                   Figures(plain.same_instant, PlantedOn(second).Differences())));
  return plain;
}

// ---- Matins ----

// The processes of a run: the job's own, its guard, and the node.
struct RunPids {
  pid_t body = 0, guard = 0, node = 0;
};

pid_t ParentOf(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string line;
  while (std::getline(file, line)) {
    int parent = 0;
    if (std::sscanf(line.c_str(), "PPid: %d", &parent) == 1) return parent;
  }
  return 0;
}

RunPids PidsOf(const Stage& stage, int64_t fence) {
  RunPids pids;
  std::ifstream file(absl::StrCat(stage.folder(), "/", fence));
  file >> pids.body >> pids.guard;
  pids.node = ParentOf(pids.guard);
  return pids;
}

// A zombie (its guard is stopped, too, and cannot collect it) or gone.
bool HasEnded(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  std::string line;
  while (std::getline(file, line)) {
    if (line.rfind("State:", 0) == 0) return line.find('Z') != std::string::npos;
  }
  return true;
}

absl::StatusOr<int64_t> StepsDone(Stage& stage, absl::CivilDay day) {
  ASSIGN_OR_RETURN(
      const Answer answer,
      stage.ledger().Do("SELECT checkpoint FROM matins_fence WHERE job = ? AND period = ?",
                        {"recon", FormatDay(day)}));
  return answer.Number(0, 0);
}

absl::StatusOr<PeriodRow> RowOf(Stage& stage, absl::CivilDay day) {
  return ReadRow(stage.session(), PeriodKey{"recon", FormatDay(day)});
}

// The run of `day`, once it is in the middle of its steps.
absl::StatusOr<PeriodRow> AwaitTheMiddle(Stage& stage, absl::CivilDay day) {
  PeriodRow row;
  RETURN_IF_ERROR(Await(absl::StrCat("step ", kInTheMiddle, " of ", FormatDay(day)),
                        [&]() -> absl::StatusOr<bool> {
                          const auto now = RowOf(stage, day);
                          if (absl::IsNotFound(now.status())) return false;
                          RETURN_IF_ERROR(now.status());
                          row = *now;
                          ASSIGN_OR_RETURN(const int64_t steps, StepsDone(stage, day));
                          return row.status == PeriodStatus::kRunning && steps >= kInTheMiddle;
                        }));
  return row;
}

absl::StatusOr<PeriodRow> AwaitDone(Stage& stage, absl::CivilDay day) {
  PeriodRow row;
  RETURN_IF_ERROR(Await(absl::StrCat("DONE of ", FormatDay(day)), [&]() -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(row, RowOf(stage, day));
    if (row.status == PeriodStatus::kFailed)
      return absl::FailedPreconditionError(
          absl::StrCat("recon ", FormatDay(day), " FAILED: ", row.reason));
    return row.status == PeriodStatus::kDone;
  }));
  return row;
}

absl::StatusOr<PeriodRow> AwaitNewOwner(Stage& stage, absl::CivilDay day, int64_t old_fence) {
  PeriodRow row;
  RETURN_IF_ERROR(
      Await(absl::StrCat("a new owner of ", FormatDay(day)), [&]() -> absl::StatusOr<bool> {
        ASSIGN_OR_RETURN(row, RowOf(stage, day));
        return row.fence > old_fence && row.status != PeriodStatus::kPlanned;
      }));
  return row;
}

absl::StatusOr<Count> NightOfTheKill(Stage& stage, absl::CivilDay day) {
  Say(absl::StrCat("\nNight of ", FormatDay(day),
                   ": it was missed; Matins makes it good, and its node dies on the way."));
  ASSIGN_OR_RETURN(const PeriodRow first, AwaitTheMiddle(stage, day));
  const RunPids pids = PidsOf(stage, first.fence);
  ASSIGN_OR_RETURN(const int64_t steps, StepsDone(stage, day));
  const absl::Duration before = SystemClock().BootNow();
  kill(pids.node, SIGKILL);
  Say(absl::StrCat("  kill -9 of node ", pids.node, " (run ", first.fence, ") after step ", steps,
                   " of ", Steps()));
  ASSIGN_OR_RETURN(const PeriodRow second, AwaitNewOwner(stage, day, first.fence));
  Say(absl::StrCat("  ", second.node, " took over as run ", second.fence, " within ",
                   absl::ToInt64Milliseconds(SystemClock().BootNow() - before), " ms"));
  ASSIGN_OR_RETURN(const PeriodRow done, AwaitDone(stage, day));
  ASSIGN_OR_RETURN(const Count count, CountDay(stage.ledger(), day));
  Say(absl::StrCat("  DONE by run ", done.fence,
                   "; in the ledger: ", Figures(count, PlantedOn(day).Differences())));
  return count;
}

absl::Status WakeTheLateOwner(Stage& stage, const RunPids& pids, int64_t fence, bool& refused) {
  kill(pids.body, SIGCONT);
  RETURN_IF_ERROR(
      Await("the late owner's end", [&]() -> absl::StatusOr<bool> { return HasEnded(pids.body); }));
  struct stat there;
  refused = stat(absl::StrCat(stage.folder(), "/", fence, ".refused").c_str(), &there) == 0;
  kill(pids.guard, SIGCONT);
  kill(pids.node, SIGCONT);
  return absl::OkStatus();
}

absl::StatusOr<Count> NightOfTheLateOwner(Stage& stage, absl::CivilDay day, bool& refused) {
  Say(absl::StrCat("\nNight of ", FormatDay(day),
                   ": its owner is paused past its lease, and wakes up too late."));
  ASSIGN_OR_RETURN(const PeriodRow first, AwaitTheMiddle(stage, day));
  const RunPids pids = PidsOf(stage, first.fence);
  for (const pid_t pid : {pids.node, pids.guard, pids.body}) kill(pid, SIGSTOP);
  ASSIGN_OR_RETURN(const int64_t steps, StepsDone(stage, day));
  Say(absl::StrCat("  SIGSTOP of node ", pids.node, ", guard ", pids.guard, " and job ", pids.body,
                   " after step ", steps, " of ", Steps()));
  ASSIGN_OR_RETURN(const PeriodRow second, AwaitNewOwner(stage, day, first.fence));
  Say(absl::StrCat("  the lease ended; ", second.node, " took over as run ", second.fence));
  ASSIGN_OR_RETURN(const PeriodRow done, AwaitDone(stage, day));
  Say(absl::StrCat("  DONE by run ", done.fence,
                   "; now the late owner wakes up and goes on writing"));
  RETURN_IF_ERROR(WakeTheLateOwner(stage, pids, first.fence, refused));
  Say(refused ? absl::StrCat("  the ledger refused its step: fence ", first.fence,
                             " is older than ", second.fence)
              : std::string("  the late owner was not refused"));
  ASSIGN_OR_RETURN(const Count count, CountDay(stage.ledger(), day));
  Say(absl::StrCat("  in the ledger: ", Figures(count, PlantedOn(day).Differences())));
  return count;
}

struct Nights {
  Count first, second;
  bool refused = false;
};

absl::StatusOr<Nights> WithMatins(const DemoOptions& options, absl::CivilDay first,
                                  absl::CivilDay second) {
  Say("\n== The same two nights with Matins: two nodes, one store ==");
  ASSIGN_OR_RETURN(const std::unique_ptr<Stage> stage, Stage::Open(options, "story"));
  RETURN_IF_ERROR(stage->Fill(first, second));
  RETURN_IF_ERROR(stage->Apply({.folder = stage->folder(),
                                .first_day = first,
                                .pause_ms = kPauseMs,
                                .lease = kLease,
                                .only_recon = true}));
  for (int node = 0; node < 2; ++node) RETURN_IF_ERROR(stage->StartNode());
  Nights nights;
  ASSIGN_OR_RETURN(nights.first, NightOfTheKill(*stage, first));
  RETURN_IF_ERROR(stage->StartNode());  // in place of the one that was killed
  ASSIGN_OR_RETURN(nights.second, NightOfTheLateOwner(*stage, second, nights.refused));
  // One of the nodes was killed on purpose; how they end is no figure of the story.
  stage->StopNodes().IgnoreError();
  return nights;
}

absl::Status Verdict(const Nights& nights, absl::CivilDay first, absl::CivilDay second) {
  const bool right = nights.first.differences == PlantedOn(first).Differences() &&
                     nights.first.twice == 0 &&
                     nights.second.differences == PlantedOn(second).Differences() &&
                     nights.second.twice == 0 && nights.refused;
  return right ? absl::OkStatus()
               : absl::FailedPreconditionError(
                     "the night with Matins did not end as it must; see the figures above");
}

}  // namespace

absl::Status RunStory(const DemoOptions& options) {
  const absl::CivilDay second = NewestDueDay(), first = second - 1;
  ASSIGN_OR_RETURN(const Plain plain, ThePlainWay(options, first, second));
  ASSIGN_OR_RETURN(const Nights nights, WithMatins(options, first, second));
  Say("\n                                         the plain way       Matins");
  std::printf("%s  booked                  %19lld %12lld   (planted: %lld)\n",
              FormatDay(first).c_str(), static_cast<long long>(plain.nobody.differences),
              static_cast<long long>(nights.first.differences),
              static_cast<long long>(PlantedOn(first).Differences()));
  std::printf("%s  booked                  %19lld %12lld   (planted: %lld)\n",
              FormatDay(second).c_str(), static_cast<long long>(plain.same_instant.differences),
              static_cast<long long>(nights.second.differences),
              static_cast<long long>(PlantedOn(second).Differences()));
  const int64_t plain_twice = plain.nobody.twice + plain.same_instant.twice;
  const int64_t ours_twice = nights.first.twice + nights.second.twice;
  std::printf("            booked once too often  %18lld %12lld\n\n",
              static_cast<long long>(plain_twice), static_cast<long long>(ours_twice));
  return Verdict(nights, first, second);
}

}  // namespace matins::demo
