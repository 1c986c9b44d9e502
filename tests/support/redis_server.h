// A private Redis for tests: Debian's package, a folder of its own, a free port of 127.0.0.1,
// nothing kept on disk. It starts in some ten milliseconds, so that each test has one of its own.
#ifndef MATINS_TESTS_SUPPORT_REDIS_SERVER_H_
#define MATINS_TESTS_SUPPORT_REDIS_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/support/child_process.h"

namespace matins::testing {

// Not thread-safe.
class RedisServer {
 public:
  struct Options {
    std::vector<std::string> settings;  // "--name", "value", after ours
    bool sentinel = false;
    bool tls = false;      // on its only port, with a certificate made for 127.0.0.1 and localhost
    std::string password;  // with which `Ask` logs in
  };

  // Answers when it takes connections.
  static absl::StatusOr<std::unique_ptr<RedisServer>> Start(const Options& options);
  static absl::StatusOr<std::unique_ptr<RedisServer>> Start() { return Start(Options{}); }
  ~RedisServer();  // stops it and removes its folder

  int port() const { return port_; }
  std::string url() const;  // redis://127.0.0.1:PORT
  std::string folder() const { return directory_; }
  std::string ca() const { return directory_ + "/ca.crt"; }  // with `tls`

  // What redis-cli prints for a command as another program would send it.
  std::string Ask(const std::vector<std::string>& words) const;

  void Crash();            // SIGKILL
  absl::Status Restart();  // after Crash, on the same port, empty
  void Pause();            // SIGSTOP
  void Continue();

 private:
  RedisServer() = default;
  absl::Status Launch();
  absl::Status MakeCertificate() const;

  Options options_;
  std::string directory_;
  int port_ = 0;
  ChildProcess process_;
};

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_REDIS_SERVER_H_
