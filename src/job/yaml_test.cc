#include "job/yaml.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/parse.h"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

std::vector<std::string> ProblemsOf(const std::string& text) {
  Problems problems;
  ReadYaml("m.yaml", text, problems);
  std::vector<std::string> texts;
  for (const Problem& problem : problems.all()) texts.push_back(problem.Text());
  return texts;
}

TEST(ReadYaml, KeepsScalarsAsTheyAreWritten) {
  Problems problems;
  const NodePtr root = ReadYaml("m.yaml",
                                "no: no\noctal: 022\nsixty: 1:30\nfloat: 1.10\ndate: 2026-10-01\n"
                                "quoted: 'yes'\ntext: !!str 5\ntilde: ~\nlines: |\n  a\n  b\n",
                                problems);
  EXPECT_THAT(problems.all(), IsEmpty());
  ASSERT_NE(root, nullptr);
  const auto text = [&](const char* key) { return root->Find(key)->value->text; };
  EXPECT_EQ(text("no"), "no");
  EXPECT_EQ(text("octal"), "022");
  EXPECT_EQ(text("sixty"), "1:30");
  EXPECT_EQ(text("float"), "1.10");
  EXPECT_EQ(text("date"), "2026-10-01");
  EXPECT_EQ(text("quoted"), "yes");
  EXPECT_EQ(text("text"), "5");
  EXPECT_EQ(text("lines"), "a\nb\n");
  EXPECT_EQ(root->Find("tilde")->value->kind, YamlNode::Kind::kNull);
  EXPECT_EQ(root->Find("sixty")->at.Text(), "m.yaml:3:1");
  EXPECT_EQ(root->Find("sixty")->value->at.Text(), "m.yaml:3:8");
}

TEST(ReadYaml, AnUnquotedStarSaysToQuoteIt) {
  for (const char* value : {"* * * * *", "*/5 * * * *"}) {
    EXPECT_THAT(ProblemsOf(absl::StrCat("jobs:\n  - name: a\n    schedule: ", value, "\n")),
                ElementsAre(AllOf(StartsWith("m.yaml:3:"), HasSubstr("not YAML"),
                                  HasSubstr("a text that begins with * is written in quotes: "),
                                  HasSubstr(absl::StrCat("schedule: \"", value, "\"")))));
  }
  EXPECT_THAT(ProblemsOf("jobs:\n  - name: a\n    schedule: @hourly\n"),
              ElementsAre(AllOf(StartsWith("m.yaml:3:"), HasSubstr("schedule: \"@hourly\""))));
  EXPECT_THAT(ProblemsOf("jobs:\n  - { name: a, schedule: */5 * * * * }\n"),
              ElementsAre(AllOf(StartsWith("m.yaml:2:"),
                                HasSubstr("a text that begins with * is written in quotes"))));
  // A schedule that begins with a digit needs none.
  EXPECT_THAT(ProblemsOf("schedule: 0 1 * * *\n"), IsEmpty());
}

TEST(ReadYaml, TabsAreTold) {
  EXPECT_THAT(ProblemsOf("jobs:\n\t- name: a\n"),
              ElementsAre(AllOf(StartsWith("m.yaml:2:"), HasSubstr("indent with blanks"))));
}

TEST(ReadYaml, NoKeyStandsTwice) {
  EXPECT_THAT(
      ProblemsOf("a: 1\nb: { c: 1, c: 2 }\na: [3]\n"),
      ElementsAre(
          AllOf(StartsWith("m.yaml:2:12: "), HasSubstr("'c' stands twice; first in line 2"),
                HasSubstr("keep one")),
          AllOf(StartsWith("m.yaml:3:1: "), HasSubstr("'a' stands twice; first in line 1"))));
}

TEST(ReadYaml, OneDocumentAFile) {
  EXPECT_THAT(ProblemsOf("a: 1\n---\nb: 2\n"),
              ElementsAre(AllOf(StartsWith("m.yaml:3:1: "), HasSubstr("a second document"),
                                HasSubstr("include:"))));
  EXPECT_THAT(ProblemsOf("---\na: 1\n...\n"), IsEmpty());
}

TEST(ReadYaml, RefusesWhatMakesObjectsMergesOrCycles) {
  EXPECT_THAT(ProblemsOf("a: !!python/object:os.system x\n"),
              ElementsAre(AllOf(StartsWith("m.yaml:1:4: "), HasSubstr("is not read here"))));
  EXPECT_THAT(ProblemsOf("b: &x { c: 1 }\na: { <<: *x }\n"),
              ElementsAre(AllOf(StartsWith("m.yaml:2:6: "), HasSubstr("merge keys"),
                                HasSubstr("defaults:"))));
  EXPECT_THAT(ProblemsOf("a: &x [*x]\n"), ElementsAre(HasSubstr("inside the node that it names")));
  EXPECT_THAT(ProblemsOf("a: {{biz_date}}\n"),
              ElementsAre(AllOf(StartsWith("m.yaml:1:5: "), HasSubstr("a key is a text, not a map"),
                                HasSubstr("written in quotes"))));
  EXPECT_THAT(ProblemsOf("a: \"x\\0y\"\n"),
              ElementsAre(AllOf(StartsWith("m.yaml:1:4: "), HasSubstr("NUL"))));
}

TEST(ReadYaml, AliasesShareTheirNodeAndCostNothing) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 40; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [");
    for (int j = 0; j < 10; ++j) absl::StrAppend(&bomb, j > 0 ? ", " : "", "*a", i - 1);
    absl::StrAppend(&bomb, "]\n");
  }
  Problems problems;
  const NodePtr root = ReadYaml("m.yaml", bomb, problems);
  EXPECT_THAT(problems.all(), IsEmpty());
  ASSERT_NE(root, nullptr);
  EXPECT_EQ(root->Find("a39")->value->items[0], root->Find("a39")->value->items[9]);
  // As a job file it is a number of unknown keys, and no more.
  EXPECT_FALSE(ParseJobText("m.yaml", absl::StrCat("jobs: []\n", bomb)).ok());
  EXPECT_FALSE(
      ParseJobText("m.yaml", absl::StrCat(bomb, "jobs: [{ name: a, nodes: *a39 }]\n")).ok());
}

TEST(ReadYaml, IsBoundedInSizeAndDepth) {
  EXPECT_THAT(ProblemsOf(std::string((1 << 20) + 1, ' ')),
              ElementsAre(HasSubstr("larger than 1 MiB")));
  EXPECT_THAT(ProblemsOf(std::string(100, '[')), ElementsAre(HasSubstr("levels deep")));
  EXPECT_THAT(ProblemsOf(std::string(100'000, '[')), ElementsAre(HasSubstr("levels deep")));
}

TEST(ReadYaml, OnlyUtf8IsText) {
  EXPECT_THAT(ProblemsOf("a: 1\nb: \xff\n"),
              ElementsAre(AllOf(StartsWith("m.yaml:2:4: "), HasSubstr("UTF-8"))));
  EXPECT_THAT(ProblemsOf(std::string("a: \0\n", 5)), ElementsAre(StartsWith("m.yaml:1:4: ")));
  EXPECT_THAT(ProblemsOf("\xEF\xBB\xBFname: j\xC3\xB3"
                         "b\r\nb: 1\r\n"),
              IsEmpty());
}

// What is wrong in the file is told, and nothing of it is used.
TEST(ReadYaml, AFileWithAMistakeGivesNoJobsAtAll) {
  const absl::StatusOr<JobFile> file = ParseJobText("m.yaml", R"(jobs:
  - { name: good, schedule: "@daily", misfire: skip, run: { handler: h } }
  - { name: bad, schedule: "@daily", misfire: skip, run: { handler: h }, timeout: 1:30 }
)");
  ASSERT_FALSE(file.ok());
  EXPECT_THAT(std::string(file.status().message()), HasSubstr("m.yaml:3:74: timeout"));
}

// Times and octal numbers without quotes mean what they look like, in every YAML.
TEST(ReadYaml, UnquotedTimesAndOctalNumbers) {
  for (const char* time : {"12:00:00", "03:00:00", "\"03:00:00\"", "'12:00'"}) {
    const auto file = ParseJobText("m.yaml", absl::StrCat(R"(jobs:
  - name: no
    schedule: "@daily"
    misfire: skip
    umask: 022
    timeout: 60m
    env: { CODE: 0755, BIG: 1_000, EXP: 1e3, NO: no }
    run: { command: [echo, 08, on] }
    done_by: )",
                                                          time, "\n"));
    ASSERT_TRUE(file.ok()) << file.status();
    const Job& job = file->jobs[0];
    EXPECT_EQ(job.name, "no");
    EXPECT_EQ(job.umask, 18);
    EXPECT_EQ(job.timeout, absl::Hours(1));
    EXPECT_EQ(job.env.at("CODE").text, "0755");
    EXPECT_EQ(job.env.at("BIG").text, "1_000");
    EXPECT_EQ(job.env.at("EXP").text, "1e3");
    EXPECT_EQ(job.env.at("NO").text, "no");
    EXPECT_THAT(job.run.command, ElementsAre("echo", "08", "on"));
    EXPECT_EQ(job.done_by.time_of_day, absl::Hours(absl::StrContains(time, "12") ? 12 : 3));
  }
}

}  // namespace
}  // namespace matins
