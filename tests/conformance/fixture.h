// One suite for every store. A backend adds one file that defines MakeBackend() and links
// matins_conformance (an OBJECT library: linked as STATIC, googletest would drop the cases).
//
// Each case gets a World of its own: a fresh, migrated database and a clock that moves only when it
// is told to.
#ifndef MATINS_CONFORMANCE_FIXTURE_H_
#define MATINS_CONFORMANCE_FIXTURE_H_

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/fault.h"
#include "gtest/gtest.h"
#include "store/database.h"

namespace matins::conformance {

// What a backend has beside the verbs; a case that needs one that is missing is skipped, by name.
enum class Capability {
  kSql,         // World::Sql and World::Query work
  kForeign,     // rows written by other programs (World::InsertForeignRow)
  kJournal,     // journal: full writes job_journal
  kFaults,      // reaches fault points
  kReopenable,  // a second Database over the same data sees what the first one wrote
  kOldTable,    // takes over a job_watermark table of the four well-known columns
  kLocks,       // a lock held by somebody else can make a verb wait (World::HoldLock)
};
absl::string_view CapabilityName(Capability capability);

using SqlRows = std::vector<std::vector<std::string>>;  // cells as text; NULL is "NULL"

class World {
 public:
  virtual ~World() = default;
  virtual Database& database() = 0;
  // What the store's clock reads from now on, before its high-water mark is applied. Starts at T0.
  // May be called from any thread.
  virtual void SetClock(absl::Time now) = 0;

  // Raw SQL as another program would send it, on a connection of its own, outside matins_now().
  virtual absl::Status Sql(absl::string_view statement);
  virtual absl::StatusOr<SqlRows> Query(absl::string_view statement);
  // Deletes the watermark row as a person would: DELETE FROM job_watermark WHERE ...
  virtual absl::Status DeleteRow(const PeriodKey& key);
  // Writes only the four well-known columns. `day` is "2026-10-30".
  virtual absl::Status InsertForeignRow(absl::string_view job, absl::string_view day,
                                        absl::string_view status);
  // A second Database over the same data, as another process would have it. kReopenable.
  virtual absl::StatusOr<std::unique_ptr<Database>> OpenAgain();
  // Locks the row `key` (or more) from outside until the answer is destroyed. kLocks.
  class Lock {
   public:
    virtual ~Lock() = default;
  };
  virtual absl::StatusOr<std::unique_ptr<Lock>> HoldLock(const PeriodKey& key);
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string name() const = 0;
  virtual std::set<Capability> capabilities() const = 0;
  // The mutants (base/fault.h) that this store carries where the protection stands.
  virtual std::set<Mutant> mutants() const = 0;
  virtual absl::StatusOr<std::unique_ptr<World>> NewWorld() = 0;
};

// Defined by each backend's file; called once a process.
std::unique_ptr<Backend> MakeBackend();
Backend& TheBackend();

// The instant at which each World's clock starts.
inline absl::Time T0() { return absl::FromUnixSeconds(1793318400); }  // 2026-10-30T00:00:00Z
inline absl::Time At(double seconds) { return T0() + absl::Seconds(seconds); }

// A World and a Store and an ActStore on it.
class Conformance : public ::testing::Test {
 protected:
  void SetUp() override;
  World& world() { return *world_; }
  Store& store() { return *store_; }
  ActStore& acts() { return *acts_; }

 private:
  std::unique_ptr<World> world_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ActStore> acts_;
};

// Skips the case where the backend lacks `capability`, and says which.
#define MATINS_NEEDS(capability)                                                           \
  if (!::matins::conformance::TheBackend().capabilities().contains(capability)) {          \
    GTEST_SKIP() << ::matins::conformance::TheBackend().name() << " lacks the capability " \
                 << ::matins::conformance::CapabilityName(capability);                     \
  }

}  // namespace matins::conformance

#endif  // MATINS_CONFORMANCE_FIXTURE_H_
