// Attempts drawn for a terminal: one bar each, on one scale.
#ifndef MATINS_VIEW_TIMELINE_VIEW_H_
#define MATINS_VIEW_TIMELINE_VIEW_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"

namespace matins {

struct TimelineMark {
  char letter = ' ';
  std::string name;
  absl::Time at;
};

struct TimelineBar {
  std::string title;
  std::vector<TimelineMark> marks;  // in their order
  // Drawn as "=" between the marks; InfinitePast: never owned.
  absl::Time lease_from = absl::InfinitePast();
  absl::Time lease_until = absl::InfinitePast();
  std::vector<std::string> notes;
};

// No line is wider than `width` (at least 40). Times are UTC; those of a bar are told from its
// first mark on.
std::string TimelineText(absl::string_view title, absl::Span<const TimelineBar> bars, int width);

}  // namespace matins

#endif  // MATINS_VIEW_TIMELINE_VIEW_H_
