#include "job/put_in.h"

#include <algorithm>
#include <utility>

namespace matins {
namespace {

constexpr absl::Duration kTick = absl::Nanoseconds(1);
// Around a clock change the order of instants is not that of the times on the wall.
constexpr int kChangeSeconds = 3 * 3600;

int64_t TimeOfDay(absl::CivilSecond t) { return t - absl::CivilSecond(absl::CivilDay(t)); }

std::optional<Fire> FirstOf(const Schedule& schedule, absl::CivilDay day) {
  std::optional<Fire> fire = schedule.Next(DayStart(day, schedule.zone()) - kTick);
  while (fire && absl::CivilDay(fire->nominal) < day) fire = schedule.Next(fire->at);
  if (fire && absl::CivilDay(fire->nominal) == day) return fire;
  return std::nullopt;
}

std::optional<Fire> LastOf(const Schedule& schedule, absl::CivilDay day) {
  std::optional<Fire> fire = schedule.Previous(DayStart(day + 1, schedule.zone()) + kTick);
  while (fire && absl::CivilDay(fire->nominal) > day) fire = schedule.Previous(fire->at);
  if (fire && absl::CivilDay(fire->nominal) == day) return fire;
  return std::nullopt;
}

bool IsWeekend(absl::CivilDay day) { return absl::GetWeekday(day) >= absl::Weekday::saturday; }

// The Friday whose times of day a weekend day borrows.
absl::CivilDay FridayBefore(absl::CivilDay day) {
  return absl::PrevWeekday(day, absl::Weekday::friday);
}

// The instants of a local time under the job's rule for clock changes; at most two.
std::pair<std::optional<absl::Time>, std::optional<absl::Time>> InstantsOf(
    const Job& job, const absl::TimeZone& zone, absl::CivilSecond local) {
  const absl::TimeZone::TimeInfo info = zone.At(local);
  if (info.kind == absl::TimeZone::TimeInfo::SKIPPED) {
    if (job.dst.gap == GapRule::kSkip) return {};
    return {job.dst.gap == GapRule::kNext ? info.trans : info.pre, std::nullopt};
  }
  if (info.kind == absl::TimeZone::TimeInfo::REPEATED) {
    if (job.dst.overlap == OverlapRule::kBoth) return {info.pre, info.post};
    return {job.dst.overlap == OverlapRule::kFirst ? info.pre : info.post, std::nullopt};
  }
  return {info.pre, std::nullopt};
}

bool ClockChanges(absl::CivilDay day, const absl::TimeZone& zone) {
  return DayStart(day + 1, zone) - DayStart(day, zone) != absl::Hours(24);
}

// Where on the model day the search begins, so that a day of many fires is not walked from its
// start each time.
absl::CivilSecond StartOn(absl::CivilDay model, absl::CivilDay day, absl::Time near,
                          const absl::TimeZone& zone, int back) {
  const absl::CivilSecond local = absl::ToCivilSecond(near, zone);
  const int64_t into = std::clamp<int64_t>(local - absl::CivilSecond(day), 0, 24 * 3600);
  return absl::CivilSecond(model) + (into - back);
}

}  // namespace

bool IsPutIn(const ResolvedJob& job, absl::CivilDay day) {
  if (!IsWeekend(day) || !job.calendar->Covers(day) || !job.calendar->IsBusinessDay(day)) {
    return false;
  }
  if (FirstOf(job.schedule, day)) return false;
  const absl::CivilDay friday = FridayBefore(day);
  const std::optional<Fire> first = FirstOf(job.schedule, friday);
  if (!first) return false;
  const std::optional<Fire> last = LastOf(job.schedule, friday);
  for (int back = 1; back <= 4; ++back) {
    const std::optional<Fire> a = FirstOf(job.schedule, friday - back);
    if (!a || TimeOfDay(a->nominal) != TimeOfDay(first->nominal)) return false;
    const std::optional<Fire> b = LastOf(job.schedule, friday - back);
    if (TimeOfDay(b->nominal) != TimeOfDay(last->nominal)) return false;
  }
  return true;
}

std::optional<Fire> NextOnPutIn(const ResolvedJob& job, absl::CivilDay day, absl::Time after) {
  const absl::TimeZone& zone = job.schedule.zone();
  const absl::CivilDay friday = FridayBefore(day);
  const int slack = ClockChanges(day, zone) ? kChangeSeconds : 0;
  const absl::CivilSecond from = StartOn(friday, day, after, zone, slack + 1);
  std::optional<Fire> best;
  for (std::optional<Fire> model = job.schedule.Next(absl::FromCivil(from, zone) - kTick);
       model && absl::CivilDay(model->nominal) <= friday; model = job.schedule.Next(model->at)) {
    if (absl::CivilDay(model->nominal) < friday) continue;
    const absl::CivilSecond nominal = absl::CivilSecond(day) + TimeOfDay(model->nominal);
    if (best && nominal - best->nominal > slack) break;
    const auto [one, two] = InstantsOf(job.job, zone, nominal);
    for (const std::optional<absl::Time>& at : {one, two}) {
      if (at && *at > after && (!best || *at < best->at)) best = Fire{*at, nominal};
    }
  }
  return best;
}

std::optional<Fire> PreviousOnPutIn(const ResolvedJob& job, absl::CivilDay day, absl::Time before) {
  const absl::TimeZone& zone = job.schedule.zone();
  const absl::CivilDay friday = FridayBefore(day);
  const int slack = ClockChanges(day, zone) ? kChangeSeconds : 0;
  const absl::CivilSecond from = StartOn(friday, day, before, zone, -slack - 1);
  std::optional<Fire> best;
  for (std::optional<Fire> model = job.schedule.Previous(absl::FromCivil(from, zone) + kTick);
       model && absl::CivilDay(model->nominal) >= friday;
       model = job.schedule.Previous(model->at)) {
    if (absl::CivilDay(model->nominal) > friday) continue;
    const absl::CivilSecond nominal = absl::CivilSecond(day) + TimeOfDay(model->nominal);
    if (best && best->nominal - nominal > slack) break;
    const auto [one, two] = InstantsOf(job.job, zone, nominal);
    for (const std::optional<absl::Time>& at : {one, two}) {
      // Of times that fall together at the end of a gap the earliest is the nominal one.
      if (at && *at < before && (!best || *at >= best->at)) best = Fire{*at, nominal};
    }
  }
  return best;
}

}  // namespace matins
