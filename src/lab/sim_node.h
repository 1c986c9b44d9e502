// A simulated node: its clocks, its machine, and its lanes while it is alive.
#ifndef MATINS_LAB_SIM_NODE_H_
#define MATINS_LAB_SIM_NODE_H_

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/history.h"
#include "base/random.h"
#include "engine/lanes.h"
#include "lab/faulty_store.h"
#include "lab/sim_host.h"
#include "store/database.h"

namespace matins {

struct SimNodeParts {
  std::string name;
  Database* database = nullptr;
  Network* network = nullptr;
  Referee* referee = nullptr;
  History* history = nullptr;
  EngineEvents* events = nullptr;
  Door* door = nullptr;
  NodeOptions options;  // its id is set at each boot
  bool hears = false;   // it comes to rest where it can; what others do then it sees by its ticks
};

class SimNode {
 public:
  SimNode(SimNodeParts parts, absl::Time wall, Ledger& ledger, SimHost::Parts host_parts);

  // A new incarnation.
  absl::Status Boot(uint64_t seed, std::vector<std::string> labels);
  // The process is gone with all that it remembered; the machine stays.
  void Crash();
  bool alive() const { return lanes_ != nullptr; }
  Lanes& lanes() { return *lanes_; }

  // The boot instant at which `kind` wants to be stepped; a rung bell is now.
  absl::Duration NextStep(LaneKind kind);
  absl::Duration NextAt();
  void Step(LaneKind kind);

  ManualClock clock;
  SimHost host;
  bool node_paused = false;     // SIGSTOP of the node: its processes and guards go on
  bool machine_paused = false;  // everything stands still but the clocks
  bool inside = false;          // one of its lanes is in the middle of a step

 private:
  SimNodeParts parts_;
  int incarnation_ = 0;
  std::unique_ptr<Lanes> lanes_;
  std::array<absl::Duration, kAllLanes.size()> next_{};
};

}  // namespace matins

#endif  // MATINS_LAB_SIM_NODE_H_
