// From the start of a node's process, an exec, to the first instruction of the handler of a run
// that is due, on a store that is there: the median of several starts.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/time.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"

namespace matins::bench {
namespace {

void Run(const Options& options) {
  const int64_t starts = options.Int("starts");
  Stage stage(options);
  std::vector<absl::Duration> took;
  for (int64_t i = 0; i < starts; ++i) {
    const absl::Time at = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 2);
    stage.Apply(absl::StrCat("jobs:\n  - { name: job-", i, ", at: ", FormatInstant(at),
                             ", misfire: latest, run: { handler: noop } }\n"),
                absl::StrCat("bench/", i));
    absl::SleepFor(at + absl::Milliseconds(5) - absl::Now());
    stage.Plan();
    stage.Rest();
    const absl::Time begin = absl::Now();
    NodeProcesses nodes(options, {.at_once = true});
    nodes.Await([](const Shared& shared) { return shared.finished >= 1; }, absl::Minutes(1));
    took.push_back(absl::FromUnixMicros(nodes.shared().first_entered_us) - begin);
    nodes.Stop();
  }
  ProveDone(stage, starts);
  Line("first_run", options).Add("starts", starts).AddLatencies("", took).Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(argc, argv, {{"starts", "7"}});
  matins::bench::Run(options);
}
