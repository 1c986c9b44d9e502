#include "job/read_job.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "job/fields.h"
#include "job/key_template.h"
#include "job/lint.h"
#include "job/names.h"
#include "job/nearest.h"
#include "job/read_alerts.h"
#include "job/read_run.h"
#include "job/resolve.h"
#include "job/rules.h"
#include "job/values_text.h"

namespace matins {
namespace {

constexpr absl::Duration kYear = absl::Hours(24 * 366);
constexpr absl::Duration kCentury = absl::Hours(24 * 36'500);

void CheckNameOf(Fields& fields, absl::string_view key, absl::string_view what,
                 absl::string_view name) {
  if (name.empty() || fields.Failed(key)) return;
  if (const absl::Status status = CheckName(what, name); !status.ok()) {
    fields.Error(key, status.message(), "");
  }
}

void ReadIdentity(Fields& fields, Job& job) {
  job.name = fields.TextOr("name", "");
  if (job.name.empty() && !fields.Failed("name")) {
    fields.Error("name", "a job without a name", "write name: first");
  }
  CheckNameOf(fields, "name", "job name", job.name);
  job.tenant = fields.TextOr("tenant", "");
  CheckNameOf(fields, "tenant", "tenant", job.tenant);
}

void ReadTime(Fields& fields, Job& job) {
  job.schedule = fields.TextOr("schedule", "");
  job.at = fields.ParsedOr<std::optional<absl::Time>>("at", std::nullopt, ParseInstant);
  job.dialect = fields.WordOr("dialect", job.dialect);
  job.timezone = fields.TextOr("timezone", job.timezone);
  Fields dst = fields.Map("dst");
  job.dst.gap = dst.WordOr("gap", job.dst.gap);
  job.dst.overlap = dst.WordOr("overlap", job.dst.overlap);
  dst.Finish();
  job.period = fields.WordOr("period", job.period);
  job.biz_date = fields.ParsedOr("biz_date", job.biz_date, ParseBizShift);
  job.start_deadline =
      fields.DurationOr("start_deadline", job.start_deadline, absl::Seconds(1), kYear);
  job.done_by = fields.ParsedOr("done_by", job.done_by, ParseDoneBy);
  job.audit = fields.TextOr("audit", job.audit);
  job.spread = fields.DurationOr("spread", job.spread, absl::ZeroDuration(), absl::Hours(24));
}

void ReadCalendar(Fields& fields, const ReadJobOptions& options, Job& job) {
  job.calendar = fields.TextOr("calendar", "");
  if (options.calendars == nullptr) {
    job.calendar_data.days = fields.TextOr("calendar_days", "");
    job.calendar_data.until =
        fields.ParsedOr<std::optional<absl::CivilDay>>("calendar_until", std::nullopt, ParseDay);
    if (job.calendar.empty() && job.calendar_data != CalendarData()) {
      fields.Error("calendar_days", "a calendar's days without a calendar", "name it: calendar");
    }
    return;
  }
  if (job.calendar.empty()) return;
  const auto found = options.calendars->find(job.calendar);
  if (found != options.calendars->end()) {
    job.calendar_data = found->second;
    return;
  }
  std::vector<std::string> names;
  for (const auto& [name, data] : *options.calendars) names.push_back(name);
  fields.Error("calendar", absl::StrCat("no calendar '", job.calendar, "'"),
               names.empty() ? absl::StrCat("say where it is: calendars: { ", job.calendar,
                                            ": { file: days.ics, until: 2026-12-31 } }")
                             : MendWord(job.calendar, names));
}

void ReadMissed(Fields& fields, Job& job) {
  if (!fields.Has("misfire") && !fields.Failed("misfire")) {
    fields.Error("misfire", "misfire is not given, and has no default",
                 "write misfire: skip, latest or each (latest is what K8s does)");
  }
  job.misfire = fields.WordOr("misfire", job.misfire);
  Fields backfill = fields.Map("backfill");
  Backfill& to = job.backfill;
  to.start = backfill.ParsedOr<std::optional<absl::CivilDay>>("start", std::nullopt, ParseDay);
  to.max_periods = backfill.CountOr("max_periods", to.max_periods, 1'000'000);
  to.max_age = backfill.DurationOr("max_age", to.max_age, absl::Seconds(1), kCentury);
  to.source_window =
      backfill.DurationOr("source_window", to.source_window, absl::Seconds(1), kCentury);
  to.max_parallel = backfill.CountOr("max_parallel", to.max_parallel, 10'000);
  to.order = backfill.WordOr("order", DefaultOrder(job.misfire));
  backfill.Finish();
}

void ReadScope(Fields& lock, Job& job) {
  job.lock.scope = DefaultScope(job.overlap);
  const std::string scope = lock.TextOr("scope", "");
  if (scope.empty()) return;
  if (scope == "job" || scope == "period") {
    job.lock.scope = scope == "job" ? LockScope::kJob : LockScope::kPeriod;
    return;
  }
  // A tenant's lock is a key of that name: there is no second mechanism.
  job.lock.scope = LockScope::kKey;
  job.lock.key = scope == "tenant" ? "tenant/{{tenant}}" : scope;
  const std::vector<std::string> words = {"job", "period", "tenant"};
  const std::string near = absl::StrContains(scope, '{') ? "" : Nearest(scope, words);
  if (!near.empty() && near != scope) {
    lock.Error("scope", absl::StrCat("lock.scope: '", scope, "' is none of its words"),
               absl::StrCat("did you mean '", near, "'?"));
  } else if (const absl::Status status = CheckKey(job.lock.key); !status.ok()) {
    lock.Error("scope", absl::StrCat("lock.scope: ", status.message()), "");
  } else if (absl::StrContains(job.lock.key, "{tenant}") && job.tenant.empty()) {
    lock.Error("scope", "lock.scope names the tenant, and the job has none", "write tenant: NAME");
  }
}

void ReadLimitKey(Fields& limits, Job& job) {
  job.limit_key = limits.TextOr("key", "");
  if (!job.limit_key.empty()) {
    if (const absl::Status status = CheckKey(job.limit_key); !status.ok()) {
      limits.Error("key", absl::StrCat("limits.key: ", status.message()), "");
    } else if (absl::StrContains(job.limit_key, "{tenant}") && job.tenant.empty()) {
      limits.Error("key", "limits.key names the tenant, and the job has none",
                   "write tenant: NAME");
    }
  }
  for (const char* key : {"global", "tenant", "backfill_share"}) {
    if (!limits.Has(key)) continue;
    limits.Error(key, absl::StrCat("limits.", key, " is not a job's own"),
                 "write it in the file's limits, beside jobs:");
  }
}

void ReadLimits(Fields& fields, Job& job) {
  job.overlap = fields.WordOr("overlap", job.overlap);
  Fields lock = fields.Map("lock");
  ReadScope(lock, job);
  job.lock.ttl = lock.DurationOr("ttl", job.lock.ttl, absl::Seconds(1), absl::Hours(24));
  job.lock.provider = lock.WordOr("provider", job.lock.provider);
  lock.Finish();
  job.mask = fields.WordOr("mask", job.mask);
  Fields limits = fields.Map("limits");
  if (limits.Has("job")) job.limit = limits.IntOr("job", 1, 1, 100'000);
  ReadLimitKey(limits, job);
  limits.Finish();
}

void ReadFailure(Fields& fields, Job& job) {
  job.timeout = fields.DurationOr("timeout", job.timeout, absl::Seconds(1), kYear);
  job.grace = fields.DurationOr("grace", job.grace, absl::ZeroDuration(), absl::Hours(1));
  Fields retry = fields.Map("retry");
  job.retry.attempts = retry.IntOr("attempts", job.retry.attempts, 1, 1000);
  std::tie(job.retry.backoff_min, job.retry.backoff_max) = retry.ParsedOr(
      "backoff", std::make_pair(job.retry.backoff_min, job.retry.backoff_max), ParseBackoff);
  retry.Finish();
  job.recovery = fields.WordOr("recovery", job.recovery);
  job.max_lost = fields.IntOr("max_lost", job.max_lost, 1, 1'000'000);
  job.stale_after = fields.DurationOr("stale_after", job.stale_after, absl::Seconds(1), kYear);
  job.commit = fields.WordOr("commit", job.commit);
  job.on_lease_lost = fields.WordOr("on_lease_lost", job.on_lease_lost);
  job.suspend = fields.BoolOr("suspend", false);
  Fields history = fields.Map("history");
  job.history_succeeded = history.IntOr("succeeded", job.history_succeeded, 0, 1'000'000);
  job.history_failed = history.IntOr("failed", job.history_failed, 0, 1'000'000);
  history.Finish();
}

void RefuseElsewhere(Fields& fields) {
  if (fields.Has("ping")) {
    fields.Error("ping", "ping is not a job's own", "write it beside jobs:, for the audits");
  }
}

// Shows findings where their keys stand; one that speaks of a key with an error says nothing new.
void Show(const std::vector<Finding>& found, const NodePtr& node, const Fields::Context& context,
          bool warning, Problems& problems) {
  for (const Finding& finding : found) {
    const bool moot =
        std::any_of(finding.keys.begin(), finding.keys.end(),
                    [&](const std::string& key) { return context.failed.count(key) > 0; });
    if (moot) continue;
    const Mark at = MarkOf(*node, finding.keys);
    if (warning) {
      problems.Warn(at, finding.what, finding.mend);
    } else {
      problems.Error(at, finding.what, finding.mend);
    }
  }
}

void CheckMeaning(Fields& fields, const Job& job, const NodePtr& node,
                  const ReadJobOptions& options, const Fields::Context& context,
                  Problems& problems) {
  const absl::StatusOr<absl::TimeZone> zone = LoadZone(job.timezone);
  if (!zone.ok()) {
    fields.Error("timezone", zone.status().message(), "");
    return;
  }
  if (const auto beat = Schedule::Parse(job.audit, {.zone = *zone}); !beat.ok()) {
    fields.Error("audit", absl::StrCat("audit: ", beat.status().message()), "");
  }
  if (job.schedule.empty() && !job.at) return;
  const absl::StatusOr<Schedule> schedule = ResolveSchedule(job, *zone);
  if (!schedule.ok()) {
    fields.Error("schedule", absl::StrCat("schedule: ", schedule.status().message()), "");
    return;
  }
  if (fields.Has("timezone") && schedule->zone() != *zone) {
    fields.Error("timezone",
                 absl::StrCat("the schedule says ", schedule->zone().name(), ", timezone says ",
                              job.timezone),
                 "keep one of them");
  }
  if (fields.Failed("calendar")) return;
  const absl::StatusOr<ResolvedJob> resolved = ResolveJob(job);
  if (!resolved.ok()) {
    fields.Error("calendar", resolved.status().message(), "");
    return;
  }
  Show(FindScheduleContradictions(*resolved), node, context, false, problems);
  if (options.now != absl::InfinitePast() && context.failed.empty()) {
    Show(FindWarnings(*resolved, options.now), node, context, true, problems);
  }
}

}  // namespace

std::optional<Job> ReadJob(const NodePtr& node, const ReadJobOptions& options, Problems& problems) {
  Problems own;
  Fields::Context context{&own, {}};
  Fields fields(node, "", &context);
  if (node->kind != YamlNode::Kind::kMap) {
    problems.Error(node->at, own.all().empty() ? "an empty job" : own.all()[0].what,
                   "write its keys, name: first");
    return std::nullopt;
  }
  Job job;
  ReadIdentity(fields, job);
  ReadTime(fields, job);
  ReadCalendar(fields, options, job);
  ReadMissed(fields, job);
  ReadLimits(fields, job);
  ReadFailure(fields, job);
  ReadPlace(fields, job);
  ReadRun(fields, job);
  ReadJobAlerts(fields, job);
  RefuseElsewhere(fields);
  fields.Finish();
  if (!options.checked) {
    Show(FindContradictions(job), node, context, false, own);
    CheckMeaning(fields, job, node, options, context, own);
  }
  for (const Problem& problem : own.all()) {
    if (problem.warning) {
      problems.Warn(problem.at, problem.what, problem.mend);
    } else {
      problems.Error(problem.at, problem.what, problem.mend);
    }
  }
  if (own.has_errors()) return std::nullopt;
  return job;
}

}  // namespace matins
