#include "store/alert_text.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/time.h"
#include "store/rules.h"

namespace matins {

bool IsSilenced(absl::Span<const SilenceRow> silences, absl::string_view job, absl::Time now) {
  return std::any_of(silences.begin(), silences.end(),
                     [&](const SilenceRow& silence) { return silence.Covers(job, now); });
}

AlertBatch::Entry& AlertBatch::Of(const AlertRaise& raise) {
  for (Entry& entry : rows_) {
    if (entry.row.key == raise.key && entry.row.channel == raise.channel) return entry;
  }
  return rows_.emplace_back();
}

AlertCounts AlertBatch::Put(const AlertChanges& changes) {
  AlertCounts counts;
  for (const AlertRaise& raise : changes.raise) {
    Entry& entry = Of(raise);
    const bool waited = entry.row.id != 0 && entry.row.open() && !entry.row.told();
    const bool added = entry.row.id == 0 && entry.changed;
    if (added || !RaiseAlert(raise, now_, entry.row)) continue;
    entry.changed = true;
    if (!waited && !entry.row.told()) ++counts.raised;
  }
  for (const AlertResolve& resolve : changes.resolve) {
    for (Entry& entry : rows_) {
      AlertRow& row = entry.row;
      if (row.key != resolve.key) continue;
      if (!ResolveAlert(resolve, now_, IsSilenced(silences_, row.key.job, now_), row)) continue;
      entry.changed = true;
      ++counts.resolved;
    }
  }
  return counts;
}

std::vector<bool> AlertBatch::End(absl::string_view by, absl::Span<const AlertSent> sent) {
  std::vector<bool> ended;
  for (const AlertSent& one : sent) {
    bool is_ours = false;
    for (Entry& entry : rows_) {
      if (entry.row.id != one.id) continue;
      is_ours = EndAlert(one, by, now_, entry.row);
      entry.changed = entry.changed || is_ours;
    }
    ended.push_back(is_ours);
  }
  return ended;
}

absl::StatusOr<const AlertRow*> AlertBatch::Ack(int64_t id, const Act& act) {
  const AlertRow* named = nullptr;
  bool any = false;
  for (Entry& entry : rows_) {
    if (entry.row.id == id) named = &entry.row;
    entry.changed = AckAlert(act, now_, entry.row);
    any = any || entry.changed;
  }
  if (named == nullptr) return NoAlert(id);
  if (!any) return NothingToAck(*named);
  return named;
}

std::vector<const AlertRow*> AlertBatch::Changed() const {
  std::vector<const AlertRow*> changed;
  for (const Entry& entry : rows_) {
    if (entry.changed) changed.push_back(&entry.row);
  }
  return changed;
}

absl::Time TimeOfNumber(absl::string_view text) {
  int64_t micros = 0;
  return absl::SimpleAtoi(text, &micros) ? absl::FromUnixMicros(micros) : absl::InfinitePast();
}

std::string JsonNumbers(absl::Span<const int64_t> numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ","), "]");
}

std::string TroubleWhy(absl::string_view reason, absl::string_view message) {
  if (message.empty()) return std::string(reason);
  if (reason.empty()) return std::string(message);
  return absl::StrCat(reason, ": ", message);
}

std::optional<AlertTrouble> TroubleOfEvent(const EventRow& event, std::string definition) {
  AlertTrouble trouble;
  trouble.at = event.at;
  trouble.why = event.why;
  trouble.key = {event.job, event.period};
  trouble.definition = std::move(definition);
  if (event.kind == "clock") {
    // That the clock was accepted again is an event of the same kind.
    if (!absl::StrContains(event.detail, "\"frozen\":true")) return std::nullopt;
    trouble.kind = AlertTrouble::Kind::kClock;
    return trouble;
  }
  if (event.kind != "zombie") return std::nullopt;
  trouble.kind = AlertTrouble::Kind::kZombie;
  trouble.node = event.who;
  if (!absl::SimpleAtoi(event.detail, &trouble.fence)) trouble.fence = 0;
  return trouble;
}

std::string ResolutionText(absl::string_view status, absl::string_view reason, absl::string_view by,
                           absl::Time at) {
  if (status == "GONE") return "its job was deleted";
  if (status == "STEADY") return "the store's clock goes as it should";
  std::string text(status);
  if (!reason.empty() && status != "DONE") absl::StrAppend(&text, "(", reason, ")");
  if (!by.empty() && status != "DONE") absl::StrAppend(&text, " by ", by);
  if (at != absl::InfinitePast()) absl::StrAppend(&text, " at ", FormatInstant(at));
  return text;
}

absl::Status NoAlert(int64_t id) {
  return absl::NotFoundError(absl::StrCat("no alert ", id, "; `matins alerts list` shows them"));
}

absl::Status NothingToAck(const AlertRow& row) {
  if (!row.open()) {
    return absl::FailedPreconditionError(absl::StrCat("alert ", row.id, " was made good at ",
                                                      FormatInstant(row.resolved_at), ": ",
                                                      row.resolution));
  }
  return absl::FailedPreconditionError(absl::StrCat("alert ", row.id, " was acknowledged by ",
                                                    row.acked_by, " at ",
                                                    FormatInstant(row.acked_at)));
}

absl::Status NoSilence(int64_t id) {
  return absl::NotFoundError(
      absl::StrCat("no silence ", id, " stands; `matins alerts silences` shows them"));
}

std::string AlertDetail(const AlertRow& row) {
  return absl::StrCat("{\"alert\":", row.id, ",\"kind\":", JsonString(row.kind), "}");
}

std::string SilenceDetail(int64_t id, absl::Time until) {
  return absl::StrCat("{\"silence\":", id, ",\"until\":", JsonString(FormatInstant(until)), "}");
}

}  // namespace matins
