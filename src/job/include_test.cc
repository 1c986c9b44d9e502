#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "job/parse.h"

namespace matins {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string JobText(const std::string& name, const std::string& more = "") {
  return "jobs:\n  - { name: " + name + ", schedule: '@daily', misfire: skip, run: { handler: h }" +
         more + " }\n";
}

std::vector<std::string> NamesOf(const JobFile& file) {
  std::vector<std::string> names;
  for (const Job& job : file.jobs) names.push_back(job.name);
  return names;
}

TEST(Include, ReadsMatchesInOrderRelativeToTheFile) {
  MemoryFiles files({{"etc/m.yaml", "include: [conf.d/*.yaml, extra.yaml]\n" + JobText("main")},
                     {"etc/conf.d/20-b.yaml", JobText("b")},
                     {"etc/conf.d/10-a.yaml", "include: deep/x.yaml\n" + JobText("a")},
                     {"etc/conf.d/deep/x.yaml", JobText("x")},
                     {"etc/conf.d/notes.txt", "not a job file"},
                     {"etc/extra.yaml", JobText("extra")}});
  const auto file = ParseJobFile("etc/m.yaml", {.files = &files});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_THAT(NamesOf(*file), ElementsAre("main", "a", "x", "b", "extra"));
}

TEST(Include, APatternMayMatchNothing) {
  MemoryFiles files({{"m.yaml", "include: conf.d/*.yaml\n" + JobText("main")}});
  EXPECT_TRUE(ParseJobFile("m.yaml", {.files = &files}).ok());
}

TEST(Include, OwnDefaultsGoOverThoseOfTheIncludingFile) {
  MemoryFiles files(
      {{"m.yaml", "defaults: { timeout: 1h, grace: 1s }\ninclude: a.yaml\n" + JobText("main")},
       {"a.yaml", "defaults: { timeout: 3h }\n" + JobText("a")}});
  const auto file = ParseJobFile("m.yaml", {.files = &files});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->jobs[0].timeout, absl::Hours(1));
  EXPECT_EQ(file->jobs[1].timeout, absl::Hours(3));
  EXPECT_EQ(file->jobs[1].grace, absl::Seconds(1));
}

TEST(Include, CalendarsLieBesideTheFileThatNamesThem) {
  MemoryFiles files({{"m.yaml", "include: sub/a.yaml\n" + JobText("main", ", calendar: cn")},
                     {"sub/a.yaml", "calendars: { cn: { file: cn.txt, until: 2026-12-31 } }\n"},
                     {"sub/cn.txt", "2026-10-01 off\n"}});
  const auto file = ParseJobFile("m.yaml", {.files = &files});
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->jobs[0].calendar_data.days, "2026-10-01 off\n");
}

void ExpectRefused(MemoryFiles files, const std::string& where, const std::string& what) {
  const LintResult result = LintJobFile("m.yaml", {.files = &files});
  std::vector<std::string> texts;
  for (const Problem& problem : result.problems) texts.push_back(problem.Text());
  EXPECT_THAT(texts, ElementsAre(AllOf(StartsWith(where + ": "), HasSubstr(what))));
}

TEST(Include, RefusesCircles) {
  ExpectRefused(MemoryFiles({{"m.yaml", "jobs: []\ninclude: a.yaml\n"},
                             {"a.yaml", "include: b.yaml\n"},
                             {"b.yaml", "include: '[a]*.yaml'\n"}}),
                "b.yaml:1:1", "includes itself: m.yaml > a.yaml > b.yaml > a.yaml");
}

TEST(Include, RefusesAFileIncludedTwice) {
  ExpectRefused(MemoryFiles({{"m.yaml", "jobs: []\ninclude: [a.yaml, '[a]*.yaml']\n"},
                             {"a.yaml", "jobs: []\n"}}),
                "m.yaml:2:1", "a.yaml is included twice");
}

TEST(Include, SettingsBelongToTheMainFile) {
  ExpectRefused(MemoryFiles({{"m.yaml", "include: a.yaml\n"}, {"a.yaml", "store: sqlite:x\n"}}),
                "a.yaml:1:1", "store stands in an included file");
}

TEST(Include, NamesAreUniqueAcrossFilesAndErrorsNameTheirFile) {
  ExpectRefused(
      MemoryFiles({{"m.yaml", "include: a.yaml\n" + JobText("x")}, {"a.yaml", JobText("x")}}),
      "a.yaml:2:13", "the name 'x' is given twice; first in m.yaml:3:13");
}

TEST(Digest, IsOfTheJobsAndNotOfTheirLook) {
  const auto digest = [](const std::string& text) {
    const auto file = ParseJobText("m.yaml", text);
    return file.ok() ? file->digest : std::string(file.status().message());
  };
  const std::string plain = digest(JobText("a"));
  EXPECT_EQ(plain.size(), 64U);
  EXPECT_EQ(plain, digest("# a comment\n" + JobText("a", ", timeout: 120m")));
  EXPECT_NE(plain, digest(JobText("a", ", timeout: 3h")));
  EXPECT_EQ(digest(JobText("a") + JobText("b").substr(6)),
            digest(JobText("b") + JobText("a").substr(6)));
}

}  // namespace
}  // namespace matins
