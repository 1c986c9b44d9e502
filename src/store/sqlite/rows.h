// Rows as they stand, and the few writes that several verbs share.
#ifndef MATINS_STORE_SQLITE_ROWS_H_
#define MATINS_STORE_SQLITE_ROWS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "job/values.h"
#include "store/attempt.h"
#include "store/rules.h"
#include "store/sqlite/connection.h"

namespace matins::sqlite {

struct Row : AttemptRow {
  int64_t rowid = 0;
};

// The columns that ReadRow expects, in its order; the first of a SELECT from job_watermark.
extern const char kRowColumns[];
Row ReadRow(const Statement& row);
std::optional<Row> FindRow(Connection& db, const PeriodKey& key);

// What the verbs need to know of a job; the columns that Apply wrote.
struct JobInfo {
  int version = 0;
  bool strict = false;
  std::string overlap;
  std::string lock_scope;
  absl::Duration lock_ttl, timeout, grace, stale_after;
  std::optional<int> limit, max_parallel;
  std::vector<std::string> labels;
  std::vector<std::string> after;
  std::string recovery;
  int max_lost = 5;
  absl::Time cursor = absl::InfinitePast();
  std::optional<absl::Time> gap_from;
  absl::Time next_look = absl::InfiniteFuture();
  bool suspended = false;
  bool asked = false;  // a person wants it to be looked at, and planning has not yet
};

// Reads each job once a transaction.
class Jobs {
 public:
  explicit Jobs(Connection& db) : db_(db) {}
  // Nullptr where there is none of that name, or it was deleted.
  const JobInfo* Find(const std::string& name);

 private:
  Connection& db_;
  std::map<std::string, std::optional<JobInfo>> known_;
  std::map<std::string, std::vector<std::string>> labels_;  // by their text: many jobs have the same
};

std::vector<std::string> ReadLabels(Connection& db, const std::string& json);

// What a lost lease comes to by `job`, which may be nullptr.
std::optional<LossRule> LossRuleOf(const JobInfo* job);
// Writes the row's new state and its job_run row, and wakes what waited for it.
void EndAttempt(Connection& db, Transaction& transaction, const Row& row, const Ending& ending);
// job_run alone; an existing row of the fence is completed.
void WriteRun(Connection& db, absl::Time now, const Row& row, const Ending& ending);
// Pulls back to not_before what was put off because of `row`: the job's next period, the next
// holder of its lock, and, where it is DONE, what is `after` its job on its day.
void Wake(Connection& db, absl::Time now, const PeriodRow& row, const std::string& lock_key,
          bool done);
// Pulls back one of the planned rows that `waiting` (of ?1) selects: the oldest of the first that
// some node may run that was seen since ?2, or else the oldest.
std::string WakeText(absl::string_view waiting);

struct Event {
  absl::string_view kind;
  absl::string_view job;
  absl::string_view period;
  int generation = 0;
  absl::string_view who, why;
  std::string detail;
};
void WriteEvent(Connection& db, absl::Time now, const Event& event);

// Writes the raised epoch, and moves the fences' numbers up with it (rules.h).
void RaiseEpoch(Connection& db, int64_t epoch, absl::Time now);

// finished_at's form in SQLite: "2026-10-30 01:02:03.000000", UTC. What other programs wrote is
// read with or without fraction, blank or T, and zone; InfinitePast where it is none of these.
std::string FinishedText(absl::Time t);
absl::Time FinishedFromText(const std::string& text);
std::string NominalText(absl::CivilSecond nominal);
absl::CivilSecond NominalFromText(const std::string& text);

}  // namespace matins::sqlite

#endif  // MATINS_STORE_SQLITE_ROWS_H_
