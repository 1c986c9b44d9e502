// What the stores share of reading and recording alerts: column lists, and words for people.
#ifndef MATINS_STORE_ALERT_TEXT_H_
#define MATINS_STORE_ALERT_TEXT_H_

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "store/act_store.h"

namespace matins {

// job_alert's columns, in the order that ReadAlertRows reads.
inline constexpr char kAlertColumns[] =
    "id, topic, job, about, channel, episode, kind, level, period, due_at, count, text, by_job, "
    "by_audit, momentary, opened_at, seen_at, resolved_at, resolution, told_at, resolve_told_at, "
    "next_at, attempts, claimed_by, last_error, acked_at, acked_by, acked_why, remind";

bool IsSilenced(absl::Span<const SilenceRow> silences, absl::string_view job, absl::Time now);

// Rows that were read under their locks, and what becomes of them.
class AlertBatch {
 public:
  AlertBatch(std::vector<AlertRow> rows, std::vector<SilenceRow> silences, absl::Time now)
      : silences_(std::move(silences)), now_(now) {
    for (AlertRow& row : rows) rows_.push_back({std::move(row), false});
  }
  AlertCounts Put(const AlertChanges& changes);
  std::vector<bool> End(absl::string_view by, absl::Span<const AlertSent> sent);
  // Answers the row `id`; an error where there is none, or nothing to acknowledge.
  absl::StatusOr<const AlertRow*> Ack(int64_t id, const Act& act);
  // Those to write; id 0: to add.
  std::vector<const AlertRow*> Changed() const;

 private:
  struct Entry {
    AlertRow row;
    bool changed = false;
  };
  Entry& Of(const AlertRaise& raise);
  std::deque<Entry> rows_;
  const std::vector<SilenceRow> silences_;
  const absl::Time now_;
};

// "[1,2]".
std::string JsonNumbers(absl::Span<const int64_t> numbers);
// An instant that was written as microseconds; InfinitePast: it is no number.
absl::Time TimeOfNumber(absl::string_view text);

std::string TroubleWhy(absl::string_view reason, absl::string_view message);
// Of job_event's rows of the kinds `clock` and `zombie`; nothing: it is no trouble.
std::optional<AlertTrouble> TroubleOfEvent(const EventRow& event, std::string definition);
// What makes an alert good: the status that its row has come to ("DONE", "SKIPPED"), "GONE" of a
// job that is no longer there, "STEADY" of the clock.
std::string ResolutionText(absl::string_view status, absl::string_view reason, absl::string_view by,
                           absl::Time at);

absl::Status NoAlert(int64_t id);
absl::Status NothingToAck(const AlertRow& row);
absl::Status NoSilence(int64_t id);
// For job_event.
std::string AlertDetail(const AlertRow& row);
std::string SilenceDetail(int64_t id, absl::Time until);

}  // namespace matins

#endif  // MATINS_STORE_ALERT_TEXT_H_
