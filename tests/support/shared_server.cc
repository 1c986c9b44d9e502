#include "tests/support/shared_server.h"

#include <unistd.h>

#include <atomic>
#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "tests/support/child_process.h"

namespace matins::testing {
namespace {

std::string LogEnd(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.size() > 20) lines.erase(lines.begin(), lines.end() - 20);
  return absl::StrJoin(lines, "\n");
}

}  // namespace

absl::Status LaunchOnFreePort(const std::string& log, int& port,
                              const std::function<absl::Status()>& launch) {
  absl::Status status;
  for (int attempt = 0; attempt < 5; ++attempt) {
    port = FreePort();
    status = launch();
    if (status.ok()) return status;
  }
  return Annotate(status, LogEnd(log));
}

std::string FreshName() {
  static std::atomic<int> counter{0};
  return absl::StrCat("matins_t_", getpid(), "_", absl::ToUnixMillis(absl::Now()), "_", ++counter);
}

int PortOfFixture(const char* variable) {
  const char* path = getenv(variable);
  if (path == nullptr) return 0;
  std::ifstream in(path);
  int port = 0;
  return in >> port ? port : 0;
}

std::string OnPort(absl::string_view url, int port) {
  const size_t host = url.find("127.0.0.1:");
  const size_t slash = host == absl::string_view::npos ? host : url.find('/', host);
  if (slash == absl::string_view::npos) return std::string(url);
  return absl::StrCat(url.substr(0, host), "127.0.0.1:", port, url.substr(slash));
}

}  // namespace matins::testing
