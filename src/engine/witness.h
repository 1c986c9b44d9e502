// Writes the node's own testimony: what it is about to ask, and what it was told (base/history.h).
#ifndef MATINS_ENGINE_WITNESS_H_
#define MATINS_ENGINE_WITNESS_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/node.h"
#include "job/values.h"
#include "store/store.h"

namespace matins {

// `result`: inv, ok, refused, info, busy; of a resolve also yes and no.
inline void Testify(EngineNode& node, absl::string_view type, absl::string_view result,
                    const Ticket& ticket, int64_t number = -1, absl::string_view detail = "") {
  if (!node.testifies) return;
  node.history.Record({.type = type,
                       .result = result,
                       .node = node.options.id.name,
                       .job = ticket.key.job,
                       .period = ticket.key.period,
                       .generation = ticket.generation,
                       .fence = ticket.fence,
                       .nonce = ticket.nonce,
                       .number = number,
                       .detail = detail,
                       .boot = node.clock.BootNow(),
                       .wall = node.clock.WallNow()});
}

// What `refusal` is in a testimony. A busy row is no refusal: the same call may be taken later
// (I9).
inline absl::string_view Told(const Refusal& refusal) {
  return refusal.accepted() ? "ok" : refusal.busy() ? "busy" : "refused";
}

}  // namespace matins

#endif  // MATINS_ENGINE_WITNESS_H_
