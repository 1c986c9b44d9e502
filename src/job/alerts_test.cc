#include "job/alerts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "job/json.h"
#include "job/parse.h"
#include "tests/support/assert_ok.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFile[] = R"(
alerts:
  remind: 4h
  digest: 3
  channels:
    ops: { kind: slack, url: { env: SLACK_URL } }
    cn: { kind: dingtalk, url: { file: /run/secrets/ding }, secret: { env: DING }, default: false }
    hook:
      kind: webhook
      url: https://example.com/in
      headers: { Authorization: { env: TOKEN }, X-Team: payments }
      body: '{"text": "{{subject}}", "job": "{{ job }}"}'
      remind: never
    post:
      kind: mail
      server: smtps://mail.example.com
      user: matins
      password: { file: /run/secrets/mail }
      from: matins@example.com
      to: [ops@example.com, night@example.com]
      ca_file: ca.pem
    page: { kind: command, command: [/usr/local/bin/page, --now], env: { KEY: { env: PAGE_KEY } } }
ping: { env: PING_URL }
jobs:
  - { name: a, schedule: "@daily", misfire: skip, run: { shell: "true" } }
  - { name: b, schedule: "@daily", misfire: skip, run: { shell: "true" }, alerts: [page, cn] }
  - { name: c, schedule: "@daily", misfire: skip, run: { shell: "true" }, alerts: none }
)";

TEST(AlertConfig, IsReadFromTheFile) {
  ASSERT_OK_AND_ASSIGN(const JobFile file, ParseJobText("/etc/matins.yaml", kFile));
  const AlertConfig& config = file.alerts;
  EXPECT_EQ(config.digest, 3);
  ASSERT_EQ(config.channels.size(), 5u);
  const Channel* ops = config.Find("ops");
  ASSERT_NE(ops, nullptr);
  EXPECT_EQ(ops->kind, ChannelKind::kSlack);
  EXPECT_EQ(ops->url.env, "SLACK_URL");
  EXPECT_EQ(ops->remind, absl::Hours(4));
  EXPECT_TRUE(ops->is_default);
  const Channel* cn = config.Find("cn");
  EXPECT_EQ(cn->url.file, "/run/secrets/ding");
  EXPECT_EQ(cn->secret.env, "DING");
  EXPECT_FALSE(cn->is_default);
  const Channel* hook = config.Find("hook");
  EXPECT_EQ(hook->remind, absl::InfiniteDuration());
  EXPECT_EQ(hook->headers.at("Authorization").env, "TOKEN");
  EXPECT_EQ(hook->headers.at("X-Team").text, "payments");
  const Channel* post = config.Find("post");
  EXPECT_THAT(post->to, ElementsAre("ops@example.com", "night@example.com"));
  EXPECT_EQ(post->ca_file, "/etc/ca.pem");
  EXPECT_TRUE(post->tls);
  EXPECT_THAT(config.Find("page")->command, ElementsAre("/usr/local/bin/page", "--now"));
  EXPECT_EQ(config.Find("page")->env.at("KEY").env, "PAGE_KEY");
  EXPECT_EQ(config.ping.success.env, "PING_URL");
  EXPECT_EQ(config.ping.start.then, "/start");
  EXPECT_EQ(config.ping.fail.then, "/fail");
}

TEST(AlertConfig, AJobNamesItsChannels) {
  ASSERT_OK_AND_ASSIGN(const JobFile file, ParseJobText("matins.yaml", kFile));
  EXPECT_FALSE(file.jobs[0].alerts);
  EXPECT_THAT(*file.jobs[1].alerts, ElementsAre("cn", "page"));
  EXPECT_THAT(*file.jobs[2].alerts, IsEmpty());
  for (const Job& job : file.jobs) {
    ASSERT_OK_AND_ASSIGN(const Job back, JobFromJson(JobToJson(job)));
    EXPECT_EQ(back, job);
  }
  EXPECT_THAT(JobToJson(file.jobs[0]), ::testing::Not(HasSubstr("alerts")));
}

TEST(AlertConfig, AChannelThatIsNotThereIsAMistake) {
  std::string text = kFile;
  text.replace(text.find("[page, cn]"), 10, "[pag]");
  const absl::Status status = ParseJobText("matins.yaml", text).status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("there is no channel 'pag'"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("page"));
}

TEST(AlertConfig, ASecretThatStandsInTheFileIsNotRepeated) {
  const absl::Status status =
      ParseJobText(
          "matins.yaml",
          "jobs: []\nalerts: { channels: { a: { kind: feishu, url: \"https://h/hush\" } } }")
          .status();
  EXPECT_THAT(std::string(status.message()), HasSubstr("is a secret"));
  EXPECT_THAT(std::string(status.message()), ::testing::Not(HasSubstr("hush")));
}

TEST(Secret, IsReadWhenItIsUsed) {
  setenv("MATINS_ALERTS_TEST", "one", 1);
  const SecretText by_env{.env = "MATINS_ALERTS_TEST", .then = "/start"};
  ASSERT_OK_AND_ASSIGN(std::string value, ReadSecret(by_env));
  EXPECT_EQ(value, "one/start");
  setenv("MATINS_ALERTS_TEST", "two", 1);
  ASSERT_OK_AND_ASSIGN(value, ReadSecret(by_env));
  EXPECT_EQ(value, "two/start");
  unsetenv("MATINS_ALERTS_TEST");
  EXPECT_EQ(ReadSecret(by_env).status().code(), absl::StatusCode::kFailedPrecondition);
  const std::string path = absl::StrCat(::testing::TempDir(), "/matins_secret");
  std::ofstream(path) << "three\n";
  ASSERT_OK_AND_ASSIGN(value, ReadSecret({.file = path}));
  EXPECT_EQ(value, "three");
  EXPECT_EQ(ReadSecret({.file = "/none"}).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_OK_AND_ASSIGN(value, ReadSecret({.text = "plain"}));
  EXPECT_EQ(value, "plain");
}

TEST(AlertTemplate, KnowsItsWords) {
  EXPECT_TRUE(CheckAlertTemplate("{\"a\": \"{{ text }}\"}").ok());
  EXPECT_TRUE(CheckAlertTemplate("").ok());
  EXPECT_FALSE(CheckAlertTemplate("{{text").ok());
  EXPECT_FALSE(CheckAlertTemplate("{{secret}}").ok());
}

}  // namespace
}  // namespace matins
