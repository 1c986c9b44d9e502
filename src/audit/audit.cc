#include "audit/audit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "audit/stuck.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/time.h"
#include "job/json.h"
#include "job/resolve.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

constexpr int kMostRows = 5'000'000;  // of a job at a time
constexpr size_t kMostKept = 1000;    // findings in an audit's own row
constexpr int kManyJobs = 1000;

using RowsByJob = std::map<std::string, std::vector<PeriodRow>>;

// Every row that is not final and lies before `from` or after `to`; those between are read with
// their job.
absl::StatusOr<RowsByJob> ReadOpen(ActStore& acts, const std::string& job, absl::CivilDay from,
                                   absl::CivilDay to) {
  RowsByJob open;
  for (const PeriodStatus status :
       {PeriodStatus::kPlanned, PeriodStatus::kRunning, PeriodStatus::kFailed}) {
    for (const bool before : {true, false}) {
      RowFilter filter;
      filter.job = job;
      filter.status = status;
      filter.limit = kMostRows;
      before ? filter.to = from - 1 : filter.from = to + 1;
      ASSIGN_OR_RETURN(std::vector<PeriodRow> rows, acts.ReadRows(filter));
      for (PeriodRow& row : rows) open[row.key.job].push_back(std::move(row));
    }
  }
  return open;
}

absl::Status ReadVersions(absl::Span<const JobVersion> versions, AuditJob& job) {
  if (versions.empty()) return absl::NotFoundError("it has no version");
  for (const JobVersion& version : versions) {
    ASSIGN_OR_RETURN(Job words, StoredJob(version.definition));
    ASSIGN_OR_RETURN(ResolvedJob meaning, ResolveJob(std::move(words)));
    job.meanings.push_back(std::make_unique<ResolvedJob>(std::move(meaning)));
    job.versions.push_back({version.number, version.from, job.meanings.back().get()});
  }
  return absl::OkStatus();
}

// Takes out what belongs to the job: of many jobs no more is kept than what is still to be judged.
template <typename T>
std::vector<T> TakeOf(std::map<std::string, std::vector<T>>& by_job, const std::string& job) {
  const auto found = by_job.extract(job);
  return found.empty() ? std::vector<T>() : std::move(found.mapped());
}

class Auditor {
 public:
  Auditor(ActStore& acts, const AuditScope& scope) : acts_(acts), scope_(scope) {}

  absl::StatusOr<AuditReport> Run() {
    ASSIGN_OR_RETURN(facts_, acts_.ReadAuditFacts(scope_.job));
    ASSIGN_OR_RETURN(nodes_, acts_.ReadNodes());
    ASSIGN_OR_RETURN(std::vector<JobRow> rows, acts_.ReadJobs(scope_.job));
    if (rows.empty() && !scope_.job.empty()) {
      return absl::NotFoundError(absl::StrCat("no job '", scope_.job, "'"));
    }
    Dates();
    if (open_) {
      ASSIGN_OR_RETURN(open_rows_, ReadOpen(acts_, scope_.job, report_.from, report_.to));
    }
    for (JobRow& row : rows) {
      if (scope_.jobs && !scope_.jobs->contains(row.name)) continue;
      RETURN_IF_ERROR(OneJob(std::move(row)));
    }
    for (AuditFinding& found : FindOwnership(facts_, owners_, longest_lock_)) {
      if (!scope_.jobs || scope_.jobs->contains(found.job)) AddFinding(std::move(found), report_);
    }
    AskCanary();
    return std::move(report_);
  }

 private:
  void Dates() {
    const absl::CivilDay today = absl::ToCivilDay(facts_.now, absl::UTCTimeZone());
    open_ = !scope_.from && !scope_.to;
    report_.now = facts_.now;
    // A biz_date may lie ahead of the fire's day.
    report_.to = scope_.to.value_or(today + 400);
    report_.from = scope_.from.value_or(std::min(report_.to, today) - kAuditDays);
  }

  AuditQuestion Question() const {
    return {
        .from = report_.from, .to = report_.to, .open = open_, .now = facts_.now, .nodes = nodes_};
  }

  absl::Status OneJob(JobRow row) {
    ++report_.jobs;
    AuditJob job;
    job.row = std::move(row);
    const std::string& name = job.row.name;
    if (const absl::Status read = ReadVersions(TakeOf(facts_.versions, name), job); !read.ok()) {
      AddFinding(
          {.kind = AuditKind::kUnknown,
           .job = name,
           .why = absl::StrCat("its definition cannot be read: ", std::string(read.message()))},
          report_);
      return absl::OkStatus();
    }
    job.suspended = TakeOf(facts_.suspended, name);
    job.spans = TakeOf(facts_.spans, name);
    RowFilter filter;
    filter.job = name;
    filter.from = report_.from;
    filter.to = report_.to;
    filter.limit = kMostRows;
    ASSIGN_OR_RETURN(job.rows, acts_.ReadRows(filter));
    for (PeriodRow& open : TakeOf(open_rows_, name)) job.rows.push_back(std::move(open));
    AuditVerdict verdict = JudgeJob(job, Question());
    for (AuditFinding& finding : verdict.findings) AddFinding(std::move(finding), report_);
    for (const auto& [month, tally] : verdict.months) Count(month, name, tally);
    KeepOwner(std::move(job));
    return absl::OkStatus();
  }

  void Count(absl::CivilMonth month, const std::string& job, const AuditTally& tally) {
    report_.months[{month, job}] = tally;
    AuditTally& total = report_.total;
    total.expected += tally.expected;
    total.done += tally.done;
    total.late += tally.late;
    total.skipped += tally.skipped;
    total.suspended += tally.suspended;
    total.unfillable += tally.unfillable;
    total.missing += tally.missing;
    total.open += tally.open;
  }

  // Of all that was read only what has several owners is needed at the end.
  void KeepOwner(AuditJob job) {
    longest_lock_ = std::max(longest_lock_, LongestLock(job));
    std::erase_if(job.rows,
                  [](const PeriodRow& row) { return row.status != PeriodStatus::kRunning; });
    if (job.rows.size() < 2) return;
    job.rows.shrink_to_fit();
    owners_.push_back(std::move(job));
  }

  void AskCanary() {
    const Canary canary = PlantCanary(facts_.now);
    const absl::CivilDay today = absl::ToCivilDay(facts_.now, absl::UTCTimeZone());
    const AuditVerdict verdict =
        JudgeJob(canary.job, {.from = today - 9, .to = today, .now = facts_.now, .nodes = nodes_});
    report_.canary = CanaryFound(canary, verdict);
    if (report_.canary) return;
    AddFinding({.kind = AuditKind::kBlind,
                .why = absl::StrCat("a miss that was planted for this audit (", canary.missing,
                                    ") was not found: do not believe what it says; is its program "
                                    "whole?")},
               report_);
  }

  ActStore& acts_;
  const AuditScope& scope_;
  AuditFacts facts_;
  std::vector<NodeRow> nodes_;
  bool open_ = true;
  RowsByJob open_rows_;
  std::vector<AuditJob> owners_;
  absl::Duration longest_lock_ = absl::ZeroDuration();
  AuditReport report_;
};

nlohmann::json Instant(absl::Time t) {
  if (t == absl::InfinitePast() || t == absl::InfiniteFuture()) return nullptr;
  return FormatInstant(t);
}

nlohmann::json TallyJson(const AuditTally& tally) {
  return {{"expected", tally.expected},   {"done", tally.done},
          {"late", tally.late},           {"skipped", tally.skipped},
          {"suspended", tally.suspended}, {"unfillable", tally.unfillable},
          {"missing", tally.missing},     {"open", tally.open}};
}

}  // namespace

absl::StatusOr<AuditReport> Audit(ActStore& acts, const AuditScope& scope) {
  absl::StatusOr<AuditReport> report = Auditor(acts, scope).Run();
  // Of a hundred thousand jobs the allocator would keep 200 MiB until the next audit.
  if (report.ok() && report->jobs > kManyJobs) ReturnFreedMemory();
  return report;
}

void AddFinding(AuditFinding finding, AuditReport& report) {
  report.alarms += finding.alarm;
  report.findings.push_back(std::move(finding));
}

std::string FindingText(const AuditFinding& finding) {
  std::string text = finding.job.empty() ? "the store" : finding.job;
  if (!finding.period.empty()) absl::StrAppend(&text, " ", finding.period);
  if (finding.count > 1) {
    absl::StrAppend(&text, " to ", finding.last_period, " (", finding.count, ")");
  }
  absl::StrAppend(&text, " ", AuditWord(finding.kind), ": ", finding.why);
  if (!finding.period.empty() && finding.due != absl::InfinitePast()) {
    absl::StrAppend(&text, "; due ", FormatInstant(finding.due));
  }
  if (finding.deadline != absl::InfinitePast() && finding.deadline != absl::InfiniteFuture()) {
    absl::StrAppend(&text, ", by ", FormatInstant(finding.deadline));
  }
  return text;
}

std::string ReportJson(const AuditReport& report, size_t limit) {
  nlohmann::json findings = nlohmann::json::array();
  for (const AuditFinding& finding : report.findings) {
    if (findings.size() == limit) break;
    findings.push_back({{"kind", AuditWord(finding.kind)},
                        {"alarm", finding.alarm},
                        {"job", finding.job},
                        {"period", finding.period},
                        {"last_period", finding.last_period},
                        {"count", finding.count},
                        {"periods", finding.periods},
                        {"due", Instant(finding.due)},
                        {"deadline", Instant(finding.deadline)},
                        {"why", finding.why}});
  }
  nlohmann::json months = nlohmann::json::array();
  for (const auto& [of, tally] : report.months) {
    nlohmann::json month = TallyJson(tally);
    month["month"] = FormatDay(absl::CivilDay(of.first)).substr(0, 7);
    month["job"] = of.second;
    months.push_back(std::move(month));
  }
  nlohmann::json json = TallyJson(report.total);
  json["at"] = Instant(report.now);
  json["from"] = FormatDay(report.from);
  json["to"] = FormatDay(report.to);
  json["jobs"] = report.jobs;
  json["alarms"] = report.alarms;
  json["canary_found"] = report.canary;
  json["findings"] = std::move(findings);
  json["findings_in_all"] = report.findings.size();
  json["months"] = std::move(months);
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

AuditRow MakeAuditRow(const AuditReport& report, int64_t id, const std::string& by) {
  AuditRow row;
  row.id = id;
  row.by = by;
  row.expected = report.total.expected;
  row.done = report.total.done;
  row.findings = static_cast<int64_t>(report.findings.size());
  row.alarms = report.alarms;
  row.canary = report.canary;
  AuditReport kept = report;
  kept.months.clear();
  row.detail = ReportJson(kept, kMostKept);
  return row;
}

}  // namespace matins
