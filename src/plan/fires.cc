#include "plan/fires.h"

#include <algorithm>

#include "job/calendar_fires.h"

namespace matins {

absl::Time Fires::End(int index) const {
  absl::Time end = absl::InfiniteFuture();
  for (int i = index + 1; i < size(); ++i) end = std::min(end, versions_[i].from);
  return end;
}

int Fires::InForce(absl::Time t) const {
  int index = size() - 1;
  while (index > 0 && versions_[index].from > t) --index;
  return index;
}

int Fires::IndexOf(int number, absl::Time due) const {
  for (int i = 0; i < size(); ++i) {
    if (versions_[i].number == number) return i;
  }
  return InForce(due);
}

std::optional<DatedFire> Fires::Next(absl::Time after) const {
  for (int i = InForce(after); i < size(); ++i) {
    // A fire at the very instant of a change is the new version's.
    const absl::Time begin =
        i == 0 ? after : std::max(after, versions_[i].from - absl::Nanoseconds(1));
    const std::optional<CalendarFire> next = NextFire(*versions_[i].job, begin);
    if (next && next->fire.at < End(i)) return DatedFire{next->fire, i, next->covered};
  }
  return std::nullopt;
}

std::optional<DatedFire> Fires::Previous(absl::Time before) const {
  for (int i = InForce(before); i >= 0; --i) {
    const std::optional<Fire> fire = PreviousFire(*versions_[i].job, std::min(before, End(i)));
    if (fire && (i == 0 || fire->at >= versions_[i].from)) return DatedFire{*fire, i};
  }
  return std::nullopt;
}

}  // namespace matins
