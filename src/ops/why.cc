#include "ops/why.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status.h"
#include "base/time.h"
#include "expect/expect.h"
#include "job/calendar_fires.h"
#include "job/json.h"
#include "job/resolve.h"
#include "job/words.h"
#include "ops/jobs.h"
#include "ops/why_then.h"
#include "store/backfill_rules.h"

namespace matins {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();

class Inquiry {
 public:
  Inquiry(Session& session, const Planned& planned, std::string key)
      : session_(session), planned_(planned), key_(std::move(key)) {}

  absl::StatusOr<WhyAnswer> Run() {
    answer_.job = planned_.state().job;
    answer_.period = key_;
    RETURN_IF_ERROR(Read());
    Phases();
    if (!answer_.row) {
      WithoutRow();
    } else {
      RETURN_IF_ERROR(OfRow(*answer_.row));
      if (answer_.row->status != PeriodStatus::kPlanned) RETURN_IF_ERROR(Behind(*answer_.row));
    }
    return std::move(answer_);
  }

 private:
  absl::Status Read() {
    RowFilter filter;
    filter.job = answer_.job;
    filter.period = key_;
    ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, session_.acts().ReadRows(filter));
    if (!rows.empty()) answer_.row = rows.front();
    RunFilter runs;
    runs.job = answer_.job;
    runs.period = key_;
    ASSIGN_OR_RETURN(runs_, session_.acts().ReadRuns(runs));
    ASSIGN_OR_RETURN(facts_, session_.acts().ReadAuditFacts(answer_.job));
    ASSIGN_OR_RETURN(std::vector<JobSummary> summaries, ListJobs(session_, answer_.job));
    summary_ = std::move(summaries.front());
    ASSIGN_OR_RETURN(nodes_, session_.acts().ReadNodes());
    return absl::OkStatus();
  }

  void Say(std::string truth) { answer_.truths.push_back(std::move(truth)); }

  void Phase(const char* name, bool reached, absl::Time at, const std::string& owner) {
    answer_.phases.push_back({name, reached, at, reached ? owner : ""});
    const bool optional = absl::string_view(name) == "checkpointed";
    if (!reached && !optional && answer_.missing.empty()) answer_.missing = name;
  }

  void Phases() {
    const PeriodRow* row = answer_.row ? &*answer_.row : nullptr;
    const bool waits = row != nullptr && row->status == PeriodStatus::kPlanned;
    // What waits again has its way before it, whatever attempts it had.
    if (row == nullptr || waits || runs_.empty()) {
      const bool held = waits && !row->held_by.empty() && row->held_until > facts_.now;
      const bool ended = row != nullptr && !waits && row->status != PeriodStatus::kRunning;
      Phase("planned", row != nullptr, kPast, "");
      if (ended) return;
      Phase("dispatched", held, kPast, held ? row->held_by : "");
      for (const char* name : {"claimed", "started", "checkpointed", "finished"}) {
        Phase(name, false, kPast, "");
      }
      return;
    }
    const RunRow& run = runs_.front();
    const auto reached = [](absl::Time t) { return t != kPast; };
    Phase("planned", true, run.planned_at, "");
    Phase("dispatched", true, reached(run.dispatched_at) ? run.dispatched_at : run.claimed_at,
          run.node);
    Phase("claimed", reached(run.claimed_at), run.claimed_at, run.node);
    Phase("started", reached(run.started_at) || run.status == "DONE", run.started_at, run.node);
    Phase("checkpointed", reached(run.checkpointed_at), run.checkpointed_at, run.node);
    Phase("finished", reached(run.finished_at), run.finished_at, run.node);
  }

  // ---- no row ----

  // The period as the schedules demand it; nothing: they do not.
  std::optional<ExpectedPeriod> Demanded() const {
    const auto period = PeriodFromKey(planned_.current().period_rule, key_);
    if (!period.ok()) return std::nullopt;
    std::deque<ResolvedJob> meanings;
    std::vector<DatedVersion> versions;
    for (const auto& [job, all] : facts_.versions) {
      for (const JobVersion& version : all) {
        const absl::StatusOr<Job> words = JobFromJson(version.definition);
        absl::StatusOr<ResolvedJob> meaning = words.ok() ? ResolveJob(*words) : words.status();
        if (!meaning.ok()) continue;
        meanings.push_back(*std::move(meaning));
        versions.push_back({version.number, version.from, &meanings.back()});
      }
    }
    if (versions.empty()) return std::nullopt;
    const ExpectedSet set = ExpectPeriods({.versions = versions,
                                           .first_sight = planned_.state().first_sight,
                                           .from = period->biz_date,
                                           .to = period->biz_date,
                                           .until = facts_.now});
    for (const ExpectedPeriod& expected : set.periods) {
      if (expected.key == key_) return expected;
    }
    return std::nullopt;
  }

  void WithoutRow() {
    const std::optional<ExpectedPeriod> demanded = Demanded();
    if (!demanded) return NotDemanded();
    for (const auto& [job, spans] : facts_.spans) {
      for (const SkipSpan& span : spans) {
        if (demanded->due < span.from || span.to < demanded->due) continue;
        return Say(absl::StrCat("SKIPPED(", span.reason, ") by ", span.by, ", one of ", span.count,
                                " from ", span.first_period, " to ", span.last_period));
      }
    }
    if (demanded->due <= planned_.state().floor) {
      return Say("it lies below the job's floor, where all is settled and rows are gone");
    }
    Say(absl::StrCat("it was due at ", FormatInstant(demanded->due), ", and nothing planned it"));
    SuspendedAt(demanded->due);
    NodesAt(demanded->due);
    Frozen();
  }

  void NotDemanded() {
    const ResolvedJob& job = planned_.current();
    if (planned_.state().first_sight > facts_.now) {
      return Say("the store's clock has been ahead: first sight lies in the future");
    }
    Say("no schedule in force has demanded it by now");
    const std::optional<CalendarFire> next = NextFire(job, facts_.now);
    const std::optional<Fire> previous = PreviousFire(job, facts_.now);
    Say(absl::StrCat("the fire before now is ",
                     previous ? FormatInstant(previous->at) : std::string("none"), ", the next ",
                     next ? FormatInstant(next->fire.at) : std::string("none"),
                     "; first sight was ", FormatInstant(planned_.state().first_sight)));
  }

  void SuspendedAt(absl::Time t) {
    for (const auto& [job, spans] : facts_.suspended) {
      for (const Suspension& span : spans) {
        if (t < span.from || span.to < t) continue;
        Say(absl::StrCat("the job was suspended then: since ", FormatInstant(span.from), " by ",
                         span.by, ": ", span.why,
                         span.to == absl::InfiniteFuture()
                             ? std::string(", and is still")
                             : absl::StrCat(", until ", FormatInstant(span.to))));
      }
    }
  }

  // Nodes that have been silent for a week are forgotten.
  void NodesAt(absl::Time t) {
    const bool any = std::any_of(nodes_.begin(), nodes_.end(), [&](const NodeRow& node) {
      return node.started_at <= t && t <= node.seen_at + absl::Seconds(30);
    });
    if (any || facts_.now - t > absl::Hours(24 * 7)) return;
    absl::Time last = kPast, first = absl::InfiniteFuture();
    for (const NodeRow& node : nodes_) {
      if (node.seen_at < t) last = std::max(last, node.seen_at);
      if (node.started_at > t) first = std::min(first, node.started_at);
    }
    Say(absl::StrCat(
        "no node was alive at ", FormatInstant(t),
        last == kPast ? "" : absl::StrCat("; the last was seen at ", FormatInstant(last)),
        first == absl::InfiniteFuture()
            ? ""
            : absl::StrCat("; the next began at ", FormatInstant(first))));
  }

  void Frozen() {
    const absl::StatusOr<StoreStatus> status = session_.acts().ReadStatus();
    if (status.ok() && status->frozen)
      Say(absl::StrCat("the clock is frozen: ", status->frozen_why));
  }

  // ---- a row ----

  // What kept it from starting when it might have.
  absl::Status Behind(const PeriodRow& row) {
    const std::optional<Wait> wait = WaitOf(row, runs_, facts_.now);
    if (!wait) return absl::OkStatus();
    Say(absl::StrCat("it waited ",
                     DurationText(absl::Trunc(wait->to - wait->from, absl::Seconds(1))), ", from ",
                     FormatInstant(wait->from), " to ", FormatInstant(wait->to)));
    ASSIGN_OR_RETURN(const std::vector<std::string> then,
                     StoodInTheWay(session_, planned_, facts_, nodes_, row, *wait));
    for (const std::string& truth : then) Say(truth);
    return absl::OkStatus();
  }

  // Of a back-fill that a person asked for: what keeps it now.
  absl::Status OfBackfill(const PeriodRow& row) {
    if (row.backfill_id == 0) return absl::OkStatus();
    ASSIGN_OR_RETURN(const std::vector<BackfillRow> found,
                     session_.acts().ReadBackfills(row.backfill_id, ""));
    if (found.empty()) return absl::OkStatus();
    BackfillFacts facts{found[0].terms,
                        found[0].state,
                        found[0].changed.who,
                        found[0].running,
                        found[0].failed > 0 ? "a period" : "",
                        {}};
    if (const auto stop = StopOf(row.backfill_id, facts, row, facts_.now)) {
      Say(absl::StrCat(stop->blocker, "; `matins backfills show ", row.backfill_id, "`"));
    }
    return absl::OkStatus();
  }

  absl::Status OfRow(const PeriodRow& row) {
    switch (row.status) {
      case PeriodStatus::kPlanned:
        return Waits(row);
      case PeriodStatus::kRunning:
        Runs(row);
        return absl::OkStatus();
      case PeriodStatus::kDone:
        Say(absl::StrCat(
            "DONE at ",
            row.finished_at == kPast ? std::string("an unknown time")
                                     : FormatInstant(row.finished_at),
            row.node.empty() ? ", by another program" : absl::StrCat(" by ", row.node)));
        return absl::OkStatus();
      case PeriodStatus::kSkipped:
        Say(absl::StrCat("SKIPPED(", row.reason, ") by ", row.by));
        return absl::OkStatus();
      case PeriodStatus::kFailed:
        break;
    }
    Say(absl::StrCat(
        "FAILED", row.held ? "(held)" : "", ": ", row.reason,
        runs_.empty() || runs_[0].message.empty() ? "" : absl::StrCat(", ", runs_[0].message),
        row.held ? "; `matins hold release` runs it again"
                 : "; the next trigger gives it new attempts"));
    return absl::OkStatus();
  }

  void Runs(const PeriodRow& row) {
    const auto node = std::find_if(nodes_.begin(), nodes_.end(),
                                   [&](const NodeRow& each) { return each.name == row.node; });
    const bool alive = node != nodes_.end() && IsAlive(*node, facts_.now);
    Say(absl::StrCat("RUNNING on ", row.node.empty() ? "an unnamed node" : row.node,
                     alive ? ", which is alive" : ", which is not alive",
                     row.lease_until == kPast
                         ? std::string("; it has no lease, as another program writes it")
                         : absl::StrCat("; its lease ends at ", FormatInstant(row.lease_until))));
  }

  absl::Status Waits(const PeriodRow& row) {
    if (summary_.row.suspension) {
      const Suspension& since = *summary_.row.suspension;
      Say(absl::StrCat("the job is suspended since ", FormatInstant(since.from), " by ", since.by,
                       ": ", since.why));
    }
    if (row.not_before > facts_.now) {
      Say(absl::StrCat("it may not start before ", FormatInstant(row.not_before),
                       row.attempts > 0 ? ": it waits for its backoff" : ": it is not due"));
    }
    RETURN_IF_ERROR(Order(row));
    RETURN_IF_ERROR(After(row));
    RETURN_IF_ERROR(OfBackfill(row));
    Nodes();
    Running(row);
    ASSIGN_OR_RETURN(const std::vector<std::string> full,
                     FullLimits(session_, planned_.current().job, row));
    for (const std::string& truth : full) Say(truth);
    if (row.start_by < facts_.now && row.attempts_total == 0) {
      Say(absl::StrCat("its start deadline passed at ", FormatInstant(row.start_by),
                       "; planning judges it by the misfire policy"));
    }
    if (row.wait_until > facts_.now) {
      Say(absl::StrCat("an earlier run of it, taken back or deleted, may be alive until ",
                       FormatInstant(row.wait_until)));
    }
    Frozen();
    if (answer_.truths.empty()) {
      Say("nothing stands in its way: a node starts it when it has a free slot");
    }
    return absl::OkStatus();
  }

  absl::Status Order(const PeriodRow& row) {
    if (planned_.current().job.backfill.order != Order::kStrict) return absl::OkStatus();
    const PeriodRow* first = nullptr;
    for (const PeriodRow& other : planned_.state().rows) {
      const bool open =
          other.status != PeriodStatus::kDone && other.status != PeriodStatus::kSkipped;
      if (open && other.due < row.due && (first == nullptr || other.due < first->due))
        first = &other;
    }
    if (first != nullptr) {
      Say(absl::StrCat("blocked by ", first->key.period, ", which is ", Word(first->status),
                       first->held ? "(held)" : "", " and comes first in strict order"));
    }
    return absl::OkStatus();
  }

  absl::Status After(const PeriodRow& row) {
    for (const matins::After& after : planned_.current().job.after) {
      RowFilter filter;
      filter.job = after.job;
      filter.from = filter.to = row.biz_date;
      ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, session_.acts().ReadRows(filter));
      const bool done = std::any_of(rows.begin(), rows.end(), [](const PeriodRow& other) {
        return other.status == PeriodStatus::kDone;
      });
      if (!done) {
        Say(absl::StrCat("it waits for job ", after.job, ", which is ",
                         rows.empty() ? "not planned" : std::string(Word(rows[0].status)), " for ",
                         FormatDay(row.biz_date)));
      }
    }
    return absl::OkStatus();
  }

  void Nodes() {
    const bool any = std::any_of(nodes_.begin(), nodes_.end(),
                                 [&](const NodeRow& node) { return IsAlive(node, facts_.now); });
    if (!any) return Say("no node is alive");
    if (!summary_.unserved.empty()) {
      Say(absl::StrCat("no living node has ", absl::StrJoin(summary_.unserved, ", ")));
    }
  }

  void Running(const PeriodRow& row) {
    const Job& words = planned_.current().job;
    for (const PeriodRow& other : planned_.state().rows) {
      if (other.status != PeriodStatus::kRunning || other.key.period == row.key.period) continue;
      if (words.overlap != Overlap::kAllow && words.lock.scope == LockScope::kJob) {
        Say(absl::StrCat("the job's lock is held by ", other.key.period, ", run ", other.fence,
                         " on ", other.node));
      }
    }
    if (words.limit && summary_.running >= *words.limit) {
      Say(absl::StrCat("the job's limit of ", *words.limit, " is full"));
    }
    for (const AuditFacts::Lock& lock : facts_.locks) {
      if (lock.until > facts_.now) {
        Say(absl::StrCat("lock ", lock.lock_key, " is left over from run ", lock.fence, " until ",
                         FormatInstant(lock.until)));
      }
    }
  }

  Session& session_;
  const Planned& planned_;
  const std::string key_;
  WhyAnswer answer_;
  std::vector<RunRow> runs_;
  AuditFacts facts_;
  JobSummary summary_;
  std::vector<NodeRow> nodes_;
};

}  // namespace

absl::StatusOr<WhyAnswer> Why(Session& session, absl::string_view job, absl::string_view date) {
  ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, job));
  ASSIGN_OR_RETURN(std::string key, KeyFor(planned.current(), date));
  return Inquiry(session, planned, std::move(key)).Run();
}

}  // namespace matins
