#include "alert/beats.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/fault.h"
#include "base/random.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr absl::Time kPast = absl::InfinitePast();
constexpr absl::Duration kKeep = absl::Minutes(1);  // how often it is written how far a look came
constexpr absl::Duration kShortestWait = absl::Milliseconds(200);
constexpr size_t kAtATime = 500;  // raised in a transaction
constexpr int kMostClaimed = 5000;
constexpr int kMostOpen = 100'000;
constexpr size_t kMostRemembered = 100'000;

std::string WordsOf(const AlertRaise& raise) {
  return absl::StrCat(raise.key.topic, "\n", raise.key.job, "\n", raise.key.about, "\n",
                      raise.channel, "\n", raise.level, "\n", raise.period, "\n",
                      absl::ToUnixMicros(raise.seen_at));
}

void Append(AlertChanges& to, AlertChanges from) {
  std::move(from.raise.begin(), from.raise.end(), std::back_inserter(to.raise));
  std::move(from.resolve.begin(), from.resolve.end(), std::back_inserter(to.resolve));
}

}  // namespace

AlertBeats::AlertBeats(std::unique_ptr<ActStore> acts, AlertSender& sender,
                       AlertBeatsOptions options)
    : acts_(std::move(acts)),
      sender_(sender),
      options_(std::move(options)),
      jobs_(std::make_unique<JobsTold>(options_.config)),
      life_(SystemRandom().Hex128().substr(0, 8)) {}

void AlertBeats::SetConfig(AlertConfig config) {
  options_.config = std::move(config);
  jobs_ = std::make_unique<JobsTold>(options_.config);
  // What stands is told in a channel that is new.
  put_.clear();
}

absl::Status AlertBeats::RecordZombie(const PeriodKey& key, int64_t fence, const std::string& why) {
  return acts_->Record("zombie", key, {options_.by, why}, absl::StrCat(fence));
}

absl::Status AlertBeats::Ping(PingKind kind) {
  const PingConfig& ping = options_.config.ping;
  const SecretText& url = kind == PingKind::kStart     ? ping.start
                          : kind == PingKind::kSuccess ? ping.success
                                                       : ping.fail;
  if (url.empty()) return absl::OkStatus();
  const absl::Status called = sender_.Ping(url, ping.timeout);
  if (absl::IsCancelled(called)) return called;
  // A look at nothing, for the store's time.
  ASSIGN_OR_RETURN(const AlertFacts facts,
                   acts_->ReadAlertFacts({absl::FromUnixSeconds(253'000'000'000), {}}));
  const AlertKey key = {"ping", "", ""};
  AlertChanges changes;
  if (called.ok()) {
    if (kind == PingKind::kStart) return called;
    changes.resolve.push_back({key, facts.now, "the address answers again"});
  } else {
    for (const std::string& channel : jobs_->Of("").channels) {
      AlertRaise raise;
      raise.key = key;
      raise.channel = channel;
      raise.kind = "ping";
      raise.level = 1;
      raise.text = absl::StrCat("the address that watches the audits cannot be called: ",
                                std::string(called.message()));
      raise.seen_at = facts.now;
      raise.remind = options_.config.Find(channel)->remind;
      changes.raise.push_back(std::move(raise));
    }
  }
  RETURN_IF_ERROR(acts_->PutAlerts(changes).status());
  return called;
}

absl::StatusOr<absl::Duration> AlertBeats::Step() {
  ASSIGN_OR_RETURN(const AlertFacts facts, Look());
  ASSIGN_OR_RETURN(AlertChanges changes, Changes(facts));
  const bool changed = !changes.raise.empty() || !changes.resolve.empty();
  RETURN_IF_ERROR(Put(std::move(changes), facts.now));
  for (const AuditRow& audit : facts.audits) audits_[audit.id] = audit.finished_at;
  since_ = facts.now - kAlertOverlap;
  std::erase_if(audits_, [&](const auto& audit) { return audit.second < since_; });
  std::erase_if(put_, [&](const auto& put) { return put.second < since_; });
  RETURN_IF_ERROR(SendAll(facts, changed));
  absl::Duration wait = kAlertLook;
  for (const AlertMessageDue& due : facts.due) {
    if (options_.config.Find(due.channel) != nullptr && due.next_at > facts.now) {
      wait = std::min(wait, due.next_at - facts.now);
    }
  }
  return std::max(wait, kShortestWait);
}

// The first look goes on where any node's last one ended. A clock that was set back, and accepted,
// is followed.
absl::StatusOr<AlertFacts> AlertBeats::Look() {
  if (since_ == kPast) {
    // Nothing is as late as this: it asks for the clock and for how far others have come.
    ASSIGN_OR_RETURN(const AlertFacts first,
                     acts_->ReadAlertFacts({absl::FromUnixSeconds(253'000'000'000), {}}));
    kept_ = first.looked;
    since_ =
        (first.looked == kPast ? first.now : std::min(first.looked, first.now)) - kAlertOverlap;
  }
  AlertLook look;
  look.since = since_;
  for (const auto& [id, ended] : audits_) look.known_audits.push_back(id);
  ASSIGN_OR_RETURN(AlertFacts facts, acts_->ReadAlertFacts(look));
  if (facts.now < last_now_) {
    look.since = facts.now - kAlertOverlap;
    ASSIGN_OR_RETURN(facts, acts_->ReadAlertFacts(look));
  }
  last_now_ = facts.now;
  return facts;
}

absl::StatusOr<AlertChanges> AlertBeats::Changes(const AlertFacts& facts) {
  AlertChanges changes = OfTroubles(facts, options_.config, *jobs_);
  if (!facts.audits.empty()) {
    std::map<std::string, std::string> definitions;
    ASSIGN_OR_RETURN(const std::vector<JobRow> rows, acts_->ReadJobs(""));
    for (const JobRow& row : rows) definitions[row.name] = row.definition;
    AlertFilter filter;
    filter.limit = kMostOpen;
    ASSIGN_OR_RETURN(const std::vector<AlertRow> open, acts_->ReadAlerts(filter));
    for (const AuditRow& audit : facts.audits) {
      Append(changes, OfAudit(audit, definitions, open, options_.config, *jobs_));
    }
  }
  // Each look reads some of what the last one has raised.
  std::erase_if(changes.raise,
                [&](const AlertRaise& raise) { return put_.contains(WordsOf(raise)); });
  return changes;
}

absl::Status AlertBeats::Put(AlertChanges changes, absl::Time now) {
  const bool keep = kept_ == kPast || now - kept_ >= kKeep || now < kept_;
  if (changes.raise.empty() && changes.resolve.empty() && !keep) return absl::OkStatus();
  size_t raised = 0, resolved = 0;
  for (;;) {
    AlertChanges part;
    for (; raised < changes.raise.size() && part.raise.size() < kAtATime; ++raised) {
      part.raise.push_back(changes.raise[raised]);
    }
    for (; resolved < changes.resolve.size() && part.resolve.size() < kAtATime; ++resolved) {
      part.resolve.push_back(changes.resolve[resolved]);
    }
    const bool last = raised == changes.raise.size() && resolved == changes.resolve.size();
    // Only when all of it stands: a node that dies before is followed by one that looks again.
    if (last) part.looked = now;
    RETURN_IF_ERROR(acts_->PutAlerts(part).status());
    if (last) break;
  }
  kept_ = now;
  if (put_.size() > kMostRemembered) put_.clear();
  for (const AlertRaise& raise : changes.raise) put_[WordsOf(raise)] = raise.seen_at;
  return absl::OkStatus();
}

absl::Status AlertBeats::SendAll(const AlertFacts& facts, bool changed) {
  for (const Channel& channel : options_.config.channels) {
    const bool due = std::any_of(facts.due.begin(), facts.due.end(), [&](const auto& one) {
      return one.channel == channel.name && one.next_at <= facts.now;
    });
    if (!due && !changed) continue;
    for (bool more = true; more;) {
      ASSIGN_OR_RETURN(more, SendSome(channel));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> AlertBeats::SendSome(const Channel& channel) {
  const std::string by = absl::StrCat(options_.by, "/", life_, "/", ++claims_);
  ASSIGN_OR_RETURN(AlertClaimed claimed, acts_->ClaimAlerts({by, channel.name, kMostClaimed}));
  if (claimed.rows.empty()) return false;
  const std::vector<AlertMessage> messages =
      Compose(std::move(claimed.rows),
              {.node = options_.by, .now = claimed.now, .digest = options_.config.digest});
  absl::Status status;
  for (const AlertMessage& message : messages) {
    MATINS_FAULT_POINT("alert.before_send");  // crash here: the claim ends, and another node sends
    // Where the first does not go, the others would wait as long for the same answer.
    if (status.ok()) {
      status = sender_.Send(channel, message);
      if (options_.tell) options_.tell({channel.name, message, status});
    }
    // crash here: it is sent once more when the claim has ended, with the same id
    MATINS_FAULT_POINT("alert.after_send");
    std::vector<AlertSent> sent;
    for (const AlertRow& row : message.alerts) {
      sent.push_back({row.id, NextStep(row), status.ok() ? "" : std::string(status.message())});
    }
    RETURN_IF_ERROR(acts_->EndAlerts(by, sent).status());
  }
  return status.ok();
}

}  // namespace matins
