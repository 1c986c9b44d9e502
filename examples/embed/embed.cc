// A program with a nightly job inside: the interest of each account, by business date. The days
// that were missed are made good, in order; a day that was cut off goes on from its checkpoint.
//
//   embed STORE FIRST_DAY LAST_DAY [--crash-at ACCOUNT]
//
// Fills every day from FIRST_DAY to LAST_DAY, prints what it did, and leaves. With --crash-at the
// first day fails once at that account, so that the checkpoint can be seen.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"
#include "interest.h"
#include "matins/scheduler.h"

namespace {

void Check(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "embed: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

template <typename T>
T Check(absl::StatusOr<T> answer) {
  Check(answer.status());
  return *std::move(answer);
}

}  // namespace

int main(int argc, char** argv) {
  absl::CivilDay first, last;
  if (argc < 4 || !absl::ParseCivilTime(argv[2], &first) || !absl::ParseCivilTime(argv[3], &last)) {
    std::fprintf(stderr, "usage: embed STORE FIRST_DAY LAST_DAY [--crash-at ACCOUNT]\n");
    return 2;
  }
  int crash_at = 0;
  if (argc == 6 && std::strcmp(argv[4], "--crash-at") == 0) {
    if (!absl::SimpleAtoi(argv[5], &crash_at)) return 2;
  }

  matins::SchedulerOptions options;
  options.store = argv[1];
  options.labels = {"embed"};
  auto scheduler = Check(matins::Scheduler::Open(options));
  Interest interest(crash_at);
  Check(scheduler->AddHandler("interest",
                              [&](matins::RunContext& run) { return interest.Run(run); }));
  Check(scheduler->Apply(NightlyInterest(first)));
  Check(scheduler->Start());
  for (absl::CivilDay day = first; day <= last; ++day) {
    const std::string period = absl::FormatCivilTime(day);
    absl::StatusOr<matins::PeriodState> state =
        scheduler->Wait("interest", period, absl::Minutes(2));
    if (Check(std::move(state)).status != matins::PeriodState::Status::kDone) {
      std::fprintf(stderr, "embed: %s is not done\n", period.c_str());
      return 1;
    }
    std::printf("%s done\n", period.c_str());
  }
  Check(scheduler->Drain(absl::Seconds(30)));
}
