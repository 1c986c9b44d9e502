// A job as its version stores it: one line of JSON, the job file's own keys and texts.
#ifndef MATINS_JOB_JSON_H_
#define MATINS_JOB_JSON_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "job/job.h"

namespace matins {

// Canonical: equal jobs give equal bytes, and different jobs different ones. Keys stand in the
// order of job.h; what has its default is left out, so that a new key of a later program makes no
// new version of jobs that do not use it. A default, once released, is therefore never changed.
std::string JobToJson(const Job& job);

// Strict: what JobToJson writes, and nothing that ParseJobFile would refuse. InvalidArgument names
// the key, the reason and the mend.
absl::StatusOr<Job> JobFromJson(absl::string_view json);
// The same of a definition that a store has, which was checked when it was applied: what its values
// mean together is not looked at again. For those who read thousands; ResolveJob still refuses what
// has no meaning at all.
absl::StatusOr<Job> StoredJob(absl::string_view json);

// The beat on which a stored job is audited, without the rest: for those who go through all jobs.
// Nothing: it has none, or is no definition.
struct AuditWords {
  std::string expression, zone;
};
std::optional<AuditWords> StoredAudit(absl::string_view json);

// A stored job of another name: every other byte stays, so that the renamed file is the same
// version. What is no object stays as it is.
std::string RenamedJson(absl::string_view json, absl::string_view name);

// Whether ParseJobFile could have answered the job: for jobs that a program makes. InvalidArgument
// as JobFromJson.
absl::Status ValidateJob(const Job& job);

// SHA-256 in hex of the jobs' definitions, whatever their order.
std::string DigestOf(absl::Span<const Job> jobs);

}  // namespace matins

#endif  // MATINS_JOB_JSON_H_
