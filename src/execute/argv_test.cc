// Two thousand odd words through a real process, compared byte for byte: nothing on the way is a
// shell.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "base/random.h"
#include "execute/process_runner_test.h"

namespace matins {
namespace {

std::string OddWord(Random& random) {
  static const std::vector<std::string> kParts = {
      "`id`", "$(id)", "$HOME", ";",    "|",    "&",        "\n", "--",   "-rf",  " ",
      "\t",   "'",     "\"",    "\\",   "*",    "?",        "~",  "#",    "!",    "%",
      "%s",   "{",     "}",     "\xff", "\x80", "\xc3\xa4", "\r", "\x01", "\x7f", "<",
      ">",    "=",     "(",     ")",    "[",    "]",        "^",  "a",    "..",   "/"};
  std::string word;
  for (uint64_t n = random.Below(9); n > 0; --n) word += kParts[random.Below(kParts.size())];
  return word;
}

TEST(Argv, OddWordsArriveByteForByte) {
  SeededRandom random(20261030);
  std::vector<std::string> words(2000);
  for (std::string& word : words) word = OddWord(random);
  WatchedRunner runner;
  RunRequest request = CommandRun(1, {"printf", "%s\\0"});
  std::string expected;
  for (size_t i = 0; i < words.size(); ++i) {
    expected += words[i] + '\0';
    if (i % 3 == 0) {
      // By way of a parameter and a template.
      request.values.params.emplace_back(absl::StrCat("p", i), words[i]);
      request.program.argv.push_back(absl::StrCat("{{param.p", i, "}}"));
    } else {
      request.program.argv.push_back(absl::StrReplaceAll(words[i], {{"{{", "\\{{"}}));
    }
  }
  runner->Start(std::move(request));
  EXPECT_TRUE(runner.AwaitEnd(1).output.Joined() == expected);
}

TEST(Argv, OddValuesReachAShellByTheEnvironmentAlone) {
  SeededRandom random(7);
  WatchedRunner runner;
  for (int run = 1; run <= 100; ++run) {
    RunRequest request = ShellRun(run,
                                  "cd / && printf '%s\\0' \"$MATINS_PARAM_v\" \"$DIR\"; sh -c "
                                  "'printf \"%s\" \"$1\"' x \"$MATINS_PARAM_v\"");
    const std::string value = OddWord(random);
    request.values.params = {{"v", value}};
    request.env = {{.name = "DIR", .value = "{{param.v}}/x y"}};
    runner->Start(std::move(request));
    const absl::string_view end("\0", 1);
    EXPECT_EQ(runner.AwaitEnd(run).output.Joined(),
              absl::StrCat(value, end, value, "/x y", end, value));
  }
}

TEST(Argv, ATemplateInAShellTextIsRefused) {
  WatchedRunner runner;
  runner->Start(ShellRun(1, "echo {{biz_date}}"));
  EXPECT_TRUE(absl::IsInvalidArgument(runner.AwaitOf<RunNotStarted>(1).error));
}

TEST(Argv, ANulIsRefused) {
  WatchedRunner runner;
  runner->Start(CommandRun(1, {"printf", std::string("a\0b", 3)}));
  EXPECT_TRUE(absl::IsInvalidArgument(runner.AwaitOf<RunNotStarted>(1).error));
}

}  // namespace
}  // namespace matins
