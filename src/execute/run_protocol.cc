#include "execute/run_protocol.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

using nlohmann::json;

json Parse(absl::string_view line) {
  return json::parse(line.begin(), line.end(), nullptr, /*allow_exceptions=*/false);
}

std::string Text(const json& object, const char* key) {
  auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

// Bytes that are no UTF-8 become replacement characters, never an exception.
std::string Dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

const char* AskText(AskKind kind) {
  switch (kind) {
    case AskKind::kCheckpoint:
      return "checkpoint";
    case AskKind::kResult:
      return "result";
    case AskKind::kFence:
      return "fence";
  }
  return "";
}

absl::StatusCode CodeOf(const std::string& text) {
  for (int code = 1; code <= 16; ++code) {
    if (absl::StatusCodeToString(static_cast<absl::StatusCode>(code)) == text) {
      return static_cast<absl::StatusCode>(code);
    }
  }
  return absl::StatusCode::kUnknown;
}

}  // namespace

std::string QuestionLine(const RunQuestion& question) {
  json object = {{"key", question.key}, {"ask", AskText(question.kind)}};
  if (question.kind == AskKind::kCheckpoint) object["number"] = question.number;
  if (question.kind != AskKind::kFence) {
    object["payload_base64"] = absl::Base64Escape(question.payload);
  }
  return Dump(object);
}

absl::StatusOr<RunQuestion> ParseQuestion(absl::string_view line) {
  const json object = Parse(line);
  if (!object.is_object()) return absl::InvalidArgumentError("not a JSON object in one line");
  RunQuestion question{.key = Text(object, "key"), .payload = Text(object, "payload")};
  const std::string encoded = Text(object, "payload_base64");
  if (!encoded.empty() && !absl::Base64Unescape(encoded, &question.payload)) {
    return absl::InvalidArgumentError("payload_base64 is not base64");
  }
  if (question.payload.size() > kMaxRunPayload) {
    return absl::InvalidArgumentError(
        "the payload has more than 1 MiB; store it elsewhere and "
        "pass its name");
  }
  const std::string ask = Text(object, "ask");
  if (ask == "fence") return question;
  if (ask == "result") {
    question.kind = AskKind::kResult;
    if (Parse(question.payload).is_discarded()) {
      return absl::InvalidArgumentError("the result is not JSON");
    }
    return question;
  }
  if (ask != "checkpoint") {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown ask '", ask, "'; it is checkpoint, result or fence"));
  }
  question.kind = AskKind::kCheckpoint;
  auto number = object.find("number");
  if (number == object.end() || !number->is_number_integer() || number->get<int64_t>() < 1) {
    return absl::InvalidArgumentError("a checkpoint needs a whole number from 1 on, that rises");
  }
  question.number = number->get<int64_t>();
  return question;
}

std::string AnswerLine(const RunAnswer& answer) {
  if (answer.status.ok()) return Dump(json{{"ok", true}, {"text", answer.text}});
  return Dump(json{{"ok", false},
                   {"code", absl::StatusCodeToString(answer.status.code())},
                   {"error", std::string(answer.status.message())}});
}

absl::StatusOr<std::string> ParseAnswer(absl::string_view line) {
  const json object = Parse(line);
  auto ok = object.is_object() ? object.find("ok") : object.end();
  if (!object.is_object() || ok == object.end() || !ok->is_boolean()) {
    return absl::DataLossError(
        "the node's answer cannot be read; whether it took effect is not "
        "known");
  }
  if (ok->get<bool>()) return Text(object, "text");
  return absl::Status(CodeOf(Text(object, "code")), Text(object, "error"));
}

}  // namespace matins
