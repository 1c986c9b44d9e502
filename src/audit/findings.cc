#include "audit/findings.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "audit/stuck.h"
#include "base/fault.h"
#include "base/time.h"
#include "job/deadline.h"
#include "job/words.h"

namespace matins {
namespace {

constexpr absl::Time kNever = absl::InfiniteFuture();

bool IsFinal(const PeriodRow& row) {
  return row.status == PeriodStatus::kDone || row.status == PeriodStatus::kSkipped;
}

std::string FailureText(const PeriodRow& row) {
  return absl::StrCat("FAILED", row.held ? "(held)" : "", row.reason.empty() ? "" : ": ",
                      row.reason, row.held ? "; `matins run` opens it again" : "");
}

std::string OpenText(const PeriodRow& row) {
  if (row.status == PeriodStatus::kRunning) {
    return absl::StrCat("RUNNING on ", row.node.empty() ? "an unnamed node" : row.node);
  }
  return row.attempts_total == 0
             ? "PLANNED, and never started"
             : absl::StrCat("PLANNED after ", row.attempts_total, " attempt(s)");
}

class Judge {
 public:
  Judge(const AuditJob& job, const AuditQuestion& question) : job_(job), question_(question) {
    for (const PeriodRow& row : job.rows) rows_[row.key.period] = &row;
  }

  AuditVerdict Take() && {
    const ExpectedSet expected = ExpectPeriods({.versions = job_.versions,
                                                .first_sight = job_.row.first_sight,
                                                .from = question_.from,
                                                .to = question_.to,
                                                .until = question_.now});
    for (const ExpectedPeriod& period : expected.periods) Period(period);
    if (expected.unknown_from) {
      Add({.kind = AuditKind::kUnknown,
           .due = *expected.unknown_from,
           .why = expected.unknown_why});
    }
    Unexpected();
    Suspended();
    for (AuditFinding& found : FindStuck(job_, question_)) Add(std::move(found));
    return std::move(verdict_);
  }

 private:
  void Add(AuditFinding finding) {
    finding.job = job_.row.name;
    verdict_.findings.push_back(std::move(finding));
  }

  // Neighbours that have the same to say are one finding.
  void AddPeriod(AuditFinding finding, const std::string& key) {
    if (!verdict_.findings.empty()) {
      AuditFinding& last = verdict_.findings.back();
      if (last.kind == finding.kind && last.why == finding.why && !last.period.empty()) {
        last.last_period = key;
        ++last.count;
        if (last.periods.size() < kMostPeriodsNamed) last.periods.push_back(key);
        return;
      }
    }
    finding.period = finding.last_period = key;
    finding.periods = {key};
    Add(std::move(finding));
  }

  const ResolvedJob& Meaning(int version) const { return *job_.versions[version].job; }

  // The suspension that keeps a period from being done by its deadline; one that has ended moves
  // the deadline on.
  absl::Time Deadline(const ResolvedJob& meaning, absl::Time due) const {
    absl::Time deadline = DoneByInstant(meaning, due);
    // What backfill.start asks for could not be begun before the job, and these words, were there.
    if (due < job_.row.first_sight) {
      const absl::Time asked = std::max(job_.row.first_sight, job_.versions.back().from);
      deadline = std::max(deadline, DoneByInstant(meaning, asked));
    }
    for (const Suspension& span : job_.suspended) {
      if (span.from > deadline || span.to < due) continue;
      if (span.to == kNever) return kNever;
      deadline = std::max(deadline, DoneByInstant(meaning, span.to));
    }
    return deadline;
  }

  const SkipSpan* SpanOf(absl::Time due) const {
    for (const SkipSpan& span : job_.spans) {
      if (span.from <= due && due <= span.to) return &span;
    }
    return nullptr;
  }

  void Skipped(const std::string& key, absl::Time due, const std::string& reason,
               const std::string& by, AuditTally& tally) {
    const bool unfillable = reason == reason::kUnfillable;
    const bool suspended = reason == reason::kSuspended;
    ++(unfillable ? tally.unfillable : suspended ? tally.suspended : tally.skipped);
    const AuditKind kind = unfillable  ? AuditKind::kUnfillable
                           : suspended ? AuditKind::kSuspended
                                       : AuditKind::kSkipped;
    AddPeriod({.kind = kind,
               .alarm = unfillable,
               .due = due,
               .why = absl::StrCat("SKIPPED(", reason, ") by ", by)},
              key);
  }

  void Done(const ExpectedPeriod& period, const PeriodRow& row, AuditTally& tally) {
    ++tally.done;
    // A later generation was done before, or was deleted; nobody knows when it should have been.
    if (row.generation > 1 || row.finished_at == absl::InfinitePast()) return;
    const absl::Time deadline = Deadline(Meaning(period.version), period.due);
    if (row.finished_at <= deadline) return;
    ++tally.late;
    AddPeriod({.kind = AuditKind::kLate,
               .alarm = false,
               .due = period.due,
               .deadline = deadline,
               .why = "DONE after its deadline"},
              period.key);
  }

  // Whether the source still has it, of a period that is not final.
  void Window(const Job& words, const std::string& key, absl::Time due) {
    const absl::Duration window = words.backfill.source_window, age = question_.now - due;
    if (window == absl::InfiniteDuration() || age <= window * 4 / 5) return;
    const bool gone = age > window;
    AddPeriod(
        {.kind = gone ? AuditKind::kUnfillable : AuditKind::kSoonUnfillable,
         .due = due,
         .deadline = due + window,
         .why = gone ? "the source no longer has it" : "the source will not have it for long"},
        key);
  }

  // A period that is neither DONE nor SKIPPED; without a row where `row` is null.
  void Open(const std::string& key, absl::Time due, const ResolvedJob& meaning,
            const PeriodRow* row, AuditTally& tally) {
    const absl::Time deadline = Deadline(meaning, due);
    const bool failed = row != nullptr && row->status == PeriodStatus::kFailed;
    if (failed) {
      ++tally.missing;
      AddPeriod(
          {.kind = AuditKind::kFailed, .due = due, .deadline = deadline, .why = FailureText(*row)},
          key);
    } else if (deadline == kNever) {
      ++tally.suspended;
      if (suspended_++ == 0) first_suspended_ = key;
      last_suspended_ = key;
    } else if (question_.now <= deadline) {
      ++tally.open;
    } else if (row != nullptr) {
      ++tally.missing;
      AddPeriod(
          {.kind = AuditKind::kUnfinished, .due = due, .deadline = deadline, .why = OpenText(*row)},
          key);
    } else if (!IsMutant(Mutant::kNoAbsent) && !MATINS_BROKEN_AT("audit.absent")) {
      ++tally.missing;
      AddPeriod({.kind = AuditKind::kAbsent,
                 .due = due,
                 .deadline = deadline,
                 .why = "there is no row at all: nothing planned it"},
                key);
    }
    Window(meaning.job, key, due);
  }

  void Period(const ExpectedPeriod& period) {
    const auto found = rows_.find(period.key);
    const PeriodRow* row = found == rows_.end() ? nullptr : found->second;
    judged_.insert(period.key);
    // Below the floor all is settled, and rows are gone.
    if (row == nullptr && period.due <= job_.row.floor) return;
    AuditTally& tally = verdict_.months[absl::CivilMonth(period.biz_date)];
    ++tally.expected;
    if (row != nullptr && row->status == PeriodStatus::kDone) return Done(period, *row, tally);
    if (row != nullptr && row->status == PeriodStatus::kSkipped) {
      return Skipped(period.key, period.due, row->reason, row->by, tally);
    }
    if (const SkipSpan* span = row == nullptr ? SpanOf(period.due) : nullptr) {
      return Skipped(period.key, period.due, span->reason, span->by, tally);
    }
    Open(period.key, period.due, Meaning(period.version), row, tally);
  }

  // Rows that are not final and that no schedule demanded in these dates: by hand, of another
  // program, or of long ago.
  void Unexpected() {
    AuditTally outside;
    for (const PeriodRow& row : job_.rows) {
      if (IsFinal(row) || judged_.contains(row.key.period)) continue;
      if (row.due == absl::InfinitePast()) {
        if (row.status == PeriodStatus::kFailed) {
          AddPeriod({.kind = AuditKind::kFailed, .why = FailureText(row)}, row.key.period);
        }
        continue;
      }
      if (row.due > question_.now) continue;
      Open(row.key.period, row.due, *job_.versions.back().job, &row, outside);
    }
  }

  void Suspended() {
    if (!job_.row.suspension) return;
    const Suspension& since = *job_.row.suspension;
    const bool long_ago = question_.now - since.from > kSuspendedTooLong;
    Add({.kind = AuditKind::kSuspended,
         .alarm = long_ago,
         .period = first_suspended_,
         .last_period = last_suspended_,
         .count = suspended_,
         .due = since.from,
         .why = absl::StrCat("suspended since ", FormatInstant(since.from), " by ", since.by, ": ",
                             since.why, long_ago ? "; for more than a week now" : "")});
  }

  const AuditJob& job_;
  const AuditQuestion& question_;
  absl::flat_hash_map<std::string, const PeriodRow*> rows_;
  absl::flat_hash_set<std::string> judged_;
  int64_t suspended_ = 0;
  std::string first_suspended_, last_suspended_;
  AuditVerdict verdict_;
};

PeriodRow DoneRow(const ExpectedPeriod& period, const std::string& job) {
  PeriodRow row;
  row.key = {job, period.key};
  row.biz_date = period.biz_date;
  row.status = PeriodStatus::kDone;
  row.due = period.due;
  row.finished_at = period.due;
  return row;
}

}  // namespace

absl::string_view AuditWord(AuditKind kind) {
  constexpr absl::string_view kWords[] = {
      "absent",          "unfinished", "failed", "late",    "skipped",   "suspended", "unfillable",
      "soon_unfillable", "too_many",   "stuck",  "unknown", "unwatched", "blind"};
  return kWords[static_cast<size_t>(kind)];
}

AuditVerdict JudgeJob(const AuditJob& job, const AuditQuestion& question) {
  return Judge(job, question).Take();
}

Canary PlantCanary(absl::Time now) {
  Canary canary;
  Job words;
  words.name = "canary";
  words.schedule = "0 0 * * *";
  words.period = PeriodKind::kDay;
  words.done_by.after_due = absl::ZeroDuration();
  PeriodRule rule{.kind = PeriodKind::kDay, .zone = absl::UTCTimeZone()};
  absl::StatusOr<Schedule> schedule =
      Schedule::Parse(words.schedule, {.zone = absl::UTCTimeZone()});
  canary.job.meanings.push_back(std::make_unique<ResolvedJob>(
      ResolvedJob{words, *std::move(schedule), std::move(rule), std::nullopt}));
  canary.job.row.name = words.name;
  canary.job.row.first_sight = now - absl::Hours(24 * 5);
  canary.job.versions = {{1, absl::InfinitePast(), canary.job.meanings[0].get()}};
  const absl::CivilDay today = absl::ToCivilDay(now, absl::UTCTimeZone());
  const ExpectedSet days = ExpectPeriods({.versions = canary.job.versions,
                                          .first_sight = canary.job.row.first_sight,
                                          .from = today - 9,
                                          .to = today,
                                          .until = now});
  for (const ExpectedPeriod& period : days.periods) {
    const bool planted = period.biz_date == today - 1;
    if (planted) canary.missing = period.key;
    if (!planted) canary.job.rows.push_back(DoneRow(period, words.name));
  }
  return canary;
}

bool CanaryFound(const Canary& canary, const AuditVerdict& verdict) {
  if (IsMutant(Mutant::kNoCanary)) return true;
  return !canary.missing.empty() && verdict.findings.size() == 1 &&
         verdict.findings[0].kind == AuditKind::kAbsent &&
         verdict.findings[0].period == canary.missing && verdict.findings[0].count == 1;
}

}  // namespace matins
