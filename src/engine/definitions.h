// What the versions of jobs mean: parsed once, shared by the lanes.
#ifndef MATINS_ENGINE_DEFINITIONS_H_
#define MATINS_ENGINE_DEFINITIONS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "job/job.h"
#include "job/job_state.h"
#include "store/store.h"

namespace matins {

using DefinitionPtr = std::shared_ptr<const ResolvedJob>;

// Thread-safe. Keyed by the canonical text itself: equal bytes mean the same, whatever the job's
// name or version became since.
class Definitions {
 public:
  // The meaning of a canonical definition. Errors: as StoredJob's and ResolveJob's.
  absl::StatusOr<DefinitionPtr> Resolve(const std::string& definition);
  // The job's current version, read from the store where this node has not seen it yet. `version`
  // is what a claim says must be run with; an older one in the cache is not taken for it.
  absl::StatusOr<DefinitionPtr> Current(Store& store, const std::string& job, int version);
  // Reads in one call those of `jobs` (with versions as above) that are not known yet. What cannot
  // be read is asked for by Current again, one by one.
  void Fetch(Store& store, const std::vector<std::pair<std::string, int>>& jobs);
  // Forgets all: what is asked for again is read and parsed again. Meanings in use live on.
  void Forget();
  // Remembers what `state` says is current.
  void Note(const JobState& state);

 private:
  struct Version {
    int number = 0;
    std::string definition;
    DefinitionPtr meaning;  // null: not asked for yet
  };
  void Note(const std::string& job, int version, const std::string& definition);
  absl::Status Read(Store& store, const std::vector<std::string>& jobs);

  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, DefinitionPtr> meanings_ ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<std::string, Version> current_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace matins

#endif  // MATINS_ENGINE_DEFINITIONS_H_
