// One function a command, for the command line and for programs alike. An operation works on the
// store directly, whether a daemon runs or not; what it changes is recorded with who and why.
#ifndef MATINS_OPS_SESSION_H_
#define MATINS_OPS_SESSION_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "job/job.h"
#include "job/job_state.h"
#include "plan/plan.h"
#include "store/database.h"

namespace matins {

// What every operation works with. Not thread-safe.
class Session {
 public:
  // `who` stands in every event: "cli:alice@host". NotFound where the store has no schema yet.
  static absl::StatusOr<Session> Open(Database& database, absl::string_view who);

  Database& database() { return *database_; }
  ActStore& acts() { return *acts_; }
  Store& store() { return *store_; }
  Act MakeAct(absl::string_view why) const { return {who_, std::string(why)}; }
  const std::string& who() const { return who_; }

 private:
  Session(Database& database, std::unique_ptr<ActStore> acts, std::unique_ptr<Store> store,
          absl::string_view who)
      : database_(&database), acts_(std::move(acts)), store_(std::move(store)), who_(who) {}

  Database* database_;
  std::unique_ptr<ActStore> acts_;
  std::unique_ptr<Store> store_;
  std::string who_;
};

// What `open` opens of the database, which is migrated only where that fails: a call that stands
// before a command should not ask for the schema each time. Errors: as `open`'s and Migrate's.
template <typename Open>
auto OpenMigrated(Database& database, Open open) -> decltype(open()) {
  auto opened = open();
  if (opened.ok() || absl::IsUnavailable(opened.status())) return opened;
  if (absl::Status migrated = database.Migrate(); !migrated.ok()) return migrated;
  return open();
}

// "alice@host", from the effective user and the host's name: who acts when nobody says so.
std::string WhoAmI();

// A job with all its versions resolved, as planning wants it, read at the store's `now`.
class Planned {
 public:
  static absl::StatusOr<Planned> Read(Session& session, absl::string_view job);
  // All that `due` holds, by job; an error in place of one whose definition this program cannot
  // read. One read for many: `due` is of ReadDue.
  static std::map<std::string, absl::StatusOr<Planned>> Resolve(DueJobs due);

  const JobState& state() const { return *state_; }
  const ResolvedJob& current() const { return *versions_.back().job; }
  absl::Time now() const { return now_; }
  // The input of PlanJob; lives as long as this object. Suspension is looked through where
  // `as_if_resumed`.
  PlanInput Input(bool as_if_resumed = false) const;

 private:
  Planned() = default;
  static absl::StatusOr<Planned> Of(JobState state, absl::Time now);
  std::unique_ptr<JobState> state_;
  std::unique_ptr<JobState> resumed_;
  std::vector<std::unique_ptr<ResolvedJob>> resolved_;
  std::vector<VersionInForce> versions_;
  absl::Time now_;
};

// The row of `key`; NotFound where there is none.
absl::StatusOr<PeriodRow> ReadRow(Session& session, const PeriodKey& key);
// NotFound that names the jobs there are which look alike.
absl::StatusOr<JobRow> ReadJob(Session& session, absl::string_view job);

// The period's key for what a person typed: a key of the job's kind, or a date (the week's, month's
// or day's that holds it). InvalidArgument for a date where a day holds many periods.
absl::StatusOr<std::string> KeyFor(const ResolvedJob& job, absl::string_view text);

// Reads the job, makes a plan of a person's with `make`, and writes it; from the start again where
// another planner came between (plan_tries.h). Aborted after many of those.
absl::Status PlanAndWrite(Session& session, absl::string_view job,
                          const std::function<absl::StatusOr<PlanWrite>(const Planned&)>& make);

}  // namespace matins

#endif  // MATINS_OPS_SESSION_H_
