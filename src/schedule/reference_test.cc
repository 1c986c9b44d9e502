// A second implementation, slow and obviously right: it walks over real instants, one after the
// other, and asks of each what the clock on the wall shows. Compared with Schedule on random
// expressions around clock changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/time.h"
#include "schedule/schedule.h"

namespace matins {
namespace {

// A field as text and as the values that it means.
struct RandomField {
  std::string text;
  std::set<int> values;
  bool wild = false;     // "*" or "*/n"
  bool starred = false;  // begins with "*"
};

int Pick(Random& random, int least, int most) {
  return least + static_cast<int>(random.Below(most - least + 1));
}

RandomField Star(int min, int max, int step) {
  RandomField field{step == 1 ? "*" : absl::StrCat("*/", step), {}, true, true};
  for (int v = min; v <= max; v += step) field.values.insert(v);
  return field;
}

RandomField MakeField(Random& random, int min, int max, int star_one_in) {
  if (random.OneIn(star_one_in)) return Star(min, max, 1);
  if (random.OneIn(star_one_in)) return Star(min, max, Pick(random, 1, max));
  RandomField field;
  std::vector<std::string> items;
  for (int i = Pick(random, 1, 3); i > 0; --i) {
    const int first = Pick(random, min, max), last = Pick(random, min, max);
    const int step = random.OneIn(2) ? 1 : Pick(random, 1, max);
    if (random.OneIn(2)) {
      items.push_back(absl::StrCat(first));
      field.values.insert(first);
      continue;
    }
    items.push_back(absl::StrCat(first, "-", last, step == 1 ? "" : absl::StrCat("/", step)));
    // From `first` on, round the end where the range wraps.
    for (int v = first, k = 0;; ++k) {
      if (k % step == 0) field.values.insert(v);
      if (v == last) break;
      v = v == max ? min : v + 1;
    }
  }
  field.text = absl::StrJoin(items, ",");
  return field;
}

struct RandomCron {
  bool seconds = false;
  RandomField second, minute, hour, day, month, weekday;
  DstRule dst;

  std::string Text() const {
    return absl::StrCat(seconds ? absl::StrCat(second.text, " ") : "", minute.text, " ", hour.text,
                        " ", day.text, " ", month.text, " ", weekday.text);
  }
  bool interval() const { return minute.wild || hour.wild || (seconds && second.wild); }
  bool Matches(absl::CivilSecond t) const {
    if (second.values.count(t.second()) == 0 || minute.values.count(t.minute()) == 0 ||
        hour.values.count(t.hour()) == 0 || month.values.count(t.month()) == 0) {
      return false;
    }
    const int weekday_number = (static_cast<int>(absl::GetWeekday(t)) + 1) % 7;
    const bool by_day = day.values.count(t.day()) > 0;
    const bool by_weekday = weekday.values.count(weekday_number) > 0;
    return day.starred || weekday.starred ? by_day && by_weekday : by_day || by_weekday;
  }
};

RandomCron MakeCron(Random& random, bool seconds) {
  RandomCron cron;
  cron.seconds = seconds;
  cron.second = seconds ? MakeField(random, 0, 59, 8) : RandomField{"0", {0}, false, false};
  cron.minute = MakeField(random, 0, 59, 6);
  cron.hour = MakeField(random, 0, 23, 6);
  cron.day = MakeField(random, 1, 31, 2);
  cron.month = MakeField(random, 1, 12, 1);
  cron.weekday = MakeField(random, 0, 6, 2);
  cron.dst.gap = static_cast<GapRule>(random.Below(3));
  cron.dst.overlap = static_cast<OverlapRule>(random.Below(3));
  if (random.OneIn(2)) cron.dst = DstRule{};
  return cron;
}

// All fires in (from, to), by walking in steps of `step` from a little before to a little after.
std::map<absl::Time, absl::CivilSecond> Walk(const RandomCron& cron, const absl::TimeZone& zone,
                                             absl::Time from, absl::Time to, absl::Duration step) {
  const int64_t step_seconds = absl::ToInt64Seconds(step);
  const int64_t most = 3 * 3600;
  std::map<absl::Time, absl::CivilSecond> fires;
  const auto fire = [&](absl::Time at, absl::CivilSecond nominal) {
    const auto [it, is_new] = fires.emplace(at, nominal);
    if (!is_new) it->second = std::min(it->second, nominal);
  };
  struct Shown {
    absl::Time at;
    absl::CivilSecond local;
  };
  std::vector<Shown> shown;
  std::unordered_map<int64_t, std::pair<absl::Time, absl::Time>> first_and_last;
  const auto key = [](absl::CivilSecond local) { return local - absl::CivilSecond(); };
  for (absl::Time t = from - absl::Hours(7); t < to + absl::Hours(7); t += step) {
    shown.push_back({t, absl::ToCivilSecond(t, zone)});
    first_and_last.emplace(key(shown.back().local), std::pair(t, t)).first->second.second = t;
  }
  for (size_t i = 1; i < shown.size(); ++i) {
    const auto [t, local] = shown[i];
    const absl::CivilSecond expected = shown[i - 1].local + step_seconds;
    if (!cron.interval() && local > expected && local - expected <= most &&
        cron.dst.gap != GapRule::kSkip) {
      for (absl::CivilSecond missing = expected; missing < local; missing += step_seconds) {
        if (!cron.Matches(missing)) continue;
        fire(cron.dst.gap == GapRule::kNext ? t : t + absl::Seconds(missing - expected), missing);
      }
    }
    if (!cron.Matches(local)) continue;
    // Shown twice, by a change of no more than three hours.
    const auto [first, last] = first_and_last[key(local)];
    if (!cron.interval() && last > first && last - first <= absl::Seconds(most)) {
      if (cron.dst.overlap == OverlapRule::kFirst && t != first) continue;
      if (cron.dst.overlap == OverlapRule::kSecond && t != last) continue;
    }
    fire(t, local);
  }
  fires.erase(fires.begin(), fires.upper_bound(from));
  fires.erase(fires.lower_bound(to), fires.end());
  return fires;
}

std::string Listing(const std::vector<Fire>& fires) {
  std::string text;
  for (const Fire& fire : fires) {
    absl::StrAppend(&text, FormatInstant(fire.at), " (", absl::FormatCivilTime(fire.nominal), ") ");
  }
  return text;
}

void ExpectSameAsWalk(const RandomCron& cron, const char* zone_name, absl::Time from, absl::Time to,
                      absl::Duration step) {
  const absl::TimeZone zone = *LoadZone(zone_name);
  const auto schedule = Schedule::Parse(
      cron.Text(), {cron.seconds ? Dialect::kSeconds6 : Dialect::kVixie5, zone, cron.dst});
  if (!schedule.ok()) return;  // dates that never come are another test's matter
  std::vector<Fire> wanted, found, backwards;
  for (const auto& [at, nominal] : Walk(cron, zone, from, to, step))
    wanted.push_back({at, nominal});
  for (auto fire = schedule->Next(from); fire.has_value() && fire->at < to;
       fire = schedule->Next(fire->at)) {
    found.push_back(*fire);
  }
  for (auto fire = schedule->Previous(to); fire.has_value() && fire->at > from;
       fire = schedule->Previous(fire->at)) {
    backwards.push_back(*fire);
  }
  std::reverse(backwards.begin(), backwards.end());
  const std::string where = absl::StrCat(
      "'", cron.Text(), "' in ", zone_name, " from ", FormatInstant(from), " gap rule ",
      static_cast<int>(cron.dst.gap), " overlap rule ", static_cast<int>(cron.dst.overlap));
  ASSERT_EQ(Listing(found), Listing(wanted)) << where;
  ASSERT_EQ(Listing(backwards), Listing(wanted)) << where << ", backwards";
}

// Zones and instants at which their clocks change, every kind of change among them: half an hour,
// two hours, at midnight, a day left out, rules far in the future, a change of the standard time.
struct Change {
  const char* zone;
  const char* at;
};
constexpr Change kChanges[] = {{"America/New_York", "2026-03-08T07:00:00Z"},
                               {"America/New_York", "2026-11-01T06:00:00Z"},
                               {"America/New_York", "2095-03-13T07:00:00Z"},
                               {"Australia/Lord_Howe", "2026-04-04T15:00:00Z"},
                               {"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
                               {"Antarctica/Troll", "2026-03-29T01:00:00Z"},
                               {"Antarctica/Troll", "2026-10-25T01:00:00Z"},
                               {"Africa/Cairo", "2026-04-23T22:00:00Z"},
                               {"Africa/Cairo", "2026-10-29T21:00:00Z"},
                               {"America/Santiago", "2026-09-06T04:00:00Z"},
                               {"America/Santiago", "2026-04-05T03:00:00Z"},
                               {"America/Sao_Paulo", "2018-11-04T03:00:00Z"},
                               {"Africa/Casablanca", "2026-02-15T02:00:00Z"},
                               {"Africa/Casablanca", "2026-03-22T02:00:00Z"},
                               {"Pacific/Apia", "2011-12-30T10:00:00Z"},
                               {"Pacific/Kwajalein", "1993-08-21T12:00:00Z"},
                               {"Asia/Kathmandu", "1985-12-31T18:30:00Z"},
                               {"America/Nuuk", "2026-03-29T01:00:00Z"},
                               {"America/Caracas", "2016-05-01T07:00:00Z"},
                               {"Europe/London", "2026-10-25T01:00:00Z"},
                               {"Asia/Pyongyang", "2015-08-14T15:00:00Z"},
                               {"Antarctica/Casey", "2010-03-04T15:00:00Z"},
                               {"Europe/Volgograd", "2018-10-27T22:00:00Z"},
                               {"UTC", "2028-02-28T23:00:00Z"}};

TEST(Reference, FiveFieldsAgreeWithWalkingMinuteByMinute) {
  SeededRandom random(20261129);
  for (int i = 0; i < 600; ++i) {
    const RandomCron cron = MakeCron(random, false);
    const Change& change = kChanges[random.Below(std::size(kChanges))];
    const absl::Time from =
        *ParseInstant(change.at) - absl::Minutes(Pick(random, -200, 26 * 60)) -
        (random.OneIn(2) ? absl::ZeroDuration()
                         : absl::Seconds(absl::ToUnixSeconds(*ParseInstant(change.at)) % 60));
    ExpectSameAsWalk(cron, change.zone, from, from + absl::Hours(50), absl::Minutes(1));
    if (HasFatalFailure()) return;
  }
}

TEST(Reference, SixFieldsAgreeWithWalkingSecondBySecond) {
  SeededRandom random(19700101);
  for (int i = 0; i < 30; ++i) {
    const RandomCron cron = MakeCron(random, true);
    const Change& change = kChanges[random.Below(std::size(kChanges))];
    const absl::Time from = *ParseInstant(change.at) - absl::Seconds(Pick(random, 0, 3 * 3600));
    ExpectSameAsWalk(cron, change.zone, from, from + absl::Hours(4), absl::Seconds(1));
    if (HasFatalFailure()) return;
  }
}

// Day fields with L, W, # and years: by walking over days.
struct RandomDays {
  std::string text;  // of Quartz's fields from day of month on
  int kind = 0, a = 0, b = 0;
  std::set<int> months;
};

RandomDays MakeDays(Random& random) {
  RandomDays days;
  days.kind = Pick(random, 0, 6);
  days.a = Pick(random, 1, 31);
  days.b = Pick(random, 1, 5);
  const RandomField month = MakeField(random, 1, 12, 2);
  days.months = month.values;
  const std::string weekday = absl::StrCat(days.a % 7 + 1);
  const std::string tail = absl::StrCat(" ", month.text, " ");
  switch (days.kind) {
    case 0:
      days.text = absl::StrCat("L", tail, "?");
      break;
    case 1:
      days.text = absl::StrCat("L-", days.a - 1, tail, "?");
      break;
    case 2:
      days.text = absl::StrCat("LW", tail, "?");
      break;
    case 3:
      days.text = absl::StrCat(days.a, "W", tail, "?");
      break;
    case 4:
      days.text = absl::StrCat("?", tail, weekday, "#", days.b);
      break;
    case 5:
      days.text = absl::StrCat("?", tail, weekday, "L");
      break;
    default:
      days.text = absl::StrCat(days.a, tail, "?");
  }
  return days;
}

bool IsWeekday(absl::CivilDay day) { return absl::GetWeekday(day) < absl::Weekday::saturday; }

bool DayMatches(const RandomDays& days, absl::CivilDay day) {
  if (days.months.count(day.month()) == 0) return false;
  const absl::CivilDay last = absl::CivilDay(absl::CivilMonth(day) + 1) - 1;
  const int quartz_weekday = (static_cast<int>(absl::GetWeekday(day)) + 1) % 7 + 1;
  switch (days.kind) {
    case 0:
      return day == last;
    case 1:
      return last - day == days.a - 1;
    case 2: {  // the last working day: no working day after it in its month
      if (!IsWeekday(day)) return false;
      for (absl::CivilDay later = day + 1; later <= last; ++later) {
        if (IsWeekday(later)) return false;
      }
      return true;
    }
    case 3: {  // the working day nearest to the a-th within the month
      if (days.a > last.day() || !IsWeekday(day)) return false;
      const absl::CivilDay target(day.year(), day.month(), days.a);
      for (int distance = 0;; ++distance) {
        for (const absl::CivilDay near : {target - distance, target + distance}) {
          if (near.month() == day.month() && IsWeekday(near)) return near == day;
        }
      }
    }
    case 4:
      return quartz_weekday == days.a % 7 + 1 && (day.day() - 1) / 7 + 1 == days.b;
    case 5:
      return quartz_weekday == days.a % 7 + 1 && (day + 7).month() != day.month();
    default:
      return day.day() == days.a;
  }
}

TEST(Reference, DayFieldsAgreeWithWalkingDayByDay) {
  SeededRandom random(4711);
  for (int i = 0; i < 150; ++i) {
    const RandomDays days = MakeDays(random);
    const std::string text = absl::StrCat("0 0 0 ", days.text);
    const auto schedule = Schedule::Parse(text, {Dialect::kQuartz, absl::UTCTimeZone(), {}});
    const absl::CivilDay first(2024, 1, 1), end(2033, 1, 1);
    std::string wanted, found, backwards;
    for (absl::CivilDay day = first; day < end; ++day) {
      if (DayMatches(days, day)) absl::StrAppend(&wanted, FormatDay(day), " ");
    }
    if (!schedule.ok()) {
      ASSERT_EQ(wanted, "") << text << " " << schedule.status();
      continue;
    }
    const absl::Time from = absl::FromCivil(first, absl::UTCTimeZone());
    const absl::Time to = absl::FromCivil(end, absl::UTCTimeZone());
    for (auto fire = schedule->Next(from - absl::Seconds(1)); fire.has_value() && fire->at < to;
         fire = schedule->Next(fire->at)) {
      absl::StrAppend(&found, FormatDay(absl::CivilDay(fire->nominal)), " ");
    }
    for (auto fire = schedule->Previous(to); fire.has_value() && fire->at >= from;
         fire = schedule->Previous(fire->at)) {
      backwards = absl::StrCat(FormatDay(absl::CivilDay(fire->nominal)), " ", backwards);
    }
    ASSERT_EQ(found, wanted) << text;
    ASSERT_EQ(backwards, wanted) << text << ", backwards";
  }
}

}  // namespace
}  // namespace matins
