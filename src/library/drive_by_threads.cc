#include <utility>

#include "base/status.h"
#include "library/drive.h"
#include "ops/node.h"

namespace matins {
namespace {

class Threads final : public Drive {
 public:
  explicit Threads(std::unique_ptr<ServingNode> node) : node_(std::move(node)) {}
  void LookNow() override { node_->engine().LookNow(); }
  absl::Status Step() override {
    return absl::FailedPreconditionError(
        "Step: this scheduler runs by itself; give SchedulerOptions::clock a TestClock to step it");
  }
  absl::Status Drain(absl::Duration patience) override { return node_->Drain(patience); }

 private:
  const std::unique_ptr<ServingNode> node_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Drive>> DriveByThreads(DriveParts parts) {
  NodeConfig config;
  config.store_url = parts.options.store;
  config.database = parts.database;
  config.labels = parts.options.labels;
  config.slots = parts.options.slots;
  config.audit = parts.options.audit;
  config.redis_url = parts.options.redis;
  config.global_limit = parts.options.global_limit;
  config.runtime_folder = parts.options.runtime_folder;
  config.give_back_program = parts.options.matins_program;
  config.wrap_runner = [&](std::unique_ptr<Runner> processes) {
    return JoinRunners(std::move(processes),
                       NewHandlerRunner({.handlers = std::move(parts.handlers),
                                         .threads = parts.options.slots,
                                         .clock = parts.clock}));
  };
  ASSIGN_OR_RETURN(std::unique_ptr<ServingNode> node,
                   ServingNode::Start(std::move(config), *parts.events));
  return std::make_unique<Threads>(std::move(node));
}

}  // namespace matins
