#include "store/backfill_rules.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/time.h"
#include "job/local_window.h"
#include "job/words.h"
#include "schedule/schedule.h"
#include "store/rules.h"

namespace matins {
namespace {

// A shut window is asked about again when it opens, and at least so often.
constexpr absl::Duration kLongestWait = absl::Hours(25);

std::optional<BackfillStop> Shut(const std::string& name, const BackfillTerms& terms,
                                 absl::Time now) {
  if (terms.window.empty()) return std::nullopt;
  const absl::StatusOr<absl::TimeZone> zone = LoadZone(terms.zone);
  const absl::StatusOr<LocalWindow> window =
      zone.ok() ? LocalWindow::Parse(terms.window, *zone) : zone.status();
  if (!window.ok()) {
    return BackfillStop{absl::StrCat(name, ": its window ", terms.window, " ", terms.zone,
                                     " cannot be told here: ", window.status().message())};
  }
  if (window->Contains(now)) return std::nullopt;
  const absl::Time opens = std::min(window->NextOpening(now), now + kLongestWait);
  return BackfillStop{absl::StrCat(name, " starts within ", terms.window, " ", terms.zone, " only"),
                      opens};
}

}  // namespace

std::optional<BackfillStop> StopOf(int64_t id, const BackfillFacts& facts, const PeriodRow& row,
                                   absl::Time now) {
  if (IsMutant(Mutant::kNoBackfillTerms)) return std::nullopt;
  const BackfillTerms& terms = facts.terms;
  const std::string name = absl::StrCat("back-fill ", id);
  if (facts.state != BackfillState::kActive) {
    return BackfillStop{absl::StrCat(name, " was ", Word(facts.state), " by ", facts.changed_by)};
  }
  if (!facts.failed.empty()) {
    return BackfillStop{absl::StrCat(name, " stopped at ", facts.failed, ", which FAILED")};
  }
  if (auto shut = Shut(name, terms, now)) return shut;
  const auto oldest = facts.oldest.find(row.key.job);
  if (terms.cascade && oldest != facts.oldest.end() && oldest->second < row.due) {
    return BackfillStop{absl::StrCat(name, " goes in order, and what was due ",
                                     FormatInstant(oldest->second), " comes first")};
  }
  if (terms.max_parallel && facts.running >= *terms.max_parallel) {
    return BackfillStop{absl::StrCat(name, " --max-parallel ", *terms.max_parallel)};
  }
  return std::nullopt;
}

absl::Status NoBackfill(int64_t id) {
  return absl::NotFoundError(
      absl::StrCat("there is no back-fill ", id, "; `matins backfills` lists them"));
}

absl::Status MaySetBackfill(const BackfillRow& row, BackfillState state) {
  const std::string name = absl::StrCat("back-fill ", row.id, " of ", row.terms.job);
  if (row.state == BackfillState::kCancelled) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " was cancelled by ", row.changed.who, "; ask for a new one"));
  }
  if (!row.open()) {
    return absl::FailedPreconditionError(
        absl::StrCat(name, " has ended: each of its periods is DONE or SKIPPED"));
  }
  if (row.state == state) {
    return absl::FailedPreconditionError(absl::StrCat(name, " is ", Word(state), " already"));
  }
  return absl::OkStatus();
}

absl::string_view BackfillEvent(BackfillState state) {
  switch (state) {
    case BackfillState::kActive:
      return "backfill_resume";
    case BackfillState::kPaused:
      return "backfill_pause";
    case BackfillState::kCancelled:
      return "backfill_cancel";
  }
  return "backfill";
}

std::string BackfillDetail(int64_t id, const BackfillTerms& terms, int64_t periods) {
  return absl::StrCat("{\"backfill\":", id, ",\"from\":\"", FormatDay(terms.from), "\",\"to\":\"",
                      FormatDay(terms.to), "\",\"reprocess\":", JsonString(terms.reprocess),
                      ",\"cascade\":", terms.cascade ? "true" : "false", ",\"max_parallel\":",
                      terms.max_parallel ? absl::StrCat(*terms.max_parallel) : "null",
                      ",\"window\":", JsonString(terms.window), ",\"periods\":", periods, "}");
}

std::string CancelledReason(int64_t id, const Act& act) {
  return absl::StrCat("back-fill ", id, " cancelled", act.why.empty() ? "" : ": ", act.why);
}

std::vector<PeriodKey> KeysOf(const OpenBackfillRequest& request) {
  std::vector<PeriodKey> keys = request.reopen;
  for (const Intent& intent : request.write.intents) {
    if (intent.skip_reason.empty()) keys.push_back(intent.key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

int64_t PeriodsOf(const OpenBackfillRequest& request) {
  return static_cast<int64_t>(KeysOf(request).size());
}

}  // namespace matins
