// Runs what a job says, and knows nothing else: no store, no schedule. What a run says on its
// socket comes out as an event; whoever polls takes it to the store and replies.
//
// One run is one attempt. It is known by its id, which is its fence. The life of a run, as events:
//   RunStarted, then any number of RunAsked and RunOutput, then RunEnded;   or RunNotStarted alone.
// RunEnded and RunNotStarted are last, and exactly one of them comes for each Start.
//
// Two deadlines stand over every run, and hold though all lanes hang, and though the node is
// stopped:
//   lease     moved by each beat that the store accepted; what cannot prove its lease dies (I19)
//   time_out  set once; no process outlives it, however well it heartbeats (I21)
#ifndef MATINS_EXECUTE_RUNNER_H_
#define MATINS_EXECUTE_RUNNER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace matins {

// Why a run was stopped from outside.
enum class StopReason {
  kNone,       // it was not: it ended by itself
  kLeaseLost,  // the lease deadline passed without a beat that the store accepted
  kTimeOut,    // it ran longer than its time-out
  kCancelled,  // a person
  kReplaced,   // overlap: replace
  kShutdown,   // this node drains
  kNodeDied,   // seen by the guard alone; reaches a person through the give-back
};
// "lease lost", "time-out", ...; "" for kNone.
absl::string_view StopReasonText(StopReason reason);

// When to stop, by the boot clock (Clock::BootNow): SIGTERM to the whole tree (a handler's stop
// token) at `stop`, SIGKILL at `kill`. kill >= stop. InfiniteDuration: never.
struct Deadline {
  absl::Duration stop = absl::InfiniteDuration();
  absl::Duration kill = absl::InfiniteDuration();
};

// A variable of the job's own. With `file` set, its value is that file's bytes, read at the start,
// without the line end at its end.
struct EnvEntry {
  std::string name;
  std::string value;
  std::string file;
};

// What to run: exactly one of the three is set.
struct Program {
  std::vector<std::string> argv;  // command: templates are expanded in each word; no shell sees it
  std::string shell;              // shell: for /bin/sh -c; templates are refused, see template.h
  std::string handler;            // a function of the embedding program, by its name
};

// What a run is told about itself: the MATINS_* variables, and the values of templates.
struct RunValues {
  std::string job;
  std::string tenant;
  std::string period;
  std::string biz_date;      // "2026-10-30"; empty: the period has none
  std::string window_start;  // instants, as FormatInstant writes them
  std::string window_end;
  std::string scheduled_for;
  int generation = 1;
  int attempt = 1;
  bool backfill = false;
  int64_t checkpoint_number = -1;  // the last accepted checkpoint; -1: none
  std::string checkpoint;          // its payload
  std::vector<std::pair<std::string, std::string>> params;   // MATINS_PARAM_name, {{param.name}}
  std::vector<std::pair<std::string, std::string>> further;  // MATINS_name, where a run has more
  std::string traceparent;                                   // empty: made from the fence
};

// What the guard hands to `matins guard-return` on its standard input, once the node is dead and
// the whole tree is proven dead. Never in an environment or in arguments.
struct GiveBack {
  std::string program;    // the matins binary, an absolute path; empty: nothing is given back
  std::string store_url;  // with its password
  int64_t nonce = 0;
};

// What of a run's output is kept: its first and its last bytes.
struct OutputLimits {
  int64_t head_bytes = 128 << 10;  // 0 .. 16 MiB each
  int64_t tail_bytes = 128 << 10;
};

struct RunRequest {
  int64_t run = 0;  // the fence
  Program program;
  RunValues values;
  std::string dir;           // empty: the user's home, or / where there is none
  std::string user;          // empty: this process's own
  std::optional<int> umask;  // default 022
  std::vector<EnvEntry> env;
  OutputLimits output;
  Deadline lease;
  Deadline time_out;
  // A handler that has not stopped by the lease's `kill` is let run on, its writes refused; with
  // this set, the whole process ends then (`on_lease_lost: abort_process`).
  bool abort_on_lease_lost = false;
  // The program has this process's own environment, without what begins with MATINS_, in place of
  // the usual variables; `env` and the run's own come on top.
  bool inherit_environment = false;
  // The program reads this process's standard input; what it writes is kept, and goes to this
  // process's standard output and error as well. What does not take it makes the program wait.
  bool pass_streams = false;
  GiveBack give_back;
};

struct RunStarted {
  int pid = 0;        // 0: not a process
  absl::Duration at;  // of the boot clock; zero: when it is polled
};

enum class AskKind { kCheckpoint, kResult, kFence };

// Something the run said and now waits for an answer to. Reply once, after the store has answered.
struct RunAsked {
  int64_t ask = 0;  // its number within this run
  AskKind kind = AskKind::kFence;
  int64_t number = -1;  // kCheckpoint: the checkpoint's number
  std::string payload;  // kCheckpoint: up to 1 MiB of any bytes; kResult: JSON text, up to 1 MiB
};

// A part of the output as it comes, for those who follow it. Parts may be left out when it comes
// faster than about 32 KiB a second: `offset`, from the first byte of the output, tells.
struct RunOutput {
  int64_t offset = 0;
  std::string bytes;
};

struct OutputKept {
  std::string head;         // any bytes
  std::string tail;         // what came last, never overlapping `head`
  int64_t total_bytes = 0;  // all that was written
  // The head as it comes, then a tail that is cut at its front.
  void Append(absl::string_view text, const OutputLimits& limits);
  // Head, a line that tells what was cut (none where nothing was), tail.
  std::string Joined() const;
};

struct RunEnded {
  int exit_code = -1;  // 0..255; -1: by a signal, or a handler's error
  int signal = 0;      // 0: not by a signal
  StopReason stopped = StopReason::kNone;
  // Nothing of the run is alive any more, and that was seen, not assumed. False for a handler that
  // would not stop, and for processes that the kernel would not let us kill.
  bool tree_dead = true;
  OutputKept output;
  absl::Duration cpu;         // user and system time of the whole tree
  int64_t max_rss_bytes = 0;  // of its largest process
  absl::Status status;        // a handler's own status; OK for processes
  // Code 0 (a handler: OK) and not stopped.
  bool Succeeded() const {
    return exit_code == 0 && signal == 0 && stopped == StopReason::kNone && status.ok();
  }
  // As a shell shows it: 128 + signal for a signal.
  int ShellCode() const { return signal != 0 ? 128 + signal : exit_code; }
  // "exit 3", "signal 9 (Killed), stopped: time-out".
  std::string Text() const;
};

// Nothing was started. The message names the file, user or variable, and the mend.
struct RunNotStarted {
  absl::Status error;
  int exit_code = 126;  // as a shell shows it: 127 not found, 126 found but not to be run
};

struct RunnerEvent {
  int64_t run = 0;
  std::variant<RunStarted, RunAsked, RunOutput, RunEnded, RunNotStarted> what;
};

struct DeadlineMove {
  int64_t run = 0;
  Deadline lease;
};

struct RunAnswer {
  absl::Status status;  // not OK: the run's client prints it and exits with its code
  std::string text;     // printed on its standard output; kFence: the fence
};

// Thread-safe; no verb waits for a process. All verbs but Start pass over a run that is not known
// or has ended: the event that says so is on its way.
class Runner {
 public:
  virtual ~Runner() = default;
  // The answer is an event. A run id is used once.
  virtual void Start(RunRequest request) = 0;
  // The same for many.
  virtual void StartAll(std::vector<RunRequest> requests) {
    for (RunRequest& request : requests) Start(std::move(request));
  }
  // SIGTERM now, SIGKILL after `grace` or at an earlier deadline. Cannot be taken back, and the
  // first reason stands.
  virtual void Stop(int64_t run, StopReason reason, absl::Duration grace) = 0;
  // The same with another signal in SIGTERM's place, for processes.
  virtual void StopBySignal(int64_t run, StopReason reason, absl::Duration grace, int /*signal*/) {
    Stop(run, reason, grace);
  }
  // To the run's whole tree of processes; nothing else changes.
  virtual void PassSignal(int64_t /*run*/, int /*signal*/) {}
  // Sets the lease deadlines. A run whose stopping has begun is not let off.
  virtual void MoveDeadlines(absl::Span<const DeadlineMove> moves) = 0;
  virtual void Reply(int64_t run, int64_t ask, RunAnswer answer) = 0;
  // All events since the last Poll, in order within each run; does not wait.
  virtual std::vector<RunnerEvent> Poll() = 0;
  // Called, from any thread, when there is something to poll after there was nothing. It must be
  // quick and must not call the runner. Set it before the first Start.
  virtual void SetWakeUp(std::function<void()> wake_up) = 0;
};

}  // namespace matins

#endif  // MATINS_EXECUTE_RUNNER_H_
