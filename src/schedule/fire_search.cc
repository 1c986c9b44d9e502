#include "schedule/fire_search.h"

#include <algorithm>

namespace matins {
namespace {

// Asks the matcher only for what it has not already found empty: a search that passes over many
// clock changes on its way to a rare date asks once.
class Forward {
 public:
  explicit Forward(const Matcher& matcher) : matcher_(matcher) {}
  int64_t From(int64_t local) {
    if (local < empty_first_ || local > empty_end_) {
      empty_first_ = local;
      empty_end_ = matcher_.Next(local);
    }
    return empty_end_;
  }

 private:
  const Matcher& matcher_;
  int64_t empty_first_ = Matcher::kNever;
  int64_t empty_end_ = -Matcher::kNever;
};

class Backward {
 public:
  explicit Backward(const Matcher& matcher) : matcher_(matcher) {}
  int64_t UpTo(int64_t local) {
    if (local > empty_last_ || local < empty_end_) {
      empty_last_ = local;
      empty_end_ = matcher_.Previous(local);
    }
    return empty_end_;
  }

 private:
  const Matcher& matcher_;
  int64_t empty_last_ = -Matcher::kNever;
  int64_t empty_end_ = Matcher::kNever;
};

}  // namespace

bool FireSearch::MovesGap(const Segment& segment) const {
  return !interval_ && dst_.gap != GapRule::kSkip && segment.jump > 0 &&
         segment.jump <= kMostJumpSeconds;
}

bool FireSearch::Repeats(const Segment& segment) const {
  return segment.jump < 0 && segment.jump >= -kMostJumpSeconds;
}

FireSearch::Range FireSearch::OwnTimes(int i) const {
  const Segment& segment = zone_.at(i);
  const Segment& next = zone_.at(i + 1);
  Range own{segment.local_start(), next.local_before()};
  if (interval_) return own;
  if (dst_.overlap == OverlapRule::kFirst && Repeats(segment)) own.first = segment.local_before();
  if (dst_.overlap == OverlapRule::kSecond && Repeats(next)) own.end = next.local_start();
  return own;
}

FireSearch::Range FireSearch::MissingTimes(int i) const {
  const Segment& segment = zone_.at(i);
  Range missing{segment.local_before(), segment.local_start()};
  if (dst_.gap == GapRule::kShift) {
    const int64_t length = zone_.at(i + 1).start - segment.start;
    missing.end = std::min(missing.end, missing.first + length);
  }
  return missing;
}

std::optional<FoundFire> FireSearch::Next(int64_t after, int64_t end) const {
  Forward matches(matcher_);
  for (int i = zone_.IndexOf(after + 1); i < zone_.size(); ++i) {
    const Segment& segment = zone_.at(i);
    FoundFire found{Matcher::kNever, 0};
    if (MovesGap(segment)) {
      Range missing = MissingTimes(i);
      if (dst_.gap == GapRule::kShift) {
        const int32_t offset_before = segment.offset - segment.jump;
        missing.first = std::max(missing.first, after + 1 + offset_before);
        const int64_t match =
            missing.first < missing.end ? matches.From(missing.first) : Matcher::kNever;
        if (match < missing.end) found = {match - offset_before, match};
      } else if (segment.start > after) {
        const int64_t match = matches.From(missing.first);
        if (match < missing.end) found = {segment.start, match};
      }
    }
    const Range own = OwnTimes(i);
    const int64_t first = std::max(own.first, after + 1 + segment.offset);
    if (first < own.end) {
      const int64_t match = matches.From(first);
      if (match < own.end && match - segment.offset < found.at) {
        found = {match - segment.offset, match};
      }
    }
    if (found.at != Matcher::kNever) {
      return found.at < end ? std::optional<FoundFire>(found) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::optional<int64_t> FireSearch::Previous(int64_t last) const {
  Backward matches(matcher_);
  for (int i = zone_.IndexOf(last); i >= 0; --i) {
    const Segment& segment = zone_.at(i);
    int64_t found = -1;
    const Range own = OwnTimes(i);
    const int64_t own_last = std::min(own.end - 1, last + segment.offset);
    if (own_last >= own.first) {
      const int64_t match = matches.UpTo(own_last);
      if (match >= own.first) found = match - segment.offset;
    }
    if (MovesGap(segment)) {
      const Range missing = MissingTimes(i);
      int64_t missing_last = missing.end - 1;
      const int32_t offset_before = segment.offset - segment.jump;
      if (dst_.gap == GapRule::kShift) {
        missing_last = std::min(missing_last, last + offset_before);
      }
      if (missing_last >= missing.first) {
        const int64_t match = matches.UpTo(missing_last);
        if (match >= missing.first) {
          const bool shift = dst_.gap == GapRule::kShift;
          found = std::max(found, shift ? match - offset_before : segment.start);
        }
      }
    }
    if (found >= 0) return found;
  }
  return std::nullopt;
}

}  // namespace matins
