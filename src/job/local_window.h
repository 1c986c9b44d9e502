// The hours of a local day between which something may begin: "19:00-07:00" of a zone. Pure.
#ifndef MATINS_JOB_LOCAL_WINDOW_H_
#define MATINS_JOB_LOCAL_WINDOW_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/civil_time.h"
#include "absl/time/time.h"

namespace matins {

// Opens at its first local time, included, and closes at its second, which is not; where that is
// the earlier one, on the next day. A local time that a change of the clock leaves out is the first
// instant after the gap, one that comes twice is the first of them, as for fires: a window may be
// an hour longer or shorter then, and one that lies in the gap does not open at all.
class LocalWindow {
 public:
  // "HH:MM-HH:MM". InvalidArgument: another form, or two times that are the same.
  static absl::StatusOr<LocalWindow> Parse(absl::string_view text, absl::TimeZone zone);

  bool Contains(absl::Time t) const;
  // The first instant from `t` on that lies within; `t` itself where it does.
  absl::Time NextOpening(absl::Time t) const;

 private:
  struct Span {
    absl::Time from, to;
  };
  // The span that opens on this local day; empty where from == to.
  Span Of(absl::CivilDay day) const;

  absl::TimeZone zone_;
  int from_minute_ = 0, to_minute_ = 0;  // of the local day
};

}  // namespace matins

#endif  // MATINS_JOB_LOCAL_WINDOW_H_
