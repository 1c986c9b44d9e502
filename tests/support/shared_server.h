// What the private servers of tests have in common, whichever database it is.
#ifndef MATINS_TESTS_SUPPORT_SHARED_SERVER_H_
#define MATINS_TESTS_SUPPORT_SHARED_SERVER_H_

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace matins::testing {

// Tries `launch` on one free port after the other: somebody may take the port before the server
// does. What fails is told with the end of the server's log.
absl::Status LaunchOnFreePort(const std::string& log, int& port,
                              const std::function<absl::Status()>& launch);

// Of a schema or database, a new one at each call in whichever process.
std::string FreshName();

// The port of the server that ctest's fixture started, which wrote it into the file that `variable`
// names; 0: none.
int PortOfFixture(const char* variable);

// The same URL (one of TestPostgresUrl) on another port of 127.0.0.1.
std::string OnPort(absl::string_view url, int port);

// The fixture's server, or one of this program's own, which ends with it.
template <typename Server>
int SharedPort(const char* variable, const char* what) {
  static std::mutex mutex;
  static std::unique_ptr<Server> own;  // NOLINT: ends with the program
  const std::lock_guard<std::mutex> lock(mutex);
  if (own != nullptr) return own->port();
  if (const int port = PortOfFixture(variable); port != 0) return port;
  auto server = Server::Start();
  if (!server.ok()) {
    std::fprintf(stderr, "no %s for this test: %s\n", what, server.status().ToString().c_str());
    std::exit(1);
  }
  own = *std::move(server);
  return own->port();
}

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_SHARED_SERVER_H_
