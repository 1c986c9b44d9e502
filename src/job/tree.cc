#include "job/tree.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "job/rules.h"
#include "job/values_text.h"
#include "job/words.h"

namespace matins {
namespace {

// One map as it grows; values equal to their default are passed over.
class MapWriter {
 public:
  void Text(absl::string_view key, absl::string_view text) {
    if (!text.empty()) Put(key, TextNode(text));
  }
  void Plain(absl::string_view key, absl::string_view text) { Put(key, PlainNode(text)); }
  template <typename T>
  void Number(absl::string_view key, T value, T normal) {
    if (value != normal) Plain(key, absl::StrCat(value));
  }
  void Count(absl::string_view key, std::optional<int> value, std::optional<int> normal) {
    if (value == normal) return;
    if (value) {
      Plain(key, absl::StrCat(*value));
    } else {
      Text(key, "unlimited");
    }
  }
  void Length(absl::string_view key, absl::Duration value, absl::Duration normal) {
    if (value != normal) Text(key, DurationText(value));
  }
  template <typename E>
  void Enum(absl::string_view key, E value, E normal) {
    if (value != normal) Text(key, Word(value));
  }
  void Texts(absl::string_view key, const std::vector<std::string>& texts) {
    if (texts.empty()) return;
    std::vector<NodePtr> items;
    for (const std::string& text : texts) items.push_back(TextNode(text));
    Put(key, ListNode(std::move(items)));
  }
  void Map(absl::string_view key, MapWriter inner) {
    if (!inner.entries_.empty()) Put(key, std::move(inner).Done());
  }
  void Put(absl::string_view key, NodePtr value) {
    entries_.push_back({std::string(key), {}, std::move(value)});
  }
  NodePtr Done() && { return MapNode(std::move(entries_)); }

 private:
  std::vector<Entry> entries_;
};

MapWriter WriteBackfill(const Job& job) {
  const Backfill normal;
  MapWriter map;
  if (job.backfill.start) map.Text("start", FormatDay(*job.backfill.start));
  map.Count("max_periods", job.backfill.max_periods, normal.max_periods);
  map.Length("max_age", job.backfill.max_age, normal.max_age);
  map.Length("source_window", job.backfill.source_window, normal.source_window);
  map.Count("max_parallel", job.backfill.max_parallel, normal.max_parallel);
  map.Enum("order", job.backfill.order, DefaultOrder(job.misfire));
  return map;
}

MapWriter WriteLock(const Job& job) {
  MapWriter map;
  if (job.lock.scope == LockScope::kKey) {
    map.Text("scope", job.lock.key == "tenant/{{tenant}}" ? "tenant" : job.lock.key);
  } else {
    map.Enum("scope", job.lock.scope, DefaultScope(job.overlap));
  }
  map.Length("ttl", job.lock.ttl, LockSpec().ttl);
  map.Enum("provider", job.lock.provider, LockSpec().provider);
  return map;
}

MapWriter WriteRun(const RunSpec& run) {
  MapWriter map;
  switch (run.kind) {
    case RunKind::kCommand:
      map.Texts("command", run.command);
      break;
    case RunKind::kShell:
      map.Text("shell", run.shell);
      break;
    case RunKind::kHandler:
      map.Text("handler", run.handler);
      break;
    case RunKind::kExec:
      map.Plain("exec", "true");
      break;
  }
  return map;
}

void WriteTime(const Job& job, const Job& normal, bool with_days, MapWriter& map) {
  map.Text("schedule", job.schedule);
  if (job.at) map.Text("at", FormatInstant(*job.at));
  map.Enum("dialect", job.dialect, normal.dialect);
  if (job.timezone != normal.timezone) map.Text("timezone", job.timezone);
  MapWriter dst;
  dst.Enum("gap", job.dst.gap, normal.dst.gap);
  dst.Enum("overlap", job.dst.overlap, normal.dst.overlap);
  map.Map("dst", std::move(dst));
  map.Enum("period", job.period, normal.period);
  if (!(job.biz_date == normal.biz_date)) map.Text("biz_date", BizShiftText(job.biz_date));
  map.Text("calendar", job.calendar);
  if (with_days) {
    map.Text("calendar_days", job.calendar_data.days);
    if (job.calendar_data.until) map.Text("calendar_until", FormatDay(*job.calendar_data.until));
  }
}

void WriteRules(const Job& job, const Job& normal, MapWriter& map) {
  map.Text("misfire", Word(job.misfire));
  map.Map("backfill", WriteBackfill(job));
  map.Enum("overlap", job.overlap, normal.overlap);
  map.Length("start_deadline", job.start_deadline, normal.start_deadline);
  map.Text("done_by", DoneByText(job.done_by));
  if (job.audit != normal.audit) map.Text("audit", job.audit);
  if (job.alerts && job.alerts->empty()) map.Text("alerts", "none");
  if (job.alerts) map.Texts("alerts", *job.alerts);
  map.Map("lock", WriteLock(job));
  map.Enum("mask", job.mask, normal.mask);
  MapWriter limits;
  if (job.limit) limits.Plain("job", absl::StrCat(*job.limit));
  limits.Text("key", job.limit_key);
  map.Map("limits", std::move(limits));
  map.Length("timeout", job.timeout, normal.timeout);
  map.Length("grace", job.grace, normal.grace);
  MapWriter retry;
  retry.Number("attempts", job.retry.attempts, normal.retry.attempts);
  if (job.retry.backoff_min != normal.retry.backoff_min ||
      job.retry.backoff_max != normal.retry.backoff_max) {
    retry.Text("backoff", absl::StrCat(DurationText(job.retry.backoff_min), "..",
                                       DurationText(job.retry.backoff_max)));
  }
  map.Map("retry", std::move(retry));
  map.Enum("recovery", job.recovery, normal.recovery);
  map.Number("max_lost", job.max_lost, normal.max_lost);
  map.Length("stale_after", job.stale_after, normal.stale_after);
  map.Enum("commit", job.commit, normal.commit);
  map.Enum("on_lease_lost", job.on_lease_lost, normal.on_lease_lost);
}

void WriteAfter(const Job& job, MapWriter& map) {
  if (job.after.empty()) return;
  std::vector<NodePtr> items;
  for (const After& after : job.after) {
    MapWriter entry;
    entry.Text("job", after.job);
    items.push_back(std::move(entry).Done());
  }
  map.Put("after", ListNode(std::move(items)));
}

void WriteEnv(const Job& job, MapWriter& map) {
  MapWriter env;
  for (const auto& [name, value] : job.env) {
    if (value.file.empty()) {
      env.Put(name, TextNode(value.text));
    } else {
      MapWriter file;
      file.Text("file", value.file);
      env.Map(name, std::move(file));
    }
  }
  map.Map("env", std::move(env));
}

void WritePlace(const Job& job, const Job& normal, MapWriter& map) {
  WriteAfter(job, map);
  map.Length("spread", job.spread, normal.spread);
  map.Texts("nodes", job.nodes);
  map.Number("priority", job.priority, normal.priority);
  WriteEnv(job, map);
  map.Text("dir", job.dir);
  map.Text("user", job.user);
  if (job.umask) map.Text("umask", UmaskText(*job.umask));
  MapWriter output;
  if (job.output_keep_bytes != normal.output_keep_bytes) {
    output.Text("keep", BytesText(job.output_keep_bytes));
  }
  map.Map("output", std::move(output));
  MapWriter history;
  history.Number("succeeded", job.history_succeeded, normal.history_succeeded);
  history.Number("failed", job.history_failed, normal.history_failed);
  map.Map("history", std::move(history));
  if (job.suspend) map.Plain("suspend", "true");
  map.Map("run", WriteRun(job.run));
  if (job.check) map.Map("check", WriteRun(*job.check));
}

}  // namespace

NodePtr JobTree(const Job& job, bool with_days) {
  const Job normal;
  MapWriter map;
  map.Text("name", job.name);
  map.Text("tenant", job.tenant);
  WriteTime(job, normal, with_days, map);
  WriteRules(job, normal, map);
  WritePlace(job, normal, map);
  return std::move(map).Done();
}

}  // namespace matins
