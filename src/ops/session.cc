#include "ops/session.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/plan_tries.h"
#include "job/json.h"
#include "job/resolve.h"
#include "schedule/period.h"

namespace matins {

absl::StatusOr<Session> Session::Open(Database& database, absl::string_view who) {
  ASSIGN_OR_RETURN(std::unique_ptr<ActStore> acts, database.OpenActs());
  ASSIGN_OR_RETURN(std::unique_ptr<Store> store, database.Open());
  return Session(database, std::move(acts), std::move(store), who);
}

std::string WhoAmI() {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  std::string buffer(4096, '\0');
  passwd entry;
  passwd* found = nullptr;
  const bool known =
      getpwuid_r(geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return absl::StrCat(known ? std::string(entry.pw_name) : absl::StrCat(geteuid()), "@", host);
}

absl::StatusOr<JobRow> ReadJob(Session& session, absl::string_view job) {
  ASSIGN_OR_RETURN(std::vector<JobRow> rows, session.acts().ReadJobs(job));
  if (!rows.empty()) return std::move(rows.front());
  ASSIGN_OR_RETURN(std::vector<JobRow> all, session.acts().ReadJobs(""));
  std::vector<std::string> names;
  for (const JobRow& row : all) names.push_back(row.name);
  const std::string known =
      names.empty()
          ? "the store has no jobs; `matins job apply FILE` adds some"
          : absl::StrCat("there are: ",
                         absl::StrJoin(names.begin(),
                                       names.begin() + std::min<size_t>(10, names.size()), ", "),
                         names.size() > 10 ? ", ... (`matins job list`)" : "");
  return absl::NotFoundError(absl::StrCat("no job '", job, "'; ", known));
}

absl::StatusOr<PeriodRow> ReadRow(Session& session, const PeriodKey& key) {
  RowFilter filter;
  filter.job = key.job;
  filter.period = key.period;
  ASSIGN_OR_RETURN(std::vector<PeriodRow> rows, session.acts().ReadRows(filter));
  if (rows.empty())
    return absl::NotFoundError(absl::StrCat("job '", key.job, "' has no row for ", key.period));
  return std::move(rows.front());
}

absl::StatusOr<Planned> Planned::Read(Session& session, absl::string_view job) {
  RETURN_IF_ERROR(ReadJob(session, job).status());
  ReadDueRequest request;
  request.jobs = {std::string(job)};
  ASSIGN_OR_RETURN(DueJobs due, session.store().ReadDue(request));
  if (due.jobs.empty()) return absl::NotFoundError(absl::StrCat("no job '", job, "'"));
  return Of(std::move(due.jobs.front()), due.now);
}

std::map<std::string, absl::StatusOr<Planned>> Planned::Resolve(DueJobs due) {
  std::map<std::string, absl::StatusOr<Planned>> all;
  for (JobState& state : due.jobs) {
    const std::string name = state.job;
    all.emplace(name, Of(std::move(state), due.now));
  }
  return all;
}

absl::StatusOr<Planned> Planned::Of(JobState state, absl::Time now) {
  Planned planned;
  planned.now_ = now;
  planned.state_ = std::make_unique<JobState>(std::move(state));
  planned.resumed_ = std::make_unique<JobState>(*planned.state_);
  planned.resumed_->suspended = false;
  for (const JobVersion& version : planned.state_->versions) {
    ASSIGN_OR_RETURN(const Job definition, JobFromJson(version.definition));
    ASSIGN_OR_RETURN(ResolvedJob resolved, ResolveJob(definition));
    planned.resolved_.push_back(std::make_unique<ResolvedJob>(std::move(resolved)));
    planned.versions_.push_back({version.number, version.from, planned.resolved_.back().get()});
  }
  if (planned.versions_.empty())
    return absl::InternalError(
        absl::StrCat("job '", planned.state_->job, "' has no version; `matins db check`"));
  return planned;
}

PlanInput Planned::Input(bool as_if_resumed) const {
  PlanInput input;
  input.state = as_if_resumed ? resumed_.get() : state_.get();
  input.versions = versions_;
  input.now = now_;
  input.ahead = absl::ZeroDuration();
  return input;
}

absl::StatusOr<std::string> KeyFor(const ResolvedJob& job, absl::string_view text) {
  if (const auto period = PeriodFromKey(job.period_rule, text); period.ok()) return period->key;
  ASSIGN_OR_RETURN(const absl::CivilDay day, ParseDay(text));
  switch (job.job.period) {
    case PeriodKind::kDay:
      return FormatDay(day);
    case PeriodKind::kWeek:
    case PeriodKind::kMonth: {
      const absl::CivilSecond noon(day.year(), day.month(), day.day(), 12);
      PeriodRule rule = job.period_rule;
      rule.shift = BizShift{};
      const Fire fire{absl::FromCivil(noon, rule.zone), noon};
      ASSIGN_OR_RETURN(const Period period, PeriodOf(rule, fire, std::nullopt));
      return period.key;
    }
    case PeriodKind::kHour:
    case PeriodKind::kFire:
      break;
  }
  return BadInput("", absl::StrCat("job '", job.job.name, "' has many periods on ", text),
                  "give the period's key, an instant like 2026-11-29T02:00:00Z (`matins watermark` "
                  "lists them)");
}

absl::Status PlanAndWrite(Session& session, absl::string_view job,
                          const std::function<absl::StatusOr<PlanWrite>(const Planned&)>& make) {
  SystemRandom random;
  PlanTries tries(random);
  while (tries.Next()) {
    ASSIGN_OR_RETURN(const Planned planned, Planned::Read(session, job));
    PlanRequest request;
    ASSIGN_OR_RETURN(PlanWrite write, make(planned));
    request.writes.push_back(std::move(write));
    ASSIGN_OR_RETURN(const PlanAnswers answers, session.store().Plan(request));
    if (!answers.jobs.empty() && answers.jobs.front().written) return absl::OkStatus();
  }
  return tries.GaveUp(job);
}

}  // namespace matins
