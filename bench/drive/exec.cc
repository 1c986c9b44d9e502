// `matins exec` of `true` for a period that is owed, beside `true` alone, one after the other: what
// the guard in front of a command costs. MATINS_BINARY names the program.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "bench/drive/line.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

absl::Duration TimeOf(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const absl::Time begin = absl::Now();
  pid_t pid = 0;
  if (posix_spawn(&pid, argv[0], nullptr, nullptr, argv.data(), environ) != 0) Die(words[0]);
  int status = 0;
  if (waitpid(pid, &status, 0) != pid || status != 0) Die(absl::StrCat(words[0], " failed"));
  return absl::Now() - begin;
}

void Run(const Options& options) {
  const char* const binary = std::getenv("MATINS_BINARY");
  if (binary == nullptr) Die("MATINS_BINARY is not set");
  const int64_t calls = options.Int("calls");
  Stage stage(options);
  const absl::Time at = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 2);
  std::string jobs = "jobs:\n";
  for (int64_t i = 0; i < calls; ++i) {
    absl::StrAppend(&jobs, "  - { name: job-", i, ", at: ", FormatInstant(at),
                    ", misfire: latest, run: { exec: true } }\n");
  }
  stage.Apply(jobs);
  stage.Rest();
  absl::SleepFor(at + absl::Milliseconds(5) - absl::Now());
  std::vector<absl::Duration> with, without;
  for (int64_t i = 0; i < calls; ++i) {
    without.push_back(TimeOf({"/bin/true"}));
    with.push_back(TimeOf({binary, "exec", absl::StrCat("job-", i), "--store",
                           options.Text("store"), "--", "/bin/true"}));
  }
  ProveDone(stage, calls);
  const double over = absl::ToDoubleMilliseconds(Percentile(with, 0.5) - Percentile(without, 0.5));
  Line("exec", options)
      .Add("calls", calls)
      .Add("over_ms", over)
      .AddLatencies("", with)
      .AddLatencies("true_", without)
      .Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv, {{"calls", "40"}});
  matins::bench::Run(options);
}
