// One field of an expression: numbers, names, ranges, lists and steps, shared by the cron dialects.
#ifndef MATINS_SCHEDULE_FIELD_H_
#define MATINS_SCHEDULE_FIELD_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace matins {

// How a field counts.
struct FieldForm {
  absl::string_view name;  // as errors call it: "minute"
  int min = 0;
  int max = 59;                               // the largest that "*" and "a/n" reach
  int largest = 59;                           // the largest that may be written (weekday 7)
  absl::Span<const absl::string_view> names;  // names[i] is min + i; empty: numbers only
  bool wraps = true;                          // whether 22-5 goes round
};

struct FieldSet {
  uint64_t bits = 0;  // bit v - form.min: the value v
  // Written "*" or "*/n" as a whole, or "0/n".
  bool star = false;
  bool zero_step = false;
};

// A comma-separated list of "*", "a", "a-b" and either with "/n". The error names field, reason and
// mend.
absl::StatusOr<FieldSet> ParseField(const FieldForm& form, absl::string_view text);
// "17", "08" or a name. `what` is the whole item, for the error.
absl::StatusOr<int> ParseValue(const FieldForm& form, absl::string_view text,
                               absl::string_view what);
// Digits only, at most `most`; -1 otherwise.
int ParseSmall(absl::string_view digits, int most);

// "0-59", "1-12 or jan-dec": for mends.
std::string FieldRange(const FieldForm& form);

}  // namespace matins

#endif  // MATINS_SCHEDULE_FIELD_H_
