#include "job/parse.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/time.h"
#include "job/after.h"
#include "job/calendar_data.h"
#include "job/fields.h"
#include "job/json.h"
#include "job/lint.h"
#include "job/names.h"
#include "job/read_alerts.h"
#include "job/words.h"
#include "job/yaml.h"

namespace matins {
namespace {

constexpr size_t kMostFiles = 1000;

enum class Journal { kRuns, kFull };

// Reads a file and what it includes, then the jobs of all of them: a job may name a calendar that
// another file brings.
class FileReader {
 public:
  FileReader(const ParseOptions& options, Problems& problems)
      : options_(options), problems_(problems) {}

  void ReadMain(const std::string& name, absl::string_view text) {
    stack_.push_back(options_.files->Canonical(name));
    ReadText(name, text, nullptr, true);
    stack_.pop_back();
  }

  JobFile Finish() {
    ReadJobs();
    return std::move(file_);
  }

 private:
  struct Pending {
    NodePtr job;
    NodePtr defaults;
  };

  void ReadText(const std::string& name, absl::string_view text, NodePtr defaults, bool main) {
    const bool clean = !problems_.has_errors();
    const NodePtr root = ReadYaml(name, text, problems_);
    if (root == nullptr) {
      if (main && clean && !problems_.has_errors()) {
        problems_.Error({std::make_shared<const std::string>(name), 0, 0}, "the file is empty",
                        "write jobs: and a job below it");
      }
      return;
    }
    Fields::Context context{&problems_, {}};
    Fields fields(root, "", &context);
    if (main) {
      ReadSettings(fields);
      alerts_said_ = root->Find("alerts") != nullptr;
      ReadAlertConfig(name, fields, file_.alerts);
    } else {
      RefuseSettings(fields);
    }
    ReadCalendars(name, fields);
    defaults = ReadDefaults(fields, defaults);
    CollectJobs(fields, defaults);
    if (fields.Has("mask")) {
      fields.Error("mask", "mask stands at a job",
                   "write defaults: { mask: hash } for all of them");
    }
    const std::vector<std::string> patterns = fields.TextsOr("include", {});
    for (const std::string& pattern : patterns) {
      Include(name, pattern, fields.At("include"), defaults);
    }
    fields.Finish();
    if (main && !problems_.has_errors() && root->Find("jobs") == nullptr &&
        root->Find("include") == nullptr) {
      fields.Error("jobs", "the file has no jobs", "write jobs: and a job below it (or jobs: [])");
    }
  }

  void ReadSettings(Fields& fields) {
    file_.store = fields.TextOr("store", "");
    CheckStore(fields);
    ReadRedis(fields);
    fields.NotYet("listen", "take it out; the commands work on the store directly");
    const std::string journal = fields.TextOr("journal", "");
    if (!journal.empty()) file_.journal_full = journal == "full";
    if (!journal.empty() && journal != "runs" && journal != "full") {
      fields.Error("journal", absl::StrCat("journal: '", journal, "' is none of its words"),
                   MendWord(journal, std::vector<std::string>{"runs", "full"}));
    }
    ReadAudit(fields);
    if (fields.Has("limits")) ReadLimits(fields);
  }

  void ReadLimits(Fields& fields) {
    Fields limits = fields.Map("limits");
    std::vector<LimitRule>& rules = file_.limits.emplace();
    if (limits.Has("global")) {
      file_.global_limit = limits.IntOr("global", 1, 1, kMostRuns);
      rules.push_back({LimitKind::kGlobal, "", *file_.global_limit});
    }
    ReadNamedLimits(limits, LimitKind::kTenant, rules);
    ReadNamedLimits(limits, LimitKind::kKey, rules);
    const int share = limits.ParsedOr<int>("backfill_share", 0, ParseShare);
    if (share > 0) rules.push_back({LimitKind::kBackfillShare, "", share});
    if (share > 0 && !file_.global_limit && !limits.Failed("global")) {
      limits.Error("backfill_share", "limits.backfill_share is a share of limits.global",
                   "write global: N beside it");
    }
    limits.Finish();
    std::sort(rules.begin(), rules.end());
  }

  static void ReadNamedLimits(Fields& limits, LimitKind kind, std::vector<LimitRule>& rules) {
    const absl::string_view word = Word(kind);
    const NodePtr map = limits.Get(word);
    Fields named = limits.Map(word);
    if (map == nullptr || limits.Failed(word)) return;
    for (const Entry& entry : map->entries) {
      const int most = named.IntOr(entry.key, 1, 1, kMostRuns);
      if (const absl::Status status = CheckLimitName(kind, entry.key); !status.ok()) {
        named.Error(entry.key, status.message(), "");
      }
      rules.push_back({kind, entry.key, most});
    }
    named.Finish();
  }

  void ReadAudit(Fields& fields) {
    file_.audit = fields.TextOr("audit", "");
    audit_at_ = fields.At("audit");
    if (file_.audit.empty()) return;
    const auto beat = Schedule::Parse(file_.audit, {.zone = absl::UTCTimeZone()});
    if (!beat.ok()) fields.Error("audit", absl::StrCat("audit: ", beat.status().message()), "");
  }

  void CheckStore(Fields& fields) {
    if (file_.store.empty()) return;
    const absl::string_view store = file_.store;
    for (const char* later : {"mysql:", "redis:", "rediss:"}) {
      if (!absl::StartsWith(store, later)) continue;
      fields.Error(
          "store",
          absl::StrCat("store: ", absl::string_view(later).substr(0, std::strlen(later) - 1),
                       " is not in this version"),
          "write sqlite:FILE, postgresql://HOST/DATABASE or mariadb://HOST/DATABASE");
      return;
    }
    for (const char* known : {"sqlite:", "postgresql://", "postgres://", "mariadb://"}) {
      if (absl::StartsWith(store, known) && store.size() > std::strlen(known)) return;
    }
    // The text is not repeated: it may hold a password.
    fields.Error("store", "store: no address of a store",
                 "write sqlite:FILE, postgresql://HOST/DATABASE or mariadb://HOST/DATABASE");
  }

  void ReadRedis(Fields& fields) {
    file_.redis = fields.TextOr("redis", "");
    for (const char* known : {"redis://", "rediss://", "redis+sentinel://", "rediss+sentinel://"}) {
      if (file_.redis.empty() || absl::StartsWith(file_.redis, known)) return;
    }
    // The text is not repeated: it may hold a password.
    fields.Error("redis", "redis: no address of a Redis", "write redis://HOST:6379/0");
  }

  void RefuseSettings(Fields& fields) {
    for (const char* key :
         {"store", "redis", "listen", "journal", "limits", "audit", "alerts", "ping"}) {
      if (!fields.Has(key)) continue;
      fields.Error(key, absl::StrCat(key, " stands in an included file"),
                   "write it in the file that includes this one");
    }
  }

  void ReadCalendars(const std::string& name, Fields& fields) {
    const NodePtr map = fields.Get("calendars");
    if (map == nullptr) return;
    Fields calendars = fields.Map("calendars");
    for (const Entry& entry : map->entries) {
      Fields calendar = calendars.Map(entry.key);
      if (calendars.Failed(entry.key)) continue;
      const std::string path = calendar.TextOr("file", "");
      const auto until =
          calendar.ParsedOr<std::optional<absl::CivilDay>>("until", std::nullopt, ParseDay);
      calendar.Finish();
      if (path.empty() && !calendar.Failed("file")) {
        calendar.Error("file", absl::StrCat("calendar ", entry.key, " has no file"),
                       "write { file: days.ics, until: 2026-12-31 }");
      }
      if (calendar.Failed("file") || calendar.Failed("until")) continue;
      AddCalendar(calendars, entry, BesideFile(name, path), until);
    }
  }

  void AddCalendar(Fields& calendars, const Entry& entry, const std::string& path,
                   std::optional<absl::CivilDay> until) {
    // In the set whatever happens, so that jobs that name it are not wrong as well.
    const bool fresh = file_.calendars.emplace(entry.key, CalendarData()).second;
    if (!fresh) {
      calendars.Error(entry.key, absl::StrCat("calendar '", entry.key, "' is given twice"),
                      "keep one of them");
      return;
    }
    if (const absl::Status status = CheckName("calendar", entry.key); !status.ok()) {
      calendars.Error(entry.key, status.message(), "");
      return;
    }
    const absl::StatusOr<std::string> text = options_.files->Read(path);
    if (!text.ok()) {
      calendars.Error(entry.key,
                      absl::StrCat("calendar ", entry.key, ": ", text.status().message()),
                      "a calendar's file is sought beside the job file");
      return;
    }
    const absl::StatusOr<CalendarData> data = MakeCalendarData(entry.key, *text, until);
    if (!data.ok()) {
      calendars.Error(entry.key, absl::StrCat(path, ": ", data.status().message()), "");
      return;
    }
    file_.calendars[entry.key] = *data;
  }

  NodePtr ReadDefaults(Fields& fields, const NodePtr& outer) {
    const NodePtr own = HouseWords(fields.Get("defaults"), problems_);
    if (own == nullptr) return outer;
    if (own->kind != YamlNode::Kind::kMap) {
      fields.Error("defaults", absl::StrCat("defaults is a map, not ", KindText(*own)),
                   "write defaults: { timezone: Europe/Berlin }");
      return outer;
    }
    if (const Entry* name = own->Find("name")) {
      problems_.Error(name->at, "defaults with a name: each job has its own", "take it out");
    }
    return outer == nullptr ? own : WithDefaults(own, outer);
  }

  void CollectJobs(Fields& fields, const NodePtr& defaults) {
    const NodePtr jobs = fields.Get("jobs");
    if (jobs == nullptr) return;
    if (jobs->kind != YamlNode::Kind::kList) {
      fields.Error("jobs", absl::StrCat("jobs is a list, not ", KindText(*jobs)),
                   "write '- name: NAME' below it");
      return;
    }
    for (const NodePtr& job : jobs->items) pending_.push_back({job, defaults});
  }

  void Include(const std::string& name, const std::string& pattern, const Mark& at,
               const NodePtr& defaults) {
    const std::string whole = BesideFile(name, pattern);
    const std::vector<std::string> paths = options_.files->Glob(whole);
    if (paths.empty() && pattern.find_first_of("*?[") == std::string::npos) {
      problems_.Error(at, absl::StrCat("include: there is no file ", whole),
                      "an included file is sought beside this one");
    }
    for (const std::string& path : paths) {
      const std::string canonical = options_.files->Canonical(path);
      if (std::find(stack_.begin(), stack_.end(), canonical) != stack_.end()) {
        problems_.Error(at,
                        absl::StrCat("include: ", path, " includes itself: ",
                                     absl::StrJoin(stack_, " > "), " > ", canonical),
                        "take one of these includes out");
        continue;
      }
      if (!read_.insert(canonical).second) {
        problems_.Error(at, absl::StrCat("include: ", path, " is included twice"),
                        "keep one of the includes");
        continue;
      }
      if (read_.size() > kMostFiles) {
        problems_.Error(at, absl::StrCat("include: more than ", kMostFiles, " files"),
                        "put more jobs into each");
        return;
      }
      const absl::StatusOr<std::string> text = options_.files->Read(path);
      if (!text.ok()) {
        problems_.Error(at, absl::StrCat("include: ", text.status().message()),
                        "let this user read it, or take it out");
        continue;
      }
      stack_.push_back(canonical);
      ReadText(path, *text, defaults, false);
      stack_.pop_back();
    }
  }

  void ReadJobs() {
    std::vector<JobPlace> places;
    std::map<std::string, Mark> names;
    for (const Pending& pending : pending_) {
      const NodePtr node = WithDefaults(HouseWords(pending.job, problems_), pending.defaults);
      std::optional<Job> job =
          ReadJob(node, {.calendars = &file_.calendars, .now = options_.now}, problems_);
      const Entry* name = node->Find("name");
      if (name != nullptr && name->value->kind == YamlNode::Kind::kScalar) {
        const auto [first, fresh] = names.emplace(name->value->text, name->value->at);
        if (!fresh) {
          problems_.Error(name->value->at,
                          absl::StrCat("the name '", name->value->text,
                                       "' is given twice; first in ", first->second.Text()),
                          "rename one of the jobs");
          continue;
        }
      }
      if (!job) continue;
      CheckChannels(*job, MarkOf(*node, {"alerts"}));
      places.push_back({*job, MarkOf(*node, {"after"})});
      file_.jobs.push_back(*std::move(job));
    }
    std::set<std::string> known;
    for (const auto& [name, at] : names) known.insert(name);
    CheckAfter(places, known, options_.now != absl::InfinitePast(), problems_);
    file_.digest = DigestOf(file_.jobs);
    if (options_.now == absl::InfinitePast() || problems_.has_errors()) return;
    const std::optional<Finding> together =
        FindSharedAudit(file_.jobs, file_.audit.empty() ? kStoreAudit : file_.audit, options_.now);
    if (together) problems_.Warn(audit_at_, together->what, together->mend);
  }

  // Of a file without `alerts` the node that is started with another one knows the channels.
  void CheckChannels(const Job& job, const Mark& at) {
    if (!job.alerts || !alerts_said_) return;
    std::vector<std::string> names;
    for (const Channel& channel : file_.alerts.channels) names.push_back(channel.name);
    for (const std::string& name : *job.alerts) {
      if (file_.alerts.Find(name) != nullptr) continue;
      problems_.Error(at, absl::StrCat("alerts: there is no channel '", name, "'"),
                      MendWord(name, names));
    }
  }

  const ParseOptions& options_;
  Problems& problems_;
  JobFile file_;
  bool alerts_said_ = false;
  std::vector<Pending> pending_;
  Mark audit_at_;
  std::vector<std::string> stack_;
  std::set<std::string> read_;
};

void SortByPlace(std::vector<Problem>& problems) {
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    if (a.at.file != b.at.file && a.at.Text() != b.at.Text()) {
      const std::string& left = a.at.file == nullptr ? "" : *a.at.file;
      const std::string& right = b.at.file == nullptr ? "" : *b.at.file;
      if (left != right) return left < right;
    }
    return std::make_pair(a.at.line, a.at.column) < std::make_pair(b.at.line, b.at.column);
  });
}

absl::StatusOr<JobFile> OnlyGood(LintResult result) {
  if (result.file) return *std::move(result.file);
  Problems errors;
  for (const Problem& problem : result.problems) {
    if (!problem.warning) errors.Error(problem.at, problem.what, problem.mend);
  }
  return errors.ToStatus();
}

}  // namespace

LintResult LintJobText(const std::string& name, absl::string_view text,
                       const ParseOptions& options) {
  Problems problems;
  FileReader reader(options, problems);
  reader.ReadMain(name, text);
  JobFile file = reader.Finish();
  LintResult result{problems.all(), std::nullopt};
  SortByPlace(result.problems);
  if (problems.has_errors()) return result;
  file.warnings = result.problems;
  result.file = std::move(file);
  return result;
}

LintResult LintJobFile(const std::string& path, const ParseOptions& options) {
  const absl::StatusOr<std::string> text = options.files->Read(path);
  if (text.ok()) return LintJobText(path, *text, options);
  Problems problems;
  problems.Error({}, text.status().message(), "name a job file");
  return {problems.all(), std::nullopt};
}

absl::StatusOr<JobFile> ParseJobFile(const std::string& path, const ParseOptions& options) {
  return OnlyGood(LintJobFile(path, options));
}

absl::StatusOr<JobFile> ParseJobText(const std::string& name, absl::string_view text,
                                     const ParseOptions& options) {
  return OnlyGood(LintJobText(name, text, options));
}

}  // namespace matins
