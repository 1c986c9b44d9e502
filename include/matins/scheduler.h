// Start here. A scheduler inside your program: a node like any `matins serve`, whose jobs may be
// functions of yours.
//
//   #include <matins/scheduler.h>
//
//   matins::SchedulerOptions options;
//   options.store = "sqlite:/srv/app/matins.db";
//   options.labels = {"app"};
//   auto scheduler = matins::Scheduler::Open(options);              // StatusOr, here as below
//   (*scheduler)->AddHandler("close", [](matins::RunContext& run) -> absl::Status {
//     return CloseTheBooksOf(run.biz_date());
//   });
//   matins::Job job;
//   job.name = "close";
//   job.schedule = "0 1 * * *";
//   job.timezone = "Asia/Shanghai";
//   job.period = matins::PeriodKind::kDay;
//   job.biz_date = "-1d";
//   job.misfire = matins::Misfire::kEach;                           // a night that was missed is
//   made good job.nodes = {"app"}; job.handler = "close";
//   (*scheduler)->Apply(job);
//   (*scheduler)->Start();
//   ... until the program ends ...
//   (*scheduler)->Drain(absl::Seconds(30));
//
// What it promises is what README lists, for handlers as for processes, but for two things: a
// handler runs at least once (run_context.h has the fence and the checkpoint that make its effects
// single), and it cannot be killed (it is told to stop, and then refused).
//
// The rest: job.h (a job in code), run_context.h (what a handler has), types.h (options and
// answers), testing.h (a clock for your tests). docs/embedding.md is the guide.
#ifndef MATINS_SCHEDULER_H_
#define MATINS_SCHEDULER_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "matins/job.h"
#include "matins/run_context.h"
#include "matins/types.h"

namespace matins {
inline namespace api {

// OK: the run has succeeded. Any other status, and an exception, is a failure: the job's `retry`
// says what follows. Called on a thread of the scheduler's, many at a time.
using RunHandler = std::function<absl::Status(RunContext&)>;

// Thread-safe. What it writes is recorded with who and why.
class Scheduler {
 public:
  // Opens the store and makes, or migrates, its schema; runs nothing yet. InvalidArgument: an
  // option is wrong, and the message says which. Unavailable: the store cannot be reached.
  // FailedPrecondition: its schema is newer than this program, or its settings break a promise.
  static absl::StatusOr<std::unique_ptr<Scheduler>> Open(SchedulerOptions options);
  // Without Drain: as a crash would, but that handlers are waited for. Their periods are lost, and
  // run again when their leases have ended.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Before Start. `name` is what a job's `run: { handler: NAME }` says. AlreadyExists for a second
  // one of that name.
  absl::Status AddHandler(absl::string_view name, RunHandler handler);

  // Writes definitions to the store, as `matins job apply` does: what has not changed is left
  // alone, a change is a new version, effective from now. All or nothing. InvalidArgument: a line
  // for each mistake. FailedPrecondition: the set was superseded by a later one
  // (ApplyOptions::force).
  absl::StatusOr<Applied> Apply(const Job& job, const ApplyOptions& options = {});
  // The text of a job file. Files that it names are sought from the working directory.
  absl::StatusOr<Applied> Apply(absl::string_view yaml, const ApplyOptions& options = {});

  // Plans and runs from now on, until Drain. Returns at once. Once.
  absl::Status Start();
  // Takes nothing new, waits up to `patience` for runs to end by themselves, then tells the others
  // to stop, whose periods are handed over; a handler that does not return within its job's `grace`
  // is let go. Returns when the store has the end of each. OK: the node left in order.
  // DeadlineExceeded: the store did not answer; the leases will end. Not to be called by a handler.
  absl::Status Drain(absl::Duration patience);

  // Asks for a run of a period; some node of the store, this one or another, runs it. Answers the
  // period's key. FailedPrecondition: it is RUNNING (the message names the runner), DONE without
  // `again`, the job is suspended, or it is FAILED or PLANNED and keeps other parameters.
  absl::StatusOr<std::string> RunByHand(const ByHand& request);
  // Waits until the period has ended; after a RunByHand of this scheduler's, how *that* ended, not
  // how it had failed before. DeadlineExceeded after `timeout`. With a TestClock it steps,
  // once, and does not wait.
  absl::StatusOr<PeriodState> Wait(absl::string_view job, absl::string_view period,
                                   absl::Duration timeout);
  // NotFound: the period has no row (yet).
  absl::StatusOr<PeriodState> Read(absl::string_view job, absl::string_view period);
  // Asks the owner to stop a run, wherever it is; seen by its next heartbeat. NotFound: no such
  // run.
  absl::Status Cancel(int64_t fence, absl::string_view reason);

  // With a TestClock: does all that is due at its now, until nothing more is: plans, starts, calls
  // the handlers here, in this thread, one after another, and writes how they ended. The same calls
  // give the same order, every time. A handler may call it, after it moved the clock: leases are
  // extended and stops are told, but no other handler begins. FailedPrecondition without a
  // TestClock or before Start.
  absl::Status Step();

 private:
  struct Impl;
  explicit Scheduler(std::unique_ptr<Impl> impl);
  const std::unique_ptr<Impl> impl_;
};

}  // namespace api
}  // namespace matins

#endif  // MATINS_SCHEDULER_H_
