#include "execute/environment.h"

#include "base/variable.h"
#include "execute/give_back.h"
#include "execute/process_runner_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

absl::StatusOr<std::vector<std::string>> Built(RunRequest request) {
  request.run = 9;
  return BuildEnvironment(request, {.name = "batch", .home = "/srv/batch"}, "/s?key=k", "/c");
}
std::string Error(RunRequest request) { return std::string(Built(request).status().message()); }

TEST(Environment, RefusesNamesThatChangeWhatProgramsAre) {
  for (const char* name : {"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "BASH_ENV", "ENV", "IFS",
                           "SHELLOPTS", "PS4", "MATINS_FENCE", "MATINS_X", "TRACEPARENT", "", "1A",
                           "A B", "A=B", "A\nB", "BASH_FUNC_x%%", "\xc3\xa4"}) {
    EXPECT_FALSE(CheckEnvName(name).ok()) << name;
    EXPECT_THAT(Error({.env = {{.name = name, .value = "x"}}}), HasSubstr("env.")) << name;
  }
  EXPECT_TRUE(CheckEnvName("TOKEN").ok());
  EXPECT_TRUE(CheckEnvName("_a9").ok());
}

TEST(Environment, APathHasAbsoluteFoldersAlone) {
  for (const char* path : {".", "/bin:", ":/bin", "/bin:./x", ""}) {
    EXPECT_THAT(Error({.env = {{.name = "PATH", .value = path}}}), HasSubstr("absolute")) << path;
  }
  EXPECT_THAT(Built({.env = {{.name = "PATH", .value = "/opt/x:/bin"}}}).value(),
              Contains("PATH=/opt/x:/bin"));
}

TEST(Environment, ParametersAreValuesAndNeverNames) {
  RunRequest request;
  request.values.params = {{"PATH", "evil"}, {"IFS", "x"}};
  EXPECT_THAT(Built(request).value(),
              AllOf(Contains("MATINS_PARAM_PATH=evil"), Contains("MATINS_PARAM_IFS=x"),
                    Not(Contains("PATH=evil")), Not(Contains("IFS=x"))));
  request.values.params = {{"a=b\nLD_PRELOAD", "x"}};
  EXPECT_THAT(Error(request), HasSubstr("is not a name"));
}

TEST(Environment, ValuesComeFromFiles) {
  TempFolder folder;
  std::ofstream(folder.File("t")) << "secret \n\n";
  EXPECT_THAT(Built({.env = {{.name = "T", .file = folder.File("t")}}}).value(),
              Contains("T=secret \n"));
  EXPECT_THAT(Error({.env = {{.name = "T", .file = folder.File("u")}}}),
              AllOf(HasSubstr("env.T"), HasSubstr("No such file")));
  std::ofstream(folder.File("big")) << std::string(70000, 'x');
  EXPECT_THAT(Error({.env = {{.name = "T", .file = folder.File("big")}}}), HasSubstr("64 KiB"));
}

TEST(Environment, RefusesANul) {
  EXPECT_THAT(Error({.env = {{.name = "A", .value = std::string("a\0b", 3)}}}), HasSubstr("NUL"));
}

TEST(Environment, TheJobMayReplaceTheUsualOnes) {
  EXPECT_THAT(
      Built({.env = {{.name = "LANG", .value = "de_DE.UTF-8"}}}).value(),
      AllOf(Contains("LANG=de_DE.UTF-8"), Contains("HOME=/srv/batch"), Contains("USER=batch"),
            Contains("MATINS_SOCKET=/s?key=k"),
            Contains("TRACEPARENT=00-6d6174696e7300000000000000000009-0000000000000009-01")));
}

TEST(Environment, ACheckpointThatIsNoTextComesInAFile) {
  RunRequest request;
  request.values.checkpoint = std::string("a\0b", 3);
  EXPECT_THAT(Built(request).value(), AllOf(Contains("MATINS_CHECKPOINT_FILE=/c"),
                                            Not(Contains(StartsWith("MATINS_CHECKPOINT=")))));
  request.values.checkpoint = "page 3";
  request.values.checkpoint_number = 3;
  EXPECT_THAT(Built(request).value(),
              AllOf(Contains("MATINS_CHECKPOINT=page 3"), Contains("MATINS_CHECKPOINT_NUMBER=3")));
}

TEST(GiveBack, ComesBackAsItWent) {
  RunRequest request{.run = int64_t{7} << 40};
  request.values.job = "a\xff\"b\n";
  request.values.period = "2026-10-30";
  request.give_back = {.program = "/m", .store_url = "postgresql://u:p%20@h/d", .nonce = -5};
  const auto lease = ParseGiveBack(GiveBackMessage(request).value());
  ASSERT_TRUE(lease.ok()) << lease.status();
  EXPECT_EQ(lease->job, request.values.job);
  EXPECT_EQ(lease->store_url, request.give_back.store_url);
  EXPECT_EQ(lease->fence, request.run);
  EXPECT_EQ(lease->nonce, -5);
}

TEST(GiveBack, RefusesWhatNoGuardWrote) {
  for (const char* text : {"", "{}", "[1]", "{\"store\": 3}", "x"}) {
    EXPECT_FALSE(ParseGiveBack(text).ok()) << text;
  }
}

}  // namespace
}  // namespace matins
