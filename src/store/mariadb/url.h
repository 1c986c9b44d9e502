// The store's URL: mariadb://user:password@host:port/database, or with
// ?socket=/run/mysqld/mysqld.sock.
#ifndef MATINS_STORE_MARIADB_URL_H_
#define MATINS_STORE_MARIADB_URL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace matins::mariadb {

enum class Tls { kOff, kOn, kVerify };

struct Url {
  std::string host = "127.0.0.1";
  int port = 3306;
  std::string socket;          // instead of host and port
  std::string user, password;  // no user: the name of the user of the process
  std::string database = "matins";
  Tls tls = Tls::kOff;  // kVerify where `tls_ca` is given
  std::string tls_ca, tls_cert, tls_key;
  bool single_writer = false;  // galera=single-writer: a person answers for it
  std::string description;     // for people and messages: no password
};

// Parts are percent-encoded. Parameters: socket, tls (off, on, verify), tls_ca, tls_cert, tls_key,
// galera (single-writer). The database's name is 1 to 64 of [A-Za-z0-9_$-]. InvalidArgument with
// the mend; never echoes a password.
absl::StatusOr<Url> ParseUrl(absl::string_view url);

}  // namespace matins::mariadb

#endif  // MATINS_STORE_MARIADB_URL_H_
