#include "engine/live_runs.h"

#include <algorithm>
#include <utility>

#include "engine/timing.h"

namespace matins {
namespace {

bool ByFence(const LiveRunPtr& a, const LiveRunPtr& b) { return a->claim.fence < b->claim.fence; }

}  // namespace

bool LiveRuns::Add(LiveRunPtr run) {
  absl::MutexLock lock(&mutex_);
  Entry entry;
  entry.next_beat = run->definition == nullptr ? absl::InfiniteDuration()
                                               : run->sent + BeatEvery(run->job().lock.ttl);
  entry.last_proof = run->sent;
  const int64_t fence = run->claim.fence;
  entry.run = std::move(run);
  const bool sooner = entry.next_beat < told_;
  told_ = std::min(told_, entry.next_beat);
  runs_[fence] = std::move(entry);
  return sooner;
}

LiveRunPtr LiveRuns::Find(int64_t fence) const {
  absl::MutexLock lock(&mutex_);
  const auto it = runs_.find(fence);
  return it == runs_.end() ? nullptr : it->second.run;
}

void LiveRuns::Remove(int64_t fence) {
  absl::MutexLock lock(&mutex_);
  runs_.erase(fence);
}

int LiveRuns::count() const {
  absl::MutexLock lock(&mutex_);
  return static_cast<int>(runs_.size());
}

std::vector<LiveRunPtr> LiveRuns::All() const {
  absl::MutexLock lock(&mutex_);
  std::vector<LiveRunPtr> all;
  for (const auto& [fence, entry] : runs_) all.push_back(entry.run);
  std::sort(all.begin(), all.end(), ByFence);
  return all;
}

std::vector<LiveRunPtr> LiveRuns::DueBeats(absl::Duration now) const {
  absl::MutexLock lock(&mutex_);
  std::vector<LiveRunPtr> due;
  std::vector<LiveRunPtr> soon;
  for (const auto& [fence, entry] : runs_) {
    if (entry.withheld || entry.next_beat == absl::InfiniteDuration()) continue;
    if (entry.next_beat <= now) {
      due.push_back(entry.run);
    } else if (entry.next_beat <= now + BeatEvery(entry.run->job().lock.ttl) / 4) {
      soon.push_back(entry.run);
    }
  }
  std::sort(due.begin(), due.end(), ByFence);
  std::sort(soon.begin(), soon.end(), ByFence);
  if (!due.empty()) due.insert(due.end(), soon.begin(), soon.end());
  return due;
}

absl::Duration LiveRuns::NextBeat() {
  absl::MutexLock lock(&mutex_);
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [fence, entry] : runs_) {
    if (!entry.withheld) next = std::min(next, entry.next_beat);
  }
  told_ = next;
  return next;
}

void LiveRuns::Beaten(int64_t fence, absl::Duration sent) {
  absl::MutexLock lock(&mutex_);
  const auto it = runs_.find(fence);
  if (it == runs_.end()) return;
  it->second.next_beat = sent + BeatEvery(it->second.run->job().lock.ttl);
  it->second.last_proof = std::max(it->second.last_proof, sent);
}

absl::Duration LiveRuns::LastProof(int64_t fence) const {
  absl::MutexLock lock(&mutex_);
  const auto it = runs_.find(fence);
  return it == runs_.end() ? absl::ZeroDuration() : it->second.last_proof;
}

void LiveRuns::BeatAgainAt(int64_t fence, absl::Duration again) {
  absl::MutexLock lock(&mutex_);
  const auto it = runs_.find(fence);
  if (it != runs_.end()) it->second.next_beat = again;
}

bool LiveRuns::WithholdBeats(int64_t fence) {
  absl::MutexLock lock(&mutex_);
  const auto it = runs_.find(fence);
  return it != runs_.end() && !std::exchange(it->second.withheld, true);
}

void LiveRuns::AllowBeats(int64_t fence) {
  absl::MutexLock lock(&mutex_);
  const auto it = runs_.find(fence);
  if (it != runs_.end()) it->second.withheld = false;
}

bool LiveRuns::BeatsWithheld(int64_t fence) const {
  absl::MutexLock lock(&mutex_);
  const auto it = runs_.find(fence);
  return it == runs_.end() || it->second.withheld;
}

}  // namespace matins
