// Watches every call that any node makes, with its true answer and the true time, and says at once
// when a promise is broken. It believes the store in nothing: it keeps its own book of who owns
// what from the answers given, in the order in which they took effect.
#ifndef MATINS_LAB_REFEREE_H_
#define MATINS_LAB_REFEREE_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "job/job.h"
#include "job/values.h"
#include "lab/workload.h"
#include "store/act_store.h"
#include "store/store.h"

namespace matins {

class Referee {
 public:
  // `now`: the store's clock as it would read under the lock.
  explicit Referee(std::function<absl::Time()> now) : now_(std::move(now)) {}

  // All versions of a job, with the one that is in force from now.
  void Knows(const SimJob& job);

  // The store's clock never goes back behind what a tick has seen.
  absl::Time Now() const { return std::max(now_(), mark_); }

  // What took effect, after each call.
  void Planned(absl::Span<const PlanWrite> writes, const PlanAnswers& answers);
  void Started(const StartRequest& request, const StartAnswers& answers);
  void Extended(absl::Span<const ExtendRequest> requests, absl::Span<const ExtendAnswer> answers);
  void Checkpointed(absl::Span<const CheckpointRequest> requests,
                    absl::Span<const Refusal> answers);
  void Finished(absl::Span<const FinishRequest> requests, absl::Span<const Refusal> answers);
  void Resolved(absl::Span<const FinishRequest> requests, absl::Span<const ResolveAnswer> answers);
  void Reaped(absl::Span<const ReapRequest> requests, const std::vector<bool>& taken);
  void Replaced(absl::Span<const Ticket> tickets);
  void ReportedDead(absl::Span<const Ticket> tickets);
  // A run wrote DONE itself (`commit: job`), or was refused.
  void CommittedByJob(const PeriodKey& key, int generation, int64_t fence, bool accepted);
  // A person's acts.
  void Deleted(const PeriodKey& key);
  void Reopened(const PeriodKey& key);
  void DoneByAnother(const PeriodKey& key, absl::Time due);
  // What runs above a lowered limit goes on; no further one starts.
  void LimitsSet(const SetLimitsRequest& request);
  // A new version of the job is in force from now: what the old one planned beyond this instant,
  // and was never claimed, is withdrawn.
  void Changed(const SimJob& job);
  // What a tick found out about the clock.
  void Ticked(const TickAnswer& answer);
  // Slots whose run's lease has ended are gone, also when the clock goes back before that.
  void Purged();
  // The store burnt the fences of all live rows and set its mark anew.
  void ClockSettled();

  const std::vector<std::string>& broken() const { return broken_; }
  void Broken(absl::string_view promise, std::string what);
  // How often each thing happened: a simulation in which nothing happened proves nothing.
  const std::map<std::string, int64_t>& seen() const { return seen_; }

 private:
  enum class State { kNoRow, kPlanned, kRunning, kDone, kFailed, kSkipped };
  struct Row {
    State state = State::kNoRow;  // what was deleted is a gap again, and no row
    absl::Time due;
    int generation = 1;
    bool manual = false;
    bool claimed = false;  // ever
    bool backfill = false;
    int64_t fence = 0;
    int64_t nonce = 0;
    absl::Time lease;
    absl::Time run_until;
    int64_t checkpoint = 0;
    absl::Time wait;  // the end of a lease that its row did not outlive
    int commits = 0;
  };

  void NotFrozen(absl::string_view what);
  void Spanned(const std::string& job, const SkipSpan& span);
  bool IsOwed(const std::string& job, absl::Time due);
  Row& At(const PeriodKey& key) { return rows_[key]; }
  void Burnt(const Ticket& ticket);
  void Owner(absl::string_view verb, const Ticket& ticket, absl::string_view lease_promise);
  void End(const FinishRequest& request);
  void CheckSchedule(const PeriodKey& key, const Row& row);
  void CheckOrder(const PeriodKey& key, const Row& row);
  void CheckLock(const PeriodKey& key, const Job& job);
  void CheckAfter(const PeriodKey& key, const Job& job);
  void CheckAge(const PeriodKey& key, const Row& row, const Job& job);
  void Committed(const PeriodKey& key);
  void CheckCap(const PeriodKey& key, const Row& row, const Job& job);
  void CheckLimits(const Claim& claim, const Job& job);
  // A run that lives on without a row that speaks of it, until its lease has ended.
  void Leaves(const PeriodKey& key, const Row& row);
  // Runs alive that count; a run is counted by its job and by whether it is back-fill.
  using Counts = std::function<bool(const Job& job, bool backfill)>;
  int Alive(const Counts& counts);
  std::optional<int> Most(LimitKind kind, const std::string& name) const;

  const std::function<absl::Time()> now_;
  absl::Time mark_ = absl::InfinitePast();
  bool frozen_ = false;  // by a tick
  std::map<std::string, Job> jobs_;
  std::map<std::string, std::vector<SimVersion>> versions_;
  std::map<PeriodKey, Row> rows_;
  std::map<std::string, std::vector<SkipSpan>> spans_;
  struct Left {
    std::string job;
    bool backfill = false;
    absl::Time until;
  };
  std::map<int64_t, Left> left_;  // by fence
  std::map<std::pair<LimitKind, std::string>, int> limits_;
  std::map<std::string, int64_t> last_fence_;
  std::set<std::pair<PeriodKey, int64_t>> refused_for_ever_;
  std::vector<std::string> broken_;
  std::map<std::string, int64_t> seen_;
};

}  // namespace matins

#endif  // MATINS_LAB_REFEREE_H_
