// What the tests with real processes share: a runner, and waiting for its events (never for time).
#ifndef MATINS_EXECUTE_PROCESS_RUNNER_TEST_H_
#define MATINS_EXECUTE_PROCESS_RUNNER_TEST_H_

#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "base/clock.h"
#include "execute/process_runner.h"
#include "execute/process_tree.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace matins {

inline std::string ReadWholeFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A folder that goes with the test.
class TempFolder {
 public:
  TempFolder() {
    char name[] = "/tmp/mtexXXXXXX";
    path_ = mkdtemp(name);
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // An executable script.
  std::string Script(const std::string& name, const std::string& text) const {
    std::ofstream(File(name)) << text;
    chmod(File(name).c_str(), 0755);
    return File(name);
  }

 private:
  std::string path_;
};

// State and parent in /proc/PID/stat; none when `pid` is gone.
inline std::vector<std::string> StateOf(pid_t pid) {
  const std::string stat = ReadWholeFile(absl::StrCat("/proc/", pid, "/stat"));
  const size_t end = stat.rfind(')');
  if (end == std::string::npos || stat.size() <= end + 2) return {};
  return absl::StrSplit(stat.substr(end + 2), ' ');
}

// Whether `pid` is there and not a zombie.
inline bool IsRunning(pid_t pid) {
  const std::vector<std::string> state = StateOf(pid);
  return !state.empty() && state[0] != "Z" && state[0] != "X";
}

inline pid_t ParentOf(pid_t pid) {
  const std::vector<std::string> state = StateOf(pid);
  return state.size() < 2 ? -1 : atoi(state[1].c_str());
}

// Returns when `is_so` (or fails after a minute, long past any time it needs; where a mutant
// keeps it from being so, MATINS_TEST_PATIENCE says how many seconds are enough).
inline bool AwaitThat(const std::function<bool()>& is_so) {
  const char* patience = getenv("MATINS_TEST_PATIENCE");
  const absl::Duration most = absl::Seconds(patience == nullptr ? 60 : atoi(patience));
  const absl::Duration until = SystemClock().BootNow() + most;
  while (SystemClock().BootNow() < until) {
    if (is_so()) return true;
    usleep(1000);
  }
  return false;
}

inline bool AwaitGone(pid_t pid) {
  return AwaitThat([pid] { return !IsRunning(pid); });
}

inline bool AwaitState(pid_t pid, char state) {
  return AwaitThat([=] {
    const std::vector<std::string> now = StateOf(pid);
    return !now.empty() && now[0] == std::string(1, state);
  });
}

// Returns what `path` holds once it holds a whole line.
inline std::string AwaitLine(const std::string& path) {
  for (int i = 0; i < 60000; ++i) {
    const std::string text = ReadWholeFile(path);
    if (!text.empty() && text.back() == '\n') return text.substr(0, text.size() - 1);
    usleep(1000);
  }
  return "";
}

// A runner whose events are kept until they are asked for.
class WatchedRunner {
 public:
  explicit WatchedRunner(ProcessRunnerOptions options = {}) {
    if (options.folder.empty()) options.folder = folder_.path();
    absl::StatusOr<std::unique_ptr<Runner>> runner = OpenProcessRunner(std::move(options));
    EXPECT_TRUE(runner.ok()) << runner.status();
    runner_ = *std::move(runner);
    runner_->SetWakeUp([this] {
      absl::MutexLock lock(&mutex_);
      woken_ = true;
    });
  }

  Runner& operator*() { return *runner_; }
  Runner* operator->() { return runner_.get(); }
  void Close() { runner_.reset(); }

  // The first event for which `wanted` holds, taken out; events before it stay.
  RunnerEvent Await(const std::function<bool(const RunnerEvent&)>& wanted) {
    while (true) {
      for (size_t i = 0; i < events_.size(); ++i) {
        if (!wanted(events_[i])) continue;
        RunnerEvent event = std::move(events_[i]);
        events_.erase(events_.begin() + static_cast<std::ptrdiff_t>(i));
        return event;
      }
      Fetch();
    }
  }
  template <typename What>
  What AwaitOf(int64_t run) {
    return std::get<What>(Await([run](const RunnerEvent& event) {
                            return event.run == run && std::holds_alternative<What>(event.what);
                          }).what);
  }
  RunEnded AwaitEnd(int64_t run) {
    RunnerEvent event = Await([run](const RunnerEvent& event) {
      return event.run == run && (std::holds_alternative<RunEnded>(event.what) ||
                                  std::holds_alternative<RunNotStarted>(event.what));
    });
    if (auto* not_started = std::get_if<RunNotStarted>(&event.what)) {
      ADD_FAILURE() << "not started: " << not_started->error;
      return RunEnded{};
    }
    return std::get<RunEnded>(std::move(event.what));
  }

 private:
  void Fetch() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&woken_));
    woken_ = false;
    for (RunnerEvent& event : runner_->Poll()) events_.push_back(std::move(event));
  }

  TempFolder folder_;
  absl::Mutex mutex_;
  bool woken_ = false;
  std::vector<RunnerEvent> events_;
  std::unique_ptr<Runner> runner_;
};

inline RunRequest ShellRun(int64_t run, std::string text) {
  RunRequest request{.run = run, .dir = "/"};
  request.program.shell = std::move(text);
  request.values.job = "recon";
  request.values.period = "2026-10-30";
  request.values.biz_date = "2026-10-30";
  return request;
}

inline RunRequest CommandRun(int64_t run, std::vector<std::string> argv) {
  RunRequest request = ShellRun(run, "");
  request.program.argv = std::move(argv);
  return request;
}

inline Deadline Soon(double stop, double kill) {
  const absl::Duration now = SystemClock().BootNow();
  return {.stop = now + absl::Seconds(stop), .kill = now + absl::Seconds(kill)};
}

}  // namespace matins

#endif  // MATINS_EXECUTE_PROCESS_RUNNER_TEST_H_
