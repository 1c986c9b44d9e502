#include "ops/drill_node.h"

#include <algorithm>
#include <utility>

#include "backends/backends.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/status.h"
#include "engine/timing.h"
#include "execute/process_runner.h"
#include "ops/exec_runner.h"
#include "ops/node.h"
#include "store/exec_label.h"

namespace matins {
namespace {

constexpr absl::Duration kLookAgain = absl::Milliseconds(200);
constexpr absl::Duration kAhead = absl::Seconds(5);

}  // namespace

absl::StatusOr<std::unique_ptr<DrillNode>> DrillNode::Open(const DrillRequest& request,
                                                           absl::Duration lease, ExecHost& host) {
  std::unique_ptr<DrillNode> node(new DrillNode);
  DatabaseOptions options;
  options.call_deadline = std::min(options.call_deadline, CallDeadline(lease));
  ASSIGN_OR_RETURN(node->database_, DatabaseFromUrl(request.store_url, options));
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, node->database_->Open());
  const bool exec = !request.program.command.empty();
  if (exec) {
    auto runner = std::make_unique<ExecRunner>(request.program);
    RETURN_IF_ERROR(runner->GetReady());
    node->runner_ = std::move(runner);
  } else {
    ASSIGN_OR_RETURN(node->runner_, OpenProcessRunner({}));
  }
  JobTurnParts parts;
  parts.options.id = {NewNodeName(), request.labels};
  if (exec) parts.options.id.labels.push_back(kExecLabel);
  parts.options.give_back_program = OwnProgram();
  parts.options.store_url = request.store_url;
  parts.job = request.job;
  parts.clock = &SystemClock();
  parts.runner = node->runner_.get();
  parts.store = std::move(store);
  parts.random = std::make_unique<SystemRandom>();
  parts.wake_up = [&host] { host.WakeUp(); };
  ASSIGN_OR_RETURN(node->turn_, JobTurn::Open(std::move(parts)));
  return node;
}

DrillNode::~DrillNode() {
  if (turn_ != nullptr) turn_->Leave().IgnoreError();
  turn_.reset();
}

absl::Duration DrillNode::Step(const std::set<std::string>& periods) {
  absl::Duration again = SystemClock().BootNow() + kLookAgain;
  if (turn_->running()) again = turn_->Step();
  if (turn_->running()) return again;
  // Errors of the store pass, or the drill's time does.
  Look(periods).IgnoreError();
  return SystemClock().BootNow() + kLookAgain;
}

absl::Status DrillNode::Look(const std::set<std::string>& periods) {
  ASSIGN_OR_RETURN(const JobTurn::Seen seen, turn_->Plan(kAhead, std::nullopt));
  if (seen.frozen) {
    turn_->Tick();
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(turn_->Reap());
  if (!seen.state) return absl::OkStatus();
  for (const PeriodRow& row : seen.state->rows) {
    if (row.status != PeriodStatus::kPlanned || !periods.contains(row.key.period)) continue;
    if (row.not_before > seen.now) continue;
    ASSIGN_OR_RETURN(const StartAnswer answer, turn_->Start(row.key));
    if (answer.claim) return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace matins
