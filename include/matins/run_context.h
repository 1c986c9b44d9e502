// What a handler has in its hand while it runs.
#ifndef MATINS_RUN_CONTEXT_H_
#define MATINS_RUN_CONTEXT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace matins {
inline namespace api {

// A position within a period's work, as the store has accepted it.
struct Checkpoint {
  int64_t number = 0;  // 1 or more; within a generation it only rises, across owners too (I10)
  std::string data;    // up to 64 KiB of any bytes
};

// Why a run is told to stop.
enum class StopCause {
  kNone,       // it is not
  kLeaseLost,  // the period belongs to somebody else, or soon may: write nothing more
  kTimeOut,    // it ran longer than its time-out
  kCancelled,  // a person
  kReplaced,   // overlap: replace
  kShutdown,   // this node drains; the period is handed over and goes on from its checkpoint
};

// A statement of the job's own transaction. `sql` is complete: nothing is to be bound.
struct CommitStatement {
  std::string sql;
  bool decides = false;  // must change exactly one row; else roll back: another owns the period
};

// Valid until the handler returns. Thread-safe; with a TestClock, for the handler's thread alone.
class RunContext {
 public:
  struct Impl;
  explicit RunContext(std::unique_ptr<Impl> impl);
  ~RunContext();
  RunContext(const RunContext&) = delete;
  RunContext& operator=(const RunContext&) = delete;

  // ---- what it is for ----
  const std::string& job() const;
  const std::string& tenant() const;
  const std::string& period() const;  // its key: "2026-10-30", "2026-W44", an instant, ...
  absl::CivilDay biz_date() const;    // the data's day
  absl::Time window_start() const;    // the period is [window_start, window_end)
  absl::Time window_end() const;
  absl::Time scheduled_for() const;  // when it was due
  int generation() const;            // one more each time the period was opened again
  int attempt() const;               // of this trigger, from 1
  bool backfill() const;             // it was missed, and is made good now
  const std::map<std::string, std::string>& params() const;  // given by a person

  // ---- the fence ----
  // The fencing token, and the run's id. Rises with each owner, for ever (I6): a resource that
  // refuses lower ones is safe from an old owner (docs/fencing.md).
  int64_t fence() const;
  // Asks the store whether this run still owns its period, and extends its lease. OK: it did, at
  // some instant during the call.
  absl::Status ConfirmOwner();

  // ---- how far it is ----
  // The last accepted checkpoint of this generation, whoever wrote it; what this run adds counts at
  // once. None: begin at the beginning.
  std::optional<Checkpoint> checkpoint() const;
  // Returns after the store has answered. OK: accepted, and the next owner starts there.
  // InvalidArgument: the number is not above the last one, or `data` is too long.
  // FailedPrecondition or Aborted: the period is no longer this run's; return, and write nothing
  // more.
  absl::Status SaveCheckpoint(int64_t number, absl::string_view data = "");
  // A JSON text, up to 1 MiB, that is kept with the run; the last one counts. It is written with
  // the run's end, in the same transaction.
  absl::Status SetResult(absl::string_view json);
  // Adds to the run's output: `matins logs`.
  void Print(absl::string_view text);

  // ---- stopping ----
  // A function cannot be killed: a handler looks at this often, and returns when it is set. After
  // the job's `grace` it is let run on, all that it asks refused; or the process ends, where the
  // job says `on_lease_lost: abort_process`.
  bool stop_requested() const;
  std::stop_token stop_token() const;
  StopCause stop_cause() const;

  // ---- commit: job ----
  // DONE, written by the job itself, for work in the scheduler's own database: effect and DONE
  // exist together or not at all (I12). To be executed last in the transaction of the effects, in
  // order, with COMMIT at once after them (SQLite: a transaction begun by BEGIN IMMEDIATE). A
  // handler of a `commit: job` job that returns OK without it is FAILED(no_commit).
  std::vector<CommitStatement> CommitSql() const;
  // The same by way of `execute`, which runs one statement in the caller's transaction and answers
  // how many rows it changed. OK: COMMIT now. Aborted: refused; roll back, and return.
  absl::Status WriteDone(
      const std::function<absl::StatusOr<int64_t>(absl::string_view sql)>& execute);

 private:
  const std::unique_ptr<Impl> impl_;
};

}  // namespace api
}  // namespace matins

#endif  // MATINS_RUN_CONTEXT_H_
