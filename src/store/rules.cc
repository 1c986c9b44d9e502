#include "store/rules.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/fault.h"
#include "base/time.h"

namespace matins {

bool IsLoss(const Outcome& outcome) {
  return outcome.reason == reason::kLost ||
         (outcome.kind == Outcome::Kind::kHeld && outcome.reason == reason::kHeld);
}

absl::string_view RunWord(const Outcome& outcome) {
  if (IsLoss(outcome)) return "LOST";
  switch (outcome.kind) {
    case Outcome::Kind::kDone:
    case Outcome::Kind::kDoneByJob:
      return "DONE";
    case Outcome::Kind::kRetry:
      return "RETRY";
    case Outcome::Kind::kFailed:
    case Outcome::Kind::kHeld:
      return outcome.reason == reason::kCancelled ? "CANCELLED" : "FAILED";
    case Outcome::Kind::kReturned:
      return "RETURNED";
  }
  return "FAILED";
}

bool HasLabels(const std::vector<std::string>& have, const std::vector<std::string>& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const std::string& label) {
    return std::find(have.begin(), have.end(), label) != have.end();
  });
}

bool IsUnjudged(absl::Time raw, absl::Time mark) {
  if (IsMutant(Mutant::kNoStepForward)) return false;
  return mark != absl::InfinitePast() && raw - mark > kStepForward;
}

std::string WaitsForWitness(absl::Time raw, absl::Time mark) {
  return absl::StrCat(
      "the store's clock is ", absl::FormatDuration(absl::Trunc(raw - mark, absl::Seconds(1))),
      " ahead of where a node saw it last, at ", FormatInstant(mark),
      "; waiting for that node's word for up to ", absl::FormatDuration(kWitnessWait));
}

int64_t NextEpoch(int64_t stored, absl::Time now) {
  return std::max(stored + 1, (now - absl::UnixEpoch()) / absl::Minutes(10));
}

int64_t FirstNumber(absl::Time now) {
  constexpr int64_t k2026 = 1'767'225'600'000;
  // Half of the numbers are left to be given, whatever the clock says.
  return std::clamp<int64_t>(absl::ToUnixMillis(now) - k2026, 0, int64_t{1} << (kEpochShift - 1));
}

std::string ResultText(absl::string_view run_word, absl::string_view reason) {
  return reason.empty() ? std::string(run_word) : absl::StrCat(run_word, "(", reason, ")");
}

std::string JsonString(absl::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) < 0x20) {
      absl::StrAppendFormat(&out, "\\u%04x", c);
    } else {
      out.push_back(c);
    }
  }
  out.push_back('"');
  return out;
}

std::string JsonArray(absl::Span<const std::string> words) {
  return absl::StrCat("[",
                      absl::StrJoin(words, ",",
                                    [](std::string* out, const std::string& word) {
                                      absl::StrAppend(out, JsonString(word));
                                    }),
                      "]");
}

std::string StoodStillDetail(absl::Duration length) {
  return absl::StrCat("{\"ms\":", absl::ToInt64Milliseconds(length), "}");
}

Outcome::Kind LossOf(const LossRule& rule, int losses_before, bool has_checkpoint) {
  if (rule.recovery == "hold") return Outcome::Kind::kHeld;
  if (rule.recovery == "resume" && !has_checkpoint) return Outcome::Kind::kHeld;
  return losses_before + 1 >= rule.max_lost ? Outcome::Kind::kFailed : Outcome::Kind::kReturned;
}

absl::Duration KeepFor(const Job& job) {
  const absl::Duration kDay = absl::Hours(24);
  const absl::Duration kLongest = 36'500 * kDay;
  absl::Duration keep = 90 * kDay;
  if (job.backfill.source_window != absl::InfiniteDuration()) {
    keep = std::max(keep, job.backfill.source_window);
  }
  absl::Duration step = kDay;
  if (job.period == PeriodKind::kHour) step = absl::Hours(1);
  if (job.period == PeriodKind::kWeek) step = 7 * kDay;
  if (job.period == PeriodKind::kMonth) step = 31 * kDay;
  keep = std::max(keep, job.backfill.max_periods ? *job.backfill.max_periods * step : kLongest);
  return std::min(keep, kLongest);
}

}  // namespace matins
