#include "send/payload.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "nlohmann/json.hpp"
#include "send/sign.h"

namespace matins {
namespace {

using Json = nlohmann::json;

// What receivers take at most, in bytes of text, with room for what is around it.
constexpr size_t kWecomText = 2000;
constexpr size_t kOtherText = 18'000;
constexpr size_t kShownReply = 200;

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Cut between characters.
std::string Cut(absl::string_view text, size_t most) {
  if (text.size() <= most) return std::string(text);
  size_t end = most - 4;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "\n...");
}

std::string Words(const AlertMessage& message, size_t most) {
  return Cut(absl::StrCat("[matins] ", message.subject, "\n", message.text), most);
}

// Slack reads < > & as its own.
std::string ForSlack(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

std::string Percent(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      out += c;
    } else {
      absl::StrAppendFormat(&out, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return out;
}

absl::Status Webhook(const Channel& channel, const AlertMessage& message, absl::Time now,
                     HttpCall& call) {
  const absl::string_view type = channel.content_type;
  const Escape escape = absl::StrContains(type, "json")                    ? Escape::kJson
                        : absl::StrContains(type, "x-www-form-urlencoded") ? Escape::kForm
                                                                           : Escape::kNone;
  call.body =
      channel.body.empty() ? MessageJson(message) : RenderBody(channel.body, message, escape);
  call.headers = {{"Content-Type", channel.content_type}, {"Idempotency-Key", message.id}};
  for (const auto& [name, secret] : channel.headers) {
    ASSIGN_OR_RETURN(const std::string value, ReadSecret(secret));
    if (value.find_first_of("\r\n") != std::string::npos) {
      return absl::FailedPreconditionError(
          absl::StrCat("header ", name, " has a line end in it; write it on one line"));
    }
    call.headers.emplace_back(name, value);
  }
  if (channel.secret.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string secret, ReadSecret(channel.secret));
  ASSIGN_OR_RETURN(std::string signature, WebhookSignature(secret, call.body, now));
  call.headers.emplace_back("Matins-Signature", std::move(signature));
  return absl::OkStatus();
}

// The number at `key` of a JSON answer; nothing of one that is none.
bool CodeOf(const Json& reply, const char* key, int64_t* code) {
  if (!reply.is_object()) return false;
  const auto value = reply.find(key);
  if (value == reply.end() || !value->is_number_integer()) return false;
  *code = value->get<int64_t>();
  return true;
}

std::string Printable(absl::string_view text) {
  std::string out;
  for (const char c : text.substr(0, kShownReply)) out += absl::ascii_iscntrl(c) ? ' ' : c;
  return out;
}

// RFC 2047, where a header has more than ASCII; lines of at most 75 characters.
std::string HeaderText(absl::string_view text) {
  const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isascii(static_cast<unsigned char>(c)) && absl::ascii_isprint(c);
  });
  if (plain) return std::string(text.substr(0, 900));
  std::vector<std::string> words;
  while (!text.empty()) {
    size_t end = std::min<size_t>(text.size(), 42);
    while (end < text.size() && end > 1 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
      --end;
    }
    words.push_back(absl::StrCat("=?UTF-8?B?", absl::Base64Escape(text.substr(0, end)), "?="));
    text.remove_prefix(end);
  }
  return absl::StrJoin(words, "\r\n ");
}

}  // namespace

absl::StatusOr<HttpCall> CallOf(const Channel& channel, const AlertMessage& message,
                                absl::Time now) {
  HttpCall call;
  ASSIGN_OR_RETURN(call.url, ReadSecret(channel.url));
  std::string secret;
  if (!channel.secret.empty()) {
    ASSIGN_OR_RETURN(secret, ReadSecret(channel.secret));
  }
  call.headers = {{"Content-Type", "application/json; charset=utf-8"}};
  switch (channel.kind) {
    case ChannelKind::kSlack:
      call.body = Dump({{"text", ForSlack(Words(message, kOtherText))}});
      break;
    case ChannelKind::kFeishu: {
      Json json = {{"msg_type", "text"}, {"content", {{"text", Words(message, kOtherText)}}}};
      if (!secret.empty()) {
        json["timestamp"] = absl::StrCat(absl::ToUnixSeconds(now));
        ASSIGN_OR_RETURN(json["sign"], FeishuSign(secret, now));
      }
      call.body = Dump(json);
      break;
    }
    case ChannelKind::kDingtalk:
      call.body = Dump({{"msgtype", "text"}, {"text", {{"content", Words(message, kOtherText)}}}});
      if (!secret.empty()) {
        ASSIGN_OR_RETURN(const std::string sign, DingtalkSign(secret, now));
        absl::StrAppend(&call.url, absl::StrContains(call.url, '?') ? "&" : "?",
                        "timestamp=", absl::ToUnixMillis(now), "&sign=", Percent(sign));
      }
      break;
    case ChannelKind::kWecom:
      call.body = Dump({{"msgtype", "text"}, {"text", {{"content", Words(message, kWecomText)}}}});
      break;
    default:
      RETURN_IF_ERROR(Webhook(channel, message, now, call));
  }
  return call;
}

absl::Status JudgeReply(ChannelKind kind, int http_status, absl::string_view body) {
  if (http_status < 200 || http_status > 299) {
    return absl::UnavailableError(
        absl::StrCat("it answered ", http_status, body.empty() ? "" : ": ", Printable(body)));
  }
  const char* key = nullptr;
  if (kind == ChannelKind::kDingtalk || kind == ChannelKind::kWecom) key = "errcode";
  if (kind == ChannelKind::kFeishu) key = "code";
  if (key == nullptr) return absl::OkStatus();
  const Json reply = Json::parse(body.begin(), body.end(), nullptr, /*allow_exceptions=*/false);
  int64_t code = 0;
  // An older form of Feishu's answer.
  const bool known = CodeOf(reply, key, &code) || CodeOf(reply, "StatusCode", &code);
  if (known && code == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("it answered ", Printable(body)));
}

std::string MailText(const Channel& channel, const AlertMessage& message, absl::Time now) {
  const absl::string_view host = absl::string_view(channel.from).substr(channel.from.find('@') + 1);
  std::string mail = absl::StrCat(
      "Date: ", absl::FormatTime("%a, %d %b %Y %H:%M:%S +0000", now, absl::UTCTimeZone()),
      "\r\nFrom: Matins <", channel.from, ">\r\nTo: ", absl::StrJoin(channel.to, ",\r\n "),
      "\r\nSubject: ", HeaderText(absl::StrCat("[matins] ", message.subject)),
      "\r\nMessage-ID: <matins.", message.id, "@", host, ">\r\nAuto-Submitted: auto-generated",
      "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8",
      "\r\nContent-Transfer-Encoding: base64\r\n\r\n");
  const std::string text = absl::Base64Escape(
      absl::StrCat(absl::StrJoin(absl::StrSplit(message.text, '\n'), "\r\n"), "\r\n\r\nsent by ",
                   message.node, ", message ", message.id, "\r\n"));
  constexpr size_t kLine = 76;
  for (size_t at = 0; at < text.size(); at += kLine) {
    absl::StrAppend(&mail, text.substr(at, kLine), "\r\n");
  }
  return mail;
}

}  // namespace matins
