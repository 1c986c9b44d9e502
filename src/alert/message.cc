#include "alert/message.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/time.h"
#include "job/sha256.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

constexpr size_t kFirstFew = 10;      // alerts of a digest that are named
constexpr size_t kLinesOfAJob = 20;   // of a message about one job
constexpr size_t kLongestLine = 500;  // bytes

std::string Shortened(absl::string_view text) {
  if (text.size() <= kLongestLine) return std::string(text);
  size_t end = kLongestLine;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return absl::StrCat(text.substr(0, end), "...");
}

int Gravity(AlertStep step) {
  return step == AlertStep::kFire ? 0 : step == AlertStep::kRemind ? 1 : 2;
}

std::string Line(const AlertRow& row) {
  std::string line = Shortened(row.text);
  if (row.by_job && row.count > 1) {
    absl::StrAppend(&line, " (", row.count, " periods so far)");
  }
  if (NextStep(row) == AlertStep::kRemind) {
    absl::StrAppend(&line, "; since ", FormatInstant(row.opened_at));
  }
  if (!row.open() && !row.momentary) {
    absl::StrAppend(&line, "; made good: ", Shortened(row.resolution));
  }
  return line;
}

absl::string_view Prefix(AlertStep step) {
  switch (step) {
    case AlertStep::kFire:
      return "";
    case AlertStep::kRemind:
      return "still: ";
    case AlertStep::kResolve:
      return "resolved: ";
  }
  return "";
}

std::string IdOf(const AlertRow& row, AlertStep step, absl::Time now) {
  std::string id = absl::StrCat(row.id, ".", row.episode, ".", StepWord(step));
  if (step == AlertStep::kFire) absl::StrAppend(&id, ".", row.level);
  if (step == AlertStep::kRemind && row.remind > absl::ZeroDuration()) {
    absl::StrAppend(&id, ".", (now - row.told_at) / row.remind);
  }
  return id;
}

std::string Name(const AlertRow& row) {
  return row.key.job.empty() ? std::string("the store") : row.key.job;
}

// "3 failed, 1 absent".
std::string Counts(const std::vector<AlertRow>& rows) {
  std::map<std::string, int> kinds;
  for (const AlertRow& row : rows) ++kinds[row.kind];
  std::vector<std::pair<std::string, int>> ordered(kinds.begin(), kinds.end());
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> words;
  for (const auto& [kind, count] : ordered) words.push_back(absl::StrCat(count, " ", kind));
  return absl::StrJoin(words, ", ");
}

void Identify(const ComposeOptions& options, AlertMessage& message) {
  std::vector<std::string> ids;
  for (const AlertRow& row : message.alerts) ids.push_back(IdOf(row, NextStep(row), options.now));
  message.id = ids.size() == 1 ? ids[0] : Sha256Hex(absl::StrJoin(ids, " ")).substr(0, 32);
  message.node = options.node;
}

AlertMessage OfJob(AlertStep step, std::vector<AlertRow> rows, const ComposeOptions& options) {
  AlertMessage message;
  message.step = step;
  const AlertRow& first = rows[0];
  message.subject = absl::StrCat(Prefix(step), Name(first));
  if (rows.size() == 1) {
    if (!first.period.empty()) absl::StrAppend(&message.subject, " ", first.period);
    absl::StrAppend(&message.subject, " ", first.kind);
  } else {
    absl::StrAppend(&message.subject, " ", Counts(rows));
  }
  std::vector<std::string> lines;
  for (const AlertRow& row : rows) {
    if (lines.size() == kLinesOfAJob) {
      lines.push_back(absl::StrCat("and ", rows.size() - kLinesOfAJob, " more"));
      break;
    }
    lines.push_back(Line(row));
  }
  message.text = absl::StrJoin(lines, "\n");
  message.alerts = std::move(rows);
  Identify(options, message);
  return message;
}

AlertMessage Digest(std::vector<AlertRow> rows, const ComposeOptions& options) {
  AlertMessage message;
  std::map<int, std::vector<AlertRow>> by_step;
  for (const AlertRow& row : rows) by_step[Gravity(NextStep(row))].push_back(row);
  message.step = NextStep(by_step.begin()->second[0]);
  std::vector<std::string> heads, lines;
  for (const auto& [gravity, of] : by_step) {
    heads.push_back(absl::StrCat(Prefix(NextStep(of[0])), Counts(of)));
  }
  for (const auto& [gravity, of] : by_step) {
    for (const AlertRow& row : of) {
      if (lines.size() == kFirstFew) break;
      lines.push_back(absl::StrCat(Prefix(NextStep(row)), Line(row)));
    }
  }
  if (rows.size() > lines.size()) {
    lines.push_back(
        absl::StrCat("and ", rows.size() - lines.size(), " more; `matins alerts list` shows them"));
  }
  message.subject = absl::StrCat(rows.size(), " alerts: ", absl::StrJoin(heads, "; "));
  message.text = absl::StrJoin(lines, "\n");
  message.alerts = std::move(rows);
  Identify(options, message);
  return message;
}

nlohmann::json Instant(absl::Time t) {
  if (t == absl::InfinitePast() || t == absl::InfiniteFuture()) return nullptr;
  return FormatInstant(t);
}

std::string WordOf(absl::string_view word, const AlertMessage& message) {
  if (word == "step") return message.test ? "test" : std::string(StepWord(message.step));
  if (word == "subject") return message.subject;
  if (word == "text") return message.text;
  if (word == "id") return message.id;
  if (word == "node") return message.node;
  if (word == "count") return absl::StrCat(message.alerts.size());
  if (message.alerts.empty()) return "";
  const AlertRow& first = message.alerts[0];
  if (word == "job") return first.key.job;
  if (word == "period") return first.period;
  if (word == "kind") return first.kind;
  if (word == "due") return first.due == absl::InfinitePast() ? "" : FormatInstant(first.due);
  return "";
}

std::string Escaped(std::string value, Escape escape) {
  switch (escape) {
    case Escape::kNone:
      return value;
    case Escape::kJson: {
      const std::string quoted =
          nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      return quoted.substr(1, quoted.size() - 2);
    }
    case Escape::kForm: {
      std::string out;
      for (const char c : value) {
        if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ||
            c == '.' || c == '~') {
          out += c;
        } else {
          absl::StrAppendFormat(&out, "%%%02X", static_cast<unsigned char>(c));
        }
      }
      return out;
    }
  }
  return value;
}

}  // namespace

absl::string_view StepWord(AlertStep step) {
  switch (step) {
    case AlertStep::kFire:
      return "fire";
    case AlertStep::kRemind:
      return "remind";
    case AlertStep::kResolve:
      return "resolve";
  }
  return "?";
}

std::vector<AlertMessage> Compose(std::vector<AlertRow> claimed, const ComposeOptions& options) {
  std::map<std::tuple<int, std::string>, std::vector<AlertRow>> groups;
  for (const AlertRow& row : claimed) groups[{Gravity(NextStep(row)), row.key.job}].push_back(row);
  std::vector<AlertMessage> messages;
  if (groups.size() > static_cast<size_t>(options.digest)) {
    messages.push_back(Digest(std::move(claimed), options));
    return messages;
  }
  for (auto& [of, rows] : groups) {
    const AlertStep step = NextStep(rows[0]);
    messages.push_back(OfJob(step, std::move(rows), options));
  }
  return messages;
}

AlertMessage TestMessage(absl::string_view channel, absl::string_view who, absl::Time now) {
  AlertMessage message;
  message.test = true;
  message.id = absl::StrCat("test.", absl::ToUnixMillis(now));
  message.subject = absl::StrCat("a test of channel ", channel);
  message.text =
      absl::StrCat(who, " asked for this message at ", FormatInstant(now), "; nothing is wrong");
  message.node = std::string(who);
  return message;
}

std::string MessageJson(const AlertMessage& message) {
  nlohmann::json alerts = nlohmann::json::array();
  for (const AlertRow& row : message.alerts) {
    if (alerts.size() == kMostInJson) break;
    alerts.push_back({{"alert", absl::StrCat(row.id)},
                      {"episode", row.episode},
                      {"step", StepWord(NextStep(row))},
                      {"kind", row.kind},
                      {"job", row.key.job},
                      {"period", row.period},
                      {"periods", row.count},
                      {"due", Instant(row.due)},
                      {"text", row.text},
                      {"opened_at", Instant(row.opened_at)},
                      {"resolved_at", Instant(row.resolved_at)},
                      {"resolution", row.resolution}});
  }
  const nlohmann::json json = {{"id", message.id},           {"step", WordOf("step", message)},
                               {"subject", message.subject}, {"text", message.text},
                               {"node", message.node},       {"total", message.alerts.size()},
                               {"alerts", std::move(alerts)}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string RenderBody(absl::string_view body, const AlertMessage& message, Escape escape) {
  std::string out;
  for (;;) {
    const size_t at = body.find("{{");
    const size_t end = at == absl::string_view::npos ? at : body.find("}}", at);
    if (end == absl::string_view::npos) break;
    absl::StrAppend(&out, body.substr(0, at));
    const absl::string_view word = absl::StripAsciiWhitespace(body.substr(at + 2, end - at - 2));
    out += Escaped(WordOf(word, message), escape);
    body.remove_prefix(end + 2);
  }
  absl::StrAppend(&out, body);
  return out;
}

}  // namespace matins
