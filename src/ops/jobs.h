// Definitions: list, show, apply, suspend, resume, rename, delete.
#ifndef MATINS_OPS_JOBS_H_
#define MATINS_OPS_JOBS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/deadline.h"
#include "job/job.h"
#include "job/parse.h"
#include "ops/session.h"

namespace matins {

struct JobSummary {
  JobRow row;
  Job job;
  std::optional<Fire> next_fire;  // none: suspended, calendar_ended, or it never fires again
  bool calendar_ended = false;    // nobody has looked up the day of the next fire
  absl::Time now;
  int64_t gaps = 0;    // owed and neither DONE nor SKIPPED
  int64_t late = 0;    // of them, past their deadline (done_by)
  absl::Duration lag;  // how long the oldest gap has been due; 0: none
  int running = 0;
  // What no living node has and the job wants: labels, or the program of its handler. Empty also
  // where no node lives at all.
  std::vector<std::string> unserved;
  std::string
      unreadable;  // why this program cannot read its definition; all but `row` is unset then
};

// `name` empty: every job, by name. Asks the store a fixed number of times, however many there are.
absl::StatusOr<std::vector<JobSummary>> ListJobs(Session& session, absl::string_view name);

// Whether the node has given a sign of life in the last half minute, and has not left.
bool IsAlive(const NodeRow& node, absl::Time now);

struct ApplyFileOptions {
  std::string source;  // what the set of jobs is called; jobs of other sources are left alone
  bool force = false;
  bool prune = false;
  bool take_over = false;  // jobs of another source become this one's
  // A one-off that is new and past its start deadline, which would never run, is refused.
  bool refuse_past = false;
};
// A job that runs a handler is for nodes whose program has it: it is written with HandlerLabel
// (ops/node.h) among the labels that it asks for. Writes the file's jobs as new versions where they
// changed. A job that says `suspend: true` is suspended. FailedPrecondition: a job of another
// source is in it, without `take_over`; or the file was superseded, without `force`.
absl::StatusOr<ApplyAnswer> ApplyFile(Session& session, const JobFile& file,
                                      const ApplyFileOptions& options);

absl::Status SuspendJob(Session& session, absl::string_view job, absl::string_view reason);

enum class Missed { kNotSaid, kRun, kSkip };
struct ResumeAnswer {
  int64_t owed = 0;  // periods that came due while it was suspended
};
// FailedPrecondition where periods are owed and nobody said what becomes of them; nothing is
// changed then.
absl::StatusOr<ResumeAnswer> ResumeJob(Session& session, absl::string_view job, Missed missed,
                                       absl::string_view reason);

absl::Status RenameJob(Session& session, absl::string_view from, absl::string_view to,
                       absl::string_view reason);
absl::Status DeleteJob(Session& session, absl::string_view job, bool force,
                       absl::string_view reason);

}  // namespace matins

#endif  // MATINS_OPS_JOBS_H_
