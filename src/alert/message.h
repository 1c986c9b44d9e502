// Alerts put into words: which of them go in one message, and what it says. Pure.
#ifndef MATINS_ALERT_MESSAGE_H_
#define MATINS_ALERT_MESSAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "store/alert_rules.h"

namespace matins {

// "fire", "remind", "resolve".
absl::string_view StepWord(AlertStep step);

struct AlertMessage {
  // The same for each attempt at it, by whichever node: for whoever wants to drop a repetition.
  std::string id;
  AlertStep step = AlertStep::kFire;  // of a digest: the gravest of its alerts
  std::string subject;                // one line
  std::string text;                   // lines
  std::vector<AlertRow> alerts;       // those that it tells of, as they were claimed
  std::string node;                   // who sends it
  bool test = false;                  // of nothing: a person tries the channel
};

struct ComposeOptions {
  std::string node;
  absl::Time now;
  int digest = 5;
};

// What was claimed in one channel, as messages: one for each job and step; where those are more
// than `digest`, one for all of them, with counts and the first few. What came before what ended.
std::vector<AlertMessage> Compose(std::vector<AlertRow> claimed, const ComposeOptions& options);

// A message that a person asked for.
AlertMessage TestMessage(absl::string_view channel, absl::string_view who, absl::Time now);

// The whole message: for webhooks without a body of their own, and for commands. At most
// kMostInJson alerts; `total` says how many there are.
inline constexpr size_t kMostInJson = 200;
std::string MessageJson(const AlertMessage& message);

enum class Escape { kNone, kJson, kForm };
// `body` with {{words}} (job/alerts.h) replaced; each value is escaped for where it stands.
std::string RenderBody(absl::string_view body, const AlertMessage& message, Escape escape);

}  // namespace matins

#endif  // MATINS_ALERT_MESSAGE_H_
