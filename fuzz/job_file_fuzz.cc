// A job file of any bytes is read or refused in bounded time, and what is read stands: its jobs
// come back from their stored form, and from the YAML that is shown of them, as the same jobs.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "job/json.h"
#include "job/parse.h"
#include "job/print.h"

namespace {

void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using matins::ParseJobText;
  const std::string text(reinterpret_cast<const char*>(data), size);
  matins::MemoryFiles files(
      {{"days.txt", "2026-10-01..2026-10-07 off\n2026-10-10 on\n"}, {"other.yaml", "jobs: []\n"}});
  const matins::ParseOptions options{.files = &files, .now = absl::FromUnixSeconds(1'768'000'000)};
  const matins::LintResult result = matins::LintJobText("fuzz.yaml", text, options);
  for (const matins::Problem& problem : result.problems) {
    Require(!problem.what.empty(), "a problem says what it is");
  }
  if (!result.file) {
    Require(!result.problems.empty(), "a refused file has a problem");
    return 0;
  }
  for (const matins::Job& job : result.file->jobs) {
    const auto back = matins::JobFromJson(matins::JobToJson(job));
    Require(back.ok(), absl::StrCat("stored: ", back.status().ToString()));
    Require(*back == job, absl::StrCat("stored as it was: ", matins::JobToJson(job)));
    if (!job.calendar.empty()) continue;
    const auto shown = ParseJobText("shown.yaml", absl::StrCat("jobs:\n", JobToYaml(job)), options);
    Require(shown.ok(), absl::StrCat("shown: ", shown.status().ToString()));
    Require(shown->jobs.size() == 1 && shown->jobs[0] == job,
            absl::StrCat("shown as it was: ", JobToYaml(job)));
  }
  return 0;
}
