#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "store/rules.h"
#include "store/sqlite/limits.h"
#include "store/sqlite/sqlite_store.h"

namespace matins::sqlite {
namespace {

const PeriodRow* RowIn(const std::optional<Row>& row) { return row ? &*row : nullptr; }

// Of a beat or checkpoint: after a job's own DONE its node has nothing left to own, and is no
// zombie.
std::string RefusalOfOwner(Connection& db, const std::optional<Row>& row, const Ticket& ticket,
                           absl::Time now, Asked asked) {
  std::string why = RefusalOf(RowIn(row), ticket, now, asked);
  if (why != "fence" || !DoneBy(*row, ticket)) return why;
  Statement by_job =
      db.Sql("SELECT 1 FROM job WHERE name = ? AND commit_by = 'job'", ticket.key.job);
  return by_job.Next() ? "done" : why;
}

// Never shorter than it was, never past the time-out (I5).
absl::Time Extended(const Row& row, absl::Time asked) {
  const absl::Time until =
      IsMutant(Mutant::kBeatPastTimeOut) ? asked : std::min(asked, row.run_until);
  return IsMutant(Mutant::kBeatShortens) ? until : std::max(row.lease_until, until);
}

// What the ends of a batch mean for their jobs: one write a job, however many ended.
class JobNews {
 public:
  void Add(const Row& row, absl::string_view run_word, absl::string_view reason, absl::Time now) {
    News& news = news_[row.key.job];
    news.result = ResultText(run_word, reason);
    if (run_word != "DONE") return;
    news.success = now;
    news.worst = std::max(news.worst, now - row.claimed_at);
  }
  void Write(Connection& db) const {
    for (const auto& [job, news] : news_) {
      db.Sql(
            "UPDATE job SET last_result = ?1, last_success = coalesce(?2, last_success), "
            "worst_duration = max(worst_duration, ?3) WHERE name = ?4",
            news.result, news.success, news.worst, job)
          .Run();
    }
  }

 private:
  struct News {
    std::string result;
    absl::Time success = absl::InfinitePast();
    absl::Duration worst;
  };
  std::map<std::string, News> news_;
};

void WriteEvidence(Connection& db, absl::Time now, const Row& row, const Outcome& outcome) {
  if (outcome.output_bytes > 0) {
    Statement output = db.Sql(
        "INSERT OR REPLACE INTO job_output (fence, bytes, at, head, tail) VALUES (?, ?, ?, ?, ?)",
        row.fence, outcome.output_bytes, now);
    output.BindBlob(outcome.output_head).BindBlob(outcome.output_tail).Run();
  }
  for (const auto& [name, value] : outcome.figures) {
    db.Sql(
          "INSERT INTO job_figure (job_name, period, generation, fence, name, value, at) SELECT "
          "?1, ?2, ?3, ?4, ?5, ?6, ?7 WHERE NOT EXISTS (SELECT 1 FROM job_figure WHERE "
          "job_name = ?1 AND period = ?2 AND fence = ?4 AND name = ?5)",
          row.key.job, row.key.period, row.generation, row.fence, name, value, now)
        .Run();
  }
}

void Complete(Connection& db, Transaction& transaction, const Row& row,
              const FinishRequest& request, JobNews* news) {
  const Ending ending = EndingOf(request.outcome);
  EndAttempt(db, transaction, row, ending);
  WriteEvidence(db, transaction.now(), row, request.outcome);
  news->Add(row, ending.run_word, request.outcome.reason, transaction.now());
}

// The job has written DONE in its own transaction; the attempt's row is completed by its node, and
// is the same when an answer was lost and it is completed again.
std::string CompleteDoneByJob(Connection& db, Transaction& transaction,
                              const std::optional<Row>& row, const FinishRequest& request,
                              JobNews* news) {
  if (!row) return "gone";
  if (!DoneBy(*row, request.ticket)) return OwnedBy(*row, request.ticket) ? "no_commit" : "fence";
  const Ending ending = EndingOf(request.outcome);
  WriteRun(db, transaction.now(), *row, ending);
  WriteEvidence(db, transaction.now(), *row, request.outcome);
  Wake(db, transaction.now(), *row, row->lock_key, true);
  if (db.AnyPutOff()) WakeForSlot(db, transaction.now(), *row);
  news->Add(*row, ending.run_word, request.outcome.reason, transaction.now());
  return "";
}

std::string FinishOne(Connection& db, Transaction& transaction, const FinishRequest& request,
                      JobNews* news) {
  const std::optional<Row> row = FindRow(db, request.ticket.key);
  if (request.outcome.kind == Outcome::Kind::kDoneByJob) {
    return CompleteDoneByJob(db, transaction, row, request, news);
  }
  std::string why = RefusalOf(RowIn(row), request.ticket, transaction.now(), Asked::kFinish);
  if (why.empty()) Complete(db, transaction, *row, request, news);
  return why;
}

// The attempt's own row says how it ended: for answers that were lost after they took effect, or
// whose period was opened again since.
bool EndedSo(Connection& db, const FinishRequest& request) {
  Statement run = db.Sql("SELECT status FROM job_run WHERE fence = ? AND node = ?",
                         request.ticket.fence, request.node);
  return run.Next() && run.Text(0) == RunWord(request.outcome);
}

}  // namespace

absl::StatusOr<std::vector<ExtendAnswer>> SqliteStore::Extend(
    absl::Span<const ExtendRequest> requests) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "extend"));
  const absl::Time now = transaction.now();
  std::vector<ExtendAnswer> answers;
  for (const ExtendRequest& request : requests) {
    ExtendAnswer answer;
    answer.now = now;
    answer.lease_until = absl::InfinitePast();
    const std::optional<Row> row = FindRow(*db_, request.ticket.key);
    answer.refusal.why = RefusalOfOwner(*db_, row, request.ticket, now, Asked::kExtend);
    if (answer.refusal.accepted()) {
      answer.lease_until = Extended(*row, now + request.ttl);
      answer.cancel_asked = row->cancel_asked;
      answer.cancel_why = row->cancel_why;
      const char* const journaled =
          "UPDATE job_watermark SET lease_until = ?, renewals = ifnull(renewals, 0) + 1, "
          "ver = ver + 1, op = 'hb', op_at = ? WHERE job_name = ? AND period = ?";
      const char* const silent =
          "UPDATE job_watermark SET lease_until = ?, renewals = ifnull(renewals, 0) + 1, "
          "op = 'hb', op_at = ? WHERE job_name = ? AND period = ?";
      db_->Sql(IsMutant(Mutant::kSilentBeat) ? silent : journaled, answer.lease_until, now,
               row->key.job, row->key.period)
          .Run();
    }
    answers.push_back(std::move(answer));
  }
  RETURN_IF_ERROR(transaction.Commit());
  return answers;
}

absl::StatusOr<std::vector<Refusal>> SqliteStore::Checkpoint(
    absl::Span<const CheckpointRequest> requests) {
  for (const CheckpointRequest& request : requests) {
    if (request.data.size() > kCheckpointBytes || request.number <= 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "checkpoint ", request.number, " of ", request.data.size(),
          " bytes: number from 1, at most ", kCheckpointBytes, " bytes; keep more elsewhere"));
    }
  }
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "checkpoint"));
  const absl::Time now = transaction.now();
  std::vector<Refusal> answers;
  for (const CheckpointRequest& request : requests) {
    const std::optional<Row> row = FindRow(*db_, request.ticket.key);
    Refusal refusal{RefusalOfOwner(*db_, row, request.ticket, now, Asked::kCheckpoint)};
    const bool forward =
        IsMutant(Mutant::kCheckpointBack) || (row && request.number > row->checkpoint);
    if (refusal.accepted() && !forward) refusal.why = "checkpoint";
    if (refusal.accepted()) {
      db_->Sql(
             "UPDATE job_watermark SET checkpoint = ?1, checkpointed_at = ?2, ver = ver + 1, "
             "op = 'ckpt', op_at = ?2 WHERE job_name = ?3 AND period = ?4",
             request.number, now, row->key.job, row->key.period)
          .Run();
      Statement data = db_->Sql(
          "INSERT OR REPLACE INTO job_checkpoint (job_name, period, generation, number, at, data) "
          "VALUES (?, ?, ?, ?, ?, ?)",
          row->key.job, row->key.period, row->generation, request.number, now);
      data.BindBlob(request.data).Run();
    }
    answers.push_back(std::move(refusal));
  }
  RETURN_IF_ERROR(transaction.Commit());
  return answers;
}

absl::StatusOr<std::vector<Refusal>> SqliteStore::Finish(absl::Span<const FinishRequest> requests) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "finish"));
  std::vector<Refusal> answers;
  JobNews news;
  for (const FinishRequest& request : requests) {
    answers.push_back({FinishOne(*db_, transaction, request, &news)});
  }
  news.Write(*db_);
  RETURN_IF_ERROR(transaction.Commit());
  return answers;
}

absl::StatusOr<std::vector<ResolveAnswer>> SqliteStore::Resolve(
    absl::Span<const FinishRequest> requests) {
  using Kind = ResolveAnswer::Kind;
  std::vector<ResolveAnswer> answers;
  if (IsMutant(Mutant::kNaiveResolve)) {
    ASSIGN_OR_RETURN(ReadSnapshot snapshot, ReadSnapshot::Begin(*db_));
    for (const FinishRequest& request : requests) {
      const std::optional<Row> row = FindRow(*db_, request.ticket.key);
      const bool done = row && DoneBy(*row, request.ticket);
      answers.push_back({done ? Kind::kCommitted : Kind::kNotCommitted});
    }
    return answers;
  }
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "resolve"));
  Jobs jobs(*db_);
  JobNews news;
  for (const FinishRequest& request : requests) {
    const std::optional<Row> row = FindRow(*db_, request.ticket.key);
    const bool by_job = request.outcome.kind == Outcome::Kind::kDoneByJob;
    const bool completes = request.outcome.kind == Outcome::Kind::kDone || by_job;
    Kind kind = Kind::kNotCommitted;
    if (completes && row && DoneBy(*row, request.ticket)) {
      kind = Kind::kCommitted;
      if (by_job) CompleteDoneByJob(*db_, transaction, row, request, &news);
    } else if (EndedSo(*db_, request)) {
      kind = Kind::kCommitted;
    } else if (row && OwnedBy(*row, request.ticket)) {
      if (!by_job && RefusalOf(&*row, request.ticket, transaction.now(), Asked::kFinish).empty()) {
        Complete(*db_, transaction, *row, request, &news);
        kind = Kind::kCommitted;
      } else if (!IsMutant(Mutant::kResolveBurnsNothing)) {
        // The answer is no; the fence is burnt, so that a late COMMIT must fail (I9).
        const Ending ending =
            TakenBack(*row, LossRuleOf(jobs.Find(row->key.job)), transaction.now());
        EndAttempt(*db_, transaction, *row, ending);
        news.Add(*row, ending.run_word, ending.outcome.reason, transaction.now());
      }
    }
    answers.push_back({kind});
  }
  news.Write(*db_);
  RETURN_IF_ERROR(transaction.Commit());
  return answers;
}

absl::Status SqliteStore::PutOutput(const Ticket& ticket, absl::string_view head,
                                    absl::string_view tail, int64_t bytes) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "put_output"));
  const std::optional<Row> row = FindRow(*db_, ticket.key);
  if (!row || !OwnedBy(*row, ticket)) return absl::OkStatus();
  {
    Statement output = db_->Sql(
        "INSERT OR REPLACE INTO job_output (fence, bytes, at, head, tail) VALUES (?, ?, ?, ?, ?)",
        ticket.fence, bytes, transaction.now());
    output.BindBlob(head).BindBlob(tail).Run();
  }
  return transaction.Commit();
}

}  // namespace matins::sqlite
