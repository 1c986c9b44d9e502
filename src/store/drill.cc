#include "store/drill.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/time.h"
#include "job/words.h"

namespace matins {

bool PutsBack(const PeriodRow* row, const std::string& period, EndDrillAnswer& answer) {
  if (row != nullptr) {
    if (row->status == PeriodStatus::kDone) return false;  // it was filled
    if (row->status == PeriodStatus::kRunning) {
      answer.running.push_back(period);
      return false;
    }
    if (row->status == PeriodStatus::kSkipped && row->by != "policy") {
      answer.left.push_back(period);
      return false;
    }
  }
  answer.put_back.push_back(period);
  return true;
}

absl::Status RefuseSecondDrill(absl::string_view job, const DrillRow& open) {
  return absl::FailedPreconditionError(absl::StrCat(
      "drill ", open.id, " of ", job, " by ", open.by, " is not over; wait for it, or ",
      "`matins drill ", job, " --restore` once it is dead"));
}

absl::Status MayDelete(const std::string& job, const DrillPeriod& asked, const PeriodRow* row) {
  if (row != nullptr && row->status == PeriodStatus::kDone && row->generation == asked.generation &&
      row->fence == asked.fence) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      absl::StrCat(job, " ", asked.period, " is ", row == nullptr ? "gone" : Word(row->status),
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

absl::Status MayEndDrill(const std::vector<DrillRow>& found, int64_t id, bool owner,
                         absl::Time now) {
  return found.empty() ? NoDrill(id) : MayEndDrill(found[0], owner, now);
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
