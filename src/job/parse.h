// Job files: YAML to valid jobs (docs/jobs.md). Every mistake of a file is reported, with file,
// line, column, reason and mend; nothing of a file with one is used.
#ifndef MATINS_JOB_PARSE_H_
#define MATINS_JOB_PARSE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/alerts.h"
#include "job/files.h"
#include "job/job.h"
#include "job/limits.h"
#include "job/problem.h"
#include "job/read_job.h"

namespace matins {

struct JobFile {
  std::string store;                 // as written; empty: the file names none
  std::string redis;                 // the quick door's, as written; empty: the file names none
  std::optional<bool> journal_full;  // nothing: the file does not say
  std::optional<int> global_limit;   // limits.global, which stands among `limits` too
  // The file's whole set, sorted; nothing: the file does not speak of limits.
  std::optional<std::vector<LimitRule>> limits;
  std::string audit;   // when the audit of all jobs looks, in UTC; empty: not said
  AlertConfig alerts;  // `alerts` and `ping`
  CalendarSet calendars;
  std::vector<Job> jobs;  // in the order of the files; no name twice
  std::string digest;     // of the jobs' definitions: equal jobs, equal digest
  std::vector<Problem> warnings;
};

struct ParseOptions {
  FileSource* files = &SystemFiles();
  // Warnings look at the two years from here; InfinitePast: no warnings.
  absl::Time now = absl::InfinitePast();
};

// InvalidArgument with a line for each error. `path` "-" is standard input.
absl::StatusOr<JobFile> ParseJobFile(const std::string& path, const ParseOptions& options = {});
// The same of a text; `name` stands for the file in messages, and includes and calendars are sought
// beside it.
absl::StatusOr<JobFile> ParseJobText(const std::string& name, absl::string_view text,
                                     const ParseOptions& options = {});

// All that there is to say of a file, errors and warnings in the order of the file; `file` where
// there is no error. For `matins lint`.
struct LintResult {
  std::vector<Problem> problems;
  std::optional<JobFile> file;
};
LintResult LintJobFile(const std::string& path, const ParseOptions& options);
LintResult LintJobText(const std::string& name, absl::string_view text,
                       const ParseOptions& options);

}  // namespace matins

#endif  // MATINS_JOB_PARSE_H_
