#include "audit/beats.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/status.h"
#include "base/time.h"
#include "job/json.h"
#include "job/lint.h"
#include "schedule/schedule.h"
#include "store/rules.h"

namespace matins {
namespace {

constexpr absl::Duration kLongestWait = absl::Minutes(1);
constexpr absl::Duration kShortestWait = absl::Milliseconds(200);
// A transaction that has written is seen by all within this.
constexpr absl::Duration kOverlap = absl::Minutes(2);
constexpr int kPage = 1000;  // jobs that are read at a time
// A name that no job can have: its facts are the store's time alone.
constexpr char kNoJob[] = " ";
// How many of its own audits a beat looks back on, to know since when there should be others.
constexpr int kOwnAudits = 40;
constexpr int kOtherAudits = 5;

absl::StatusOr<Schedule> Parse(const std::string& expression, const std::string& zone_name) {
  ASSIGN_OR_RETURN(const absl::TimeZone zone, LoadZone(zone_name));
  return Schedule::Parse(expression, {.zone = zone});
}

// The last instant at or before `now`; nothing: none yet, or the words are another program's.
std::optional<absl::Time> LastOf(const std::string& expression, const std::string& zone,
                                 absl::Time now) {
  const absl::StatusOr<Schedule> schedule = Parse(expression, zone);
  if (!schedule.ok()) return std::nullopt;
  const std::optional<Fire> fire = schedule->Previous(now + absl::Microseconds(1));
  return fire ? std::optional(fire->at) : std::nullopt;
}

absl::Duration UntilNext(const std::string& expression, const std::string& zone, absl::Time now) {
  const absl::StatusOr<Schedule> schedule = Parse(expression, zone);
  const std::optional<Fire> fire = schedule.ok() ? schedule->Next(now) : std::nullopt;
  return fire ? fire->at - now : kLongestWait;
}

AuditFinding Unwatched(std::string why) {
  return {.kind = AuditKind::kUnwatched, .why = std::move(why)};
}

// The newest that has ended, of those given newest first.
const AuditRow* NewestMade(const std::vector<AuditRow>& audits) {
  for (const AuditRow& audit : audits) {
    if (audit.finished_at != absl::InfinitePast()) return &audit;
  }
  return nullptr;
}

}  // namespace

std::optional<AuditBeats::Beat> AuditBeats::BeatOf(const std::string& definition) {
  const std::optional<AuditWords> words = StoredAudit(definition);
  if (!words) return std::nullopt;
  return Beat{absl::StrCat("jobs ", words->expression, " ", words->zone), words->expression,
              words->zone};
}

absl::Status AuditBeats::ForEachJob(
    absl::FunctionRef<void(const std::string& job, const std::optional<Beat>& beat)> see) {
  for (std::string last;;) {
    ASSIGN_OR_RETURN(const std::vector<JobDefinition> page,
                     acts_->ReadDefinitionsAfter(last, kPage));
    for (const JobDefinition& one : page) see(one.job, BeatOf(one.definition));
    if (page.size() < static_cast<size_t>(kPage)) return absl::OkStatus();
    last = page.back().job;
  }
}

absl::Status AuditBeats::FindBeats(const AuditFacts& facts) {
  if (facts.last_event != last_event_) changed_at_ = facts.now;
  // Numbers are given before the commit: one that is lower may be seen later than the newest.
  if (facts.last_event == last_event_ && read_at_ >= changed_at_ + kOverlap) {
    return absl::OkStatus();
  }
  std::map<std::string, Beat> found;
  bool any = false;
  RETURN_IF_ERROR(ForEachJob([&](const std::string&, const std::optional<Beat>& beat) {
    any = true;
    if (beat) found.try_emplace(beat->name, *beat);
  }));
  beats_.clear();
  for (auto& [name, beat] : found) beats_.push_back(std::move(beat));
  // Last, so that it sees what the others have just made good.
  const std::string& said = options_.store_schedule;
  if (any) beats_.push_back({kStoreBeat, said.empty() ? kStoreAudit : said, "UTC"});
  last_event_ = facts.last_event;
  read_at_ = facts.now;
  return absl::OkStatus();
}

absl::StatusOr<std::set<std::string>> AuditBeats::JobsOf(const Beat& beat) {
  std::set<std::string> jobs;
  RETURN_IF_ERROR(ForEachJob([&](const std::string& job, const std::optional<Beat>& of) {
    if (of && of->name == beat.name) jobs.insert(job);
  }));
  return jobs;
}

absl::StatusOr<absl::Duration> AuditBeats::Step() {
  ASSIGN_OR_RETURN(const AuditFacts facts, acts_->ReadAuditFacts(kNoJob));
  RETURN_IF_ERROR(FindBeats(facts));
  absl::Duration wait = kLongestWait;
  for (const Beat& beat : beats_) {
    wait = std::min(wait, UntilNext(beat.expression, beat.zone, facts.now));
    const std::optional<absl::Time> due = LastOf(beat.expression, beat.zone, facts.now);
    if (!due) continue;
    Asked& asked = asked_[beat.name];
    if (asked.due == *due && facts.now < asked.again) continue;
    // One that another node has begun and never ended is asked for again.
    asked = {*due, facts.now + kAuditGone + absl::Seconds(1)};
    const absl::Status made = Make(beat, beats_, *due, facts.now);
    if (!made.ok()) {
      asked.again = absl::InfinitePast();
      return made;
    }
  }
  return std::max(wait, kShortestWait);
}

absl::Status AuditBeats::Make(const Beat& beat, const std::vector<Beat>& all, absl::Time due,
                              absl::Time now) {
  ASSIGN_OR_RETURN(const int64_t id, acts_->BeginAudit(beat.name, due, options_.by));
  if (id == 0) return absl::OkStatus();
  if (options_.begun) options_.begun();
  AuditScope scope;
  if (beat.name != kStoreBeat) {
    ASSIGN_OR_RETURN(scope.jobs, JobsOf(beat));
  }
  MadeAudit made{beat.name, due, {}};
  ASSIGN_OR_RETURN(made.report, Audit(*acts_, scope));
  ASSIGN_OR_RETURN(std::vector<AuditFinding> watched, Watch(beat, all, due, now));
  for (AuditFinding& finding : watched) AddFinding(std::move(finding), made.report);
  // Told first: told twice, where the store goes away in between, is better than never.
  if (options_.tell) options_.tell(made);
  RETURN_IF_ERROR(acts_->EndAudit(MakeAuditRow(made.report, id, options_.by)));
  asked_[beat.name].again = absl::InfiniteFuture();
  return absl::OkStatus();
}

absl::StatusOr<std::vector<AuditFinding>> AuditBeats::Watch(const Beat& own,
                                                            const std::vector<Beat>& all,
                                                            absl::Time due, absl::Time now) {
  std::vector<AuditFinding> found;
  ASSIGN_OR_RETURN(const std::vector<AuditRow> mine, acts_->ReadAudits(own.name, kOwnAudits));
  // This one is among them. Before the oldest nobody says that there should have been any.
  const absl::Time since = mine.empty() ? now : mine.back().started_at;
  if (now - due > kAuditGrace && mine.size() > 1) {
    found.push_back(Unwatched(
        absl::StrCat("this audit was due at ", FormatInstant(due), " and is made at ",
                     FormatInstant(now), "; the one before was at ",
                     FormatInstant(mine[1].started_at), ": no node was there to make it")));
  }
  if (IsMutant(Mutant::kNoWatch)) return found;
  for (const Beat& other : all) {
    if ((other.name == kStoreBeat) == (own.name == kStoreBeat)) continue;
    const std::optional<absl::Time> last = LastOf(other.expression, other.zone, now - kAuditGrace);
    if (!last || *last <= since) continue;
    ASSIGN_OR_RETURN(const std::vector<AuditRow> audits,
                     acts_->ReadAudits(other.name, kOtherAudits));
    const AuditRow* newest = NewestMade(audits);
    if (newest == nullptr || newest->due < *last) {
      found.push_back(Unwatched(absl::StrCat(
          "the audit of beat '", other.name, "' that was due at ", FormatInstant(*last),
          " was not made",
          newest == nullptr ? ""
                            : absl::StrCat("; its last was of ", FormatInstant(newest->due)))));
    } else if (!newest->canary) {
      found.push_back(Unwatched(absl::StrCat("the last audit of beat '", other.name, "', of ",
                                             FormatInstant(newest->due),
                                             ", did not find the miss that was planted for it")));
    }
  }
  return found;
}

absl::StatusOr<std::string> AuditAgeProblem(ActStore& acts, absl::Duration age) {
  ASSIGN_OR_RETURN(const AuditFacts facts, acts.ReadAuditFacts(kNoJob));
  constexpr int kLook = 200;
  ASSIGN_OR_RETURN(std::vector<AuditRow> audits, acts.ReadAudits("", kLook));
  std::erase_if(audits, [](const AuditRow& audit) { return audit.beat == kHandBeat; });
  const AuditRow* newest = NewestMade(audits);
  if (newest == nullptr) {
    return std::string("no audit was ever made: is a node (`matins serve`) alive?");
  }
  if (facts.now - newest->finished_at > age) {
    return absl::StrCat(
        "the last audit is of ", FormatInstant(newest->finished_at), ", ",
        DurationText(absl::Trunc(facts.now - newest->finished_at, absl::Seconds(1))),
        " ago: is a node (`matins serve`) alive?");
  }
  if (!newest->canary) {
    return absl::StrCat("the last audit, of ", FormatInstant(newest->finished_at),
                        ", did not find the miss that was planted for it");
  }
  return std::string();
}

}  // namespace matins
