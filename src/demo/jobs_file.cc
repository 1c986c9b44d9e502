#include "demo/jobs_file.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "demo/ledger.h"

namespace matins::demo {
namespace {

constexpr char kRecon[] = R"yaml(
  # Yesterday's payments against the channel's statement: each day once, in order, none left out.
  - name: recon
    schedule: "0 1 * * *"
    period: day
    biz_date: -1d
    misfire: each
    backfill: { start: %START%, max_periods: %CAP%, order: strict }
    lock: { ttl: %LEASE% }
    retry: { attempts: 3, backoff: 1s..30s }
    env: %ENV%
    run: { command: ["%PROGRAM%", demo-run, recon] }
    check: { command: ["%PROGRAM%", demo-run, count] }
)yaml";

constexpr char kOthers[] = R"yaml(
  # What payment system and channel bring for yesterday, half an hour before it is reconciled.
  - name: deliver
    schedule: "30 0 * * *"
    period: day
    biz_date: -1d
    misfire: each
    env: %ENV%
    run: { command: ["%PROGRAM%", demo-run, deliver] }

  # The hour that has just ended, in groups of merchants; a new attempt goes on at the last checkpoint.
  - name: billing
    schedule: "5 * * * *"
    period: hour
    biz_date: -1h
    misfire: each
    backfill: { start: %YESTERDAY%, max_periods: 24 }
    env: %ENV%
    run: { command: ["%PROGRAM%", demo-run, billing] }

  # Only the newest matters.
  - name: report
    schedule: "0 6 * * *"
    period: day
    biz_date: -1d
    misfire: latest
    backfill: { start: %YESTERDAY% }
    env: %ENV%
    run: { command: ["%PROGRAM%", demo-run, report] }

  # Of no use when it is late.
  - name: warm-cache
    schedule: "* * * * *"
    misfire: skip
    start_deadline: 10s
    env: %ENV%
    run: { command: ["%PROGRAM%", demo-run, warm-cache] }
)yaml";

}  // namespace

std::string JobsFile(const JobsFileOptions& options) {
  absl::TimeZone zone;
  absl::LoadTimeZone(kZone, &zone);
  const absl::CivilDay today = absl::ToCivilDay(absl::Now(), zone);
  const std::string text = absl::StrCat("defaults:\n  timezone: ", kZone, "\njobs:", kRecon,
                                        options.only_recon ? "" : kOthers);
  const std::string env =
      absl::StrCat("{ LEDGER: \"", options.ledger, "\", DEMO_FOLDER: \"", options.folder,
                   "\", DEMO_PAUSE_MS: \"", options.pause_ms, "\" }");
  return absl::StrReplaceAll(text, {{"%PROGRAM%", options.program},
                                    {"%START%", FormatDay(options.first_day)},
                                    {"%YESTERDAY%", FormatDay(today - 1)},
                                    {"%CAP%", absl::StrCat(options.max_periods)},
                                    {"%LEASE%", DurationText(options.lease)},
                                    {"%ENV%", env}});
}

}  // namespace matins::demo
