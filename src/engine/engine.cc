#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/status.h"

namespace matins {
namespace {

// How long a watch waits at most, or for a poll where that is longer.
constexpr absl::Duration kWatch = absl::Seconds(5);
// Who tells of changes does so once in 50 ms: what it changed since, and did not tell, is there by
// then.
constexpr absl::Duration kEcho = absl::Milliseconds(60);
// A node that starts makes many connections. What is due goes before those that can wait, so long.
constexpr absl::Duration kFirstLook = absl::Milliseconds(250);
// Between looks at whether the runs have ended; their ends ring nobody else's bell.
constexpr absl::Duration kDrainLook = absl::Milliseconds(10);

}  // namespace

Engine::Engine(std::unique_ptr<Lanes> lanes, Clock& clock)
    : lanes_(std::move(lanes)), clock_(clock) {}

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(NodeParts parts) {
  Clock& clock = *parts.clock;
  const auto open_store = parts.open_store;
  ASSIGN_OR_RETURN(std::unique_ptr<Lanes> lanes, Lanes::Open(std::move(parts)));
  auto engine = std::unique_ptr<Engine>(new Engine(std::move(lanes), clock));
  ASSIGN_OR_RETURN(engine->watch_store_, open_store(LaneKind::kPlan));
  return engine;
}

Engine::~Engine() { Halt(); }

void Engine::Start() {
  for (const LaneKind kind : kAllLanes) threads_.emplace_back([this, kind] { RunLane(kind); });
  threads_.emplace_back([this] { RunWatch(); });
}

bool Engine::halted() const {
  absl::MutexLock lock(&mutex_);
  return halted_;
}

void Engine::AwaitFirst(const bool& done) {
  absl::MutexLock lock(&mutex_);
  const auto over = [this, &done]()
                        ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return done || halted_; };
  clock_.AwaitUntil(mutex_, absl::Condition(&over), clock_.BootNow() + kFirstLook);
}

void Engine::NoteFirst(LaneKind stepped) {
  const EngineNode& node = lanes_->node();
  if (stepped == LaneKind::kTick) {
    absl::MutexLock lock(&mutex_);
    ticked_ = true;
    return;
  }
  // A frozen clock is for the tick to judge.
  const bool over = stepped == LaneKind::kStart ? node.judged_until_us != 0 : node.frozen.load();
  if (!over) return;
  absl::MutexLock lock(&mutex_);
  looked_ = true;
}

void Engine::RunLane(LaneKind kind) {
  Doorbell& bell = lanes_->node().bell(kind);
  const bool looks = kind == LaneKind::kPlan || kind == LaneKind::kStart;
  if (looks) lanes_->lane(kind).store().Prepare();
  if (kind == LaneKind::kPlan) AwaitFirst(ticked_);
  if (kind == LaneKind::kReap) AwaitFirst(looked_);
  for (bool first = looks || kind == LaneKind::kTick; !halted();) {
    const absl::Duration next = lanes_->Step(kind);
    if (first) {
      NoteFirst(kind);
      absl::MutexLock lock(&mutex_);
      first = kind != LaneKind::kTick && !looked_;
    }
    // The step may have heard the very ring that says so.
    if (halted()) return;
    bell.Wait(clock_, next);
  }
}

void Engine::RunWatch() {
  EngineNode& node = lanes_->node();
  const absl::Duration most = std::max(kWatch, node.options.poll);
  bool echo = false;
  AwaitFirst(looked_);
  while (!halted()) {
    const Heard heard = watch_store_->AwaitChange(echo ? kEcho : most);
    node.hears = heard != Heard::kDeaf;
    const bool changed = heard == Heard::kTold || heard == Heard::kWritten;
    const bool nothing = heard == Heard::kNothing && node.quiet && !echo;
    echo = heard == Heard::kTold || (changed && node.quiet);
    if (nothing) continue;
    LookNow();
    // Others may be at work again, and what they run is to be watched.
    if (heard == Heard::kTold && node.quiet) node.Ring(LaneKind::kTick);
  }
}

void Engine::LookNow() {
  lanes_->node().told = lanes_->node().freed = true;
  lanes_->node().Ring(LaneKind::kPlan);
  lanes_->node().Ring(LaneKind::kStart);
}

bool Engine::WaitDrained(absl::Duration until) {
  absl::Mutex mutex;
  while (!lanes_->Drained()) {
    const absl::Duration now = clock_.BootNow();
    if (now >= until) return false;
    absl::MutexLock lock(&mutex);
    const bool never = false;
    clock_.AwaitUntil(mutex, absl::Condition(&never), std::min(until, now + kDrainLook));
  }
  return true;
}

absl::Status Engine::Drain(absl::Duration patience, absl::Duration give_up) {
  lanes_->BeginDrain();
  if (!WaitDrained(clock_.BootNow() + patience)) {
    lanes_->StopRuns();
    if (!WaitDrained(clock_.BootNow() + give_up)) {
      Halt();
      return absl::DeadlineExceededError(
          "runs were stopped, but the store did not take the end of each; their leases will end");
    }
  }
  Halt();
  return lanes_->Leave();
}

void Engine::Halt() {
  {
    absl::MutexLock lock(&mutex_);
    halted_ = true;
  }
  if (threads_.empty()) return;
  for (const LaneKind kind : kAllLanes) lanes_->node().Ring(kind);
  watch_store_->Interrupt();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace matins
