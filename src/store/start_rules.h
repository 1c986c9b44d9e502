// START's judgement, from what was read under the locks: pure, in the order of the request.
#ifndef MATINS_STORE_START_RULES_H_
#define MATINS_STORE_START_RULES_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/backfill_rules.h"
#include "store/limit_rules.h"
#include "store/store.h"

namespace matins {

struct Judged {
  StartAnswer answer;
  const PeriodRow* row = nullptr;             // lives as long as the rules; null: none was there
  bool put_off = false;                       // looked at again later
  absl::Time look_at = absl::InfinitePast();  // then; InfinitePast: after the request's put_off
  std::string waits_for;  // or when this is freed: "job/NAME", "lock/KEY", "after/JOB", "global"
};

// What a store reads behind START's locks, the clock after the last of them.
struct StartFacts {
  struct Job {
    bool strict = false, labels = false, suspended = false;  // labels: this node has them
    bool asked = false;  // a person wants it to be looked at, and planning has not yet
    std::optional<int64_t> limit, max_parallel;
    std::optional<absl::Time> gap_from;
    absl::Time cursor = absl::InfinitePast();
    absl::Time next_look = absl::InfiniteFuture();
    int64_t running = 0, backfills = 0;
    bool serialised = false;  // its runs are begun one at a time, under its lock
  };
  struct Row {
    PeriodRow row;
    std::string lock_key;
    std::string place;  // where it lies, for a store that can say so
    // What stands in its way, empty where nothing does: an older period, a job of `after`, the
    // lock's holder, the lock of a run whose lease outlives its row.
    std::string older, after, holder, leftover;
    std::string tenant, limit_key;
  };
  absl::Time now;
  bool frozen = false;
  int64_t alive = 0;                // runs in the whole store, where there is a global limit
  std::map<std::string, Job> jobs;  // those that are not deleted
  std::map<PeriodKey, Row> rows;    // those that are there and that nobody else has locked
  LimitBook limits;
  LimitCounts taken;  // of the limits that the rows speak of, behind the locks of their rules
  std::map<int64_t, BackfillFacts> backfills;  // those that the rows belong to, behind their locks
};
// Whether planning may not know yet what else is due of a job, whose next look is at `next_look`.
inline bool PlanningIsBehind(const StartRequest& request, absl::Time next_look, absl::Time now) {
  if (request.not_after >= now) return false;
  return !request.looks_ahead || next_look <= now - *request.looks_ahead;
}
inline LimitClaim ClaimOf(const StartFacts::Row& row) {
  return {row.tenant, row.limit_key, row.row.backfill};
}

class StartRules {
 public:
  StartRules(const StartRequest& request, StartFacts facts)
      : request_(request), facts_(std::move(facts)) {}
  // The first `named` of the keys are all answered; of the rest no more are granted than were asked
  // for, and those that were not reached have no answer.
  std::vector<Judged> Judge(const std::vector<PeriodKey>& keys, size_t named);
  absl::Time now() const { return facts_.now; }
  const StartFacts& facts() const { return facts_; }

 private:
  using RowFacts = StartFacts::Row;
  using JobFacts = StartFacts::Job;

  void JudgeOne(Judged& judged);
  // Whether the row itself may start; else its refusal.
  bool Ready(const RowFacts& facts, const JobFacts* job, Judged& judged) const;
  bool InOrder(const RowFacts& facts, const JobFacts& job, Judged& judged) const;
  bool Free(const RowFacts& facts, const JobFacts& job, Judged& judged) const;

  const StartRequest& request_;
  StartFacts facts_;
  std::set<std::string> locks_taken_;  // by this call
};

}  // namespace matins

#endif  // MATINS_STORE_START_RULES_H_
