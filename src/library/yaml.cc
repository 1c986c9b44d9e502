// A public job as text. Knows the public header alone: the engine's Job has the same name.
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/time.h"
#include "matins/job.h"

namespace matins {
inline namespace api {
namespace {

constexpr const char* kPeriods[] = {"fire", "hour", "day", "week", "month"};
constexpr const char* kMisfires[] = {"skip", "latest", "each"};
constexpr const char* kOverlaps[] = {"forbid", "allow", "replace", "queue"};
constexpr const char* kRecoveries[] = {"rerun", "resume", "hold"};
constexpr const char* kCommits[] = {"node", "job"};
constexpr const char* kLeaseLost[] = {"refuse", "abort_process"};

// A text in double quotes; what is not plain is escaped.
std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const unsigned char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(c);
    } else if (absl::ascii_iscntrl(c)) {
      absl::StrAppendFormat(&quoted, "\\x%02x", c);
    } else {
      quoted += static_cast<char>(c);
    }
  }
  return quoted + '"';
}

std::string List(const std::vector<std::string>& texts) {
  return absl::StrCat("[",
                      absl::StrJoin(texts, ", ",
                                    [](std::string* out, const std::string& text) {
                                      absl::StrAppend(out, Quoted(text));
                                    }),
                      "]");
}

// The keys of one map, those that are set.
class Keys {
 public:
  void Add(absl::string_view key, std::string value) {
    entries_.push_back(absl::StrCat(key, ": ", value));
  }
  void Text(absl::string_view key, absl::string_view value) {
    if (!value.empty()) Add(key, Quoted(value));
  }
  void Number(absl::string_view key, const std::optional<int>& value) {
    if (value) Add(key, absl::StrCat(*value));
  }
  void Length(absl::string_view key, const std::optional<absl::Duration>& value) {
    if (value) Add(key, DurationText(*value));
  }
  template <typename E, size_t N>
  void Word(absl::string_view key, const std::optional<E>& value, const char* const (&words)[N]) {
    if (value) Add(key, words[static_cast<size_t>(*value)]);
  }
  std::string Flow() const { return absl::StrCat("{ ", absl::StrJoin(entries_, ", "), " }"); }
  std::string Block() const {
    return absl::StrCat("  - ", absl::StrJoin(entries_, "\n    "), "\n");
  }

 private:
  std::vector<std::string> entries_;
};

std::string BackfillText(const Backfill& backfill) {
  Keys keys;
  if (backfill.start) keys.Add("start", FormatDay(*backfill.start));
  keys.Number("max_periods", backfill.max_periods);
  keys.Length("max_age", backfill.max_age);
  keys.Length("source_window", backfill.source_window);
  keys.Number("max_parallel", backfill.max_parallel);
  if (backfill.strict) keys.Add("order", *backfill.strict ? "strict" : "none");
  return keys.Flow();
}

std::string RetryText(const Retry& retry) {
  return absl::StrCat("{ attempts: ", retry.attempts,
                      ", backoff: ", DurationText(retry.backoff_min), "..",
                      DurationText(retry.backoff_max), " }");
}

std::string AfterText(const std::vector<std::string>& jobs) {
  std::vector<std::string> entries;
  for (const std::string& job : jobs) entries.push_back(absl::StrCat("{ job: ", Quoted(job), " }"));
  return absl::StrCat("[", absl::StrJoin(entries, ", "), "]");
}

void AddTime(const Job& job, Keys& keys) {
  keys.Text("schedule", job.schedule);
  if (job.at) keys.Add("at", FormatInstant(*job.at));
  if (job.timezone) keys.Text("timezone", *job.timezone);
  keys.Word("period", job.period, kPeriods);
  keys.Text("biz_date", job.biz_date);
  keys.Word("misfire", job.misfire, kMisfires);
  if (job.backfill) keys.Add("backfill", BackfillText(*job.backfill));
}

void AddLimits(const Job& job, Keys& keys) {
  keys.Word("overlap", job.overlap, kOverlaps);
  keys.Length("start_deadline", job.start_deadline);
  if (job.lease) keys.Add("lock", absl::StrCat("{ ttl: ", DurationText(*job.lease), " }"));
  if (job.limit) keys.Add("limits", absl::StrCat("{ job: ", *job.limit, " }"));
  keys.Length("timeout", job.timeout);
  keys.Length("grace", job.grace);
  if (job.retry) keys.Add("retry", RetryText(*job.retry));
  keys.Word("recovery", job.recovery, kRecoveries);
  keys.Word("commit", job.commit, kCommits);
  keys.Word("on_lease_lost", job.on_lease_lost, kLeaseLost);
  if (!job.after.empty()) keys.Add("after", AfterText(job.after));
  if (!job.nodes.empty()) keys.Add("nodes", List(job.nodes));
}

void AddRun(const Job& job, Keys& keys) {
  Keys run;
  run.Text("handler", job.handler);
  if (!job.command.empty()) run.Add("command", List(job.command));
  run.Text("shell", job.shell);
  keys.Add("run", run.Flow());
}

}  // namespace

std::string ToYaml(const Job& job) {
  Keys keys;
  keys.Add("name", Quoted(job.name));
  AddTime(job, keys);
  AddLimits(job, keys);
  for (const auto& [key, value] : job.more) keys.Add(key, value);
  AddRun(job, keys);
  return absl::StrCat("jobs:\n", keys.Block());
}

}  // namespace api
}  // namespace matins
