// The promises as functions with a verdict, so that the same check is green on the store as it
// ships and red with its protection taken out.
#ifndef MATINS_CONFORMANCE_CHECKS_H_
#define MATINS_CONFORMANCE_CHECKS_H_

#include <optional>
#include <ostream>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "conformance/fixture.h"

namespace matins::conformance {

struct Check {
  absl::string_view name;  // "I3.OnlyTheCurrentTicketIsHeard"
  // OK: the promise holds. FailedPrecondition: it is broken, and how.
  absl::Status (*run)(World& world);
  std::vector<Mutant> caught;  // the mutants that must turn it red
  std::optional<Capability> needs;
};

// For GoogleTest.
inline void PrintTo(const Check& check, std::ostream* out) { *out << check.name; }

const std::vector<Check>& AllChecks();

}  // namespace matins::conformance

#endif  // MATINS_CONFORMANCE_CHECKS_H_
