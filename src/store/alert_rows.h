// Alerts as a server's answers hold them: the same columns from every server.
#ifndef MATINS_STORE_ALERT_ROWS_H_
#define MATINS_STORE_ALERT_ROWS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "store/act_store.h"
#include "store/alert_text.h"
#include "store/server_rows.h"

namespace matins {

template <typename Rows>
std::vector<AlertRow> ReadAlertRows(const Rows& r) {
  std::vector<AlertRow> alerts;
  for (int i = 0; i < r.size(); ++i) {
    AlertRow row;
    row.id = r.Int(i, 0);
    row.key = {r.Text(i, 1), r.Text(i, 2), r.Text(i, 3)};
    row.channel = r.Text(i, 4);
    row.episode = static_cast<int>(r.Int(i, 5));
    row.kind = r.Text(i, 6);
    row.level = static_cast<int>(r.Int(i, 7));
    row.period = r.Text(i, 8);
    row.due = r.Time(i, 9);
    row.count = r.Int(i, 10);
    row.text = r.Text(i, 11);
    row.by_job = r.Bool(i, 12);
    row.by_audit = r.Bool(i, 13);
    row.momentary = r.Bool(i, 14);
    row.opened_at = r.Time(i, 15);
    row.seen_at = r.Time(i, 16);
    row.resolved_at = r.Time(i, 17);
    row.resolution = r.Text(i, 18);
    row.told_at = r.Time(i, 19);
    row.resolve_told_at = r.Time(i, 20);
    row.next_at = r.Time(i, 21, absl::InfiniteFuture());
    row.attempts = static_cast<int>(r.Int(i, 22));
    row.claimed_by = r.Text(i, 23);
    row.last_error = r.Text(i, 24);
    row.acked_at = r.Time(i, 25);
    row.acked_by = r.Text(i, 26);
    row.acked_why = r.Text(i, 27);
    row.remind = r.IsNull(i, 28) ? absl::InfiniteDuration() : absl::Microseconds(r.Int(i, 28));
    alerts.push_back(std::move(row));
  }
  return alerts;
}

// id, job, from_at, until_at, who, why, ended_at, ended_by.
template <typename Rows>
std::vector<SilenceRow> ReadSilenceRows(const Rows& r) {
  std::vector<SilenceRow> silences;
  for (int i = 0; i < r.size(); ++i) {
    silences.push_back({r.Int(i, 0), r.Text(i, 1), r.Time(i, 2), r.Time(i, 3), r.Text(i, 4),
                        r.Text(i, 5), r.Time(i, 6), r.Text(i, 7)});
  }
  return silences;
}

// job, period, due_at, since when, held, fence, node, reason, message, definition.
template <typename Rows>
void AddTroubles(const Rows& r, AlertTrouble::Kind kind, AlertFacts& facts) {
  for (int i = 0; i < r.size(); ++i) {
    facts.troubles.push_back({.kind = kind,
                              .key = {r.Text(i, 0), r.Text(i, 1)},
                              .due = r.Time(i, 2),
                              .at = r.Time(i, 3),
                              .held = r.Bool(i, 4),
                              .fence = r.Int(i, 5),
                              .node = r.Text(i, 6),
                              .why = TroubleWhy(r.Text(i, 7), r.Text(i, 8)),
                              .definition = r.Text(i, 9)});
  }
}

// topic, job, about, status, reason, by_whom, finished_at.
template <typename Rows>
void AddMadeGood(const Rows& r, AlertFacts& facts) {
  for (int i = 0; i < r.size(); ++i) {
    facts.made_good.push_back(
        {{r.Text(i, 0), r.Text(i, 1), r.Text(i, 2)},
         ResolutionText(r.Text(i, 3), r.Text(i, 4), r.Text(i, 5), r.Time(i, 6))});
  }
}

// What both servers ask for ReadAlertFacts, in this order: the clock; name and value of what the
// store keeps; audits; channels with messages and since when; FAILED rows; LOST runs; events with
// their job's definition; and what is made good.
template <typename Rows>
AlertFacts ReadAlertFactsOf(const std::vector<Rows>& r) {
  AlertFacts facts;
  facts.now = r[0].Time(0, 0);
  for (int i = 0; i < r[1].size(); ++i) {
    if (r[1].Text(i, 0) == "clock_frozen_why") {
      facts.frozen_why = r[1].Text(i, 1);
    } else {
      facts.looked = TimeOfNumber(r[1].Text(i, 1));
    }
  }
  facts.audits = ReadAuditRows(r[2]);
  for (int i = 0; i < r[3].size(); ++i) {
    facts.due.push_back({r[3].Text(i, 0), r[3].Time(i, 1)});
  }
  AddTroubles(r[4], AlertTrouble::Kind::kFailed, facts);
  AddTroubles(r[5], AlertTrouble::Kind::kLost, facts);
  const std::vector<EventRow> events = ReadEventRows(r[6]);
  for (int i = 0; i < r[6].size(); ++i) {
    if (auto trouble = TroubleOfEvent(events[i], r[6].Text(i, 9))) {
      facts.troubles.push_back(*std::move(trouble));
    }
  }
  for (size_t i = 7; i < r.size(); ++i) AddMadeGood(r[i], facts);
  return facts;
}

// The keys of all that is to change, as a server takes rows: topic, job, about.
template <typename JsonRows>
std::string KeysOf(const AlertChanges& changes) {
  JsonRows keys;
  const auto add = [&](const AlertKey& key) {
    keys.Row().Add("topic", key.topic).Add("job", key.job).Add("about", key.about);
  };
  for (const AlertRaise& raise : changes.raise) add(raise.key);
  for (const AlertResolve& resolve : changes.resolve) add(resolve.key);
  return keys.Take();
}

}  // namespace matins

#endif  // MATINS_STORE_ALERT_ROWS_H_
