#include "plan/world_test_support.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "job/words.h"

namespace matins {
namespace {

// A test that is itself wrong ends at once.
void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "test support: %s\n", what.c_str());
  std::abort();
}

bool IsOpen(const PeriodRow& row) {
  return row.status == PeriodStatus::kPlanned || row.status == PeriodStatus::kRunning ||
         row.status == PeriodStatus::kFailed;
}

std::string TextOf(const PeriodRow& row) {
  std::string text(Word(row.status));
  if (row.status == PeriodStatus::kSkipped) absl::StrAppend(&text, " ", row.reason);
  if (row.status == PeriodStatus::kPlanned && row.backfill) text += " backfill";
  return text;
}

}  // namespace

void PrintTo(const Intent& intent, std::ostream* out) {
  *out << static_cast<int>(intent.kind) << ' ' << intent.key.period << ' ' << intent.skip_reason;
}

absl::Time At(absl::string_view text) {
  const absl::StatusOr<absl::Time> at = ParseInstant(text);
  Require(at.ok(), at.status().ToString());
  return *at;
}

absl::TimeZone Zone(absl::string_view name) {
  const absl::StatusOr<absl::TimeZone> zone = LoadZone(name);
  Require(zone.ok(), zone.status().ToString());
  return *zone;
}

Job JobOf(absl::string_view schedule, absl::string_view timezone) {
  Job job;
  job.name = "j";
  job.schedule = std::string(schedule);
  job.timezone = std::string(timezone);
  job.misfire = Misfire::kEach;
  return job;
}

ResolvedJob Resolved(const Job& job, absl::string_view calendar_days,
                     std::optional<absl::CivilDay> calendar_until) {
  const absl::TimeZone zone = Zone(job.timezone);
  std::optional<Calendar> calendar;
  if (!job.calendar.empty()) {
    absl::StatusOr<Calendar> parsed = Calendar::Parse(job.calendar, calendar_days, calendar_until);
    Require(parsed.ok(), parsed.status().ToString());
    calendar = *std::move(parsed);
  }
  absl::StatusOr<Schedule> schedule =
      job.at
          ? Schedule::At(*job.at, zone)
          : Schedule::Parse(job.schedule, {.dialect = job.dialect, .zone = zone, .dst = job.dst});
  Require(schedule.ok(), schedule.status().ToString());
  PeriodRule rule{.kind = job.period, .shift = job.biz_date, .calendar = calendar, .zone = zone};
  return {job, *std::move(schedule), std::move(rule), std::move(calendar)};
}

World::World(ResolvedJob job, absl::Time first_sight) {
  state.job = job.job.name;
  state.first_sight = next_look = first_sight;
  Change(std::move(job), absl::InfinitePast());
}

void World::Change(ResolvedJob job, absl::Time from) {
  const int number = static_cast<int>(versions_.size()) + 1;
  jobs_.push_back(std::move(job));
  versions_.push_back({number, from, &jobs_.back()});
  state.versions.push_back({number, from, ""});
  state.cursor = std::min(state.cursor, from - absl::Microseconds(1));
  ++state.revision;
}

JobState World::State() const {
  JobState answer = state;
  const absl::Time from = state.gap_from ? std::min(state.cursor, *state.gap_from) : state.cursor;
  for (const auto& [key, row] : rows) {
    if (IsOpen(row) || (state.gap_from && row.due >= *state.gap_from)) answer.rows.push_back(row);
  }
  std::stable_sort(answer.rows.begin(), answer.rows.end(),
                   [](const PeriodRow& a, const PeriodRow& b) { return a.due < b.due; });
  for (const SkipSpan& span : spans) {
    if (span.to >= from) answer.spans.push_back(span);
  }
  answer.versions = VersionsSince(state.versions, from, answer.rows);
  return answer;
}

PlanInput World::Input(absl::Time now, std::optional<Trigger> trigger) {
  read_ = State();
  const absl::Span<const VersionInForce> versions = versions_;
  return {.state = &read_,
          .versions = versions.last(read_.versions.size()),
          .now = now,
          .ahead = ahead,
          .trigger = trigger};
}

absl::StatusOr<PlanWrite> World::TryPlan(absl::Time now, std::optional<Trigger> trigger) {
  return PlanJob(Input(now, trigger));
}

PlanWrite World::Plan(absl::Time now, std::optional<Trigger> trigger) {
  PlanWrite all;
  do {
    absl::StatusOr<PlanWrite> write = TryPlan(now, trigger);
    Require(write.ok(), write.status().ToString());
    Write(*write, now);
    all.intents.insert(all.intents.end(), write->intents.begin(), write->intents.end());
    all.spans.insert(all.spans.end(), write->spans.begin(), write->spans.end());
    all.cursor = write->cursor;
    all.next_look = write->next_look;
    all.gaps_filled |= write->gaps_filled;
    all.triggered |= write->triggered;
    trigger.reset();
  } while (next_look <= now);
  return all;
}

void World::PlanUntil(absl::Time until) {
  while (next_look <= until) Plan(next_look);
}

void World::Write(const PlanWrite& write, absl::Time now) {
  Require(write.job == state.job, write.job);
  Require(write.expected_revision == state.revision, "revision moved");
  for (const Intent& intent : write.intents) WriteIntent(intent, now);
  spans.insert(spans.end(), write.spans.begin(), write.spans.end());
  state.cursor = write.cursor;
  next_look = write.next_look;
  if (write.gaps_filled) state.gap_from = write.next_gap;
  if (write.triggered) state.pending.reset();
  ++state.revision;
}

void World::WriteIntent(const Intent& intent, absl::Time now) {
  const auto found = rows.find(intent.key.period);
  if (intent.kind == Intent::Kind::kInsert) {
    if (found != rows.end()) return;
    PeriodRow row = PlannedRow(intent);
    row.changed_at = now;
    rows[intent.key.period] = std::move(row);
    return;
  }
  Require(found != rows.end(), intent.key.period);
  PeriodRow& row = found->second;
  const bool failed = row.status == PeriodStatus::kFailed && !row.held;
  const bool planned = row.status == PeriodStatus::kPlanned;
  row.changed_at = now;
  if (intent.kind == Intent::Kind::kSkip) {
    Require(failed || planned, intent.key.period);
    row.status = PeriodStatus::kSkipped;
    row.reason = intent.skip_reason;
    row.by = intent.by;
    return;
  }
  Require(intent.kind == Intent::Kind::kReattempt ? failed : planned, intent.key.period);
  if (intent.kind == Intent::Kind::kReattempt) row.attempts = 0;
  row.status = PeriodStatus::kPlanned;
  row.start_by = intent.start_by;
  row.backfill = intent.backfill;
}

PeriodRow& World::Mutable(absl::string_view period) {
  const auto found = rows.find(period);
  Require(found != rows.end(), absl::StrCat("no row ", period));
  return found->second;
}

const PeriodRow& World::Row(absl::string_view period) const {
  return const_cast<World*>(this)->Mutable(period);
}

void World::Run(absl::string_view period, absl::Time at) {
  PeriodRow& row = Mutable(period);
  Require(row.status == PeriodStatus::kPlanned, std::string(period));
  row.status = PeriodStatus::kRunning;
  row.claimed_at = row.changed_at = at;
  row.lease_until = at + absl::Seconds(30);
  ++row.attempts;
  ++row.attempts_total;
}

void World::Done(absl::string_view period, absl::Time at) {
  PeriodRow& row = Mutable(period);
  row.status = PeriodStatus::kDone;
  row.finished_at = row.changed_at = at;
}

void World::Fail(absl::string_view period, absl::Time at, bool held) {
  PeriodRow& row = Mutable(period);
  row.status = PeriodStatus::kFailed;
  row.held = held;
  row.finished_at = row.changed_at = at;
  if (row.attempts_total == 0) row.attempts = row.attempts_total = 1;
}

void World::Lose(absl::string_view period) {
  PeriodRow& row = Mutable(period);
  row.status = PeriodStatus::kPlanned;
  --row.attempts;
  ++row.losses;
}

void World::Delete(absl::string_view period) {
  const absl::Time due = Row(period).due;
  rows.erase(rows.find(period));
  if (due <= state.floor) return;
  state.gap_from = state.gap_from ? std::min(*state.gap_from, due) : due;
  ++state.revision;
}

std::string World::Told(absl::string_view period) const {
  const auto found = rows.find(period);
  return found == rows.end() ? "none" : TextOf(found->second);
}

std::vector<std::string> World::Periods(absl::string_view told) const {
  std::vector<const PeriodRow*> found;
  for (const auto& [key, row] : rows) {
    if (TextOf(row) == told) found.push_back(&row);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const PeriodRow* a, const PeriodRow* b) { return a->due < b->due; });
  std::vector<std::string> periods;
  for (const PeriodRow* row : found) periods.push_back(row->key.period);
  return periods;
}

int64_t World::Count(absl::string_view told) const {
  int64_t count = static_cast<int64_t>(Periods(told).size());
  for (const SkipSpan& span : spans) {
    if (absl::StrCat("SKIPPED ", span.reason) == told) count += span.count;
  }
  return count;
}

}  // namespace matins
