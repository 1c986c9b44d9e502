// Limits of a store, beside a job's own: how many runs may be alive at a time (I24).
#ifndef MATINS_JOB_LIMITS_H_
#define MATINS_JOB_LIMITS_H_

#include <compare>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace matins {

enum class LimitKind {
  kGlobal,         // all runs of the store
  kTenant,         // runs of a tenant's jobs
  kKey,            // runs whose job says that key (limits.key, expanded)
  kBackfillShare,  // back-fill runs: at most so many per cent of the global limit, at least one
};

struct LimitRule {
  LimitKind kind = LimitKind::kGlobal;
  // A tenant or a key; "PREFIX*" is for each that begins so and has no nearer rule, and each is
  // counted alone. Empty for the other two kinds.
  std::string name;
  int most = 1;  // 1 to 1,000,000; of kBackfillShare the per cent, 1 to 100
  auto operator<=>(const LimitRule&) const = default;
};

inline constexpr int kMostRuns = 1'000'000;

// "global", "tenant/NAME", "key/NAME", "backfill_share": what a rule is called in commands.
std::string LimitName(LimitKind kind, absl::string_view name);
inline std::string LimitName(const LimitRule& rule) { return LimitName(rule.kind, rule.name); }
// The rule of that name, `most` unset; InvalidArgument with the reason and the mend.
absl::StatusOr<LimitRule> ParseLimitName(absl::string_view text);
// Whether a rule may have that name: 1 to 200 bytes, a "*" at its end alone.
absl::Status CheckLimitName(LimitKind kind, absl::string_view name);
// "50%": 1 to 100.
absl::StatusOr<int> ParseShare(absl::string_view text);
// "4", "50%".
std::string MostText(LimitKind kind, int most);

}  // namespace matins

#endif  // MATINS_JOB_LIMITS_H_
