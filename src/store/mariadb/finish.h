// The end of attempts, as statements that several verbs share.
#ifndef MATINS_STORE_MARIADB_FINISH_H_
#define MATINS_STORE_MARIADB_FINISH_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/limit_rules.h"
#include "store/mariadb/ticket.h"

namespace matins::mariadb {

// The keys that PLANNED rows wait for: "job/NAME", "lock/KEY", "after/JOB", "global". Not locked:
// what is missed is looked at again by itself.
Statement ReadWaiting();
std::set<std::string> WaitingOf(const Rows& rows);

// Those that waited for what a row frees are pulled back to their time: as many that wait for a
// lock, an older period or a slot as were freed, the oldest first; all that wait for a day of
// another job. Skips what is locked.
class Wakes {
 public:
  explicit Wakes(std::set<std::string> waiting) : waiting_(std::move(waiting)) {}
  void Add(const std::string& job, const std::string& lock_key, absl::CivilDay day);
  void AddSlot(const LimitClaim& claim);
  std::vector<Statement> Statements() const;

 private:
  std::set<std::string> waiting_;
  std::map<std::string, int64_t> freed_;
  std::set<std::pair<std::string, absl::CivilDay>> days_;
};

// Ends of attempts, gathered under the rows' locks, and written by a few statements.
class Ends {
 public:
  Ends(const Clock& clock, std::set<std::string> waiting)
      : clock_(clock), wakes_(std::move(waiting)) {}
  // The row leaves its owner, and the attempt gets its row in job_run where it was one of ours.
  void Add(const AttemptRow& row, const Ending& ending);
  // The attempt's row alone: the job itself wrote DONE.
  void Note(const AttemptRow& row, const Ending& ending);
  // The slot of a run that may live on, though its row no longer says so, until then (and `grace`
  // of its job beyond).
  void LeaveSlot(const AttemptRow& row, absl::Time until, bool grace = false);
  // Output and figures.
  void AddEvidence(const AttemptRow& row, const Outcome& outcome);
  std::vector<Statement> Statements();
  bool empty() const { return alike_.empty() && rows_.empty() && runs_.empty(); }

 private:
  void AddRun(const AttemptRow& row, const Ending& ending);

  const Clock clock_;
  Wakes wakes_;
  std::map<std::string, JsonRows> alike_;  // keys, by what they are set to
  JsonRows rows_, slots_;
  Tuples runs_, outputs_, figures_;
  int64_t burnt_ = 0;
};

// What becomes of lost leases, by job; for those that are not deleted.
Statement ReadLossRules(absl::string_view keys_json);
struct LossRules {
  std::map<std::string, LossRule> rules;
  std::map<std::string, absl::Duration> stale_after;
  std::optional<LossRule> Of(const std::string& job) const;
  std::optional<absl::Duration> StaleAfter(const std::string& job) const;
};
LossRules LossRulesOf(const Rows& rows);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_FINISH_H_
