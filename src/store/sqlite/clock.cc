#include "base/clock.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "store/rules.h"
#include "store/sqlite/due.h"
#include "store/sqlite/sqlite_store.h"

namespace matins::sqlite {
namespace {

std::optional<absl::Time> MetaTime(Connection& db, absl::string_view key) {
  Statement row = db.Sql("SELECT value FROM matins_meta WHERE key = ?", key);
  if (!row.Next() || row.Null(0)) return std::nullopt;
  return row.Time(0, absl::InfinitePast());
}

template <typename T>
void SetMeta(Connection& db, absl::string_view key, const T& value) {
  db.Sql("INSERT OR REPLACE INTO matins_meta (key, value) VALUES (?, ?)", key, value).Run();
}

struct KnownNode {
  absl::Time seen;
  absl::Duration boot;
};

std::optional<KnownNode> FindNode(Connection& db, const std::string& name) {
  Statement row = db.Sql("SELECT seen_at, boot FROM job_node WHERE name = ?", name);
  if (!row.Next()) return std::nullopt;
  return KnownNode{row.Time(0, absl::InfinitePast()), row.Micros(1)};
}

// The step that a tick sees, told for people; nothing where the clock goes as it should.
std::optional<std::string> StepSeen(absl::Time raw, absl::Time mark, const TickRequest& request,
                                    const std::optional<KnownNode>& node) {
  if (mark == absl::InfinitePast()) return std::nullopt;
  const auto told = [&](const char* where, absl::Duration by) {
    return absl::StrFormat("the store's clock went %s by %s at %s", where,
                           absl::FormatDuration(absl::Trunc(by, absl::Milliseconds(1))),
                           FormatInstant(mark));
  };
  if (raw < mark - kStepBack) {
    if (IsMutant(Mutant::kNoStepBack)) return std::nullopt;
    return told("back", mark - raw);
  }
  // Only a node that was here before the jump can say what its boot clock explains; a machine that
  // slept, or was down, is no step.
  if (!node || !IsUnjudged(raw, mark)) return std::nullopt;
  const absl::Duration unexplained = (raw - node->seen) - (request.boot - node->boot);
  if (unexplained <= kStepForward) return std::nullopt;
  return told("forward", unexplained);
}

// Whether a node other than a new one was there when the mark was set, and may judge what came
// since.
bool HasWitness(Connection& db, absl::Time mark) {
  return db.Sql("SELECT 1 FROM job_node WHERE NOT left AND seen_at > ?", mark - kNodeGone).Next();
}

void Freeze(Connection& db, absl::Time now, absl::Time raw, const std::string& why) {
  SetMeta(db, "clock_frozen_at", now);
  SetMeta(db, "clock_frozen_why", why);
  SetMeta(db, "clock_raw", raw);
  SetMeta(db, "clock_steady_from", raw);
  WriteEvent(db, now,
             {.kind = "clock", .who = "policy", .why = why, .detail = "{\"frozen\":true}"});
}

// Whether the frozen clock has now been steady for long enough.
bool Steady(Connection& db, absl::Time raw, absl::Duration settle) {
  const absl::Time last = MetaTime(db, "clock_raw").value_or(raw);
  absl::Time from = MetaTime(db, "clock_steady_from").value_or(raw);
  if (raw < last - kStepBack || raw > last + kStepForward) from = raw;
  SetMeta(db, "clock_raw", raw);
  SetMeta(db, "clock_steady_from", from);
  return raw - from >= settle;
}

// A trigger by return backs off, so that a crash loop is no retry storm; one that came too early is
// given when its time has come.
bool ReturnNow(Connection& db, absl::Time now, bool nobody_was_here) {
  const std::optional<absl::Time> last = MetaTime(db, "return_last");
  const std::optional<absl::Time> due = MetaTime(db, "return_due");
  absl::Duration wait = absl::ZeroDuration();
  if (last && now - *last <= kReturnCalm) {
    wait = MetaTime(db, "return_wait").value_or(absl::UnixEpoch()) - absl::UnixEpoch();
  }
  const bool waited = due && *due <= now;
  if (!nobody_was_here && !waited) return false;
  if (!waited && last && now < *last + wait) {
    SetMeta(db, "return_due", *last + wait);
    return false;
  }
  SetMeta(db, "return_last", now);
  SetMeta(db, "return_wait", std::min(std::max(2 * wait, kReturnWaitMin), kReturnWaitMax));
  SetMeta(db, "return_due", std::nullopt);
  return true;
}

// To a job without a FAILED period it says nothing, as long as its next look can be trusted.
void TriggerByReturn(Connection& db, absl::Time now, const TickRequest& request) {
  db.Sql(
        "UPDATE job SET pending = 'return', next_look = 0, revision = revision + 1 WHERE NOT "
        "deleted AND pending IS NULL AND (?1 IS NOT (SELECT value FROM matins_meta WHERE key = "
        "'return_planner') OR name IN (SELECT job_name FROM job_watermark WHERE status = 'FAILED' "
        "AND NOT held))",
        request.planner)
      .Run();
  SetMeta(db, "return_planner", request.planner);
  WriteEvent(db, now, {.kind = "return", .who = absl::StrCat("node:", request.node.name)});
}

int64_t LiveNodes(Connection& db, absl::Time now) {
  Statement row =
      db.Sql("SELECT count(*) FROM job_node WHERE NOT left AND seen_at > ?", now - kNodeGone);
  return row.Next() ? row.Int(0) : 0;
}

// Nothing runs, and nothing is to be looked at by `until`: three ends of indexes.
bool Idle(Connection& db, absl::Time until) {
  Statement row = db.Sql(
      "SELECT NOT (EXISTS (SELECT 1 FROM job_watermark WHERE status = 'RUNNING') OR EXISTS (SELECT "
      "1 FROM job_watermark WHERE status = 'PLANNED' AND look_at <= ?1) OR EXISTS (SELECT 1 FROM "
      "job WHERE NOT deleted AND next_look <= ?1))",
      until);
  return row.Next() && row.Int(0) != 0;
}

}  // namespace

void SettleClock(Connection& db, Transaction& transaction, absl::string_view who,
                 absl::string_view why) {
  const absl::Time now = FromMicros(ToMicros(db.RawClock()));
  static const std::string kLive = absl::StrCat(
      "SELECT ", kRowColumns,
      " FROM job_watermark WHERE status = 'RUNNING' AND lease_until IS NOT NULL ORDER BY "
      "job_name, period");
  transaction.AcceptClock(now);
  std::vector<Row> live;
  {
    Statement rows = db.Sql(kLive);
    while (!IsMutant(Mutant::kNoSettleBurn) && rows.Next()) live.push_back(ReadRow(rows));
  }
  Jobs jobs(db);
  for (const Row& row : live) {
    Ending ending = TakenBack(row, LossRuleOf(jobs.Find(row.key.job)), now);
    ending.outcome.message = "the store's clock stepped; its lease could not be judged";
    // The old lease end was told by the old clock.
    ending.op = "burn";
    ending.wait_until = absl::InfinitePast();
    EndAttempt(db, transaction, row, ending);
  }
  const absl::Time soon = now + absl::Minutes(5);
  db.Sql("UPDATE job_lock SET until = min(until, ?)", soon).Run();
  db.Sql("UPDATE job_slot SET until = min(until, ?)", soon).Run();
  db.Sql("UPDATE job_watermark SET wait_until = ?1 WHERE wait_until > ?1", soon).Run();
  db.Sql(
        "UPDATE job_watermark SET held_by = '', held_until = NULL WHERE status = 'PLANNED' AND "
        "held_by <> ''")
      .Run();
  db.Sql(
        "UPDATE job_watermark SET look_at = not_before, waits_for = NULL WHERE status = 'PLANNED' "
        "AND look_at > not_before")
      .Run();
  db.Sql("UPDATE job_node SET seen_at = min(seen_at, ?)", now).Run();
  db.Sql(
        "DELETE FROM matins_meta WHERE key IN ('clock_frozen_at', 'clock_frozen_why', "
        "'clock_raw', 'clock_steady_from', 'return_last', 'return_wait', 'return_due', "
        "'return_planner')")
      .Run();
  SetMeta(db, "clock_hwm", now);
  WriteEvent(db, now,
             {.kind = "clock",
              .who = who,
              .why = why,
              .detail = absl::StrCat("{\"frozen\":false,\"burnt\":", live.size(), "}")});
}

absl::StatusOr<TickAnswer> SqliteStore::Tick(const TickRequest& request) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "tick"));
  const absl::Time clock = IsMutant(Mutant::kNodeClock) ? request.wall : db_->RawClock();
  const absl::Time raw = FromMicros(ToMicros(clock));
  const absl::Time mark = MetaTime(*db_, "clock_hwm").value_or(absl::InfinitePast());
  const std::optional<KnownNode> known = FindNode(*db_, request.node.name);
  TickAnswer answer;
  answer.schema = transaction.schema();
  const bool was_frozen = MetaTime(*db_, "clock_frozen_at").has_value();
  if (was_frozen) {
    if (Steady(*db_, raw, absl::Microseconds(request.clock_settle_us))) {
      SettleClock(*db_, transaction, "policy", "the clock has been steady");
    }
  } else if (std::optional<std::string> why = StepSeen(raw, mark, request, known)) {
    Freeze(*db_, transaction.now(), raw, *why);
  } else if (!known && IsUnjudged(raw, mark) && request.asking < kWitnessWait &&
             HasWitness(*db_, mark) && !IsMutant(Mutant::kNoWitnessWait)) {
    answer.now = transaction.now();
    answer.epoch = transaction.epoch();
    answer.frozen = true;
    answer.frozen_why = WaitsForWitness(raw, mark);
    RETURN_IF_ERROR(transaction.Commit());
    return answer;
  } else if (raw > mark) {
    SetMeta(*db_, "clock_hwm", raw);
  }
  answer.now = transaction.now();
  answer.epoch = transaction.epoch();
  {
    Statement why = db_->Sql(
        "SELECT value FROM matins_meta WHERE key = 'clock_frozen_why' AND EXISTS (SELECT 1 FROM "
        "matins_meta WHERE key = 'clock_frozen_at')");
    if (why.Next()) {
      answer.frozen = true;
      answer.frozen_why = why.Text(0);
    }
  }
  if (!answer.frozen) {
    answer.returned = ReturnNow(*db_, answer.now, LiveNodes(*db_, answer.now) == 0);
    if (answer.returned) TriggerByReturn(*db_, answer.now, request);
  }
  db_->Sql(
         "INSERT INTO job_node (name, labels, started_at, seen_at, left, boot, clock_offset) "
         "VALUES (?1, ?2, ?3, ?3, 0, ?4, ?5) ON CONFLICT (name) DO UPDATE SET labels = ?2, "
         "seen_at = ?3, left = 0, boot = ?4, clock_offset = ?5",
         request.node.name, JsonArray(request.node.labels), answer.now, request.boot,
         request.wall - answer.now)
      .Run();
  if (request.stood_still >= kStoodStill) {
    WriteEvent(*db_, answer.now,
               {.kind = kStoodStillEvent,
                .who = absl::StrCat("node:", request.node.name),
                .detail = StoodStillDetail(request.stood_still)});
  }
  answer.live_nodes = static_cast<int>(LiveNodes(*db_, answer.now));
  answer.idle = !was_frozen && !answer.frozen && !answer.returned &&
                Idle(*db_, answer.now + request.idle_ahead) &&
                AsideLists(*db_, request.node.labels).empty();
  RETURN_IF_ERROR(transaction.Commit());
  return answer;
}

absl::Status SqliteStore::Leave(const NodeId& node) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*db_, "leave"));
  db_->Sql("UPDATE job_node SET left = 1 WHERE name = ?", node.name).Run();
  db_->Sql(
         "UPDATE job_watermark SET held_by = '', held_until = NULL WHERE status = 'PLANNED' AND "
         "held_by = ? AND held_by <> ''",
         node.name)
      .Run();
  return transaction.Commit();
}

SqliteStore::~SqliteStore() {
  if (watch_ != nullptr) db_->hub().Leave(watch_.get());
}

Heard SqliteStore::AwaitChange(absl::Duration at_most) {
  Clock& clock = SystemClock();
  const absl::Duration until = clock.BootNow() + at_most;
  Hub& hub = db_->hub();
  if (watch_ == nullptr) {
    auto watch = std::make_unique<WriteWatch>(db_->WalPath());
    hub.Join(watch.get());
    absl::MutexLock lock(&watch_mutex_);
    watch_ = std::move(watch);
  }
  for (;;) {
    const int64_t changes = hub.changes();
    bool written = std::exchange(seen_changes_, changes) != changes;
    const bool woken = interrupted_.exchange(false);
    if (watcher_ == nullptr) {
      // Of most stores nobody waits for a change. What cannot be opened now is tried again.
      absl::StatusOr<std::unique_ptr<Connection>> opened = open_watcher_();
      if (opened.ok()) watcher_ = *std::move(opened);
    }
    if (watcher_ != nullptr) {
      // Before the version is read: a write that comes in between is heard of next time.
      watch_->Listen();
      const bool touched = watch_->TakeTouched();
      watcher_->ClearStatus();
      const int64_t version = watcher_->DataVersion();
      const bool changed = std::exchange(seen_version_, version) != version;
      looks_.Looked(clock.BootNow(), touched, changed);
      written |= changed;
    }
    const absl::Duration now = clock.BootNow();
    if (woken || written || now >= until) {
      return written ? Heard::kWritten : watcher_ == nullptr ? Heard::kDeaf : Heard::kNothing;
    }
    const bool hears = watcher_ != nullptr && watch_->listening();
    const absl::Duration look = hears ? looks_.Next(now) : now + kWritesPoll;
    watch_->Wait(std::min(until, look) - now, hears && looks_.Listens(now));
  }
}

void SqliteStore::Interrupt() {
  interrupted_ = true;
  absl::MutexLock lock(&watch_mutex_);
  if (watch_ != nullptr) watch_->Ring();
}

}  // namespace matins::sqlite
