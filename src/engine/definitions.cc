#include "engine/definitions.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "job/json.h"
#include "job/resolve.h"

namespace matins {
namespace {

// What is worked with at a time, not all that a store holds: a node stays small however many jobs
// there are. What is forgotten is read again, hundreds in a call.
constexpr size_t kKept = 25'000;

}  // namespace

absl::StatusOr<DefinitionPtr> Definitions::Resolve(const std::string& definition) {
  {
    absl::MutexLock lock(&mutex_);
    const auto it = meanings_.find(definition);
    if (it != meanings_.end()) return it->second;
  }
  ASSIGN_OR_RETURN(Job job, StoredJob(definition));
  ASSIGN_OR_RETURN(ResolvedJob resolved, ResolveJob(std::move(job)));
  auto meaning = std::make_shared<const ResolvedJob>(std::move(resolved));
  absl::MutexLock lock(&mutex_);
  if (meanings_.size() >= kKept) meanings_.clear();
  meanings_[definition] = meaning;
  return meaning;
}

void Definitions::Forget() {
  absl::flat_hash_map<std::string, DefinitionPtr> meanings;
  absl::flat_hash_map<std::string, Version> current;
  absl::MutexLock lock(&mutex_);
  meanings_.swap(meanings);
  current_.swap(current);
}

void Definitions::Note(const JobState& state) {
  if (state.versions.empty()) return;
  const JobVersion& newest = state.versions.back();
  Note(state.job, newest.number, newest.definition);
}

void Definitions::Note(const std::string& job, int version, const std::string& definition) {
  absl::MutexLock lock(&mutex_);
  if (current_.size() >= kKept && !current_.contains(job)) current_.clear();
  Version& current = current_[job];
  if (current.number == version && current.definition == definition) return;
  current = {version, definition, nullptr};
}

absl::Status Definitions::Read(Store& store, const std::vector<std::string>& jobs) {
  ASSIGN_OR_RETURN(const std::vector<JobDefinition> read, store.ReadDefinitions(jobs));
  for (const JobDefinition& one : read) Note(one.job, one.version, one.definition);
  return absl::OkStatus();
}

void Definitions::Fetch(Store& store, const std::vector<std::pair<std::string, int>>& jobs) {
  std::set<std::string> unknown;
  {
    absl::MutexLock lock(&mutex_);
    for (const auto& [job, version] : jobs) {
      const auto it = current_.find(job);
      if (it == current_.end() || it->second.number < version) unknown.insert(job);
    }
  }
  if (unknown.size() < 2) return;
  // What cannot be read now is asked for again by itself.
  Read(store, {unknown.begin(), unknown.end()}).IgnoreError();
}

absl::StatusOr<DefinitionPtr> Definitions::Current(Store& store, const std::string& job,
                                                   int version) {
  {
    absl::MutexLock lock(&mutex_);
    const auto it = current_.find(job);
    if (it != current_.end() && it->second.number >= version && it->second.meaning != nullptr) {
      return it->second.meaning;
    }
  }
  const auto known = [&]() -> std::string {
    absl::MutexLock lock(&mutex_);
    const auto it = current_.find(job);
    return it != current_.end() && it->second.number >= version ? it->second.definition : "";
  };
  std::string definition = known();
  if (definition.empty()) {
    RETURN_IF_ERROR(Read(store, {job}));
    definition = known();
  }
  if (definition.empty()) {
    return absl::NotFoundError(absl::StrCat("job ", job, ": version ", version,
                                            " is not in the store; it was deleted meanwhile"));
  }
  ASSIGN_OR_RETURN(DefinitionPtr meaning, Resolve(definition));
  absl::MutexLock lock(&mutex_);
  Version& current = current_[job];
  if (current.definition == definition) current.meaning = meaning;
  return meaning;
}

}  // namespace matins
