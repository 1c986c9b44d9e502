#include "tests/integration/server_side.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "tests/support/postgres_server.h"
#include "tests/support/sql_client.h"

namespace matins::testing {

const ServerSide& Side() {
  static const auto& side = *new ServerSide{
      .dialect = FenceDialect::kPostgresql,
      .end_leases =
          "update job_watermark set lease_until = clock_timestamp() where status = 'RUNNING'",
      .commit = "COMMIT",
      .finish = "commit",
      .verbs_are_one_packet = true};
  return side;
}

std::string SideUrl() { return TestPostgresUrl(); }

absl::StatusOr<std::unique_ptr<FaultProxy>> SideProxy() {
  return FaultProxy::Start(TestPostgresPort());
}

absl::StatusOr<SqlSession> ConnectTo(const std::string& url) {
  ASSIGN_OR_RETURN(std::unique_ptr<SqlClient> client, SqlClient::Connect(url));
  RETURN_IF_ERROR(
      client->Query(absl::StrCat("set search_path = \"", SchemaOf(url), "\"")).status());
  return [shared = std::shared_ptr<SqlClient>(std::move(client))](const std::string& sql) {
    return shared->Query(sql).status();
  };
}

absl::StatusOr<OwnServer> StartOwnServer() {
  ASSIGN_OR_RETURN(std::unique_ptr<PostgresServer> started, PostgresServer::Start());
  const std::shared_ptr<PostgresServer> server = std::move(started);
  return OwnServer{server->FreshSchemaUrl(), [server] {
                     const auto killed = PostgresQuery(
                         server->port(),
                         "select count(pg_terminate_backend(pid)) from (select pid from "
                         "pg_stat_activity where application_name = 'matins' order by random() "
                         "limit 1) q");
                     return killed.ok() && *killed == "1";
                   }};
}

}  // namespace matins::testing
