// A node to be stopped and killed by the tests: starts one run and tells its events, a line each.
//   execute_test_node FOLDER LEASE_SECONDS GIVE_BACK_PROGRAM SHELL_TEXT
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "execute/process_runner.h"

namespace matins {
namespace {

int RunNode(char** args) {
  absl::StatusOr<std::unique_ptr<Runner>> runner = OpenProcessRunner({.folder = args[1]});
  if (!runner.ok()) return 1;
  absl::Mutex mutex;
  bool woken = false;
  (*runner)->SetWakeUp([&] {
    absl::MutexLock lock(&mutex);
    woken = true;
  });
  RunRequest request{.run = 77, .dir = "/"};
  request.program.shell = args[4];
  request.values.job = "recon";
  request.values.period = "2026-10-30";
  request.give_back = {
      .program = args[3], .store_url = "postgresql://u:hunter2@h/d", .nonce = 1234567890123};
  const absl::Duration end = SystemClock().BootNow() + absl::Seconds(atof(args[2]));
  request.lease = {.stop = end, .kill = end};
  (*runner)->Start(std::move(request));
  while (true) {
    {
      absl::MutexLock lock(&mutex);
      mutex.Await(absl::Condition(&woken));
      woken = false;
    }
    for (RunnerEvent& event : (*runner)->Poll()) {
      if (const auto* output = std::get_if<RunOutput>(&event.what)) {
        fputs(output->bytes.c_str(), stdout);
      } else if (const auto* ended = std::get_if<RunEnded>(&event.what)) {
        puts(absl::StrCat("ended: ", ended->Text()).c_str());
        return 0;
      }
      fflush(stdout);
    }
  }
}

}  // namespace
}  // namespace matins

int main(int argc, char** argv) { return argc == 5 ? matins::RunNode(argv) : 2; }
