// A node that plans and starts nothing, for what has to be planned beforehand or by another.
#ifndef MATINS_BENCH_DRIVE_PLANNING_H_
#define MATINS_BENCH_DRIVE_PLANNING_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "engine/lanes.h"
#include "store/database.h"

namespace matins::bench {

class PlanningNode {
 public:
  // Plans what is due by now + `ahead`.
  explicit PlanningNode(Database& database, absl::Duration ahead = absl::Seconds(5));
  ~PlanningNode();

  // All jobs whose next look has come, by the plan lane itself.
  void PlanDue();
  // This one, whether its next look has come or not.
  void PlanOne(const std::string& job);
  // A node's first tick and its leave: the store then is one that nodes have worked on.
  void ComeAndGo();

 private:
  const std::unique_ptr<Runner> runner_;
  std::unique_ptr<Lanes> lanes_;
};

}  // namespace matins::bench

#endif  // MATINS_BENCH_DRIVE_PLANNING_H_
