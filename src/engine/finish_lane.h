// Finish: what runs say is taken to the store, and what the store answers is taken back to them.
#ifndef MATINS_ENGINE_FINISH_LANE_H_
#define MATINS_ENGINE_FINISH_LANE_H_

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/lane.h"
#include "engine/live_output.h"

namespace matins {

// Polls the runner. An ask (checkpoint, fence) is answered after the store has answered. An end
// becomes an outcome (outcome.h), after the job's `check` where it has one, and is written in
// batches. An end whose answer does not come is resolved by the same conditional completion under
// the row's lock, again and again until there is an answer; meanwhile the run has no heartbeat, and
// its row keeps the next period of an ordered job from starting (I9, I16). A refused end is an old
// owner's: counted, said, and nothing else changes (I3).
//
// Crash windows:
//   finish.before_send   the row is ours and nobody speaks for it: the lease ends, reap takes it
//   finish.after_answer  the result is in the store; only this node's memory of it is gone
//   finish.in_doubt      as one of the two above, and nobody needs to know which
//   checkpoint.after_answer  the next owner is offered it; the run that made it is dead
class FinishLane final : public Lane {
 public:
  FinishLane(EngineNode& node, std::unique_ptr<Store> store)
      : Lane(LaneKind::kFinish, node, std::move(store)) {}

 private:
  struct Ask {
    RunAsked what;
    bool in_doubt = false;  // sent once, and no answer came
  };
  // A run from its start to the store's answer about its end.
  struct InHand {
    explicit InHand(LiveRunPtr live_run);
    LiveRunPtr run;
    LiveOutput output;
    absl::Duration next_copy = absl::ZeroDuration();
    absl::Time started_at = absl::InfinitePast();
    std::deque<Ask> asks;
    std::string result;
    int64_t checkpoint = 0;            // the last accepted
    std::optional<RunEnded> ended;     // kept while `check` runs
    std::optional<Outcome> outcome;    // to be written now
    std::optional<Outcome> otherwise;  // written instead where the job did not write DONE
    bool without_say = false;          // only its death is to be reported
    bool tree_dead = true;
    bool in_doubt = false;
    bool withheld_here = false;  // its beats, by this lane
  };

  absl::StatusOr<absl::Duration> Turn() override;

  void TakeEvents();
  void TakeEvent(int64_t id, const RunnerEvent& event);
  void Ended(InHand& run, const RunEnded& ended);
  void CheckEnded(InHand& run, const RunEnded* ended, const absl::Status& error);
  void SetOutcome(InHand& run);
  void Complete(InHand& run, Outcome outcome);
  InHand* Find(int64_t fence);

  bool StartsGoFirst() const;
  absl::Status WriteEnds();
  static absl::Status RowsBusy();
  void WriteFailed(const std::vector<InHand*>& runs, const absl::Status& status);
  absl::Status ResolveDoubts();
  absl::Status ReportDead();
  void Accepted(InHand& run);
  // Answers whether the run is done with.
  bool RefusedEnd(InHand& run, const Refusal& refusal);
  void Forget(int64_t fence);

  absl::Status AnswerAsks();
  bool RefuseUnusable(InHand& run);
  absl::Status AnswerCheckpoints(const std::vector<InHand*>& runs);
  absl::Status AnswerFences(const std::vector<InHand*>& runs);
  void Answered(InHand& run, const Refusal& refusal, const std::string& text);

  absl::Status CopyOutput();
  absl::Duration NextTurn() const;

  std::map<int64_t, InHand> runs_;
};

}  // namespace matins

#endif  // MATINS_ENGINE_FINISH_LANE_H_
