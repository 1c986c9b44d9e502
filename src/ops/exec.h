// `matins exec`: one job, once through, by the process that was started for it. A crontab line on
// every host, a CronJob, a timer or a program's own scheduler calls it; one of the calls runs, what
// was missed is made good, and the run is recorded (docs/exec.md).
#ifndef MATINS_OPS_EXEC_H_
#define MATINS_OPS_EXEC_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/job.h"
#include "ops/exec_runner.h"

namespace matins {

// What a call does where another has the period, its lock or its place.
enum class IfHeld { kSkip, kWait, kFail };

struct ExecRequest {
  std::string store_url;
  std::string job;
  // What the call says of the job, `run: { exec: true }`; nothing: the store's word counts. Where
  // it differs from the store's it is refused, or with `apply` becomes a new version; `force` also
  // where it was superseded before.
  std::optional<Job> definition;
  bool apply = false;
  bool force = false;
  ExecProgram program;
  IfHeld if_held = IfHeld::kSkip;
  // A fire so far ahead, by the store's clock, is waited for.
  absl::Duration early = absl::Seconds(60);
  bool retry = false;               // FAILED periods get new attempts now: a person's trigger
  std::vector<std::string> labels;  // for jobs with `nodes`
  // The quick door of a job with `lock.provider: redis` (lease/door.h); empty: the store alone.
  std::string redis_url;
  bool door_wanted = false;  // a job that does not ask Redis is refused
  int global_limit = 0;
  // A store that cannot be reached is tried again for so long, before anything has run.
  absl::Duration store_wait = absl::Seconds(30);
  std::string
      give_back_program;  // the matins binary; empty: leases of a dead call end by themselves
};

// What a call needs of whoever makes it.
class ExecHost {
 public:
  virtual ~ExecHost() = default;
  // A line for people. `news`: of what went as it should; a quiet call leaves it out.
  virtual void Tell(absl::string_view line, bool news) = 0;
  // Waits until the boot clock says `until`, until WakeUp is called, or until a signal has come,
  // and answers its number; 0: none.
  virtual int Wait(absl::Duration until) = 0;
  // From any thread.
  virtual void WakeUp() = 0;
};

enum class ExecEnd {
  kDone,     // all that was owed is DONE, by this call or another; or nothing was owed
  kHeld,     // another has it, and `if_held` is fail
  kCommand,  // the command did not end well: `code`
  kFailed,   // what is owed stands FAILED, whoever ran it
  kRefused,  // a person has to act: FAILED(held), a label is missing
  kLost,     // the run was taken from this call, or cancelled: its result does not count
  kTimeOut,  // it ran longer than its time-out
  kStopped,  // a signal asked this call to end: `code`
};
struct ExecAnswer {
  ExecEnd end = ExecEnd::kDone;
  int code = 0;  // as a shell shows it; of a command that did not end well, or was stopped
};

// Not found: the job is not in the store and the call does not say what it is. FailedPrecondition:
// the call says something else than the store, or the job is not one for exec. Unavailable: the
// store; nothing was run. InDoubt: START was sent and no answer came, or the end of the run was not
// answered in time; what is in the store then settles it.
absl::StatusOr<ExecAnswer> ExecJob(const ExecRequest& request, ExecHost& host);

// What two definitions (canonical JSON) say differently: a line each, "schedule: ...". Empty: no
// difference.
std::vector<std::string> DifferencesOf(absl::string_view stored, absl::string_view given);

}  // namespace matins

#endif  // MATINS_OPS_EXEC_H_
