#include "ops/alerts.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "audit/beats.h"
#include "base/clock.h"
#include "base/status.h"

namespace matins {
namespace {

constexpr absl::Duration kAtFirst = absl::Milliseconds(250);  // what is due goes before
constexpr absl::Duration kAgain = absl::Seconds(5);           // after the store was away
constexpr absl::Duration kIdle = absl::Hours(1);              // of a node that tells nobody
constexpr size_t kMostZombies = 1000;                         // that wait for the store

class Nobody final : public AlertSender {
 public:
  absl::Status Send(const Channel&, const AlertMessage&) override {
    return absl::FailedPreconditionError("this node sends nothing");
  }
  absl::Status Ping(const SecretText&, absl::Duration) override { return absl::OkStatus(); }
  void Stop() override {}
};

}  // namespace

AlertThread::AlertThread(Database& database, EngineEvents& events, std::string node,
                         AlertConfig config, AlertSender* sender)
    : database_(database),
      events_(events),
      node_(std::move(node)),
      config_(std::move(config)),
      sender_(sender),
      nobody_(std::make_unique<Nobody>()),
      thread_([this] { Run(); }) {}

AlertThread::~AlertThread() { Stop(); }

void AlertThread::OnEvent(const EngineEvent& event) {
  events_.OnEvent(event);
  const bool zombie = event.name == event::kZombieRefused;
  const bool failed = event.name == event::kFinished && event.outcome != nullptr &&
                      event.outcome->kind != Outcome::Kind::kDone &&
                      event.outcome->kind != Outcome::Kind::kDoneByJob;
  if (!zombie && !failed && event.name != event::kReaped && event.name != event::kClockFrozen &&
      event.name != event::kLeaseLost) {
    return;
  }
  absl::MutexLock lock(&mutex_);
  todo_.look = true;
  if (zombie && todo_.zombies.size() < kMostZombies) {
    todo_.zombies.push_back({event.key, event.fence, event.detail});
  }
}

void AlertThread::Ping(AlertBeats::PingKind kind) {
  absl::MutexLock lock(&mutex_);
  todo_.pings.push_back(kind);
}

void AlertThread::SetConfig(AlertConfig config) {
  absl::MutexLock lock(&mutex_);
  todo_.config = std::make_unique<AlertConfig>(std::move(config));
}

void AlertThread::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    todo_.stop = true;
  }
  if (sender_ != nullptr) sender_->Stop();
  if (thread_.joinable()) thread_.join();
}

bool AlertThread::Awaited() const {
  return todo_.look || todo_.stop || !todo_.zombies.empty() || !todo_.pings.empty() ||
         todo_.config != nullptr;
}

void AlertThread::Run() {
  absl::Duration wait = kAtFirst;
  Todo left;  // what could not be done while the store was away
  for (;;) {
    Todo todo;
    {
      absl::MutexLock lock(&mutex_);
      SystemClock().AwaitFor(mutex_, absl::Condition(this, &AlertThread::Awaited), wait);
      std::swap(todo, todo_);
      todo_.stop = todo.stop;
    }
    todo.zombies.insert(todo.zombies.begin(), left.zombies.begin(), left.zombies.end());
    const bool stop = todo.stop;
    const absl::StatusOr<absl::Duration> turn = Turn(todo);
    if (stop) return;
    wait = turn.value_or(kAgain);
    left = Todo();
    left.zombies = std::move(todo.zombies);
    if (!turn.ok() && !away_) {
      events_.OnEvent(
          {event::kAlertFailed,
           true,
           {},
           0,
           absl::StrCat("nothing can be told: ", std::string(turn.status().message()))});
    }
    away_ = !turn.ok();
  }
}

// Takes out of `todo` what it has done.
absl::StatusOr<absl::Duration> AlertThread::Turn(Todo& todo) {
  if (todo.config != nullptr) {
    config_ = *todo.config;
    if (beats_ != nullptr) beats_->SetConfig(config_);
  }
  const bool tells = sender_ != nullptr && !config_.channels.empty();
  if (!tells && todo.zombies.empty() && todo.pings.empty()) return kIdle;
  if (beats_ == nullptr) {
    ASSIGN_OR_RETURN(std::unique_ptr<ActStore> acts, database_.OpenActs());
    beats_ = std::make_unique<AlertBeats>(
        std::move(acts), sender_ == nullptr ? *nobody_ : *sender_,
        AlertBeatsOptions{
            .by = absl::StrCat("node:", node_),
            .config = config_,
            .tell = [this](const AlertTold& told) {
              const bool sent = told.status.ok();
              events_.OnEvent({sent ? event::kAlertSent : event::kAlertFailed,
                               !sent,
                               {},
                               0,
                               absl::StrCat("channel ", told.channel, ": ", told.message.subject,
                                            sent ? "" : ": ", std::string(told.status.message()))});
            }});
  }
  while (!todo.zombies.empty()) {
    const Zombie& zombie = todo.zombies.front();
    RETURN_IF_ERROR(beats_->RecordZombie(zombie.key, zombie.fence, zombie.why));
    todo.zombies.erase(todo.zombies.begin());
  }
  if (todo.stop) return kIdle;
  for (const AlertBeats::PingKind kind : todo.pings) {
    const absl::Status called = beats_->Ping(kind);
    if (!called.ok() && !absl::IsCancelled(called)) {
      events_.OnEvent({event::kAlertFailed,
                       true,
                       {},
                       0,
                       absl::StrCat("ping: ", std::string(called.message()))});
    }
  }
  return tells ? beats_->Step() : kIdle;
}

absl::StatusOr<int64_t> SilenceAlerts(Session& session, const SilenceArgs& args) {
  if (args.reason.empty()) {
    return BadInput("--reason", "a silence has a reason", "say why nobody is to be told");
  }
  return session.acts().Silence(args.job, args.length, session.MakeAct(args.reason));
}

absl::Status TestChannel(const AlertConfig& config, absl::string_view channel,
                         absl::string_view who, AlertSender& sender) {
  const Channel* found = config.Find(channel);
  if (found == nullptr) {
    std::vector<std::string> names;
    for (const Channel& one : config.channels) names.push_back(one.name);
    return absl::NotFoundError(absl::StrCat("the file has no channel '", channel, "'; it has ",
                                            names.empty() ? "none" : absl::StrJoin(names, ", ")));
  }
  const absl::Status sent = sender.Send(*found, TestMessage(channel, who, SystemClock().WallNow()));
  if (sent.ok()) return sent;
  return absl::Status(sent.code(), absl::StrCat("channel ", channel, ": ", sent.message()));
}

absl::Status SendAlertsOnce(Session& session, const AlertConfig& config,
                            const std::string& store_schedule, AlertSender& sender,
                            std::function<void(const AlertTold&)> tell) {
  ASSIGN_OR_RETURN(std::unique_ptr<ActStore> acts, session.database().OpenActs());
  AlertBeats beats(std::move(acts), sender,
                   {.by = session.who(), .config = config, .tell = std::move(tell)});
  const auto ping = [&beats](AlertBeats::PingKind kind) {
    // What failed is an alert by now.
    beats.Ping(kind).IgnoreError();
  };
  ASSIGN_OR_RETURN(std::unique_ptr<ActStore> audited, session.database().OpenActs());
  AuditBeats audits(std::move(audited), {.by = session.who(),
                                         .store_schedule = store_schedule,
                                         .tell =
                                             [&](const MadeAudit& made) {
                                               ping(made.report.alarms > 0
                                                        ? AlertBeats::PingKind::kFail
                                                        : AlertBeats::PingKind::kSuccess);
                                             },
                                         .begun = [&] { ping(AlertBeats::PingKind::kStart); }});
  RETURN_IF_ERROR(audits.Step().status());
  return beats.Step().status();
}

}  // namespace matins
