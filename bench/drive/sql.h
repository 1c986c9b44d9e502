// Statements for the store itself, past Matins, in its own dialect; tables of PostgreSQL are those
// of schema "matins". Whatever fails ends the program.
#ifndef MATINS_BENCH_DRIVE_SQL_H_
#define MATINS_BENCH_DRIVE_SQL_H_

#include <cstdint>
#include <string>

#include "bench/drive/line.h"

struct pg_conn;

namespace matins::bench {

// By a connection of its own. Answers the first value of the first row, or "".
std::string QueryStore(const Options& options, const std::string& sql);

// PostgreSQL: a transaction that was begun, has a snapshot, and is left open until this goes.
class OpenTransaction {
 public:
  explicit OpenTransaction(const Options& options);
  ~OpenTransaction();
  OpenTransaction(const OpenTransaction&) = delete;
  OpenTransaction& operator=(const OpenTransaction&) = delete;
  std::string Query(const std::string& sql);

 private:
  pg_conn* const connection_;
};

// Transactions of this store so far. PostgreSQL: all of this database, each call of this one too.
// SQLite: those that have written, by the write-ahead log's own count.
int64_t TransactionsSoFar(const Options& options);

}  // namespace matins::bench

#endif  // MATINS_BENCH_DRIVE_SQL_H_
