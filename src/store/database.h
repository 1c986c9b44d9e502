// A database: opens stores, and looks after its schema. The only way in is backends/ (URL ->
// Database).
#ifndef MATINS_STORE_DATABASE_H_
#define MATINS_STORE_DATABASE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "store/act_store.h"
#include "store/store.h"

namespace matins {

struct DatabaseOptions {
  // Each call's own deadline on the client's side: a half-dead proxy must not hang a node.
  absl::Duration call_deadline = absl::Seconds(5);
  // Tests and the simulator: what matins_now() reads in place of the machine's clock. SQLite and
  // the model call it; for PostgreSQL the test replaces the SQL function in its schema. Nothing
  // else differs from what ships.
  std::function<absl::Time()> clock;
};

struct SchemaCheck {
  int version = 0;  // 0: none yet
  int wanted = 0;
  std::vector<std::string> problems;  // rows, indexes or settings that are not as they must be
};

// Thread-safe.
class Database {
 public:
  virtual ~Database() = default;
  // Creates or migrates the schema, under a lock, in one transaction a step; takes over a
  // job_watermark table made by the four well-known columns, keeping its rows. FailedPrecondition
  // where the schema is newer than this program.
  virtual absl::Status Migrate() = 0;
  // Connects for whoever opens next, where connecting takes long. What stands in the way is said to
  // that one.
  virtual void Prepare() {}
  // A connection of its own for a lane; the schema must be the wanted one.
  virtual absl::StatusOr<std::unique_ptr<Store>> Open() = 0;
  // The same without another look at the schema, for who has just migrated or opened this database;
  // what stands in the way then is said by the first call.
  virtual absl::StatusOr<std::unique_ptr<Store>> OpenAnother() { return Open(); }
  virtual absl::StatusOr<std::unique_ptr<ActStore>> OpenActs() = 0;
  // The shortest lease of any job (`lock.ttl`); InfiniteDuration where there is no job.
  virtual absl::StatusOr<absl::Duration> ShortestLease() = 0;
  virtual absl::StatusOr<SchemaCheck> Check() = 0;
  // A consistent copy to a local file (SQLite), or FailedPrecondition with the command to use
  // instead.
  virtual absl::Status Backup(const std::string& path) = 0;
  // Puts a copy back where no node is alive, and raises the epoch (a restore is a failover).
  virtual absl::Status Restore(const std::string& path) = 0;
  virtual std::string Describe() const = 0;  // "sqlite:matins.db", without any password
};

}  // namespace matins

#endif  // MATINS_STORE_DATABASE_H_
