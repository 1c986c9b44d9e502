// The program's own test of its nightly job: no waiting, no sleeping, the same every time.
#include "interest.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "matins/scheduler.h"
#include "matins/testing.h"

namespace {

void Expect(bool right, const char* what) {
  if (right) return;
  std::fprintf(stderr, "interest_test: not so: %s\n", what);
  std::exit(1);
}

bool IsDone(matins::Scheduler& scheduler, const std::string& period) {
  const auto state = scheduler.Read("interest", period);
  return state.ok() && state->status == matins::PeriodState::Status::kDone;
}

}  // namespace

int main() {
  absl::TimeZone shanghai;
  Expect(absl::LoadTimeZone("Asia/Shanghai", &shanghai), "the zone is known");
  matins::TestClock clock(absl::FromCivil(absl::CivilSecond(2026, 10, 2, 12, 0, 0), shanghai));
  matins::SchedulerOptions options;
  options.clock = &clock;  // and no store: a file of its own
  options.labels = {"embed"};
  auto scheduler = matins::Scheduler::Open(options);
  Expect(scheduler.ok(), "it opens");
  Interest interest(/*crash_at=*/3);
  Expect((*scheduler)
             ->AddHandler("interest", [&](matins::RunContext& run) { return interest.Run(run); })
             .ok(),
         "the handler is added");
  Expect((*scheduler)->Apply(NightlyInterest(absl::CivilDay(2026, 10, 1))).ok(), "it applies");
  Expect((*scheduler)->Start().ok(), "it starts");

  Expect((*scheduler)->Step().ok(), "it steps");
  Expect(!IsDone(**scheduler, "2026-10-01"), "the first attempt fails at account 3");
  Expect((*scheduler)->Read("interest", "2026-10-01")->checkpoint == 2, "two are safe");
  clock.Advance(absl::Seconds(1));
  Expect((*scheduler)->Step().ok(), "it steps");
  Expect(IsDone(**scheduler, "2026-10-01"), "the second attempt goes on, to its end");

  clock.AdvanceTo(absl::FromCivil(absl::CivilSecond(2026, 10, 5, 12, 0, 0), shanghai));
  Expect((*scheduler)->Step().ok(), "it steps");
  for (const char* night : {"2026-10-02", "2026-10-03", "2026-10-04"}) {
    Expect(IsDone(**scheduler, night), "three nights of an outage are made good");
  }
  std::puts("all as it should be");
}
