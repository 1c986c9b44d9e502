// The demo's business data: a payments ledger, and what the payment channel says of the same days
// in its statements. Made from a fixed seed, so that everybody sees the same anomalies, and counted
// by the generator on the way: the count that the reconciliation's result is held against.
#ifndef MATINS_DEMO_LEDGER_H_
#define MATINS_DEMO_LEDGER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/civil_time.h"
#include "demo/sql.h"

namespace matins::demo {

inline constexpr char kZone[] = "Asia/Shanghai";
inline constexpr int kDays = 35;
inline constexpr int64_t kPaymentsADay = 20'000;
inline constexpr int64_t kBatch = 2'000;      // payments a step of the reconciliation
inline constexpr int64_t kForeign = 900'000;  // lines from here on have no payment of ours
inline constexpr int64_t kIdsADay = 1'000'000;

// What is wrong with a day, as the generator made it.
struct Planted {
  int64_t amount = 0;              // the channel's amount differs
  int64_t missing_at_channel = 0;  // no line, not even late
  int64_t late = 0;                // the line came a day late
  int64_t missing_in_ledger = 0;   // a line without a payment
  int64_t duplicate = 0;           // two lines for one payment
  // Differences that the day's reconciliation has to find: a late line counts as missing on its
  // day.
  int64_t Differences() const {
    return amount + missing_at_channel + late + missing_in_ledger + duplicate;
  }
};

// The first id of a day's payments; lines carry the id of the payment that they are for.
int64_t FirstId(absl::CivilDay day);

// Tables, where they are missing. No unique key forbids a second row for one difference: nothing
// but the fence stands between the reconciliation and a difference that is booked twice.
absl::Status MakeLedger(Sql& sql);

// Whether the day has payments already.
absl::StatusOr<bool> HasDay(Sql& sql, absl::CivilDay day);
// A day's payments and statement lines, in one transaction; the same for the same day on every
// machine.
absl::StatusOr<Planted> FillDay(Sql& sql, absl::CivilDay day);
// What FillDay plants, without writing it.
Planted PlantedOn(absl::CivilDay day);

// Differences of a day and how many of them are there more than once, counted now.
struct Count {
  int64_t differences = 0;
  int64_t twice = 0;
  int64_t working = 0;
};
absl::StatusOr<Count> CountDay(Sql& sql, absl::CivilDay day);

}  // namespace matins::demo

#endif  // MATINS_DEMO_LEDGER_H_
