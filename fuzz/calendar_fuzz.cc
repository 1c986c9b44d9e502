// Any text as a calendar, list or iCalendar: refused with a reason, or one whose own text reads
// back the same and whose offsets lie on business days.
#include <cstdint>
#include <cstdlib>

#include "schedule/calendar.h"

namespace {

void Require(bool what) {
  if (!what) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto calendar = matins::Calendar::Parse("fuzz", text, absl::CivilDay(2030, 12, 31));
  if (!calendar.ok()) {
    Require(!calendar.status().message().empty());
    return 0;
  }
  const auto again = matins::Calendar::Parse("fuzz", calendar->Days(), calendar->until());
  Require(again.ok() && again->Days() == calendar->Days());
  for (const int n : {-3, -1, 1, 3}) {
    const auto day = calendar->Offset(absl::CivilDay(2026, 10, 1), n);
    Require(!day.ok() || calendar->IsBusinessDay(*day));
  }
  return 0;
}
