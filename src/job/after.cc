#include "job/after.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace matins {
namespace {

using Waits = std::map<std::string, std::vector<std::string>>;

// The way from `start` back to itself, if there is one: {start, a, b, start}. Breadth first, so
// that a long chain needs no deep stack.
std::vector<std::string> Circle(const Waits& waits, const std::string& start) {
  std::map<std::string, std::string> from;
  std::vector<std::string> queue = {start};
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto found = waits.find(queue[i]);
    if (found == waits.end()) continue;
    for (const std::string& next : found->second) {
      if (next == start) {
        std::vector<std::string> way = {start};
        for (std::string at = queue[i]; at != start; at = from[at]) way.push_back(at);
        way.push_back(start);
        return {way.rbegin(), way.rend()};
      }
      if (from.emplace(next, queue[i]).second) queue.push_back(next);
    }
  }
  return {};
}

}  // namespace

void CheckAfter(const std::vector<JobPlace>& jobs, const std::set<std::string>& known, bool warn,
                Problems& problems) {
  Waits waits;
  for (const JobPlace& place : jobs) {
    for (const After& after : place.job.after) waits[place.job.name].push_back(after.job);
  }
  std::set<std::string> told;
  for (const JobPlace& place : jobs) {
    for (const After& after : place.job.after) {
      if (known.count(after.job) > 0 || !warn) continue;
      problems.Warn(place.after, absl::StrCat("after names '", after.job, "', which is not here"),
                    "it waits until such a job is applied and DONE; check the name");
    }
    if (told.count(place.job.name) > 0) continue;
    const std::vector<std::string> circle = Circle(waits, place.job.name);
    if (circle.size() < 3) continue;  // a job that waits for itself is its own contradiction
    told.insert(circle.begin(), circle.end());
    problems.Error(place.after,
                   absl::StrCat("jobs wait for each other: ", absl::StrJoin(circle, " after ")),
                   "take one of these after entries out");
  }
}

}  // namespace matins
