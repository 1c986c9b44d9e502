#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "job/read_job.h"
#include "schedule/schedule.h"

namespace matins {
namespace {

struct K8sWord {
  absl::string_view k8s;
  absl::string_view map;  // empty: at the top
  absl::string_view key;
};
constexpr K8sWord kWords[] = {
    {"concurrencyPolicy", "", "overlap"},
    {"timeZone", "", "timezone"},
    {"startingDeadlineSeconds", "", "start_deadline"},
    {"startingDeadlineSeconds", "backfill", "max_age"},
    {"successfulJobsHistoryLimit", "history", "succeeded"},
    {"failedJobsHistoryLimit", "history", "failed"},
};
constexpr absl::string_view kNested[] = {"backfill", "lock",   "limits", "retry",
                                         "history",  "output", "dst",    "env"};

bool IsMap(const NodePtr& node) { return node != nullptr && node->kind == YamlNode::Kind::kMap; }

Entry* FindEntry(std::vector<Entry>& entries, absl::string_view key) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

NodePtr MapAt(std::vector<Entry> entries, const Mark& at) {
  YamlNode node;
  node.kind = YamlNode::Kind::kMap;
  node.at = at;
  node.entries = std::move(entries);
  return std::make_shared<const YamlNode>(std::move(node));
}

// The value as the house writes it; null where K8s would not take it, which is reported.
NodePtr HouseValue(const Entry& entry, Problems& problems) {
  const YamlNode& value = *entry.value;
  const bool text = value.kind == YamlNode::Kind::kScalar;
  if (entry.key == "concurrencyPolicy") {
    if (text && (value.text == "Allow" || value.text == "Forbid" || value.text == "Replace")) {
      return TextNode(absl::AsciiStrToLower(value.text), value.at);
    }
    problems.Error(entry.at, "concurrencyPolicy is none of its words",
                   "write overlap: forbid, allow, replace or queue");
    return nullptr;
  }
  if (entry.key != "startingDeadlineSeconds") return entry.value;
  int64_t seconds = 0;
  if (text && absl::SimpleAtoi(value.text, &seconds) && seconds > 0 && seconds <= 31'622'400) {
    return TextNode(absl::StrCat(seconds, "s"), value.at);
  }
  problems.Error(entry.at, "startingDeadlineSeconds is no number of seconds from 1 to a year",
                 "write start_deadline: 60s");
  return nullptr;
}

// Puts one value where the house has it; false where something stands there.
bool Put(std::vector<Entry>& entries, const K8sWord& word, const Mark& at, NodePtr value) {
  if (word.map.empty()) {
    if (FindEntry(entries, word.key) != nullptr) return false;
    entries.push_back({std::string(word.key), at, std::move(value)});
    return true;
  }
  Entry* nested = FindEntry(entries, word.map);
  if (nested == nullptr) {
    entries.push_back({std::string(word.map), at, MapAt({}, at)});
    nested = &entries.back();
  }
  if (!IsMap(nested->value)) return true;  // reported by the reader of that map
  std::vector<Entry> inner = nested->value->entries;
  if (FindEntry(inner, word.key) != nullptr) return false;
  inner.push_back({std::string(word.key), at, std::move(value)});
  nested->value = MapAt(std::move(inner), nested->value->at);
  return true;
}

// Whether the job says when it runs by a word that the default one would contradict: at for
// schedule, and a zone inside the schedule's own text for timezone.
bool SaysOtherwise(const YamlNode& job, absl::string_view key) {
  if (key == "schedule") return job.Find("at") != nullptr;
  const Entry* schedule = job.Find("schedule");
  if (schedule == nullptr) return false;
  if (key == "at") return true;
  if (key != "timezone" || schedule->value->kind != YamlNode::Kind::kScalar) return false;
  const absl::string_view text = absl::StripAsciiWhitespace(schedule->value->text);
  const size_t blank = text.rfind(' ');
  return blank != absl::string_view::npos && LoadZone(text.substr(blank + 1)).ok();
}

}  // namespace

NodePtr HouseWords(const NodePtr& job, Problems& problems) {
  if (!IsMap(job)) return job;
  std::vector<Entry> entries = job->entries;
  for (const Entry& entry : job->entries) {
    const bool known = std::any_of(std::begin(kWords), std::end(kWords),
                                   [&](const K8sWord& word) { return word.k8s == entry.key; });
    if (!known) continue;
    entries.erase(std::find_if(entries.begin(), entries.end(),
                               [&](const Entry& other) { return other.key == entry.key; }));
    const NodePtr value = HouseValue(entry, problems);
    for (const K8sWord& word : kWords) {
      if (word.k8s != entry.key || value == nullptr) continue;
      if (Put(entries, word, entry.at, value)) continue;
      problems.Error(entry.at,
                     absl::StrCat(entry.key, " is K8s' word for ", word.map,
                                  word.map.empty() ? "" : ".", word.key, ", which is given too"),
                     "keep one of them");
    }
  }
  return MapAt(std::move(entries), job->at);
}

NodePtr WithDefaults(const NodePtr& job, const NodePtr& defaults) {
  if (!IsMap(job) || !IsMap(defaults)) return job;
  std::vector<Entry> entries = job->entries;
  for (const Entry& entry : defaults->entries) {
    if (SaysOtherwise(*job, entry.key)) continue;
    Entry* own = FindEntry(entries, entry.key);
    if (own == nullptr) {
      entries.push_back(entry);
    } else if (std::find(std::begin(kNested), std::end(kNested), entry.key) != std::end(kNested)) {
      own->value = WithDefaults(own->value, entry.value);
    }
  }
  return MapAt(std::move(entries), job->at);
}

}  // namespace matins
