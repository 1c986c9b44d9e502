#include "ops/attempts.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

constexpr int kMostAttempts = 1000;
constexpr int kMostEvents = 100'000;

// The run that a zombie's event is about: its detail is the fence, or says it.
int64_t FenceOf(const EventRow& event) {
  int64_t fence = 0;
  if (absl::SimpleAtoi(event.detail, &fence)) return fence;
  const nlohmann::json detail = nlohmann::json::parse(event.detail, nullptr, false);
  if (!detail.is_object() || !detail.contains("fence")) return 0;
  const nlohmann::json& said = detail["fence"];
  if (said.is_number_integer()) return said.get<int64_t>();
  if (said.is_string() && absl::SimpleAtoi(said.get<std::string>(), &fence)) return fence;
  return 0;
}

void AddEvents(const std::vector<EventRow>& newest_first, PeriodStory& story) {
  std::map<int64_t, AttemptStory*> by_fence;
  for (AttemptStory& attempt : story.attempts) by_fence[attempt.run.fence] = &attempt;
  for (auto it = newest_first.rbegin(); it != newest_first.rend(); ++it) {
    const EventRow& event = *it;
    if (event.period != story.key.period) continue;
    if (event.kind == "reopened") story.reopened.push_back(event);
    if (event.kind != "zombie") continue;
    const auto attempt = by_fence.find(FenceOf(event));
    if (attempt == by_fence.end()) continue;
    attempt->second->refusals.push_back({event.at, event.who, event.why});
  }
}

}  // namespace

absl::StatusOr<std::vector<PeriodStory>> ReadStories(Session& session, const Planned& planned,
                                                     const std::vector<std::string>& periods) {
  const std::string& job = planned.state().job;
  ASSIGN_OR_RETURN(const std::vector<EventRow> events, session.acts().ReadEvents(job, kMostEvents));
  std::vector<PeriodStory> stories;
  for (const std::string& period : periods) {
    PeriodStory story;
    story.key = {job, period};
    story.commit = planned.current().job.commit;
    story.recovery = planned.current().job.recovery;
    story.now = planned.now();
    const absl::StatusOr<PeriodRow> row = ReadRow(session, story.key);
    if (!row.ok() && !absl::IsNotFound(row.status())) return row.status();
    if (row.ok()) story.row = *row;
    RunFilter filter;
    filter.job = job;
    filter.period = period;
    filter.limit = kMostAttempts;
    ASSIGN_OR_RETURN(const std::vector<RunRow> runs, session.acts().ReadRuns(filter));
    for (auto it = runs.rbegin(); it != runs.rend(); ++it) {
      AttemptStory& attempt = story.attempts.emplace_back();
      attempt.run = *it;
      const bool alive =
          row.ok() && row->status == PeriodStatus::kRunning && row->fence == it->fence;
      if (alive) attempt.lease_until = row->lease_until;
    }
    AddEvents(events, story);
    stories.push_back(std::move(story));
  }
  return stories;
}

absl::StatusOr<std::vector<std::string>> PeriodsOfDate(Session& session, const Planned& planned,
                                                       absl::string_view date) {
  const absl::StatusOr<std::string> key = KeyFor(planned.current(), date);
  if (key.ok()) return std::vector<std::string>{*key};
  // A date where a day holds many periods.
  const absl::StatusOr<absl::CivilDay> day = ParseDay(date);
  if (!day.ok()) return key.status();
  RowFilter filter;
  filter.job = planned.state().job;
  filter.from = filter.to = *day;
  filter.limit = 10'000;
  ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, session.acts().ReadRows(filter));
  std::vector<std::string> periods;
  for (const PeriodRow& row : rows) periods.push_back(row.key.period);
  return periods;
}

}  // namespace matins
