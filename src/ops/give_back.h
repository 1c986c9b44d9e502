// What a guard asks for when its node is dead and the run's whole tree was seen dead
// (docs/operating.md): the lease ends now, so that another node takes over in well under a second
// instead of a lease's length.
#ifndef MATINS_OPS_GIVE_BACK_H_
#define MATINS_OPS_GIVE_BACK_H_

#include "absl/status/status.h"
#include "execute/give_back.h"
#include "store/database.h"

namespace matins {

// The attempt is lost, as it would be at the lease's end: the period is PLANNED again, or what
// `recovery` and `max_lost` make of it. Does nothing where fence and nonce are no longer current
// (I3).
absl::Status GiveLeaseBack(Database& database, const LeaseToGiveBack& lease);

}  // namespace matins

#endif  // MATINS_OPS_GIVE_BACK_H_
