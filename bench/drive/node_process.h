// Nodes in processes of their own: the program `node` (node.cc), once for each.
#ifndef MATINS_BENCH_DRIVE_NODE_PROCESS_H_
#define MATINS_BENCH_DRIVE_NODE_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "bench/drive/line.h"
#include "bench/drive/shared.h"

namespace matins::bench {

struct NodeSetup {
  int count = 1;
  int64_t latenesses = 0;  // room for so many; 0: none are kept
  int slots = 0;           // runs of each node at a time; 0: the default
  bool at_once = false;    // they open the store and go on to Start, without Go
  // Of each node; '*' in one is the node's number, from 0.
  std::vector<std::string> labels;
};

class NodeProcesses {
 public:
  // Starts nodes, which open the store and wait.
  explicit NodeProcesses(const Options& options, const NodeSetup& setup = {});
  ~NodeProcesses();  // kills what still lives

  const Shared& shared() const { return *shared_; }
  // How long after its due instant a handler's first instruction came, by the host's wall clock; in
  // the order in which they came.
  std::vector<absl::Duration> Latenesses() const;
  const std::vector<pid_t>& pids() const { return pids_; }
  // Waits until each has opened the store, then lets them go on to Start.
  void Go();
  // Waits until `shared` says so; ends the program after `patience` with what was seen.
  void Await(const std::function<bool(const Shared&)>& done, absl::Duration patience);
  // Of all nodes since Go, asked of each.
  double CpuSeconds();
  // SIGKILL, to the first of them; the rest goes on. Answers when, by the host's wall clock.
  absl::Time KillOne();
  // The same to the first of them and all that it has started: its guards, and what they guard. All
  // are stopped first, so that none of them sees another's end.
  absl::Time KillOneWithGuards();
  // Drains and ends them. CPU times are kept until this goes.
  void Stop();
  // The same, but that it does not wait for their ends; Stop does.
  void BeginStop();

 private:
  void StartOne(int number);
  const Options& options_;
  const NodeSetup setup_;
  Shared* shared_;
  int memory_;
  std::vector<pid_t> pids_;
  std::vector<int> controls_;  // the nodes' standard inputs
};

}  // namespace matins::bench

#endif  // MATINS_BENCH_DRIVE_NODE_PROCESS_H_
