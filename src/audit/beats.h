// The audits that a node makes by itself, on two beats: each job's own (`audit:` of the job, in its
// zone; jobs with the same beat are one audit), and that of all jobs (`audit:` of the file, in
// UTC). Which node makes one is decided by the store. Each looks whether the other's last was made,
// and whether it was made in time itself (I18).
#ifndef MATINS_AUDIT_BEATS_H_
#define MATINS_AUDIT_BEATS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "audit/audit.h"
#include "store/act_store.h"

namespace matins {

// An audit made later than this after its beat, or not made by then, is told.
inline constexpr absl::Duration kAuditGrace = absl::Minutes(15);
// The beat of all jobs, as job_audit names it; a job's own is "jobs EXPRESSION ZONE".
inline constexpr char kStoreBeat[] = "store";
inline constexpr char kHandBeat[] = "hand";  // a person's, which watches nothing

struct MadeAudit {
  std::string beat;
  absl::Time due;
  AuditReport report;
};

struct AuditBeatsOptions {
  std::string by;              // "node:NAME"
  std::string store_schedule;  // cron, in UTC; empty: kStoreAudit (job/lint.h)
  std::function<void(const MadeAudit&)> tell;
  std::function<void()> begun;  // an audit is this node's to make; empty: nobody asks
};

// Not thread-safe. Holds nothing that the store does not have.
class AuditBeats {
 public:
  AuditBeats(std::unique_ptr<ActStore> acts, AuditBeatsOptions options)
      : acts_(std::move(acts)), options_(std::move(options)) {}

  // Makes what is due and nobody has made: of each beat its last instant, however long ago. Answers
  // how long until the next is due, at most a minute. An error: the store is away, ask again.
  absl::StatusOr<absl::Duration> Step();
  ActStore& acts() { return *acts_; }  // between Steps, for others of the same thread

 private:
  struct Beat {
    std::string name;
    std::string expression, zone;
  };
  // A beat's last instant and what became of asking for it: no sooner again than `again`.
  struct Asked {
    absl::Time due = absl::InfinitePast();
    absl::Time again = absl::InfinitePast();
  };

  // Reads the jobs where people have changed something since; whose a beat is, is read when its
  // audit is made. Of a hundred thousand jobs neither names nor definitions are kept.
  absl::Status FindBeats(const AuditFacts& facts);
  // The beat of a job; nothing: it has none.
  static std::optional<Beat> BeatOf(const std::string& definition);
  // Shows each job with its beat. A job that comes meanwhile may be missing: its event calls again.
  absl::Status ForEachJob(
      absl::FunctionRef<void(const std::string& job, const std::optional<Beat>& beat)> see);
  absl::StatusOr<std::set<std::string>> JobsOf(const Beat& beat);
  absl::Status Make(const Beat& beat, const std::vector<Beat>& all, absl::Time due, absl::Time now);
  absl::StatusOr<std::vector<AuditFinding>> Watch(const Beat& own, const std::vector<Beat>& all,
                                                  absl::Time due, absl::Time now);

  const std::unique_ptr<ActStore> acts_;
  const AuditBeatsOptions options_;
  std::map<std::string, Asked> asked_;
  std::vector<Beat> beats_;  // the store's last; none where there are no jobs
  int64_t last_event_ = -1;
  absl::Time changed_at_ = absl::InfinitePast(), read_at_ = absl::InfinitePast();
};

// What is wrong with the automatic audits, for whoever watches from outside: none was made within
// `age`, or the newest was blind. Empty: all is well. `none`: no audit was ever made.
absl::StatusOr<std::string> AuditAgeProblem(ActStore& acts, absl::Duration age);

}  // namespace matins

#endif  // MATINS_AUDIT_BEATS_H_
