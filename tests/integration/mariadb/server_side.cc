#include "tests/integration/server_side.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tests/support/mariadb_server.h"

namespace matins::testing {

const ServerSide& Side() {
  // At the end of a packet that writes; not the word in READ COMMITTED.
  static const auto& side = *new ServerSide{
      .dialect = FenceDialect::kMariadb,
      .end_leases =
          "UPDATE job_watermark SET lease_until = UTC_TIMESTAMP(6) WHERE status = 'RUNNING'",
      .commit = ";COMMIT",
      .finish = ";COMMIT",
      .verbs_are_one_packet = false};
  return side;
}

std::string SideUrl() { return TestMariadbUrl(); }

absl::StatusOr<std::unique_ptr<FaultProxy>> SideProxy() {
  return FaultProxy::Start(TestMariadbPort(), 0, FaultProxy::Wire::kMariadb);
}

absl::StatusOr<SqlSession> ConnectTo(const std::string& url) {
  ASSIGN_OR_RETURN(std::unique_ptr<MariadbClient> client, MariadbClient::Connect(url));
  return [shared = std::shared_ptr<MariadbClient>(std::move(client))](const std::string& sql) {
    return shared->Query(sql).status();
  };
}

absl::StatusOr<OwnServer> StartOwnServer() {
  ASSIGN_OR_RETURN(std::unique_ptr<MariadbServer> started, MariadbServer::Start());
  const std::shared_ptr<MariadbServer> server = std::move(started);
  const std::string url = server->FreshUrl();
  ASSIGN_OR_RETURN(std::unique_ptr<MariadbClient> client, MariadbClient::Connect(url));
  const std::shared_ptr<MariadbClient> killer = std::move(client);
  return OwnServer{
      url, [server, killer] {
        const auto victims = killer->Query(
            "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND "
            "user = 'root' ORDER BY RAND() LIMIT 1");
        return victims.ok() && !victims->empty() &&
               killer->Query(absl::StrCat("KILL ", (*victims)[0][0])).ok();
      }};
}

}  // namespace matins::testing
