// Messages that go over real connections: HTTP and SMTP, with and without TLS, and to programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "send/curl_sender.h"
#include "tests/support/assert_ok.h"
#include "tests/support/talk_server.h"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::HttpServer;
using ::testing::Not;
using ::testing::SizeIs;
using testing::SmtpServer;

AlertMessage Message() {
  AlertMessage message;
  message.id = "7.1.fire.3";
  message.subject = "recon 2026-10-29 failed";
  message.text = "recon 2026-10-29 FAILED: exit\n.a line with a point";
  message.node = "node:n1";
  return message;
}

class Sender : public ::testing::Test {
 protected:
  static Channel Hook(const std::string& url) {
    Channel channel;
    channel.name = "hook";
    channel.url.text = url;
    return channel;
  }
  static Channel Post(const SmtpServer& server) {
    Channel channel;
    channel.name = "post";
    channel.kind = ChannelKind::kMail;
    channel.server = server.url();
    channel.from = "matins@example.com";
    channel.to = {"a@example.com", "b@example.com"};
    channel.ca_file = server.ca_file();
    return channel;
  }
  static Channel Program(const std::string& script) {
    Channel channel;
    channel.kind = ChannelKind::kCommand;
    channel.command = {"/bin/sh", "-c", script};
    return channel;
  }
  absl::Status Send(const Channel& channel) { return sender_->Send(channel, Message()); }

  const std::unique_ptr<AlertSender> sender_ = NewCurlSender();
};

TEST_F(Sender, PostsToAWebhook) {
  HttpServer server;
  ASSERT_OK(Send(Hook(server.url("/in?a=b"))));
  ASSERT_THAT(server.requests(), SizeIs(1));
  const HttpServer::Request request = server.requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.path, "/in?a=b");
  EXPECT_EQ(request.headers.at("content-type"), "application/json");
  EXPECT_EQ(request.headers.at("idempotency-key"), "7.1.fire.3");
  EXPECT_EQ(request.headers.at("user-agent"), "matins");
  EXPECT_EQ(nlohmann::json::parse(request.body)["subject"], "recon 2026-10-29 failed");
}

TEST_F(Sender, SaysWhatWasAnswered) {
  HttpServer server;
  server.Answer(503, "come back later");
  const absl::Status status = Send(Hook(server.url("/hush")));
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("503"), HasSubstr("come back later"), Not(HasSubstr("hush"))));
}

TEST_F(Sender, DoesNotWaitForAServerThatSaysNothing) {
  HttpServer server;
  server.Answer(0, "");
  Channel channel = Hook(server.url("/hush"));
  channel.timeout = absl::Seconds(1);
  const absl::Status status = Send(channel);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("hush")));
}

TEST_F(Sender, IsStoppedWhileItWaits) {
  HttpServer server;
  server.Answer(0, "");
  Channel channel = Hook(server.url("/"));
  channel.timeout = absl::Seconds(60);
  std::thread stopper([&] {
    while (server.requests().empty()) std::this_thread::yield();
    sender_->Stop();
  });
  EXPECT_EQ(Send(channel).code(), absl::StatusCode::kCancelled);
  stopper.join();
  EXPECT_EQ(Send(channel).code(), absl::StatusCode::kCancelled);
}

TEST_F(Sender, TalksTlsAndBelievesNobodyElse) {
  HttpServer server(true);
  Channel channel = Hook(server.url("/in"));
  EXPECT_FALSE(Send(channel).ok()) << "its authority is not the system's";
  channel.ca_file = server.ca_file();
  ASSERT_OK(Send(channel));
  EXPECT_THAT(server.requests(), SizeIs(1));
}

TEST_F(Sender, CallsAnAddress) {
  HttpServer server;
  ASSERT_OK(sender_->Ping({.text = server.url("/x/start")}, absl::Seconds(10)));
  ASSERT_THAT(server.requests(), SizeIs(1));
  EXPECT_EQ(server.requests()[0].method, "GET");
  EXPECT_EQ(server.requests()[0].path, "/x/start");
  server.Answer(404, "");
  EXPECT_FALSE(sender_->Ping({.text = server.url("/x")}, absl::Seconds(10)).ok());
}

TEST_F(Sender, OfOtherKindsOfAddressesCallsNone) {
  EXPECT_FALSE(Send(Hook("file:///etc/passwd")).ok());
}

TEST_F(Sender, MailsToEach) {
  SmtpServer server;
  Channel channel = Post(server);
  channel.tls = false;
  ASSERT_OK(Send(channel));
  ASSERT_THAT(server.mails(), SizeIs(1));
  const SmtpServer::Mail mail = server.mails()[0];
  EXPECT_EQ(mail.from, "<matins@example.com>");
  EXPECT_THAT(mail.to, ElementsAre("<a@example.com>", "<b@example.com>"));
  EXPECT_THAT(mail.text, HasSubstr("Subject: [matins] recon 2026-10-29 failed\n"));
  EXPECT_FALSE(mail.secure);
}

TEST_F(Sender, MailsBehindTlsOrNotAtAll) {
  SmtpServer plain;
  EXPECT_FALSE(Send(Post(plain)).ok()) << "a server without STARTTLS";
  EXPECT_THAT(plain.mails(), SizeIs(0));
  SmtpServer start(SmtpServer::Tls::kStart);
  setenv("MATINS_TEST_MAIL", "hush", 1);
  Channel channel = Post(start);
  channel.user = "matins";
  channel.password.env = "MATINS_TEST_MAIL";
  ASSERT_OK(Send(channel));
  ASSERT_THAT(start.mails(), SizeIs(1));
  EXPECT_TRUE(start.mails()[0].secure);
  EXPECT_EQ(start.mails()[0].user, "matins");
  EXPECT_EQ(start.mails()[0].password, "hush");
  SmtpServer whole(SmtpServer::Tls::kWhole);
  ASSERT_OK(Send(Post(whole)));
  EXPECT_TRUE(whole.mails().at(0).secure);
  Channel stranger = Post(whole);
  stranger.ca_file = start.ca_file();
  EXPECT_FALSE(Send(stranger).ok()) << "another authority's";
}

TEST_F(Sender, AMailThatIsRefusedWasNotSent) {
  SmtpServer server;
  server.Answer("554 no");
  Channel channel = Post(server);
  channel.tls = false;
  const absl::Status status = Send(channel);
  EXPECT_THAT(std::string(status.message()), HasSubstr("554"));
}

TEST_F(Sender, GivesAProgramTheMessageOnItsInputAndSecretsInItsEnvironment) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/matins_command_test");
  setenv("MATINS_TEST_KEY", "hush", 1);
  Channel channel = Program(absl::StrCat("cat > ", path, "; tr '\\0' ' ' < /proc/$$/cmdline >> ",
                                         path, "; env >> ", path));
  channel.env["KEY"] = {.env = "MATINS_TEST_KEY"};
  ASSERT_OK(Send(channel));
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_THAT(text.str(), AllOf(HasSubstr("\"subject\":\"recon 2026-10-29 failed\""),
                                HasSubstr("\nKEY=hush"), Not(HasSubstr("MATINS_TEST_KEY"))));
}

TEST_F(Sender, SaysHowAProgramEnded) {
  EXPECT_THAT(std::string(Send(Program("exit 3")).message()), HasSubstr("exit code 3"));
  EXPECT_THAT(std::string(Send(Program("kill -9 $$")).message()), HasSubstr("signal 9"));
  Channel none;
  none.kind = ChannelKind::kCommand;
  none.command = {"/no/such/program"};
  EXPECT_THAT(std::string(Send(none).message()), HasSubstr("is not there"));
}

TEST_F(Sender, KillsAProgramThatDoesNotEnd) {
  Channel channel = Program("sleep 1000 & wait");
  channel.timeout = absl::Seconds(1);
  EXPECT_EQ(Send(channel).code(), absl::StatusCode::kDeadlineExceeded);
}

}  // namespace
}  // namespace matins
