// What the lanes of one node share. Nothing here is needed after a crash: whatever counts is in the
// store first.
#ifndef MATINS_ENGINE_NODE_H_
#define MATINS_ENGINE_NODE_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "base/history.h"
#include "engine/counters.h"
#include "engine/definitions.h"
#include "engine/doorbell.h"
#include "engine/events.h"
#include "engine/live_runs.h"
#include "engine/mailbox.h"
#include "execute/runner.h"
#include "lease/door.h"
#include "store/store.h"

namespace matins {

enum class LaneKind { kPlan, kStart, kFinish, kBeat, kReap, kTick };
inline constexpr std::array<LaneKind, 6> kAllLanes = {LaneKind::kPlan,   LaneKind::kStart,
                                                      LaneKind::kFinish, LaneKind::kBeat,
                                                      LaneKind::kReap,   LaneKind::kTick};
absl::string_view LaneName(LaneKind kind);  // "plan", "start", ...

struct NodeOptions {
  NodeId id;
  int slots = 64;        // runs of this node at a time
  int global_limit = 0;  // runs in the whole store at a time (limits.global); 0: none
  absl::Duration ahead = absl::Seconds(5);    // what is due by now + ahead is planned and held
  absl::Duration poll = absl::Seconds(1);     // the net under all wake-ups
  absl::Duration put_off = absl::Seconds(5);  // a refused row is tried again after this
  // Between looks for lost runs: so much later than its lease's end one may be taken back.
  absl::Duration sweep = absl::Milliseconds(250);
  absl::Duration tick = absl::Seconds(1);  // between signs of life
  // Of a node that is quiet (EngineNode::quiet): between its signs of life, which are all that it
  // asks; how long it has had nothing to do before; and how far off what comes next must be.
  absl::Duration quiet_tick = absl::Seconds(3);
  absl::Duration quiet_after = absl::Seconds(10);
  absl::Duration quiet_ahead = absl::Seconds(10);
  absl::Duration purge = absl::Seconds(60);  // between removals of history
  absl::Duration output = absl::Seconds(2);  // between copies of a run's live output
  absl::Duration clock_settle = absl::Minutes(5);
  std::string give_back_program;  // what a guard starts to give a lease back; empty: nothing
  std::string store_url;          // handed to it
  // Its lanes are stepped when they ask for it, so that what comes later than that stood still.
  bool stepped_on_time = false;
};

// A row that is to be started when the boot clock says `at`.
struct Waiting {
  absl::Duration at;
  HeldRow row;
};

struct EngineNode {
  EngineNode(NodeOptions node_options, Clock& node_clock, Runner& node_runner,
             History& node_history, EngineEvents& node_events)
      : options(std::move(node_options)),
        clock(node_clock),
        runner(node_runner),
        history(node_history),
        testifies(&node_history != &NoHistory()),
        events(node_events) {}

  const NodeOptions options;
  Clock& clock;
  Runner& runner;
  History& history;
  const bool testifies;  // somebody reads the history
  EngineEvents& events;
  Door* door = nullptr;  // asked before the store by jobs that say so; null: none
  Counters counters;
  Definitions definitions;
  LiveRuns live;

  Mailbox<std::string> look_again;  // start, reap -> plan: jobs to be judged now
  Mailbox<Waiting> held;            // plan -> start: rows that plan held for this node
  struct NotLaunched {
    LiveRunPtr run;
    absl::Status error;
  };
  Mailbox<NotLaunched> not_launched;  // start -> finish: claimed, but not to be run here

  std::atomic<bool> frozen{false};    // the store's clock stepped (I8), or `outdated`
  std::atomic<bool> outdated{false};  // the store's schema is a newer program's: nothing new here
  std::atomic<bool> draining{false};  // nothing new is planned or started
  // All that runs is handed over. A START that was under way when that began is seen by whoever
  // launches what it granted.
  std::atomic<bool> stopping{false};
  std::atomic<bool> starting{false};  // the start lane may be at a START, and launch what it grants
  // A burst: START is about to send more of what is due at once, and until when (boot clock,
  // microseconds) ends let it go first.
  std::atomic<bool> starts_go_on{false};
  std::atomic<int64_t> starts_first_us{0};
  std::atomic<bool> freed{false};  // something may be due that nobody holds: start looks now
  std::atomic<bool> told{false};   // others have written: something may soon be due besides
  // Until when (store's clock, microseconds) START may rely on what planning has seen; 0: it has
  // not looked yet.
  std::atomic<int64_t> judged_until_us{0};
  std::atomic<int> waiting{0};     // rows that the start lane holds, for free_slots
  std::atomic<bool> hears{false};  // what others change in the store rings this node's bells
  // Nothing runs anywhere, nothing is to come soon, and what comes unforeseen is heard: no lane but
  // tick asks the store. Each sleeps until the next instant that it knows of; what was not heard is
  // seen by the next tick. Set by tick alone; see Stir.
  std::atomic<bool> quiet{false};
  std::atomic<bool> stirred{false};  // it was quiet, and is no more: the next tick tells the others

  Doorbell& bell(LaneKind kind) { return bells_[static_cast<size_t>(kind)]; }
  void Ring(LaneKind kind) { bell(kind).Ring(); }
  // This node has work of its own: where it was quiet, all lanes look again.
  void Stir();
  // When a lane that found nothing looks again, the net under all wake-ups.
  absl::Duration NextPoll(absl::Duration every) {
    return quiet ? absl::InfiniteDuration() : clock.BootNow() + every;
  }
  // Stops a run and its check, whichever is alive; passes over what has ended.
  void StopRun(const LiveRun& run, StopReason why, absl::Duration grace);
  // Stops all that was launched here, for the node's own end.
  void StopAll();
  int free_slots() const { return std::max(0, options.slots - live.count() - waiting.load()); }
  void Say(absl::string_view name, const PeriodKey& key = {}, int64_t fence = 0,
           std::string detail = "") {
    if (events.Listens()) events.OnEvent({name, false, key, fence, std::move(detail)});
  }
  void Alarm(absl::string_view name, const PeriodKey& key, int64_t fence, std::string detail) {
    events.OnEvent({name, true, key, fence, std::move(detail)});
  }

 private:
  std::array<Doorbell, kAllLanes.size()> bells_;
};

}  // namespace matins

#endif  // MATINS_ENGINE_NODE_H_
