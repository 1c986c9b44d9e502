// A whole node on a store: database, runner and engine, put together. For `matins serve`, and for
// programs that embed one.
#ifndef MATINS_OPS_NODE_H_
#define MATINS_OPS_NODE_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/history.h"
#include "engine/engine.h"
#include "engine/events.h"
#include "execute/runner.h"
#include "lease/door.h"
#include "ops/alerts.h"
#include "ops/audit.h"
#include "store/database.h"

namespace matins {

struct NodeConfig {
  std::string store_url;
  Database* database = nullptr;  // of that URL; outlives the node. Null: the node opens its own
  std::string redis_url;         // the quick door of jobs with `lock.provider: redis`; empty: none
  std::vector<std::string> labels;
  int slots = 64;
  int global_limit = 0;
  AlertConfig alerts;                   // channels and pings; none: this node tells nobody
  AlertSender* alert_sender = nullptr;  // outlives the node; null: this node sends nothing
  std::string audit;           // when the audit of all jobs looks, cron in UTC; empty: kStoreAudit
  std::string runtime_folder;  // of the runs' sockets; empty: see NodeFolder::Open
  std::string history_file;    // the event history, witness W1; empty: none
  std::string
      give_back_program;  // the matins binary; empty: leases of a dead node end by themselves
  // Called when all that is this node's own (folder, files) is there and the schema is the wanted
  // one, before anything is planned. A node that could not serve changes nothing in the store.
  std::function<absl::Status(Database&)> prepare;
  // Puts a runner around (or in place of) the one for processes, e.g. for in-process handlers.
  std::function<std::unique_ptr<Runner>(std::unique_ptr<Runner> processes)> wrap_runner;
};

// This program's own file, for a guard or a child to start; empty where /proc does not tell.
std::string OwnProgram();

// The label of nodes whose program has this handler; no label that a person gives looks like it.
// ApplyFile has the jobs of that handler ask for it.
std::string HandlerLabel(absl::string_view handler);

// "HOST/8 hex digits": a new one at each start, so that an earlier life's runs are never taken for
// this one's.
std::string NewNodeName();

class ServingNode {
 public:
  // Migrates the schema where it is older, prepares, and starts planning and running. `events`
  // outlives the node.
  static absl::StatusOr<std::unique_ptr<ServingNode>> Start(NodeConfig config,
                                                            EngineEvents& events);
  ~ServingNode();

  // See Engine::Drain.
  absl::Status Drain(absl::Duration patience);
  Engine& engine() { return *engine_; }
  Database& database() { return *database_; }
  const std::string& name() const { return name_; }
  // Another file was read.
  void SetAlerts(AlertConfig config);

 private:
  ServingNode() = default;
  std::string name_;
  std::unique_ptr<Database> own_database_;  // null: another's is used
  Database* database_ = nullptr;
  std::unique_ptr<Database> beat_database_;  // its calls' deadline fits the shortest lease
  std::unique_ptr<History> history_;
  std::unique_ptr<Runner> runner_;
  std::unique_ptr<Door> door_;  // null: none
  std::unique_ptr<AlertThread> alerts_;
  std::unique_ptr<Engine> engine_;  // it uses all of the above
  std::unique_ptr<AuditThread> audit_;
};

}  // namespace matins

#endif  // MATINS_OPS_NODE_H_
