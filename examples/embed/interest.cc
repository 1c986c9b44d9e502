#include "interest.h"

#include <cstdint>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

absl::Status Interest::Run(matins::RunContext& run) {
  const auto last = run.checkpoint();
  const int64_t from = last ? last->number + 1 : 1;
  std::printf("%s attempt %d%s, from account %d\n", run.period().c_str(), run.attempt(),
              run.backfill() ? " (missed)" : "", static_cast<int>(from));
  for (int64_t account = from; account <= kAccounts; ++account) {
    if (run.stop_requested()) return absl::CancelledError("told to stop");
    if (account == crash_at_) {
      crash_at_ = 0;
      return absl::UnavailableError(absl::StrCat("account ", account, " is locked"));
    }
    // Returns after the store has it: what follows is never done before that is known.
    if (absl::Status saved = run.SaveCheckpoint(account); !saved.ok()) return saved;
  }
  return run.SetResult(absl::StrCat("{\"accounts\": ", kAccounts, "}"));
}

matins::Job NightlyInterest(absl::CivilDay first) {
  matins::Job job;
  job.name = "interest";
  job.schedule = "0 1 * * *";
  job.timezone = "Asia/Shanghai";
  job.period = matins::PeriodKind::kDay;
  job.biz_date = "-1d";
  job.misfire = matins::Misfire::kEach;
  job.backfill = matins::Backfill{.start = first, .max_periods = 1000};
  job.retry = matins::Retry{.attempts = 2,
                            .backoff_min = absl::Milliseconds(100),
                            .backoff_max = absl::Milliseconds(200)};
  job.nodes = {"embed"};  // nodes without this handler leave it alone
  job.handler = "interest";
  return job;
}
