// What tests of every server need of the one that they are linked with; a source a server.
#ifndef MATINS_TESTS_INTEGRATION_SERVER_SIDE_H_
#define MATINS_TESTS_INTEGRATION_SERVER_SIDE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/fence_sql.h"
#include "tests/support/fault_proxy.h"

namespace matins::testing {

struct ServerSide {
  FenceDialect dialect;
  std::string end_leases;     // SQL: each live lease ends now
  std::string commit;         // what a proxy finds in a packet that commits
  std::string finish;         // what it finds in the packet that commits an end
  bool verbs_are_one_packet;  // and may have taken effect once they were sent
};
const ServerSide& Side();

// A place of its own on the server that the test run shares.
std::string SideUrl();
absl::StatusOr<std::unique_ptr<FaultProxy>> SideProxy();

// A connection to that place: runs one statement or more.
using SqlSession = std::function<absl::Status(const std::string&)>;
absl::StatusOr<SqlSession> ConnectTo(const std::string& url);

// A server of the test's own, for as long as this lives.
struct OwnServer {
  std::string url;
  std::function<bool()> kill_a_connection;  // one of a store, at random; whether there was one
};
absl::StatusOr<OwnServer> StartOwnServer();

}  // namespace matins::testing

#endif  // MATINS_TESTS_INTEGRATION_SERVER_SIDE_H_
