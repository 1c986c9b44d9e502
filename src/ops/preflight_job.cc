// What preflight asks of a job: pure, of what was read.
#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "job/calendar_fires.h"
#include "job/deadline.h"
#include "job/lint.h"
#include "job/words.h"
#include "ops/preflight.h"

namespace matins {
namespace {

constexpr absl::Duration kDrillAge = absl::Hours(24 * 90);
constexpr absl::Duration kAuditAge = absl::Hours(26);
// Of attempts that were DONE, before a worst duration says something.
constexpr int kEnough = 3;
// A lease is renewed at every quarter of it; shorter ones fall over a slow disk.
constexpr absl::Duration kShortLease = absl::Seconds(10);

std::string Rounded(absl::Duration d) {
  return DurationText(d >= absl::Seconds(10)       ? absl::Trunc(d, absl::Seconds(1))
                      : d >= absl::Milliseconds(1) ? absl::Trunc(d, absl::Milliseconds(1))
                                                   : d);
}

class JobQuestions {
 public:
  explicit JobQuestions(const JobFacts& facts)
      : facts_(facts), job_(facts.job->job), each_(job_.misfire == Misfire::kEach) {
    const std::optional<CalendarFire> next = NextFire(*facts.job, facts.now);
    if (next) next_ = next->fire.at;
    if (next) {
      const std::optional<CalendarFire> after = NextFire(*facts.job, next->fire.at);
      if (after) step_ = after->fire.at - next->fire.at;
    }
    for (const RunRow& run : facts.runs) {
      if (run.status == "DONE") {
        ++done_;
        if (run.claimed_at != absl::InfinitePast()) {
          worst_ = std::max(worst_, run.finished_at - run.claimed_at);
        }
      }
      lost_ += run.status == "LOST";
    }
    worst_ = std::max(worst_, facts.row.worst_duration);
  }

  std::vector<PreflightCheck> All() {
    Misfire();
    Start();
    Cap();
    SourceWindow();
    DoneBy();
    BackfillTime();
    ByHand();
    Lease();
    TimeOut();
    History();
    Calendar();
    Audit();
    Drill();
    return std::move(checks_);
  }

 private:
  void Say(absl::string_view question, PreflightLevel level, std::string measured,
           std::string mend = "") {
    checks_.push_back({job_.name, std::string(question), level, std::move(measured),
                       level == PreflightLevel::kPass ? "" : std::move(mend)});
  }
  void Pass(absl::string_view question, std::string measured) {
    Say(question, PreflightLevel::kPass, std::move(measured));
  }
  void Warn(absl::string_view question, std::string measured, std::string mend) {
    Say(question, PreflightLevel::kWarn, std::move(measured), std::move(mend));
  }
  void Fail(absl::string_view question, std::string measured, std::string mend) {
    Say(question, PreflightLevel::kFail, std::move(measured), std::move(mend));
  }
  bool measured() const { return worst_ > absl::ZeroDuration(); }

  void Misfire();
  void Start();
  void Cap();
  void SourceWindow();
  void DoneBy();
  void BackfillTime();
  void ByHand();
  void Lease();
  void TimeOut();
  void History();
  void Calendar();
  void Audit();
  void Drill();

  const JobFacts& facts_;
  const Job& job_;
  const bool each_;
  std::optional<absl::Time> next_;
  std::optional<absl::Duration> step_;
  int done_ = 0, lost_ = 0;
  absl::Duration worst_ = absl::ZeroDuration();
  std::vector<PreflightCheck> checks_;
};

// The parser takes no job without one; what it costs is said.
void JobQuestions::Misfire() {
  const std::string word = absl::StrCat("misfire: ", Word(job_.misfire));
  if (job_.misfire == matins::Misfire::kSkip) {
    Warn("misfire", absl::StrCat(word, ": a period that was missed is never run"),
         "misfire: each where each date counts, latest where the newest does");
  } else {
    Pass("misfire", word);
  }
}

void JobQuestions::Start() {
  if (!each_) return Pass("start date", absl::StrCat("not asked under ", Word(job_.misfire)));
  if (job_.backfill.start) {
    return Pass("start date", absl::StrCat("backfill.start ", FormatDay(*job_.backfill.start)));
  }
  Warn("start date",
       absl::StrCat("none: nothing from before first sight, ",
                    FormatInstant(facts_.row.first_sight), ", is owed"),
       "backfill: { start: DATE } with the first date that is to be made good");
}

void JobQuestions::Cap() {
  if (!each_) return Pass("cap", absl::StrCat("not asked under ", Word(job_.misfire)));
  if (!job_.backfill.max_periods) {
    return Warn("cap", "none: all that is owed is run, however long the outage was",
                "backfill: { max_periods: N }");
  }
  if (!step_) return Pass("cap", absl::StrCat(*job_.backfill.max_periods, " period(s)"));
  Pass("cap", absl::StrCat(*job_.backfill.max_periods, " period(s), ",
                           Rounded(*job_.backfill.max_periods * *step_), " back"));
}

void JobQuestions::SourceWindow() {
  constexpr char kQuestion[] = "source window";
  if (!each_) return Pass(kQuestion, absl::StrCat("not asked under ", Word(job_.misfire)));
  const absl::Duration window = job_.backfill.source_window;
  if (window == absl::InfiniteDuration()) {
    return Warn(kQuestion, "not said: nobody knows how far back the source can be read",
                "backfill: { source_window: 90d } with what the source really keeps");
  }
  if (!job_.backfill.max_periods || !step_) {
    return Warn(kQuestion,
                absl::StrCat(Rounded(window), ", and no cap with which it could be compared"),
                "backfill: { max_periods: N }");
  }
  const absl::Duration reach = std::min(*job_.backfill.max_periods * *step_, job_.backfill.max_age);
  const std::string figures =
      absl::StrCat("back-fill reaches ", Rounded(reach), ", the source ", Rounded(window));
  if (reach > window) {
    return Fail(kQuestion, figures,
                "a smaller max_periods, or a source that keeps its data for longer");
  }
  Pass(kQuestion, figures);
}

void JobQuestions::DoneBy() {
  if (!next_) {
    return Warn("deadline", "it never fires again", "look at schedule, suspension and calendar");
  }
  const absl::Duration span = DoneByInstant(*facts_.job, *next_) - *next_;
  const bool said = job_.done_by.time_of_day || job_.done_by.after_due;
  if (!measured()) {
    return Warn("deadline",
                absl::StrCat(Rounded(span), " after due; how long it runs was never measured"),
                "let it run once");
  }
  const std::string figures =
      absl::StrCat(Rounded(span), " after due, worst run ", Rounded(worst_));
  if (worst_ > span) return Fail("deadline", figures, "a later done_by, or a quicker job");
  if (2 * worst_ > span) {
    return Warn("deadline", figures, "one retry would not end in time: a later done_by");
  }
  if (!said) {
    return Warn("deadline", absl::StrCat(figures, "; done_by is not said"),
                "done_by: \"09:00\", the hour at which somebody needs it");
  }
  Pass("deadline", figures);
}

// Misfires are made good at once, whatever the hour: what that means for those who work then.
void JobQuestions::BackfillTime() {
  constexpr char kQuestion[] = "back-fill and business hours";
  if (!each_) return Pass(kQuestion, absl::StrCat("not asked under ", Word(job_.misfire)));
  if (!job_.backfill.max_periods || !measured() || !next_) {
    return Warn(kQuestion, "not known: no cap, or no run was measured", "let it run once");
  }
  const int lanes = std::max(
      1, job_.backfill.order == Order::kStrict ? 1 : job_.backfill.max_parallel.value_or(1));
  const absl::Duration whole = (*job_.backfill.max_periods + lanes - 1) / lanes * worst_;
  const absl::Duration span = DoneByInstant(*facts_.job, *next_) - *next_;
  const std::string figures =
      absl::StrCat(*job_.backfill.max_periods, " period(s), ", lanes, " at a time, take ",
                   Rounded(whole), "; from due to deadline are ", Rounded(span));
  if (whole > span) {
    return Warn(kQuestion, figures,
                "after a long outage it works into business hours: a smaller max_periods, the rest "
                "by `matins backfill` at night");
  }
  Pass(kQuestion, figures);
}

void JobQuestions::ByHand() {
  constexpr char kQuestion[] = "runs by hand";
  switch (job_.overlap) {
    case Overlap::kAllow:
      return Warn(kQuestion, "overlap: allow: one by hand runs beside one that is scheduled",
                  "overlap: forbid, or a body that bears it");
    case Overlap::kReplace:
      return Warn(kQuestion, "overlap: replace: a newer period takes one by hand away",
                  "overlap: forbid or queue");
    case Overlap::kForbid:
    case Overlap::kQueue:
      return Pass(kQuestion,
                  absl::StrCat("overlap: ", Word(job_.overlap), ": one waits for the other"));
  }
}

void JobQuestions::Lease() {
  const absl::Duration ttl = job_.lock.ttl;
  const std::string figures = absl::StrCat("lease ", Rounded(ttl), ", ", lost_, " of the last ",
                                           facts_.runs.size(), " attempt(s) lost it");
  if (facts_.runs.empty()) {
    return Warn("lease", absl::StrCat("lease ", Rounded(ttl), "; no attempt is on record"),
                "let it run, with the load it will have");
  }
  const std::string still =
      facts_.still
          ? absl::StrCat(figures, "; ", facts_.still->node, " stood still for ",
                         Rounded(facts_.still->length), " at ", FormatInstant(facts_.still->at))
          : figures;
  // Its last renewal may have been a quarter of the lease ago.
  if (facts_.still && facts_.still->length > ttl * 3 / 4) {
    return Warn("lease", still,
                absl::StrCat("a lock.ttl of ", Rounded(2 * facts_.still->length),
                             " bears that, or mend what the host or the store waited for"));
  }
  if (lost_ > 0) {
    return Warn("lease", still,
                absl::StrCat("`matins runs ", job_.name,
                             "` says when; where a pause of host or store did it, a longer "
                             "lock.ttl"));
  }
  if (ttl < kShortLease) {
    return Warn("lease", still,
                "it bears pauses of a quarter of that; 10s and more survive a slow disk");
  }
  Pass("lease", still);
}

void JobQuestions::TimeOut() {
  if (!measured()) {
    return Warn("time-out",
                absl::StrCat(Rounded(job_.timeout), "; how long it runs was never measured"),
                "let it run once");
  }
  const std::string figures = absl::StrCat(Rounded(job_.timeout), ", worst run ", Rounded(worst_));
  if (worst_ >= job_.timeout) return Fail("time-out", figures, "a longer timeout");
  if (2 * worst_ > job_.timeout) {
    return Warn("time-out", figures, "twice the worst run is little: a longer timeout");
  }
  Pass("time-out", figures);
}

void JobQuestions::History() {
  const std::string figures =
      absl::StrCat(done_, " DONE attempt(s) on record, history keeps ", job_.history_succeeded,
                   " and ", job_.history_failed, " that failed");
  if (done_ >= kEnough) return Pass("history", figures);
  Warn("history", figures,
       job_.history_succeeded < kEnough
           ? "history: { succeeded: 3 } or more, so that runs can be compared"
           : "a worst duration of fewer than three runs says little: let it run");
}

void JobQuestions::Calendar() {
  const std::vector<Finding> findings = FindWarnings(*facts_.job, facts_.now);
  for (const Finding& finding : findings) {
    Warn(absl::StrCat("lint ", finding.keys.empty() ? "job" : finding.keys[0]), finding.what,
         finding.mend);
  }
  if (findings.empty()) {
    Pass("months, clock changes, calendar", "no warning for the next two years");
  }
}

void JobQuestions::Audit() {
  const std::string beat = absl::StrCat("jobs ", job_.audit, " ", job_.timezone);
  for (const AuditRow& audit : facts_.audits) {
    if (audit.beat != beat || audit.finished_at == absl::InfinitePast()) continue;
    const absl::Duration age = facts_.now - audit.finished_at;
    const std::string figures =
        absl::StrCat("its own beat, ", job_.audit, ", looked ", Rounded(age), " ago");
    const std::optional<CalendarFire> fire =
        NextFire(*facts_.job, audit.due - absl::Microseconds(1));
    if (fire && fire->fire.at == audit.due) {
      return Warn("audit", absl::StrCat(figures, ", at the very fire of the job"),
                  "audit: another time of day");
    }
    if (age > kAuditAge) return Fail("audit", figures, "is a node (`matins serve`) alive?");
    if (!audit.canary) return Fail("audit", figures + " and found no planted miss", "look at it");
    return Pass("audit", figures);
  }
  if (job_.run.kind == RunKind::kExec) {
    return Warn("audit", "no node has looked: calls of `matins exec` need none", kAuditByCron);
  }
  Fail("audit", absl::StrCat("its own beat, ", job_.audit, ", was never made"),
       "let a node (`matins serve`) live until then");
}

void JobQuestions::Drill() {
  constexpr char kQuestion[] = "back-fill drilled";
  if (!each_) return Pass(kQuestion, absl::StrCat("not asked under ", Word(job_.misfire)));
  const std::string mend = absl::StrCat("matins drill ", job_.name, " --days 3",
                                        job_.run.kind == RunKind::kExec ? " -- COMMAND" : "");
  if (facts_.drills.empty()) return Fail(kQuestion, "never", mend);
  const DrillRow& newest = facts_.drills.front();
  const std::string at =
      absl::StrCat("drill ", newest.id, ", ", Rounded(facts_.now - newest.started_at), " ago, ");
  if (!newest.over())
    return Fail(kQuestion, absl::StrCat(at, "is not over"), mend + " or --restore");
  if (newest.result != drill_result::kPassed) {
    return Fail(kQuestion, absl::StrCat(at, newest.result),
                "`matins drill --list -o json`, " + mend);
  }
  if (newest.started_at < facts_.version_from) {
    return Warn(kQuestion, absl::StrCat(at, "passed; the job has changed since"), mend);
  }
  if (facts_.now - newest.started_at > kDrillAge) {
    return Warn(kQuestion, absl::StrCat(at, "passed"), mend);
  }
  Pass(kQuestion, absl::StrCat(at, "passed over ", newest.periods.size(), " period(s)"));
}

}  // namespace

std::vector<PreflightCheck> CheckJob(const JobFacts& facts) { return JobQuestions(facts).All(); }

}  // namespace matins
