#include "job/read_alerts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/variable.h"
#include "job/files.h"
#include "job/names.h"
#include "job/values_text.h"

namespace matins {
namespace {

enum class Secrecy {
  kMayBePlain,
  kSecret,  // never as a text in the file
};

constexpr char kSecretMend[] = "write { env: NAME } or { file: /path }";

class ChannelReader {
 public:
  ChannelReader(const std::string& file, Fields& fields, Channel& channel)
      : file_(file), fields_(fields), channel_(channel) {}

  void Read() {
    ReadKind();
    channel_.is_default = fields_.BoolOr("default", true);
    channel_.remind = ReadRemind(fields_, channel_.remind);
    channel_.timeout =
        fields_.DurationOr("timeout", channel_.timeout, absl::Seconds(1), absl::Seconds(60));
    switch (channel_.kind) {
      case ChannelKind::kWebhook:
        ReadWebhook();
        break;
      case ChannelKind::kMail:
        ReadMail();
        break;
      case ChannelKind::kCommand:
        ReadCommand();
        break;
      default:
        // Whoever knows such an address may write there.
        channel_.url = SecretOr(fields_, "url", Secrecy::kSecret, true);
        if (channel_.kind == ChannelKind::kFeishu || channel_.kind == ChannelKind::kDingtalk) {
          channel_.secret = SecretOr(fields_, "secret", Secrecy::kSecret, false);
        }
    }
    fields_.Finish();
  }

  static absl::Duration ReadRemind(Fields& fields, absl::Duration fallback) {
    const NodePtr node = fields.Get("remind");
    if (node != nullptr && node->kind == YamlNode::Kind::kScalar && node->text == "never") {
      return absl::InfiniteDuration();
    }
    return fields.DurationOr("remind", fallback, absl::Minutes(1), absl::Hours(24 * 366));
  }

  // `required`: an absent one is a mistake.
  static SecretText SecretOr(Fields& fields, absl::string_view key, Secrecy secrecy,
                             bool required) {
    const NodePtr node = fields.Get(key);
    if (node == nullptr) {
      if (required && !fields.Failed(key)) {
        fields.Error(key, absl::StrCat(fields.path(), " has no ", key), kSecretMend);
      }
      return {};
    }
    return OfNode(fields, key, *node, secrecy);
  }

 private:
  static SecretText OfNode(Fields& fields, absl::string_view key, const YamlNode& node,
                           Secrecy secrecy) {
    if (node.kind == YamlNode::Kind::kScalar) {
      if (secrecy == Secrecy::kSecret) {
        // The text is not repeated.
        fields.ErrorAt(node.at, key, absl::StrCat(fields.Path(key), " is a secret"), kSecretMend);
        return {};
      }
      return {.text = node.text};
    }
    if (node.kind == YamlNode::Kind::kMap && node.entries.size() == 1 &&
        node.entries[0].value->kind == YamlNode::Kind::kScalar) {
      const Entry& entry = node.entries[0];
      const std::string& text = entry.value->text;
      if (entry.key == "env") {
        if (!IsVariableName(text)) {
          fields.ErrorAt(
              entry.value->at, key,
              absl::StrCat(fields.Path(key), ".env: '", text, "' is no name of a variable"),
              "write letters, digits and _");
        }
        return {.env = text};
      }
      if (entry.key == "file" && absl::StartsWith(text, "/")) return {.file = text};
      if (entry.key == "file") {
        fields.ErrorAt(entry.value->at, key,
                       absl::StrCat(fields.Path(key), ".file: '", text, "' is no whole path"),
                       "begin it with /");
        return {};
      }
    }
    fields.ErrorAt(node.at, key, absl::StrCat(fields.Path(key), " is ", KindText(node)),
                   kSecretMend);
    return {};
  }

  void ReadKind() {
    static const std::vector<std::pair<std::string, ChannelKind>> kKinds = {
        {"webhook", ChannelKind::kWebhook}, {"slack", ChannelKind::kSlack},
        {"feishu", ChannelKind::kFeishu},   {"dingtalk", ChannelKind::kDingtalk},
        {"wecom", ChannelKind::kWecom},     {"mail", ChannelKind::kMail},
        {"command", ChannelKind::kCommand}};
    const std::string kind = fields_.TextOr("kind", "");
    std::vector<std::string> words;
    for (const auto& [word, of] : kKinds) {
      words.push_back(word);
      if (word == kind) {
        channel_.kind = of;
        return;
      }
    }
    if (fields_.Failed("kind")) return;
    fields_.Error("kind",
                  kind.empty()
                      ? absl::StrCat(fields_.path(), " has no kind")
                      : absl::StrCat(fields_.Path("kind"), ": '", kind, "' is none of its words"),
                  MendWord(kind, words));
  }

  std::map<std::string, SecretText> Secrets(absl::string_view key) {
    std::map<std::string, SecretText> secrets;
    const NodePtr node = fields_.Get(key);
    Fields map = fields_.Map(key);
    if (node == nullptr || fields_.Failed(key)) return secrets;
    for (const Entry& entry : node->entries) {
      secrets[entry.key] = SecretOr(map, entry.key, Secrecy::kMayBePlain, true);
    }
    map.Finish();
    return secrets;
  }

  void ReadCa() {
    const std::string path = fields_.TextOr("ca_file", "");
    if (!path.empty()) channel_.ca_file = BesideFile(file_, path);
  }

  void CheckUrl() {
    const std::string& url = channel_.url.text;
    if (url.empty() || absl::StartsWith(url, "https://") || absl::StartsWith(url, "http://")) {
      return;
    }
    fields_.Error("url", absl::StrCat(fields_.Path("url"), " is no address of a web server"),
                  "write https://HOST/PATH");
  }

  void ReadWebhook() {
    channel_.url = SecretOr(fields_, "url", Secrecy::kMayBePlain, true);
    CheckUrl();
    channel_.secret = SecretOr(fields_, "secret", Secrecy::kSecret, false);
    channel_.body = fields_.TextOr("body", "");
    channel_.content_type = fields_.TextOr("content_type", channel_.content_type);
    channel_.headers = Secrets("headers");
    for (const auto& [name, value] : channel_.headers) {
      const bool good = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
        return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
      });
      if (good) continue;
      fields_.Error("headers", absl::StrCat("'", name, "' is no name of a header"),
                    "write letters, digits and -");
    }
    if (const absl::Status status = CheckAlertTemplate(channel_.body); !status.ok()) {
      fields_.Error("body", absl::StrCat(fields_.Path("body"), ": ", status.message()), "");
    }
    ReadCa();
  }

  void CheckAddress(absl::string_view key, const std::string& address) {
    const bool good = std::count(address.begin(), address.end(), '@') == 1 &&
                      address.front() != '@' && address.back() != '@' &&
                      std::none_of(address.begin(), address.end(), [](char c) {
                        return static_cast<unsigned char>(c) <= ' ' || c == '<' || c == '>';
                      });
    if (good || fields_.Failed(key)) return;
    fields_.Error(key, absl::StrCat(fields_.Path(key), ": '", address, "' is no mail address"),
                  "write name@host");
  }

  void ReadMail() {
    channel_.server = fields_.TextOr("server", "");
    if (!fields_.Failed("server") && !absl::StartsWith(channel_.server, "smtp://") &&
        !absl::StartsWith(channel_.server, "smtps://")) {
      fields_.Error("server", absl::StrCat(fields_.Path("server"), " is no mail server"),
                    "write smtps://HOST, or smtp://HOST:587 for STARTTLS");
    }
    channel_.tls = fields_.BoolOr("tls", true);
    channel_.from = fields_.TextOr("from", "");
    if (channel_.from.empty() && !fields_.Failed("from")) {
      fields_.Error("from", absl::StrCat(fields_.path(), " has no from"), "write name@host");
    } else if (!channel_.from.empty()) {
      CheckAddress("from", channel_.from);
    }
    channel_.to = fields_.TextsOr("to", {});
    if (channel_.to.empty() && !fields_.Failed("to")) {
      fields_.Error("to", absl::StrCat(fields_.path(), " has no to"), "write [name@host]");
    }
    for (const std::string& to : channel_.to) {
      if (!to.empty()) CheckAddress("to", to);
    }
    channel_.user = fields_.TextOr("user", "");
    channel_.password = SecretOr(fields_, "password", Secrecy::kSecret, !channel_.user.empty());
    if (!channel_.password.empty() && channel_.user.empty() && !fields_.Failed("user")) {
      fields_.Error("password", absl::StrCat(fields_.path(), " has a password and no user"),
                    "write user: NAME");
    }
    ReadCa();
  }

  void ReadCommand() {
    channel_.command = fields_.TextsOr("command", {});
    if ((channel_.command.empty() || channel_.command[0].empty()) && !fields_.Failed("command")) {
      fields_.Error("command", absl::StrCat(fields_.Path("command"), " names no program"),
                    "write the program first: [\"/usr/local/bin/page\"]");
    }
    channel_.env = Secrets("env");
    for (const auto& [name, value] : channel_.env) {
      if (const absl::Status status = CheckEnvName(name); !status.ok()) {
        fields_.Error("env", status.message(), "");
      }
    }
  }

  const std::string& file_;
  Fields& fields_;
  Channel& channel_;
};

SecretText WithPath(SecretText url, absl::string_view path) {
  if (!url.text.empty()) absl::StrAppend(&url.text, path);
  url.then = std::string(path);
  return url;
}

void ReadPing(Fields& fields, PingConfig& ping) {
  const NodePtr node = fields.Get("ping");
  if (node == nullptr) return;
  const auto check = [&](const SecretText& url) {
    if (url.text.empty() || absl::StartsWith(url.text, "http://") ||
        absl::StartsWith(url.text, "https://")) {
      return;
    }
    fields.Error("ping", "ping: no address of a web server", "write https://HOST/PATH");
  };
  const bool whole = node->kind == YamlNode::Kind::kScalar ||
                     (node->kind == YamlNode::Kind::kMap && node->entries.size() == 1 &&
                      (node->Find("env") != nullptr || node->Find("file") != nullptr));
  if (whole) {
    ping.success = ChannelReader::SecretOr(fields, "ping", Secrecy::kMayBePlain, true);
    ping.start = WithPath(ping.success, "/start");
    ping.fail = WithPath(ping.success, "/fail");
    check(ping.success);
    return;
  }
  Fields map = fields.Map("ping");
  for (const auto& [key, to] : {std::pair<const char*, SecretText*>{"start", &ping.start},
                                {"success", &ping.success},
                                {"fail", &ping.fail}}) {
    *to = ChannelReader::SecretOr(map, key, Secrecy::kMayBePlain, false);
    check(*to);
  }
  ping.timeout = map.DurationOr("timeout", ping.timeout, absl::Seconds(1), absl::Seconds(60));
  map.Finish();
  if (ping.success.empty() && !fields.Failed("ping") && !map.Failed("success")) {
    map.Error("success", "ping has no success", "write success: https://HOST/PATH");
  }
}

}  // namespace

void ReadAlertConfig(const std::string& file, Fields& fields, AlertConfig& config) {
  ReadPing(fields, config.ping);
  const NodePtr node = fields.Get("alerts");
  if (node == nullptr) return;
  Fields alerts = fields.Map("alerts");
  if (fields.Failed("alerts")) return;
  const absl::Duration remind = ChannelReader::ReadRemind(alerts, absl::Hours(24));
  config.digest = alerts.IntOr("digest", config.digest, 1, 1000);
  const NodePtr channels = alerts.Get("channels");
  Fields named = alerts.Map("channels");
  if (channels == nullptr) {
    if (!alerts.Failed("channels")) {
      alerts.Error("channels", "alerts has no channels",
                   "write channels: { ops: { kind: slack, url: { env: SLACK_URL } } }");
    }
    alerts.Finish();
    return;
  }
  alerts.Finish();
  if (alerts.Failed("channels")) return;
  for (const Entry& entry : channels->entries) {
    if (const absl::Status status = CheckName("channel", entry.key); !status.ok()) {
      named.Error(entry.key, status.message(), "");
    }
    Channel channel;
    channel.name = entry.key;
    channel.remind = remind;
    Fields map = named.Map(entry.key);
    if (!named.Failed(entry.key)) ChannelReader(file, map, channel).Read();
    config.channels.push_back(std::move(channel));
  }
  named.Finish();
  std::sort(config.channels.begin(), config.channels.end(),
            [](const Channel& a, const Channel& b) { return a.name < b.name; });
}

void ReadJobAlerts(Fields& fields, Job& job) {
  if (!fields.Has("alerts")) return;
  std::vector<std::string> names = fields.TextsOr("alerts", {});
  if (fields.Failed("alerts")) return;
  if (names == std::vector<std::string>{"none"}) names.clear();
  for (const std::string& name : names) {
    if (const absl::Status status = CheckName("alerts: channel", name); !status.ok()) {
      fields.Error("alerts", status.message(), "");
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  job.alerts = std::move(names);
}

}  // namespace matins
