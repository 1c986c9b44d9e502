// Drills: watermarks that were DONE are deleted, so that the job's next trigger fills them again
// (docs/drill.md). What is deleted is kept beside the drill by the very transaction that deletes
// it, so that whoever comes after a drill that died can put back what was not filled.
#ifndef MATINS_STORE_DRILL_H_
#define MATINS_STORE_DRILL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/values.h"

namespace matins {

// A period of a drill, as it stood before.
struct DrillPeriod {
  std::string period;
  int generation = 1;
  int64_t fence = 0;  // of the attempt that had done it
  bool operator==(const DrillPeriod&) const = default;
};

// How a drill ended.
namespace drill_result {
inline constexpr char kPassed[] = "passed";
inline constexpr char kFailed[] = "failed";
inline constexpr char kAbandoned[] = "abandoned";  // it died, and another has put things back
}  // namespace drill_result

// job_drill: one row a drill, kept for ever.
struct DrillRow {
  int64_t id = 0;
  std::string job, by, why;
  absl::Time started_at = absl::InfinitePast();
  // Its owner's lease: after that instant anybody may put things back. Never revived.
  absl::Time until = absl::InfinitePast();
  absl::Time finished_at = absl::InfinitePast();  // InfinitePast: it is not over
  std::string result;                             // drill_result::, or empty
  std::string detail;                             // the report, JSON
  std::vector<DrillPeriod> periods;               // by key
  bool over() const { return finished_at != absl::InfinitePast(); }
};

struct BeginDrillRequest {
  std::string job;
  std::vector<DrillPeriod> periods;  // DONE, in exactly this generation and by this fence
  absl::Duration lease;
  Act act;
};

// Puts back what has not been filled again, and ends the drill; where one of its periods is RUNNING
// it puts back the others and leaves the drill without an owner, to be ended by whoever comes.
struct EndDrillRequest {
  int64_t id = 0;
  bool owner = true;  // its lease must live; false: it must have ended
  // Written where there is none yet.
  std::string result, detail;
  Act act;
};
struct EndDrillAnswer {
  bool ended = false;
  std::vector<std::string> put_back;  // periods that are DONE again by this call
  std::vector<std::string> running;
  std::vector<std::string> left;  // SKIPPED by a person meanwhile: that stands
};

// A figure of an attempt's `check`.
struct FigureRow {
  PeriodKey key;
  int generation = 1;
  int64_t fence = 0;
  std::string name;
  double value = 0;
  bool operator==(const FigureRow&) const = default;
};

// ---- what all stores judge alike ----

// Notes in `answer` what putting back does with a period, and says whether its row is written:
// where there is none it is inserted as it was, else it is changed in place.
bool PutsBack(const PeriodRow* row, const std::string& period, EndDrillAnswer& answer);

absl::Status RefuseSecondDrill(absl::string_view job, const DrillRow& open);
// OK, or why the period `asked` of `job` is not what the drill wants to delete.
absl::Status MayDelete(const std::string& job, const DrillPeriod& asked, const PeriodRow* row);
absl::Status NoDrill(int64_t id);
// OK, or why the caller may not speak for it: it is over, its lease has ended, or lives.
absl::Status MayEndDrill(const DrillRow& drill, bool owner, absl::Time now);
// The same of what was found for `id`: nothing, or the one.
absl::Status MayEndDrill(const std::vector<DrillRow>& found, int64_t id, bool owner,
                         absl::Time now);

// The words in job_event and job_watermark.op.
inline constexpr char kDrillEvent[] = "drill";
inline constexpr char kRestoredOp[] = "restored";
std::string DrillEventDetail(int64_t id, const std::vector<DrillPeriod>& periods);
std::string RestoredDetail(int64_t id);

}  // namespace matins

#endif  // MATINS_STORE_DRILL_H_
