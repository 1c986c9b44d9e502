#include "ops/node.h"

#include <unistd.h>

#include <algorithm>
#include <climits>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "backends/backends.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "execute/process_runner.h"

namespace matins {
namespace {

// A beat's own deadline is a sixth of the lease: of the shortest lease that the store
// knows now. Leases that come later and are shorter still end by their guards' deadlines.
absl::StatusOr<absl::Duration> BeatDeadline(Database& database) {
  ASSIGN_OR_RETURN(const absl::Duration shortest, database.ShortestLease());
  return std::min(shortest, LockSpec{}.ttl) / 6;
}

// A guard is tried, and a connection made, and neither waits for the other.
absl::StatusOr<std::unique_ptr<Runner>> OpenRunnerWhileConnecting(const NodeConfig& config,
                                                                  Database& database) {
  std::thread connecting([&database] { database.Prepare(); });
  auto runner = OpenProcessRunner({.folder = config.runtime_folder});
  connecting.join();
  return runner;
}

}  // namespace

std::string OwnProgram() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path);
  return size < 0 ? std::string() : std::string(path, static_cast<size_t>(size));
}

std::string HandlerLabel(absl::string_view handler) { return absl::StrCat("handler:", handler); }

std::string NewNodeName() {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  return absl::StrCat(host, "/", SystemRandom().Hex128().substr(0, 8));
}

absl::StatusOr<std::unique_ptr<ServingNode>> ServingNode::Start(NodeConfig config,
                                                                EngineEvents& events) {
  std::unique_ptr<ServingNode> node(new ServingNode);
  node->name_ = NewNodeName();
  if (!config.redis_url.empty()) {
    ASSIGN_OR_RETURN(RedisUrl redis, ParseRedisUrl(config.redis_url));
    node->door_ = OpenRedisDoor(std::move(redis), node->name_, SystemClock());
  }
  if (!config.history_file.empty()) {
    ASSIGN_OR_RETURN(node->history_, OpenHistory(config.history_file));
  }
  if (config.database == nullptr) {
    ASSIGN_OR_RETURN(node->own_database_, DatabaseFromUrl(config.store_url, DatabaseOptions{}));
  }
  node->database_ = config.database != nullptr ? config.database : node->own_database_.get();
  ASSIGN_OR_RETURN(node->runner_, OpenRunnerWhileConnecting(config, *node->database_));
  RETURN_IF_ERROR(node->database_->Migrate());
  if (config.prepare) RETURN_IF_ERROR(config.prepare(*node->database_));
  DatabaseOptions beat;
  ASSIGN_OR_RETURN(beat.call_deadline, BeatDeadline(*node->database_));
  // Before anything is planned: what a dead drill deleted is no gap.
  ASSIGN_OR_RETURN(std::unique_ptr<ActStore> acts, node->database_->OpenActs());
  RETURN_IF_ERROR(RestoreDrillsOnNode(*acts, events, node->name_));
  ASSIGN_OR_RETURN(node->beat_database_, DatabaseFromUrl(config.store_url, beat));
  if (config.wrap_runner) node->runner_ = config.wrap_runner(std::move(node->runner_));
  node->alerts_ = std::make_unique<AlertThread>(*node->database_, events, node->name_,
                                                std::move(config.alerts), config.alert_sender);
  NodeParts parts;
  parts.options.id = {node->name_, config.labels};
  parts.options.slots = config.slots;
  parts.options.global_limit = config.global_limit;
  parts.options.give_back_program = config.give_back_program;
  parts.options.store_url = config.store_url;
  parts.options.stepped_on_time = true;
  parts.clock = &SystemClock();
  parts.runner = node->runner_.get();
  parts.history = node->history_.get();
  parts.events = node->alerts_.get();
  parts.door = node->door_.get();
  parts.random = std::make_unique<SystemRandom>();
  parts.open_store = [raw = node.get()](LaneKind lane) {
    // Its schema was looked at above.
    return lane == LaneKind::kBeat ? raw->beat_database_->OpenAnother()
                                   : raw->database_->OpenAnother();
  };
  ASSIGN_OR_RETURN(node->engine_, Engine::Create(std::move(parts)));
  node->engine_->Start();
  AlertThread* alerts = node->alerts_.get();
  node->audit_ = std::make_unique<AuditThread>(
      *node->database_, std::move(acts), events, node->name_, config.audit,
      AuditThread::Watchers{[alerts] { alerts->Ping(AlertBeats::PingKind::kStart); },
                            [alerts](bool alarms) {
                              alerts->Ping(alarms ? AlertBeats::PingKind::kFail
                                                  : AlertBeats::PingKind::kSuccess);
                            }});
  return node;
}

ServingNode::~ServingNode() = default;

absl::Status ServingNode::Drain(absl::Duration patience) {
  const absl::Status left = engine_->Drain(patience);
  audit_.reset();
  alerts_->Stop();
  return left;
}

void ServingNode::SetAlerts(AlertConfig config) { alerts_->SetConfig(std::move(config)); }

}  // namespace matins
