// A node's log on standard error, a line an event: "2026-11-29T02:00:00.123Z info claimed job=recon
// period=2026-11-28 run=..."
#ifndef MATINS_CLI_LOG_H_
#define MATINS_CLI_LOG_H_

#include "absl/strings/string_view.h"
#include "engine/events.h"

namespace matins {

void LogInfo(absl::string_view text);
void LogWarning(absl::string_view text);
void LogError(absl::string_view text);

// Writes each event; those that a person should see at once as warnings. Thread-safe.
class EventLog final : public EngineEvents {
 public:
  void OnEvent(const EngineEvent& event) override;
};

}  // namespace matins

#endif  // MATINS_CLI_LOG_H_
