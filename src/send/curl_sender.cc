#include "send/curl_sender.h"

#include <curl/curl.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "send/command.h"
#include "send/payload.h"

namespace matins {
namespace {

constexpr size_t kMostOfReply = 4096;

void StartLibrary() {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
}

size_t KeepReply(char* data, size_t size, size_t count, void* reply) {
  auto& kept = *static_cast<std::string*>(reply);
  kept.append(data, std::min(size * count, kMostOfReply - std::min(kMostOfReply, kept.size())));
  return size * count;
}

struct Upload {
  absl::string_view rest;
};

size_t GiveUpload(char* data, size_t size, size_t count, void* upload) {
  absl::string_view& rest = static_cast<Upload*>(upload)->rest;
  const size_t n = std::min(size * count, rest.size());
  std::memcpy(data, rest.data(), n);
  rest.remove_prefix(n);
  return n;
}

int AskStop(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::atomic<bool>*>(stop)->load() ? 1 : 0;
}

// One transfer, and what belongs to it.
class Transfer {
 public:
  Transfer(const std::atomic<bool>& stop, absl::Duration timeout) : easy_(curl_easy_init()) {
    Set(CURLOPT_NOSIGNAL, 1L);
    Set(CURLOPT_NOPROGRESS, 0L);
    Set(CURLOPT_XFERINFOFUNCTION, &AskStop);
    Set(CURLOPT_XFERINFODATA, const_cast<std::atomic<bool>*>(&stop));
    Set(CURLOPT_TIMEOUT_MS, static_cast<long>(absl::ToInt64Milliseconds(timeout)));
    Set(CURLOPT_WRITEFUNCTION, &KeepReply);
    Set(CURLOPT_WRITEDATA, &reply_);
    Set(CURLOPT_USERAGENT, "matins");
  }
  ~Transfer() {
    curl_slist_free_all(list_);
    curl_easy_cleanup(easy_);
  }
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;

  template <typename T>
  void Set(CURLoption option, T value) {
    if (easy_ != nullptr) curl_easy_setopt(easy_, option, value);
  }
  void Trust(const std::string& ca_file) {
    if (!ca_file.empty()) Set(CURLOPT_CAINFO, ca_file.c_str());
  }
  void Add(const std::string& line) { list_ = curl_slist_append(list_, line.c_str()); }
  curl_slist* list() const { return list_; }
  const std::string& reply() const { return reply_; }

  // The words are libcurl's for the kind of error; its details may name the address.
  absl::Status Run() {
    if (easy_ == nullptr) return absl::InternalError("libcurl gave no handle");
    const CURLcode code = curl_easy_perform(easy_);
    if (code == CURLE_OK) return absl::OkStatus();
    if (code == CURLE_ABORTED_BY_CALLBACK) return absl::CancelledError("the node is stopping");
    std::string why = curl_easy_strerror(code);
    long answered = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &answered);
    if (answered != 0) absl::StrAppend(&why, " (", answered, ")");
    if (code == CURLE_OPERATION_TIMEDOUT) return absl::DeadlineExceededError(why);
    return absl::UnavailableError(why);
  }
  int HttpStatus() const {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

 private:
  CURL* easy_;
  curl_slist* list_ = nullptr;
  std::string reply_;
};

class CurlSender final : public AlertSender {
 public:
  CurlSender() { StartLibrary(); }

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
    Transfer transfer(stop_, timeout);
    transfer.Set(CURLOPT_URL, url.c_str());
    transfer.Set(CURLOPT_PROTOCOLS_STR, "http,https");
    RETURN_IF_ERROR(transfer.Run());
    return JudgeReply(ChannelKind::kWebhook, transfer.HttpStatus(), transfer.reply());
  }

  void Stop() override { stop_.store(true); }

 private:
  absl::Status Post(const Channel& channel, const AlertMessage& message) {
    ASSIGN_OR_RETURN(const HttpCall call, CallOf(channel, message, SystemClock().WallNow()));
    Transfer transfer(stop_, channel.timeout);
    transfer.Set(CURLOPT_URL, call.url.c_str());
    transfer.Set(CURLOPT_PROTOCOLS_STR, "http,https");
    transfer.Set(CURLOPT_POST, 1L);
    transfer.Set(CURLOPT_POSTFIELDS, call.body.data());
    transfer.Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(call.body.size()));
    // An answer that is asked for before the body is sent only costs a second.
    transfer.Add("Expect:");
    for (const auto& [name, value] : call.headers) transfer.Add(absl::StrCat(name, ": ", value));
    transfer.Set(CURLOPT_HTTPHEADER, transfer.list());
    transfer.Trust(channel.ca_file);
    RETURN_IF_ERROR(transfer.Run());
    return JudgeReply(channel.kind, transfer.HttpStatus(), transfer.reply());
  }

  absl::Status Mail(const Channel& channel, const AlertMessage& message) {
    const std::string text = MailText(channel, message, SystemClock().WallNow());
    Upload upload{text};
    std::string password;
    Transfer transfer(stop_, channel.timeout);
    transfer.Set(CURLOPT_URL, channel.server.c_str());
    transfer.Set(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    transfer.Set(CURLOPT_USE_SSL, static_cast<long>(channel.tls ? CURLUSESSL_ALL : CURLUSESSL_TRY));
    if (!channel.user.empty()) {
      ASSIGN_OR_RETURN(password, ReadSecret(channel.password));
      transfer.Set(CURLOPT_USERNAME, channel.user.c_str());
      transfer.Set(CURLOPT_PASSWORD, password.c_str());
    }
    const std::string from = absl::StrCat("<", channel.from, ">");
    transfer.Set(CURLOPT_MAIL_FROM, from.c_str());
    for (const std::string& to : channel.to) transfer.Add(absl::StrCat("<", to, ">"));
    transfer.Set(CURLOPT_MAIL_RCPT, transfer.list());
    transfer.Set(CURLOPT_UPLOAD, 1L);
    transfer.Set(CURLOPT_READFUNCTION, &GiveUpload);
    transfer.Set(CURLOPT_READDATA, &upload);
    transfer.Trust(channel.ca_file);
    return transfer.Run();
  }

  std::atomic<bool> stop_{false};
};

}  // namespace

std::unique_ptr<AlertSender> NewCurlSender() { return std::make_unique<CurlSender>(); }

}  // namespace matins
