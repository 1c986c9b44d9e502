// Where a node's alerts go: `alerts:` and `ping:` of a job file (docs/alerts.md). Plain values.
// What is secret is named by where it stands, and is read anew for each message: it is never in a
// definition, a store, a log or an argument list.
#ifndef MATINS_JOB_ALERTS_H_
#define MATINS_JOB_ALERTS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace matins {

// A text as it stands in the file, or the variable or file that has it.
struct SecretText {
  std::string text, env, file;
  std::string then;  // is written after what `env` or `file` has: "/start"
  bool empty() const { return text.empty() && env.empty() && file.empty(); }
  bool operator==(const SecretText&) const = default;
};
// What it is now. FailedPrecondition where the variable or the file is not there or is empty, by
// its name alone. A file's last line end is no part of it.
absl::StatusOr<std::string> ReadSecret(const SecretText& secret);

enum class ChannelKind { kWebhook, kSlack, kFeishu, kDingtalk, kWecom, kMail, kCommand };

// What stands in {{...}} of a webhook's body.
inline constexpr const char* kAlertWords[] = {"step", "subject", "text", "job", "period",
                                              "kind", "count",   "due",  "id",  "node"};
// InvalidArgument where {{...}} is none of them, or has no end.
absl::Status CheckAlertTemplate(absl::string_view text);

struct Channel {
  std::string name;
  ChannelKind kind = ChannelKind::kWebhook;
  bool is_default = true;                   // of jobs that name no channel, and of what is no job's
  absl::Duration remind = absl::Hours(24);  // InfiniteDuration: never
  absl::Duration timeout = absl::Seconds(20);
  SecretText url;     // all but mail and command
  SecretText secret;  // what signs: webhook, feishu, dingtalk
  // webhook
  std::string body;  // a template; empty: the whole message as JSON
  std::string content_type = "application/json";
  std::map<std::string, SecretText> headers;
  // mail
  std::string server;  // smtp://HOST:PORT, with STARTTLS; smtps://HOST:PORT
  bool tls = true;     // false: what the server has, or none: for one on this machine
  std::string user;
  SecretText password;
  std::string from;
  std::vector<std::string> to;
  std::string ca_file;  // webhook and mail: the authorities to believe; empty: the system's
  // command
  std::vector<std::string> command;       // its words; the message comes as JSON on its input
  std::map<std::string, SecretText> env;  // added to a bare environment
  bool operator==(const Channel&) const = default;
};

// Addresses that are called around each audit, so that a third party misses them when everything
// here is dead. Empty ones are not called.
struct PingConfig {
  SecretText start, success, fail;
  absl::Duration timeout = absl::Seconds(10);
  bool empty() const { return start.empty() && success.empty() && fail.empty(); }
  bool operator==(const PingConfig&) const = default;
};

struct AlertConfig {
  std::vector<Channel> channels;  // by name
  int digest = 5;                 // more messages than this at a time in a channel become one
  PingConfig ping;
  const Channel* Find(absl::string_view name) const;
  bool operator==(const AlertConfig&) const = default;
};

}  // namespace matins

#endif  // MATINS_JOB_ALERTS_H_
