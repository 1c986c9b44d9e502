#include "store/drill.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/time.h"
#include "job/words.h"

namespace matins {

PutBack PutBackOf(absl::string_view status, absl::string_view by) {
  if (status.empty()) return PutBack::kInsert;
  if (status == Word(PeriodStatus::kDone)) return PutBack::kFilled;
  if (status == Word(PeriodStatus::kRunning)) return PutBack::kRunning;
  if (status == Word(PeriodStatus::kSkipped) && by != "policy") return PutBack::kLeft;
  return PutBack::kChange;
}

absl::Status RefuseSecondDrill(absl::string_view job, const DrillRow& open) {
  return absl::FailedPreconditionError(absl::StrCat(
      "drill ", open.id, " of ", job, " by ", open.by, " is not over; wait for it, or ",
      "`matins drill ", job, " --restore` once it is dead"));
}

absl::Status RefuseDrillOf(const PeriodKey& key, absl::string_view status) {
  return absl::AbortedError(
      absl::StrCat(key.job, " ", key.period, " is ", status.empty() ? "gone" : status,
                   " and not what it was when the drill looked; nothing was deleted, try again"));
}

absl::Status NoDrill(int64_t id) {
  return absl::NotFoundError(
      absl::StrCat("there is no drill ", id, "; `matins drill --list` shows them"));
}

absl::Status MayEndDrill(const DrillRow& drill, bool owner, absl::Time now) {
  if (drill.over()) {
    return absl::FailedPreconditionError(
        absl::StrCat("drill ", drill.id, " is over (", drill.result, "); nothing is left to do"));
  }
  if (owner && now >= drill.until) {
    return absl::FailedPreconditionError(
        absl::StrCat("the lease of drill ", drill.id, " ended at ", FormatInstant(drill.until),
                     "; what it had deleted may have been put back, drill again"));
  }
  if (!owner && now < drill.until) {
    return absl::FailedPreconditionError(
        absl::StrCat("drill ", drill.id, " of ", drill.job, " by ", drill.by,
                     " is under way until ", FormatInstant(drill.until), " at least; wait for it"));
  }
  return absl::OkStatus();
}

std::string DrillEventDetail(int64_t id, const std::vector<DrillPeriod>& periods) {
  return absl::StrCat("{\"drill\":", id, ",\"periods\":[",
                      absl::StrJoin(periods, ",",
                                    [](std::string* out, const DrillPeriod& p) {
                                      absl::StrAppend(out, "\"", p.period, "\"");
                                    }),
                      "]}");
}

std::string RestoredDetail(int64_t id) { return absl::StrCat("{\"drill\":", id, "}"); }

}  // namespace matins
