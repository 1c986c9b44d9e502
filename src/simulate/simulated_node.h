// The one node of a simulation: plans, starts, ends what has run as long as it was to, and is away
// while there is an outage. It knows of jobs what the store says, whatever versions they have. What
// it decides is said by the store; what is owed, by planning.
#ifndef MATINS_SIMULATE_SIMULATED_NODE_H_
#define MATINS_SIMULATE_SIMULATED_NODE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "plan/plan.h"
#include "simulate/simulate.h"
#include "store/store.h"

namespace matins {

class SimulatedNode {
 public:
  // `now` is what the store's clock reads. Of the request, durations, slots and the labels of its
  // jobs are asked; all outlive the node.
  SimulatedNode(const SimulateRequest& request, Store& store, const absl::Time& now);

  // A sign of life; often enough that the node never counts as gone.
  absl::Status Tick();
  // All that is due now; nothing more happens by itself before NextAt().
  absl::Status Act();
  absl::Time NextAt() const;
  // The node is gone, with what runs; the leases live on for a while.
  void Die();
  // Somebody has changed something: all is looked at again by the next Act.
  void LookNow() { next_look_ = next_start_ = now_; }

  struct Seen {
    absl::Time started = absl::InfinitePast(), first_started = absl::InfinitePast();
    absl::Time finished = absl::InfinitePast();
    int attempts = 0, lost = 0;
  };
  const std::map<PeriodKey, Seen>& seen() const { return seen_; }
  const std::map<std::string, std::string>& problems() const { return problems_; }
  int most_running() const { return most_running_; }
  absl::Time most_running_at() const { return most_running_at_; }

 private:
  struct Run {
    Claim claim;
    absl::Time ends;
    absl::Time beat;   // the next
    absl::Time lease;  // its end
    bool in_time = true;
  };

  absl::Status Beat();
  absl::Status FinishEnded();
  absl::Status ReapLost();
  // Whether anything was planned, or granted.
  absl::StatusOr<bool> PlanDue();
  absl::StatusOr<bool> PlanJobs(DueJobs due);
  absl::StatusOr<bool> StartDue();
  absl::Status Replace(const std::vector<PeriodKey>& newcomers);
  void Launch(const Claim& claim);
  absl::Duration DurationOf(const std::string& job);
  // The meaning of a definition, parsed once.
  absl::StatusOr<const ResolvedJob*> Meaning(const std::string& definition);
  const Job& Current(const std::string& job) const { return current_.at(job)->job; }

  const SimulateRequest& request_;
  Store& store_;
  const absl::Time& now_;
  const absl::Time start_;
  NodeId id_;
  std::map<std::string, std::unique_ptr<ResolvedJob>> meanings_;  // by definition
  std::map<std::string, const ResolvedJob*> current_;             // by job
  std::map<int64_t, Run> running_;                                // by fence
  std::map<int64_t, absl::Time> orphans_;  // the lease ends of those that died
  std::map<PeriodKey, Seen> seen_;
  std::map<std::string, size_t> turn_;  // of a job's durations
  std::map<std::string, std::string> problems_;
  std::vector<std::string> look_again_;
  absl::Time next_look_, next_start_;
  int most_running_ = 0;
  absl::Time most_running_at_ = absl::InfinitePast();
};

}  // namespace matins

#endif  // MATINS_SIMULATE_SIMULATED_NODE_H_
