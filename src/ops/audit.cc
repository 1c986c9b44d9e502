#include "ops/audit.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/time.h"
#include "ops/drill.h"

namespace matins {
namespace {

constexpr absl::Duration kAtFirst = absl::Milliseconds(250);  // what is due goes before
constexpr absl::Duration kAgain = absl::Seconds(5);           // after the store was away
constexpr absl::Duration kLookForDrills = absl::Minutes(1);   // that died
constexpr int kMostTold = 50;  // alarms of one audit in the log; all of them are in its row

void Tell(EngineEvents& events, const MadeAudit& made) {
  const AuditReport& report = made.report;
  int told = 0;
  for (const AuditFinding& finding : report.findings) {
    if (!finding.alarm) continue;
    if (++told > kMostTold) {
      events.OnEvent(
          {event::kAuditFinding,
           true,
           {},
           0,
           absl::StrCat("and ", report.alarms - kMostTold, " more; `matins audit` shows them")});
      break;
    }
    events.OnEvent(
        {event::kAuditFinding, true, {finding.job, finding.period}, 0, FindingText(finding)});
  }
  events.OnEvent(
      {event::kAudited,
       false,
       {},
       0,
       absl::StrCat("beat '", made.beat, "' of ", FormatInstant(made.due), ": ", report.jobs,
                    " job(s), ", report.total.expected, " expected, ", report.total.done, " done, ",
                    report.findings.size(), " finding(s), ", report.alarms, " alarm(s)")});
}

}  // namespace

absl::Status RestoreDrillsOnNode(ActStore& acts, EngineEvents& events, absl::string_view node) {
  ASSIGN_OR_RETURN(
      const std::vector<RestoredDrill> restored,
      RestoreDrills(acts, "", {absl::StrCat("node:", node), "the drill that deleted it has died"}));
  for (const RestoredDrill& one : restored) {
    if (one.under_way || (!one.answer.ended && one.answer.put_back.empty())) continue;
    events.OnEvent({event::kDrillRestored, false, {one.drill.job, ""}, 0, RestoredText(one)});
  }
  return absl::OkStatus();
}

absl::StatusOr<AuditReport> AuditNow(Session& session, const AuditScope& scope) {
  ASSIGN_OR_RETURN(AuditReport report, Audit(session.acts(), scope));
  ASSIGN_OR_RETURN(const int64_t id,
                   session.acts().BeginAudit(kHandBeat, report.now, session.who()));
  if (id == 0) {
    return absl::AbortedError("another audit by hand began at the same instant; try again");
  }
  RETURN_IF_ERROR(session.acts().EndAudit(MakeAuditRow(report, id, session.who())));
  return report;
}

AuditThread::AuditThread(Database& database, std::unique_ptr<ActStore> acts, EngineEvents& events,
                         std::string node, std::string schedule, Watchers watchers)
    : database_(database),
      events_(events),
      node_(std::move(node)),
      schedule_(std::move(schedule)),
      watchers_(std::move(watchers)),
      acts_(std::move(acts)),
      thread_([this] { Run(); }) {}

AuditThread::~AuditThread() {
  {
    absl::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  thread_.join();
}

void AuditThread::Run() {
  for (absl::Duration wait = kAtFirst;; wait = Turn()) {
    absl::MutexLock lock(&mutex_);
    if (SystemClock().AwaitFor(mutex_, absl::Condition(&stopped_), wait)) return;
  }
}

absl::Duration AuditThread::Turn() {
  const auto step = [&]() -> absl::StatusOr<absl::Duration> {
    if (beats_ == nullptr) {
      if (acts_ == nullptr) {
        ASSIGN_OR_RETURN(acts_, database_.OpenActs());
      }
      beats_ = std::make_unique<AuditBeats>(
          std::move(acts_), AuditBeatsOptions{.by = absl::StrCat("node:", node_),
                                              .store_schedule = schedule_,
                                              .tell =
                                                  [this](const MadeAudit& made) {
                                                    Tell(events_, made);
                                                    if (watchers_.made)
                                                      watchers_.made(made.report.alarms > 0);
                                                  },
                                              .begun = watchers_.begun});
    }
    RETURN_IF_ERROR(RestoreDrillsOnNode(beats_->acts(), events_, node_));
    ASSIGN_OR_RETURN(const absl::Duration next, beats_->Step());
    return std::min(next, kLookForDrills);
  };
  const absl::StatusOr<absl::Duration> wait = step();
  if (wait.ok()) {
    away_ = false;
    return *wait;
  }
  if (!away_) {
    events_.OnEvent({event::kAuditFailed, true, {}, 0, std::string(wait.status().message())});
  }
  away_ = true;
  return kAgain;
}

}  // namespace matins
