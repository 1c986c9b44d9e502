// What acts of people refuse, and in which words; and what applying a file comes to. Pure.
#ifndef MATINS_STORE_ACT_RULES_H_
#define MATINS_STORE_ACT_RULES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "job/values.h"
#include "store/act_store.h"

namespace matins {

// Refusals: OK, or what stands in the way with its mend.
absl::Status NoJob(absl::string_view job);
absl::Status RefuseSuspended(absl::string_view job, absl::string_view by, absl::string_view why);
absl::Status RefuseNotSuspended(absl::string_view job);
absl::Status RefuseChangedMeanwhile(absl::string_view job);
absl::Status RefuseTakenName(absl::string_view job);
absl::Status RefuseRenameRunning(absl::string_view job, absl::string_view node);
absl::Status RefuseDeleteRunning(absl::string_view job, absl::string_view node);
absl::Status NoRowToReopen(const PeriodKey& key);
// `status` as it stands in the row: other programs may have written words of their own.
absl::Status MayReopen(const PeriodKey& key, absl::string_view status, bool held,
                       absl::string_view node, int64_t fence);
absl::Status NoRowsToSkip(size_t missing, size_t of);
absl::Status MaySkip(const PeriodKey& key, absl::string_view status, absl::string_view node);
absl::Status NoRunAlive(int64_t fence);
absl::Status RefuseSupersededFile(absl::string_view source);
// `others`: the sources of those of `source`'s jobs that are of another one, by job. Two files with
// a job of one name would each undo what the other says, at every apply.
absl::Status RefuseJobsOfOthers(absl::string_view source,
                                const std::map<std::string, std::string>& others);

// The author of a suspension that stands in a file.
inline constexpr char kByFile[] = "file";

// A job as the store has it.
struct KnownJob {
  int version = 0;
  std::string definition, source;
  bool deleted = false, suspended = false;
  std::string suspended_by;
};

// Those of the request's jobs that another source has, with that source; none where the request
// takes them over.
std::map<std::string, std::string> JobsOfOthers(const ApplyRequest& request,
                                                const std::map<std::string, KnownJob>& known);

// One job's part of applying a file, in the order in which the parts are written.
struct ApplyStep {
  enum class Kind {
    kKeep,    // the same version: source and digest alone
    kAdd,     // a name's first definition, or one that was deleted and comes back: a new identity
    kChange,  // a new version from now on
    kPrune,   // missing from the file: deleted
  };
  Kind kind = Kind::kKeep;
  std::string job;
  const Definition* definition = nullptr;  // but for kPrune
  int version = 0;
  bool comes_back = false;  // kAdd of a name that was deleted: what still waits is the old job's
  // `suspend: true` in a file; taking it out ends only a suspension that a file had made.
  bool suspend = false, resume = false;
};
// `known`: the jobs of this source, and all that it names. Fills in `answer`.
std::vector<ApplyStep> StepsOf(const ApplyRequest& request,
                               const std::map<std::string, KnownJob>& known, ApplyAnswer& answer);

}  // namespace matins

#endif  // MATINS_STORE_ACT_RULES_H_
