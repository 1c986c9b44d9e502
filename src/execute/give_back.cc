#include "execute/give_back.h"

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

constexpr size_t kPipeBytes = 64 << 10;

// Job names are bytes, JSON is UTF-8.
std::string Text(const nlohmann::json& object, const char* key) {
  std::string bytes;
  auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return "";
  return absl::Base64Unescape(it->get<std::string>(), &bytes) ? bytes : "";
}

int64_t Number(const nlohmann::json& object, const char* key) {
  int64_t number = 0;
  auto it = object.find(key);
  if (it == object.end() || !it->is_string()) return 0;
  return absl::SimpleAtoi(it->get<std::string>(), &number) ? number : 0;
}

}  // namespace

absl::StatusOr<std::string> GiveBackMessage(const RunRequest& request) {
  const nlohmann::json object = {
      {"store", absl::Base64Escape(request.give_back.store_url)},
      {"job", absl::Base64Escape(request.values.job)},
      {"period", absl::Base64Escape(request.values.period)},
      {"fence", std::to_string(request.run)},
      {"nonce", std::to_string(request.give_back.nonce)},
  };
  std::string message = object.dump() + "\n";
  if (message.size() >= kPipeBytes) {
    return absl::InvalidArgumentError(
        "the store's URL is too long to be given to a guard (48 KiB)");
  }
  return message;
}

absl::StatusOr<LeaseToGiveBack> ParseGiveBack(absl::string_view message) {
  const nlohmann::json object =
      nlohmann::json::parse(message.begin(), message.end(), nullptr, /*allow_exceptions=*/false);
  if (object.is_object()) {
    LeaseToGiveBack lease{.store_url = Text(object, "store"),
                          .job = Text(object, "job"),
                          .period = Text(object, "period"),
                          .fence = Number(object, "fence"),
                          .nonce = Number(object, "nonce")};
    if (!lease.store_url.empty() && !lease.job.empty() && lease.fence != 0) return lease;
  }
  return absl::InvalidArgumentError(
      "standard input is not what a guard writes; guard-return is started by guards, not by hand");
}

}  // namespace matins
