#include "alert/raise.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/time.h"
#include "job/json.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

constexpr size_t kMostDefinitions = 5000;  // remembered
constexpr size_t kLongestAbout = 180;      // bytes
constexpr char kStoreBeat[] = "store";

// What is worse than before is told again. A period that was lost may yet be late, one that is late
// may yet fail; one that is held waits for a person; one whose source is gone is gone.
int LevelOf(absl::string_view kind) {
  if (kind == "lost") return 1;
  if (kind == "absent" || kind == "unfinished") return 2;
  if (kind == "failed") return 3;
  if (kind == "held") return 4;
  if (kind == "soon_unfillable") return 5;
  if (kind == "unfillable") return 6;
  return 1;
}

bool IsGap(absl::string_view kind) { return LevelOf(kind) > 1 || kind == "lost"; }

// A raise for each channel.
void Add(AlertRaise raise, const JobsTold::Words& words, const AlertConfig& config,
         AlertChanges& changes) {
  raise.level = LevelOf(raise.kind);
  raise.momentary = raise.momentary || raise.kind == "unfillable";
  if (IsGap(raise.kind)) {
    raise.key.topic = kGap;
    raise.by_job = !words.each;
    raise.key.about = words.each ? raise.period : "";
  }
  raise.key.about = raise.key.about.substr(0, kLongestAbout);
  for (const std::string& name : words.channels) {
    raise.channel = name;
    const Channel* channel = config.Find(name);
    raise.remind = channel == nullptr ? absl::Hours(24) : channel->remind;
    changes.raise.push_back(raise);
  }
}

std::string On(const std::string& node) { return node.empty() ? "" : absl::StrCat(" on ", node); }

std::string TroubleText(const AlertTrouble& trouble) {
  const std::string name = absl::StrCat(trouble.key.job, " ", trouble.key.period);
  switch (trouble.kind) {
    case AlertTrouble::Kind::kFailed:
      if (trouble.held) {
        return absl::StrCat(name, " FAILED(held)", On(trouble.node), ": ", trouble.why,
                            "; it waits for a person: matins run, or matins skip");
      }
      return absl::StrCat(name, " FAILED", On(trouble.node), ": ", trouble.why);
    case AlertTrouble::Kind::kLost:
      return absl::StrCat(name, " was lost", On(trouble.node), ": ", trouble.why);
    case AlertTrouble::Kind::kZombie:
      return absl::StrCat(name, ": an old owner (run ", trouble.fence, ", ", trouble.node,
                          ") spoke, and was refused: ", trouble.why);
    case AlertTrouble::Kind::kClock:
      return absl::StrCat(trouble.why,
                          "; nothing is planned or taken back until it has been steady, or "
                          "`matins clock accept`");
  }
  return name;
}

absl::Time InstantOf(const nlohmann::json& json, const char* key) {
  const auto value = json.find(key);
  if (value == json.end() || !value->is_string()) return absl::InfinitePast();
  return ParseInstant(value->get<std::string>()).value_or(absl::InfinitePast());
}

std::string TextOf(const nlohmann::json& json, const char* key) {
  const auto value = json.find(key);
  return value == json.end() || !value->is_string() ? "" : value->get<std::string>();
}

std::vector<std::string> PeriodsOf(const nlohmann::json& json) {
  std::vector<std::string> periods;
  const auto value = json.find("periods");
  if (value != json.end() && value->is_array()) {
    for (const nlohmann::json& period : *value) {
      if (period.is_string()) periods.push_back(period.get<std::string>());
    }
  }
  if (periods.empty()) periods.push_back(TextOf(json, "period"));
  return periods;
}

class AuditReader {
 public:
  AuditReader(const AuditRow& audit, const std::map<std::string, std::string>& definitions,
              const AlertConfig& config, JobsTold& jobs)
      : audit_(audit), definitions_(definitions), config_(config), jobs_(jobs) {}

  AlertChanges Read(absl::Span<const AlertRow> open) {
    const nlohmann::json detail =
        nlohmann::json::parse(audit_.detail, nullptr, /*allow_exceptions=*/false);
    const auto findings = detail.is_object() ? detail.find("findings") : detail.end();
    if (findings == detail.end() || !findings->is_array()) return {};
    seen_at_ = InstantOf(detail, "at");
    if (seen_at_ == absl::InfinitePast()) return {};
    for (const nlohmann::json& finding : *findings) {
      if (finding.is_object() && finding.value("alarm", false)) Alarm(finding);
    }
    const bool whole = detail.value("findings_in_all", size_t{0}) <= findings->size();
    if (whole) MakeGood(TextOf(detail, "from"), open);
    return std::move(changes_);
  }

 private:
  void Alarm(const nlohmann::json& finding) {
    AlertRaise raise;
    raise.kind = TextOf(finding, "kind");
    raise.key.job = TextOf(finding, "job");
    raise.key.topic = raise.kind;
    raise.due = InstantOf(finding, "due");
    raise.by_audit = true;
    raise.seen_at = seen_at_;
    const auto definition = definitions_.find(raise.key.job);
    const JobsTold::Words& words =
        jobs_.Of(definition == definitions_.end() ? "" : definition->second);
    std::string why = TextOf(finding, "why");
    if (raise.due != absl::InfinitePast()) {
      absl::StrAppend(&why, "; due ", FormatInstant(raise.due));
    }
    if (const absl::Time by = InstantOf(finding, "deadline"); by != absl::InfinitePast()) {
      absl::StrAppend(&why, ", to be done by ", FormatInstant(by));
    }
    const std::vector<std::string> periods = PeriodsOf(finding);
    const int64_t count = finding.value("count", int64_t{1});
    for (const std::string& period : periods) {
      AlertRaise one = raise;
      one.period = period;
      // A suspension, or a calendar's end, goes on over periods.
      const bool going_on = one.kind == "suspended" || one.kind == "unknown";
      one.key.about = one.key.job.empty() ? audit_.beat : going_on ? "" : period;
      // The instant of the first alone is known; of a whole job the newest counts.
      one.text = absl::StrCat(one.key.job.empty() ? "the store" : one.key.job,
                              period.empty() ? "" : " ", period, " ", one.kind, ": ", why);
      if (&period == &periods.back() && count > static_cast<int64_t>(periods.size())) {
        absl::StrAppend(&one.text, "; and ", count - static_cast<int64_t>(periods.size()),
                        " more up to ", TextOf(finding, "last_period"));
      }
      found_.insert(KeyOf(one, words));
      Add(std::move(one), words, config_, changes_);
    }
  }

  static AlertKey KeyOf(const AlertRaise& raise, const JobsTold::Words& words) {
    if (!IsGap(raise.kind)) return raise.key;
    return {kGap, raise.key.job, words.each ? raise.period : ""};
  }

  // An audit of some jobs, or of some days, says nothing of what it did not look at.
  void MakeGood(const std::string& from_text, absl::Span<const AlertRow> open) {
    const auto from_day = ParseDay(from_text);
    const absl::Time from = from_day.ok()
                                ? absl::FromCivil(*from_day, absl::UTCTimeZone()) + absl::Hours(48)
                                : absl::InfiniteFuture();
    for (const AlertRow& row : open) {
      const bool mine = row.key.job.empty()
                            ? row.key.about == audit_.beat
                            : audit_.beat == kStoreBeat && definitions_.contains(row.key.job);
      const bool too_old = row.due != absl::InfinitePast() && row.due < from;
      if (!row.by_audit || !mine || too_old || found_.contains(row.key)) continue;
      changes_.resolve.push_back({row.key, seen_at_, "the audit finds it no more"});
    }
  }

  const AuditRow& audit_;
  const std::map<std::string, std::string>& definitions_;
  const AlertConfig& config_;
  JobsTold& jobs_;
  absl::Time seen_at_;
  std::set<AlertKey> found_;
  AlertChanges changes_;
};

}  // namespace

const JobsTold::Words& JobsTold::Of(const std::string& definition) {
  if (const auto known = known_.find(definition); known != known_.end()) return known->second;
  if (known_.size() >= kMostDefinitions) known_.clear();
  Words words;
  const absl::StatusOr<Job> job =
      definition.empty() ? absl::StatusOr<Job>(absl::NotFoundError("")) : JobFromJson(definition);
  if (job.ok()) words.each = job->misfire == Misfire::kEach;
  if (job.ok() && job->alerts) {
    words.channels = *job->alerts;
  } else {
    for (const Channel& channel : config_.channels) {
      if (channel.is_default) words.channels.push_back(channel.name);
    }
  }
  return known_[definition] = std::move(words);
}

AlertChanges OfTroubles(const AlertFacts& facts, const AlertConfig& config, JobsTold& jobs) {
  AlertChanges changes;
  for (const AlertTrouble& trouble : facts.troubles) {
    AlertRaise raise;
    raise.key.job = trouble.key.job;
    raise.period = trouble.key.period;
    raise.due = trouble.due;
    raise.text = TroubleText(trouble);
    raise.seen_at = trouble.at;
    switch (trouble.kind) {
      case AlertTrouble::Kind::kFailed:
        raise.kind = trouble.held ? "held" : "failed";
        break;
      case AlertTrouble::Kind::kLost:
        raise.kind = "lost";
        break;
      case AlertTrouble::Kind::kZombie:
        raise.kind = raise.key.topic = "zombie";
        raise.key.about = absl::StrCat(trouble.key.period, "/", trouble.fence);
        raise.momentary = true;
        break;
      case AlertTrouble::Kind::kClock:
        raise.kind = raise.key.topic = kClockTopic;
        break;
    }
    Add(std::move(raise), jobs.Of(trouble.definition), config, changes);
  }
  for (const AlertMadeGood& good : facts.made_good) {
    changes.resolve.push_back({good.key, facts.now, good.resolution});
  }
  return changes;
}

AlertChanges OfAudit(const AuditRow& audit, const std::map<std::string, std::string>& definitions,
                     absl::Span<const AlertRow> open, const AlertConfig& config, JobsTold& jobs) {
  return AuditReader(audit, definitions, config, jobs).Read(open);
}

}  // namespace matins
