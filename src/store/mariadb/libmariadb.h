// The functions of MariaDB's client library, loaded when the first connection asks for them
// (base/client_library.h). For sources only: it brings the client's own header.
#ifndef MATINS_STORE_MARIADB_LIBMARIADB_H_
#define MATINS_STORE_MARIADB_LIBMARIADB_H_

#include <mysql.h>

#include "absl/status/status.h"

// clang-format off
#define MATINS_LIBMARIADB_FUNCTIONS(F)                                                         \
  F(mysql_affected_rows) F(mysql_close) F(mysql_errno) F(mysql_error)                          \
  F(mysql_fetch_lengths) F(mysql_fetch_row) F(mysql_free_result) F(mysql_get_socket)           \
  F(mysql_get_timeout_value_ms) F(mysql_init) F(mysql_next_result)                             \
  F(mysql_next_result_cont) F(mysql_next_result_start) F(mysql_num_fields)                     \
  F(mysql_num_rows) F(mysql_options) F(mysql_real_connect) F(mysql_real_connect_cont)          \
  F(mysql_real_connect_start) F(mysql_real_query) F(mysql_real_query_cont)                     \
  F(mysql_real_query_start) F(mysql_ssl_set) F(mysql_store_result)                             \
  F(mysql_store_result_cont) F(mysql_store_result_start)
// clang-format on

namespace matins::mariadb {

struct Libmariadb {
#define MATINS_LIBMARIADB_MEMBER(name) decltype(&::name) name = nullptr;
  MATINS_LIBMARIADB_FUNCTIONS(MATINS_LIBMARIADB_MEMBER)
#undef MATINS_LIBMARIADB_MEMBER
};

// Loads it, once a process; asked before the first use of Client(). Errors: as
// LoadClientLibrary's.
absl::Status LoadLibmariadb();
const Libmariadb& Client();

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_LIBMARIADB_H_
