#include "send/curl_sender.h"

#include <atomic>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "send/carry.h"
#include "send/command.h"
#include "send/payload.h"

namespace matins {
namespace {

class CurlSender final : public AlertSender {
 public:
  absl::Status Send(const Channel& channel, const AlertMessage& message) override {
    if (stop_.load()) return absl::CancelledError("the node is stopping");
    switch (channel.kind) {
      case ChannelKind::kMail:
        return Mail(channel, message);
      case ChannelKind::kCommand:
        return RunCommand(channel, message, stop_);
      default:
        return Post(channel, message);
    }
  }

  absl::Status Ping(const SecretText& secret, absl::Duration timeout) override {
    ASSIGN_OR_RETURN(const std::string url, ReadSecret(secret));
    ASSIGN_OR_RETURN(const CarrierReply reply,
                     Carry({{"protocols", "http,https"}, {"url", url}}, timeout, stop_));
    return JudgeReply(ChannelKind::kWebhook, reply.status, reply.body);
  }

  void Stop() override { stop_.store(true); }

 private:
  absl::Status Post(const Channel& channel, const AlertMessage& message) {
    ASSIGN_OR_RETURN(const HttpCall call, CallOf(channel, message, SystemClock().WallNow()));
    // An answer that is asked for before the body is sent only costs a second.
    CarrierItems items = {
        {"protocols", "http,https"}, {"url", call.url}, {"post", call.body}, {"header", "Expect:"}};
    for (const auto& [name, value] : call.headers) {
      items.emplace_back("header", absl::StrCat(name, ": ", value));
    }
    if (!channel.ca_file.empty()) items.emplace_back("ca_file", channel.ca_file);
    ASSIGN_OR_RETURN(const CarrierReply reply, Carry(items, channel.timeout, stop_));
    return JudgeReply(channel.kind, reply.status, reply.body);
  }

  absl::Status Mail(const Channel& channel, const AlertMessage& message) {
    CarrierItems items = {{"protocols", "smtp,smtps"},
                          {"url", channel.server},
                          {"tls", channel.tls ? "must" : "may"},
                          {"from", absl::StrCat("<", channel.from, ">")},
                          {"mail", MailText(channel, message, SystemClock().WallNow())}};
    for (const std::string& to : channel.to) items.emplace_back("to", absl::StrCat("<", to, ">"));
    if (!channel.user.empty()) {
      ASSIGN_OR_RETURN(std::string password, ReadSecret(channel.password));
      items.emplace_back("user", channel.user);
      items.emplace_back("password", std::move(password));
    }
    if (!channel.ca_file.empty()) items.emplace_back("ca_file", channel.ca_file);
    return Carry(items, channel.timeout, stop_).status();
  }

  std::atomic<bool> stop_{false};
};

}  // namespace

std::unique_ptr<AlertSender> NewCurlSender() { return std::make_unique<CurlSender>(); }

}  // namespace matins
