// START's judgement, from what was read under the locks: pure, in the order of the request.
#ifndef MATINS_STORE_POSTGRESQL_START_RULES_H_
#define MATINS_STORE_POSTGRESQL_START_RULES_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/postgresql/sql.h"
#include "store/store.h"

namespace matins::postgresql {

struct Judged {
  StartAnswer answer;
  std::optional<PeriodRow> row;
  bool put_off = false;                       // looked at again later
  absl::Time look_at = absl::InfinitePast();  // then; InfinitePast: after the request's put_off
  std::string waits_for;  // or when this is freed: "job/NAME", "lock/KEY", "after/JOB", "global"
};

class StartRules {
 public:
  // The result sets of START's first round trip: the locked rows, the clock, jobs, rows' facts.
  StartRules(const StartRequest& request, const Rows& rows, const Rows& clock, const Rows& jobs,
             const Rows& facts);
  // The first `named` of the keys are all answered; of the rest no more are granted than were asked
  // for, and those that were not reached have no answer.
  std::vector<Judged> Judge(const std::vector<PeriodKey>& keys, size_t named);
  absl::Time now() const { return now_; }

 private:
  struct JobFacts {
    bool strict = false, labels = false, suspended = false;
    std::optional<int64_t> limit, max_parallel;
    std::string suspended_why;
    std::optional<absl::Time> gap_from;
    absl::Time cursor;
    int64_t running = 0, backfills = 0;
  };
  struct RowFacts {
    PeriodRow row;
    std::string lock_key;
    std::string older, after, holder, leftover;
  };

  void JudgeOne(Judged& judged);
  // Whether the row itself may start; else its refusal.
  bool Ready(const RowFacts& facts, const JobFacts* job, Judged& judged) const;
  bool InOrder(const RowFacts& facts, const JobFacts& job, Judged& judged) const;
  bool Free(const RowFacts& facts, const JobFacts& job, Judged& judged) const;

  const StartRequest& request_;
  absl::Time now_;
  bool frozen_ = false;
  int64_t alive_ = 0;
  std::map<std::string, JobFacts> jobs_;
  std::map<PeriodKey, RowFacts> rows_;
  std::set<std::string> locks_taken_;  // by this call
};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_START_RULES_H_
