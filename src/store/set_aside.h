// Due rows that a node may not run: it lacks a label of their job, or the job is suspended. START
// passes over a few of them. Where so many are due that they fill what it reads, it sets them
// aside: they are looked at again after half an hour or more, and until then a node that has the
// labels finds them by `waits_for`, in the order in which it would have found them among the rest;
// those of a suspended job come back with its resumption. So what is due for others costs a node
// nothing, and who has the labels starts them at once, however late it comes. Pure.
#ifndef MATINS_STORE_SET_ASIDE_H_
#define MATINS_STORE_SET_ASIDE_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/values.h"

namespace matins {

// So many are passed over.
inline constexpr int kPassedOver = 200;
// What is set aside is looked at again after this and up to as long again, whatever its list says:
// not all of it at one instant.
inline constexpr absl::Duration kAsideFor = absl::Minutes(30);

// `waits_for` of a row that waits for a node with labels: "with/LABELS/TAG", of 19 digits. It
// stands behind all else that is waited for in the order of bytes.
inline constexpr char kAside[] = "with/";
inline constexpr int kTagDigits = 19;

struct SetAside {
  absl::Time look_at;
  std::string waits_for;  // empty: nothing finds it before
};

// `labels`: JSON, as the store has it; empty where the job is suspended. Those that are too long
// for the column are waited for no longer than `soon`.
SetAside AsideOf(const PeriodKey& key, absl::string_view labels, int64_t start_tag, absl::Time now,
                 absl::Duration soon);

// "with/LABELS" of a row's `waits_for`. The rows of that list lie from AsideFrom (those with a tag,
// or all) to below AsideEnd, where the next list begins.
absl::string_view AsideListOf(absl::string_view waits_for);
absl::string_view LabelsOfAside(absl::string_view list);
std::string AsideFrom(absl::string_view list, bool tagged);
std::string AsideEnd(absl::string_view list);

}  // namespace matins

#endif  // MATINS_STORE_SET_ASIDE_H_
