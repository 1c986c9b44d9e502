// What each kind of receiver is sent, with signatures that were worked out by another program
// (Python's hmac), and what their answers mean.
#include "send/payload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "send/sign.h"
#include "tests/support/assert_ok.h"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Pair;

const absl::Time kNow = absl::FromUnixSeconds(1793318400);

AlertMessage Message() {
  AlertMessage message;
  message.id = "7.1.fire.3";
  message.subject = "recon 2026-10-29 failed";
  message.text = "recon 2026-10-29 FAILED: \"exit\" <1> & 对账";
  message.node = "node:n1";
  AlertRow row;
  row.key = {"gap", "recon", "2026-10-29"};
  message.alerts = {row};
  return message;
}

Channel Of(ChannelKind kind, bool secret = true) {
  setenv("MATINS_TEST_SECRET", "hush", 1);
  Channel channel;
  channel.name = "c";
  channel.kind = kind;
  channel.url.text = "https://h/hook";
  if (secret) channel.secret.env = "MATINS_TEST_SECRET";
  return channel;
}

TEST(Sign, AgreesWithRfc4231) {
  ASSERT_OK_AND_ASSIGN(const std::string mac, HmacSha256("Jefe", "what do ya want for nothing?"));
  EXPECT_EQ(absl::BytesToHexString(mac),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(Call, OfSlackEscapesWhatSlackReads) {
  ASSERT_OK_AND_ASSIGN(const HttpCall call,
                       CallOf(Of(ChannelKind::kSlack, false), Message(), kNow));
  EXPECT_EQ(call.url, "https://h/hook");
  const auto json = nlohmann::json::parse(call.body);
  EXPECT_EQ(json["text"],
            "[matins] recon 2026-10-29 failed\nrecon 2026-10-29 FAILED: \"exit\" &lt;1&gt; &amp; "
            "对账");
  EXPECT_THAT(call.headers, Contains(Pair("Content-Type", "application/json; charset=utf-8")));
}

TEST(Call, OfFeishuIsSignedInItsBody) {
  ASSERT_OK_AND_ASSIGN(HttpCall call, CallOf(Of(ChannelKind::kFeishu), Message(), kNow));
  auto json = nlohmann::json::parse(call.body);
  EXPECT_EQ(json["timestamp"], "1793318400");
  EXPECT_EQ(json["sign"], "wlvgpu2fA/M2JJMsmiubHxtjG9IQvosAzEt/++99I/M=");
  EXPECT_EQ(json["msg_type"], "text");
  EXPECT_THAT(json["content"]["text"].get<std::string>(), HasSubstr("recon 2026-10-29 FAILED"));
  ASSERT_OK_AND_ASSIGN(call, CallOf(Of(ChannelKind::kFeishu, false), Message(), kNow));
  json = nlohmann::json::parse(call.body);
  EXPECT_FALSE(json.contains("sign"));
}

TEST(Call, OfDingtalkIsSignedInItsAddress) {
  Channel channel = Of(ChannelKind::kDingtalk);
  channel.url.text = "https://h/send?access_token=t";
  ASSERT_OK_AND_ASSIGN(const HttpCall call, CallOf(channel, Message(), kNow));
  EXPECT_EQ(call.url,
            "https://h/send?access_token=t&timestamp=1793318400000&sign="
            "%2BxRyqUpddsgstvt0Yby3Jz8RdffLDuLUNzFGFxJ9F3s%3D");
  const auto json = nlohmann::json::parse(call.body);
  EXPECT_EQ(json["msgtype"], "text");
  EXPECT_THAT(json["text"]["content"].get<std::string>(), HasSubstr("recon 2026-10-29"));
}

TEST(Call, OfWecomFitsItsLimitBetweenCharacters) {
  AlertMessage message = Message();
  message.text.clear();
  for (int i = 0; i < 2000; ++i) message.text += "账";
  ASSERT_OK_AND_ASSIGN(const HttpCall call, CallOf(Of(ChannelKind::kWecom, false), message, kNow));
  const std::string text = nlohmann::json::parse(call.body)["text"]["content"].get<std::string>();
  EXPECT_LE(text.size(), 2048u);
  EXPECT_TRUE(absl::EndsWith(text, "账\n..."));
}

TEST(Call, OfAWebhookHasItsTemplateHeadersAndSignature) {
  Channel channel = Of(ChannelKind::kWebhook);
  channel.body = R"({"a":1})";
  channel.headers["Authorization"] = {.env = "MATINS_TEST_SECRET"};
  ASSERT_OK_AND_ASSIGN(HttpCall call, CallOf(channel, Message(), kNow));
  EXPECT_EQ(call.body, R"({"a":1})");
  EXPECT_THAT(
      call.headers,
      AllOf(Contains(Pair("Authorization", "hush")),
            Contains(Pair("Idempotency-Key", "7.1.fire.3")),
            Contains(Pair("Matins-Signature",
                          "t=1793318400,v1="
                          "47832392d3d526178f0153cb88c7fea813c71083b93fe27570c29ac673399142"))));
  channel.body = R"({"text": "{{text}}", "job": "{{job}}"})";
  ASSERT_OK_AND_ASSIGN(call, CallOf(channel, Message(), kNow));
  const auto json = nlohmann::json::parse(call.body);
  EXPECT_EQ(json["text"], Message().text);
  EXPECT_EQ(json["job"], "recon");
  channel.body.clear();
  ASSERT_OK_AND_ASSIGN(call, CallOf(channel, Message(), kNow));
  EXPECT_EQ(nlohmann::json::parse(call.body)["subject"], Message().subject);
}

TEST(Call, WithoutItsSecretIsNoneAndSaysWhichAlone) {
  Channel channel = Of(ChannelKind::kFeishu);
  unsetenv("MATINS_TEST_SECRET");
  const absl::Status status = CallOf(channel, Message(), kNow).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("MATINS_TEST_SECRET"));
}

TEST(Call, AHeaderOfTwoLinesIsRefused) {
  Channel channel = Of(ChannelKind::kWebhook, false);
  channel.headers["X-A"] = {.text = "one\r\nX-B: two"};
  EXPECT_FALSE(CallOf(channel, Message(), kNow).ok());
}

TEST(Reply, ANoWithA200IsANo) {
  EXPECT_TRUE(JudgeReply(ChannelKind::kSlack, 200, "ok").ok());
  EXPECT_TRUE(JudgeReply(ChannelKind::kWebhook, 204, "").ok());
  EXPECT_TRUE(JudgeReply(ChannelKind::kFeishu, 200, R"({"code":0,"msg":"success"})").ok());
  EXPECT_TRUE(JudgeReply(ChannelKind::kFeishu, 200, R"({"StatusCode":0})").ok());
  EXPECT_TRUE(JudgeReply(ChannelKind::kDingtalk, 200, R"({"errcode":0,"errmsg":"ok"})").ok());
  EXPECT_TRUE(JudgeReply(ChannelKind::kWecom, 200, R"({"errcode":0})").ok());
  const absl::Status sign =
      JudgeReply(ChannelKind::kFeishu, 200, R"({"code":19021,"msg":"sign match fail"})");
  EXPECT_THAT(std::string(sign.message()), HasSubstr("sign match fail"));
  EXPECT_FALSE(JudgeReply(ChannelKind::kDingtalk, 200, R"({"errcode":310000})").ok());
  EXPECT_FALSE(JudgeReply(ChannelKind::kWecom, 200, R"({"errcode":93000})").ok());
  EXPECT_FALSE(JudgeReply(ChannelKind::kWecom, 200, "<html>").ok());
  EXPECT_FALSE(JudgeReply(ChannelKind::kSlack, 403, "no_service").ok());
  EXPECT_FALSE(JudgeReply(ChannelKind::kWebhook, 302, "").ok());
}

TEST(Mail, SaysItInUtf8WithoutLongLines) {
  Channel channel = Of(ChannelKind::kMail, false);
  channel.from = "matins@example.com";
  channel.to = {"a@example.com", "b@example.com"};
  AlertMessage message = Message();
  message.subject = "对账 2026-10-29 failed, and a subject that goes on for longer than a line may";
  const std::string mail = MailText(channel, message, kNow);
  EXPECT_THAT(mail, AllOf(HasSubstr("Date: Fri, 30 Oct 2026 00:00:00 +0000\r\n"),
                          HasSubstr("To: a@example.com,\r\n b@example.com\r\n"),
                          HasSubstr("Message-ID: <matins.7.1.fire.3@example.com>\r\n"),
                          HasSubstr("Subject: =?UTF-8?B?")));
  std::string subject;
  bool in_subject = false;
  for (absl::string_view line : absl::StrSplit(mail, "\r\n")) {
    EXPECT_LE(line.size(), 78u);
    if (absl::StartsWith(line, "Subject: ")) {
      in_subject = true;
      line.remove_prefix(9);
    } else if (in_subject && !absl::StartsWith(line, " ")) {
      in_subject = false;
    }
    if (!in_subject) continue;
    const size_t from = line.find("?B?") + 3;
    std::string part;
    ASSERT_TRUE(absl::Base64Unescape(line.substr(from, line.rfind("?=") - from), &part));
    subject += part;
  }
  EXPECT_EQ(subject, absl::StrCat("[matins] ", message.subject));
  std::string body = mail.substr(mail.find("\r\n\r\n") + 4), text;
  body.erase(
      std::remove_if(body.begin(), body.end(), [](char c) { return c == '\r' || c == '\n'; }),
      body.end());
  ASSERT_TRUE(absl::Base64Unescape(body, &text));
  EXPECT_THAT(text, HasSubstr("recon 2026-10-29 FAILED: \"exit\" <1> & 对账"));
}

}  // namespace
}  // namespace matins
