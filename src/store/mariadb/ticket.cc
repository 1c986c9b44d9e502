#include "store/mariadb/ticket.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "store/rules.h"

namespace matins::mariadb {

std::string KeysInOrder(std::vector<PeriodKey> keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  JsonRows json;
  for (const PeriodKey& key : keys) json.Row().AddKey(key);
  return json.Take();
}

Statement LockRows(const Session& session, absl::string_view keys_json, Locking locking) {
  const absl::string_view how = locking == Locking::kSkip        ? " SKIP LOCKED"
                                : !session.connection.may_wait() ? " NOWAIT"
                                                                 : "";
  return Sql(absl::StrCat("SELECT ", RowColumns(), " FROM ? @ROWS FOR UPDATE", how),
             {KeyTable(keys_json)});
}

Statement ReadClock() {
  const absl::string_view stepped =
      IsMutant(Mutant::kNoStepBack)
          ? "EXISTS (SELECT 1 FROM matins_meta WHERE name = 'clock_frozen_why' AND value <> '')"
          : "matins_frozen()";
  const absl::string_view jumped = IsMutant(Mutant::kNoStepForward) ? "FALSE" : "matins_unjudged()";
  // A newer program has been here, whose rules this one does not know.
  const std::string outdated =
      absl::StrCat(" OR (SELECT CAST(value AS SIGNED) FROM matins_meta WHERE name = 'schema') > ",
                   kSchemaVersion);
  return Sql(absl::StrCat("SELECT @NOW, ", stepped, ", ", jumped, outdated,
                          ", (SELECT value FROM matins_meta WHERE name = 'epoch')"));
}

Clock ClockOf(const Rows& rows) {
  return {rows.Time(0, 0), rows.Bool(0, 1), rows.Bool(0, 1) || rows.Bool(0, 2), rows.Int(0, 3)};
}

absl::StatusOr<LockedRows> LockTickets(Session& session, const std::vector<PeriodKey>& keys,
                                       Locking locking, absl::string_view before_lock,
                                       const std::vector<Statement>& also) {
  Connection& connection = session.connection;
  const std::string json = KeysInOrder(keys);
  std::vector<Statement> look = {LockRows(session, json, locking), ReadClock()};
  look.insert(look.end(), also.begin(), also.end());
  std::vector<Rows> answers;
  if (locking == Locking::kWait) {
    RETURN_IF_ERROR(connection.Begin({}).status());
    if (absl::Status fault = Reach(before_lock); !fault.ok()) {
      connection.Rollback();
      return fault;
    }
    ASSIGN_OR_RETURN(answers, connection.More(look));
  } else {
    ASSIGN_OR_RETURN(answers, connection.Begin(look));
  }
  LockedRows locked;
  locked.clock = ClockOf(answers[1]);
  for (int i = 0; i < answers[0].size(); ++i) {
    AttemptRow row = ReadRow(answers[0], i);
    PeriodKey key = row.key;
    locked.rows.emplace(std::move(key), std::move(row));
  }
  std::vector<PeriodKey> missing;
  for (const PeriodKey& key : keys) {
    if (!locked.rows.contains(key)) missing.push_back(key);
  }
  if (!missing.empty()) {
    ASSIGN_OR_RETURN(const std::vector<Rows> there,
                     connection.More({Sql("SELECT r.job_name, r.period FROM ? @ROWS",
                                          {KeyTable(KeysInOrder(missing))})}));
    for (int i = 0; i < there[0].size(); ++i) {
      locked.busy.insert({there[0].Text(i, 0), there[0].Text(i, 1)});
    }
  }
  locked.more.assign(answers.begin() + 2, answers.end());
  return locked;
}

absl::StatusOr<std::vector<std::string>> Refusals(Session& session, const LockedRows& locked,
                                                  const std::vector<Ticket>& tickets, Asked asked) {
  std::vector<std::string> why;
  JsonRows by_job;
  for (const Ticket& ticket : tickets) {
    const AttemptRow* row = locked.Find(ticket.key);
    why.push_back(row == nullptr && locked.busy.contains(ticket.key)
                      ? kBusy
                      : RefusalOf(row, ticket, locked.clock.now, asked));
    const bool done = row != nullptr && asked != Asked::kFinish && DoneBy(*row, ticket);
    if (done) by_job.Row().Add("job", ticket.key.job);
  }
  if (by_job.empty()) return why;
  // After a job's own DONE its node has nothing left to own, and is no zombie.
  ASSIGN_OR_RETURN(const std::vector<Rows> jobs,
                   session.connection.More({Sql("SELECT j.name FROM ? @JOBS WHERE "
                                                "j.commit_by = 'job'",
                                                {JsonTable(by_job.Take(), "job name")})}));
  std::set<std::string> names;
  for (int i = 0; i < jobs[0].size(); ++i) names.insert(jobs[0].Text(i, 0));
  for (size_t i = 0; i < tickets.size(); ++i) {
    const AttemptRow* row = locked.Find(tickets[i].key);
    if (row != nullptr && DoneBy(*row, tickets[i]) && names.contains(tickets[i].key.job)) {
      why[i] = "done";
    }
  }
  return why;
}

absl::StatusOr<std::vector<Rows>> CommitAt(Session& session, absl::string_view before_commit,
                                           const std::vector<Statement>& writes) {
  if (absl::Status fault = Reach(before_commit); !fault.ok()) {
    session.connection.Rollback();
    return fault;
  }
  return session.connection.Commit(writes);
}

std::vector<Statement> TakeFences(size_t count) {
  if (count == 0) return {};
  Tuples rows;
  for (size_t i = 0; i < count; ++i) rows.Add({Value::Null()});
  // An insert of a known number of rows gets numbers without a hole. By LIMIT: looking beyond the
  // last one would wait for another's.
  return {Sql("INSERT INTO matins_fence_numbers (id) VALUES ?", {rows.Take()}),
          Sql("SET @matins_fence = LAST_INSERT_ID()"),
          Sql("DELETE FROM matins_fence_numbers WHERE id >= @matins_fence ORDER BY id LIMIT ?",
              {static_cast<int64_t>(count)})};
}

}  // namespace matins::mariadb
