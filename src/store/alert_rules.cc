#include "store/alert_rules.h"

#include <algorithm>

namespace matins {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();
constexpr absl::Time kNever = absl::InfiniteFuture();

void Describe(const AlertRaise& raise, AlertRow& row) {
  row.kind = raise.kind;
  row.level = raise.level;
  row.period = raise.period;
  row.due = raise.due;
  row.text = raise.text;
  row.momentary = raise.momentary;
}

void TellAnew(absl::Time now, AlertRow& row) {
  row.told_at = kPast;
  row.resolve_told_at = kPast;
  row.next_at = now;
  row.attempts = 0;
  row.claimed_by.clear();
  row.last_error.clear();
  row.acked_at = kPast;
  row.acked_by.clear();
  row.acked_why.clear();
}

void Open(const AlertRaise& raise, absl::Time now, AlertRow& row) {
  Describe(raise, row);
  row.by_job = raise.by_job;
  row.by_audit = raise.by_audit;
  row.remind = raise.remind;
  row.count = 1;
  row.opened_at = now;
  row.seen_at = raise.seen_at;
  row.resolved_at = kPast;
  row.resolution.clear();
  TellAnew(now, row);
}

// It stands already: told again only where it is worse than what was told.
bool Join(const AlertRaise& raise, absl::Time now, AlertRow& row) {
  const bool worse = raise.level > row.level;
  const bool another = row.by_job && raise.period != row.period && raise.due > row.due;
  const bool seen = raise.seen_at > row.seen_at || (raise.by_audit && !row.by_audit);
  if (!worse && !another && !seen) return false;
  row.seen_at = std::max(row.seen_at, raise.seen_at);
  row.by_audit = row.by_audit || raise.by_audit;
  if (another) ++row.count;
  if (worse || another) {
    const int level = std::max(row.level, raise.level);
    Describe(raise, row);
    row.level = level;
  }
  if (worse) TellAnew(now, row);
  return true;
}

}  // namespace

AlertStep NextStep(const AlertRow& row) {
  if (!row.told()) return AlertStep::kFire;
  return row.open() ? AlertStep::kRemind : AlertStep::kResolve;
}

bool RaiseAlert(const AlertRaise& raise, absl::Time now, AlertRow& row) {
  if (row.id == 0) {
    row.key = raise.key;
    row.channel = raise.channel;
    Open(raise, now, row);
    return true;
  }
  if (row.open()) return Join(raise, now, row);
  // What is over by its nature does not come back; and what was seen before it was made good, or in
  // a future that the store's clock has since been set back from, is old news.
  const bool old =
      raise.seen_at > now || (raise.seen_at <= row.resolved_at && row.resolved_at <= now);
  if (row.momentary || old) return false;
  // A word that it is over may be on its way.
  const bool over = row.next_at == kNever || (row.claimed() && row.told());
  if (over) {
    ++row.episode;
    Open(raise, now, row);
    return true;
  }
  // It came back before anybody was told that it had gone: nobody need be told of either.
  row.resolved_at = kPast;
  row.resolution.clear();
  if (row.told()) {
    row.next_at = now + row.remind;
    row.attempts = 0;
  }
  Join(raise, now, row);
  return true;
}

bool ResolveAlert(const AlertResolve& resolve, absl::Time now, bool silenced, AlertRow& row) {
  if (!row.open() || (row.seen_at > resolve.seen_at && row.seen_at <= now)) return false;
  row.resolved_at = resolve.seen_at;
  row.resolution = resolve.resolution;
  if (row.told()) {
    row.next_at = now;
    row.attempts = 0;
    row.claimed_by.clear();
  } else if (silenced) {
    row.next_at = kNever;
  }
  return true;
}

void ClaimAlert(absl::string_view by, absl::Time now, AlertRow& row) {
  row.claimed_by = std::string(by);
  row.next_at = now + kAlertLease;
  ++row.attempts;
}

bool EndAlert(const AlertSent& sent, absl::string_view by, absl::Time now, AlertRow& row) {
  if (row.claimed_by != by) return false;
  row.claimed_by.clear();
  if (!sent.error.empty()) {
    row.last_error = sent.error;
    row.next_at = now + AlertBackoff(row.attempts);
    return true;
  }
  row.attempts = 0;
  row.last_error.clear();
  if (sent.step == AlertStep::kFire) row.told_at = now;
  if (sent.step == AlertStep::kResolve) row.resolve_told_at = now;
  if (row.momentary) {
    if (row.open()) row.resolved_at = now;
    row.next_at = kNever;
  } else if (!row.open()) {
    row.next_at = sent.step == AlertStep::kResolve ? kNever : now;
  } else {
    row.next_at = row.acked_at != kPast ? kNever : now + row.remind;
  }
  return true;
}

bool AckAlert(const Act& act, absl::Time now, AlertRow& row) {
  if (!row.open() || row.acked_at != kPast) return false;
  row.acked_at = now;
  row.acked_by = act.who;
  row.acked_why = act.why;
  // A person who knows of it need not be told any more, whether the message came or not.
  if (!row.told()) row.told_at = now;
  row.next_at = kNever;
  row.attempts = 0;
  row.claimed_by.clear();
  return true;
}

absl::Duration AlertBackoff(int attempts) {
  const int doublings = std::clamp(attempts - 1, 0, 12);
  return std::min(kAlertBackoffMax, kAlertBackoffMin * (1 << doublings));
}

}  // namespace matins
