// The quick way to hear of changes: LISTEN on a connection of its own. Where there is none, or it
// is away, waiting goes on for its full length; polling makes it correct.
#ifndef MATINS_STORE_POSTGRESQL_LISTENER_H_
#define MATINS_STORE_POSTGRESQL_LISTENER_H_

#include <memory>
#include <string>

#include "absl/time/time.h"
#include "base/event_fd.h"
#include "store/postgresql/connection.h"
#include "store/store.h"

namespace matins::postgresql {

class Listener {
 public:
  // `options` of a direct connection; `unless_pooled` gives it up when a pooler answers, which
  // would lose notifications. Empty conninfo: no LISTEN at all.
  Listener(ConnectionOptions options, std::string channel, bool unless_pooled);
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Returns at a notification, at Interrupt, or after `at_most`; kTold too where it begins to
  // listen, since what was told before is not told again.
  Heard Await(absl::Duration at_most);
  void Interrupt();  // from any thread

 private:
  void Prepare();
  void Listen();

  Connection connection_;
  const std::string channel_;
  const bool unless_pooled_;
  bool enabled_;
  bool listening_ = false;
  absl::Time probed_ = absl::InfinitePast();  // monotonic
  EventFd wake_;
};

}  // namespace matins::postgresql

#endif  // MATINS_STORE_POSTGRESQL_LISTENER_H_
