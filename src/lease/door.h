// The quick door before a store's lock. The store alone decides who runs and gives the fence; the
// door only saves those who would lose from asking it. It may lie in any way, and be away: then
// somebody asks the store in vain, or asks a little later (I22).
#ifndef MATINS_LEASE_DOOR_H_
#define MATINS_LEASE_DOOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "base/clock.h"
#include "lease/redis_url.h"

namespace matins {

struct DoorKey {
  std::string key;  // the lock's
  absl::Duration ttl;
};

struct DoorAnswer {
  // As far as the door knows nobody else is at work under this key, and others are told that we
  // are. Also where it cannot tell.
  bool open = true;
  std::string held_by;  // where it is closed: the other's incarnation
  absl::Duration left;  // until it opens by itself; InfiniteDuration: it would not
};

// Thread-safe.
//
// Whoever is refused must not take that for the store's answer: wait at most a lease and ask the
// store then, or ask it before giving up.
class Door {
 public:
  virtual ~Door() = default;
  // One answer a key, in their order; takes its patience at most. Our own keys are open to us, and
  // are kept (renewed at a quarter of their ttl) until Leave.
  virtual std::vector<DoorAnswer> Enter(absl::Span<const DoorKey> keys) = 0;
  // We are no longer at work there. Does not wait.
  virtual void Leave(absl::Span<const std::string> keys) = 0;
};

inline constexpr absl::Duration kDoorPatience = absl::Milliseconds(100);
// A door that did not answer is passed by for so long.
inline constexpr absl::Duration kDoorAway = absl::Seconds(1);

// `who`: this node's incarnation. Connects by itself, later. One thread of its own; destroying it
// leaves all keys. `patience`: the most that a call may take.
std::unique_ptr<Door> OpenRedisDoor(RedisUrl url, absl::string_view who, Clock& clock,
                                    absl::Duration patience = kDoorPatience);

}  // namespace matins

#endif  // MATINS_LEASE_DOOR_H_
