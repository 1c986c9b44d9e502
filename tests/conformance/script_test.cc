// One random script must get the same answers from every store: the model is asked beside the store
// under test. A seed that fails is printed with the step, and becomes a case.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "conformance/kit.h"
#include "store/model/model_database.h"

namespace matins::conformance {
namespace {

constexpr int kDays = 8;

std::string TimeText(absl::Time t) {
  if (t == absl::InfinitePast()) return "past";
  if (t == absl::InfiniteFuture()) return "never";
  return absl::StrCat(absl::ToDoubleSeconds(t - T0()));
}

// Everything but fence and nonce, whose numbers are each store's own.
std::string RowText(const PeriodRow& row) {
  return absl::StrJoin(
      {absl::StrCat(row.key.job, " ", row.key.period, " ", StateText(row), " g", row.generation,
                    " ver", row.change, row.backfill ? " backfill" : "", row.manual ? " m" : ""),
       absl::StrCat("a", row.attempts, "/", row.attempts_total, " l", row.losses),
       absl::StrCat("n=", row.node, " h=", row.held_by, "/", TimeText(row.held_until)),
       TimeText(row.not_before), TimeText(row.start_by), TimeText(row.claimed_at),
       TimeText(row.lease_until), TimeText(row.run_until), TimeText(row.wait_until),
       TimeText(row.finished_at), absl::StrCat("c", row.checkpoint, " by=", row.by),
       absl::StrCat("fenced=", row.fence != 0)},
      " ");
}

// One store that the script is played to.
struct Side {
  Store* store = nullptr;
  ActStore* acts = nullptr;
  std::function<void(absl::Time)> set_clock;
  std::function<absl::Status(const PeriodKey&)> delete_row;
  std::vector<Ticket> tickets;  // of every claim, in the order of the grants
  std::vector<Ticket> burnt;    // by the last Replace
};

class Script {
 public:
  explicit Script(uint64_t seed) : random_(seed) {
    jobs_ = {PlainJob("plain"), StrictJob("strict"), PlainJob("replace"), PlainJob("wide")};
    jobs_[2].overlap = Overlap::kReplace;
    jobs_[3].overlap = Overlap::kAllow;
    jobs_[3].lock.scope = LockScope::kPeriod;
    jobs_[3].limit = 2;
    jobs_[3].priority = 3;
    jobs_[3].recovery = Recovery::kHold;
    jobs_[0].max_lost = 2;
    jobs_[1].after = {{"plain"}};
  }

  const std::vector<Job>& jobs() const { return jobs_; }

  // The next step: what to do, drawn once, and then done to each side by Play.
  void Draw() {
    ++step_;
    op_ = random_.Below(20);
    job_ = random_.Below(jobs_.size());
    for (int& day : day_) day = static_cast<int>(random_.Below(kDays));
    dice_ = random_.Next();
    now_ += absl::Seconds(static_cast<int64_t>(random_.Below(op_ == 0 ? 4000 : 12)));
  }

  std::string Play(Side& side) {
    side.set_clock(now_);
    const absl::StatusOr<std::string> answer = Do(side);
    const std::string text =
        answer.ok() ? *answer : absl::StrCat("error ", static_cast<int>(answer.status().code()));
    return absl::StrCat("op ", op_, ": ", text);
  }

 private:
  const std::string& name() const { return jobs_[job_].name; }
  PeriodKey Key(int i) const { return KeyOf(name(), day_[i]); }
  std::string Node() const { return dice_ % 3 == 0 ? "n2" : "n1"; }
  bool Flip(int bit) const { return (dice_ >> bit & 1) != 0; }
  Act Person() const { return {"cli:test", absl::StrCat("step ", step_)}; }
  std::optional<Ticket> Drawn(const Side& side) const {
    if (side.tickets.empty()) return std::nullopt;
    // Mostly a late one, at times any.
    const size_t back = dice_ % std::min<size_t>(side.tickets.size(), Flip(40) ? 4 : 100);
    return side.tickets[side.tickets.size() - 1 - back];
  }

  absl::StatusOr<std::string> Do(Side& side) {
    switch (op_) {
      case 0:
        return "time passes";
      case 1:
      case 2:
        return PlanSome(side);
      case 3:
      case 4:
      case 5:
        return StartSome(side);
      case 6:
        return HoldSome(side);
      case 7:
      case 8:
      case 9:
        return FinishSome(side);
      case 10:
        return ExtendSome(side);
      case 11:
        return CheckpointSome(side);
      case 12:
        return ReapAll(side);
      case 13:
        return ResolveSome(side);
      case 14:
        return Replacing(side);
      case 15:
        return Flip(3) ? Text(side.delete_row(Key(0)))
                       : Text(side.acts->Reopen(Key(0), "", Person()));
      case 16: {
        const PeriodKey key = Key(0);
        return Text(side.acts->Skip({&key, 1}, Person()));
      }
      case 17:
        return Flip(3) ? Text(side.acts->Suspend(name(), Person()))
                       : Text(side.acts->Resume(name(), std::nullopt, Person()));
      case 18:
        return Ticking(side);
      default:
        return Reading(side);
    }
  }

  static std::string Text(const absl::Status& status) {
    return absl::StrCat(static_cast<int>(status.code()));
  }

  absl::StatusOr<std::string> PlanSome(Side& side) {
    const JobState state = ReadState(*side.store, name()).value_or(JobState());
    std::vector<Intent> intents;
    for (int i = 0; i < 3; ++i) {
      Intent intent = DayIntent(jobs_[job_], day_[i]);
      intent.backfill = Flip(i);
      if (Flip(10 + i)) intent.start_by = intent.due + absl::Hours(2);
      const int kind = static_cast<int>((dice_ >> (20 + 3 * i)) % 8);
      if (kind == 1) intent.skip_reason = reason::kMissed;
      if (kind == 2) {
        intent.kind = Intent::Kind::kSkip;
        intent.skip_reason = reason::kCap;
      }
      if (kind == 3) intent.kind = Intent::Kind::kReattempt;
      if (kind == 4) intent.kind = Intent::Kind::kJudge;
      intents.push_back(intent);
    }
    PlanWrite write;
    write.job = name();
    write.expected_revision = state.revision - (Flip(50) && Flip(51) ? 1 : 0);
    write.intents = intents;
    write.cursor = T0() + absl::Hours(kDays);
    write.next_look = now_ + absl::Hours(1);
    write.gaps_filled = Flip(52);
    write.triggered = Flip(53);
    PlanRequest request;
    request.writes = {write};
    request.hold_by.name = Flip(54) ? Node() : "";
    request.hold_at_most = 2;
    ASSIGN_OR_RETURN(const PlanAnswers answers, side.store->Plan(request));
    std::string text = absl::StrCat("plan ", name(), " ", answers.jobs.at(0).written);
    for (const HeldRow& row : answers.jobs.at(0).held) absl::StrAppend(&text, " ", row.key.period);
    return text;
  }

  absl::StatusOr<std::string> StartSome(Side& side) {
    StartRequest request;
    request.node.name = Node();
    request.nonce = step_;
    request.keys = {Key(0)};
    if (Flip(5)) request.keys.push_back(KeyOf(jobs_[(job_ + 1) % jobs_.size()].name, day_[1]));
    request.also_due = static_cast<int>(dice_ % 3);
    request.global_limit = Flip(6) ? 3 : 0;
    ASSIGN_OR_RETURN(const StartAnswers answers, side.store->Start(request));
    std::string text = "start";
    for (const StartAnswer& answer : answers.rows) {
      absl::StrAppend(&text, " ", answer.key.job, "/", answer.key.period, "=",
                      static_cast<int>(answer.result));
      if (!answer.claim) continue;
      side.tickets.push_back(TicketOf(*answer.claim));
      absl::StrAppend(&text, "#", answer.claim->attempt, "g", answer.claim->generation, "c",
                      answer.claim->checkpoint, answer.claim->checkpoint_data);
    }
    return text;
  }

  absl::StatusOr<std::string> HoldSome(Side& side) {
    HoldRequest request;
    request.node.name = Node();
    request.limit = 3;
    ASSIGN_OR_RETURN(const HoldAnswer answer, side.store->Hold(request));
    std::string text =
        absl::StrCat("hold ", TimeText(answer.next_start), " ", TimeText(answer.next_look));
    for (const HeldRow& row : answer.rows) absl::StrAppend(&text, " ", row.key.job, row.key.period);
    return text;
  }

  Outcome DrawnOutcome() const {
    Outcome outcome;
    outcome.kind = static_cast<Outcome::Kind>(Flip(9) ? 0 : (dice_ >> 12) % 6);
    if (outcome.kind != Outcome::Kind::kDone) outcome.reason = reason::kExit;
    if (outcome.kind == Outcome::Kind::kRetry) outcome.backoff = absl::Seconds(7);
    return outcome;
  }

  absl::StatusOr<std::string> FinishSome(Side& side) {
    const std::optional<Ticket> ticket = Drawn(side);
    if (!ticket) return "nobody";
    return FinishOne(*side.store, *ticket, DrawnOutcome());
  }

  absl::StatusOr<std::string> ResolveSome(Side& side) {
    const std::optional<Ticket> ticket = Drawn(side);
    if (!ticket) return "nobody";
    const FinishRequest request{*ticket, DrawnOutcome(), "n1"};
    ASSIGN_OR_RETURN(const std::vector<ResolveAnswer> answers, side.store->Resolve({&request, 1}));
    return absl::StrCat("resolve ", static_cast<int>(answers.at(0).kind));
  }

  absl::StatusOr<std::string> ExtendSome(Side& side) {
    const std::optional<Ticket> ticket = Drawn(side);
    if (!ticket) return "nobody";
    ASSIGN_OR_RETURN(const ExtendAnswer answer, ExtendOne(*side.store, *ticket, absl::Seconds(20)));
    return absl::StrCat("extend ", answer.refusal.why, " ", TimeText(answer.lease_until));
  }

  absl::StatusOr<std::string> CheckpointSome(Side& side) {
    const std::optional<Ticket> ticket = Drawn(side);
    if (!ticket) return "nobody";
    const CheckpointRequest request{*ticket, static_cast<int64_t>(dice_ % 5) + 1, "d"};
    ASSIGN_OR_RETURN(const std::vector<Refusal> answers, side.store->Checkpoint({&request, 1}));
    return absl::StrCat("checkpoint ", answers.at(0).why);
  }

  absl::StatusOr<std::string> ReapAll(Side& side) {
    ASSIGN_OR_RETURN(std::vector<StaleRun> stale, side.store->ReadStale(100));
    std::sort(stale.begin(), stale.end(),
              [](const StaleRun& a, const StaleRun& b) { return a.row.key < b.row.key; });
    std::string text = "reap";
    for (const StaleRun& run : stale) {
      const Ticket ticket{run.row.key, run.row.generation, run.row.fence, run.row.nonce};
      const auto to = Flip(7) ? Outcome::Kind::kReturned : Outcome::Kind::kHeld;
      ASSIGN_OR_RETURN(const bool taken, ReapOne(*side.store, ticket, to));
      absl::StrAppend(&text, " ", run.row.key.job, run.row.key.period, taken);
    }
    return text;
  }

  absl::StatusOr<std::string> Replacing(Side& side) {
    if (Flip(8)) return Text(side.store->ReportDead(side.burnt));
    const PeriodKey key = KeyOf("replace", day_[0]);
    ASSIGN_OR_RETURN(side.burnt, side.store->Replace({&key, 1}));
    std::string text = "replace";
    for (const Ticket& ticket : side.burnt) absl::StrAppend(&text, " ", ticket.key.period);
    return text;
  }

  absl::StatusOr<std::string> Ticking(Side& side) {
    TickRequest request;
    request.node.name = Node();
    request.boot = now_ - T0();
    request.wall = now_;
    ASSIGN_OR_RETURN(const TickAnswer answer, side.store->Tick(request));
    return absl::StrCat("tick ", answer.frozen, answer.returned, answer.live_nodes,
                        answer.idle ? " idle" : "");
  }

  absl::StatusOr<std::string> Reading(Side& side) {
    ReadDueRequest request;
    request.by_node = Flip(9);
    ASSIGN_OR_RETURN(const DueJobs due, side.store->ReadDue(request));
    std::string text = absl::StrCat("due ", due.frozen, TimeText(due.next_look));
    for (const JobState& job : due.jobs) {
      absl::StrAppend(&text, " ", job.job, " r", job.revision, " rows", job.rows.size(), " gap ",
                      job.gap_from ? TimeText(*job.gap_from) : "none", " p",
                      job.pending ? static_cast<int>(*job.pending) : -1);
    }
    return text;
  }

  SeededRandom random_;
  std::vector<Job> jobs_;
  absl::Time now_ = T0() + absl::Hours(2);
  int64_t step_ = 0;
  uint64_t op_ = 0;
  size_t job_ = 0;
  int day_[3] = {};
  uint64_t dice_ = 0;
};

std::string AllRows(ActStore& acts) {
  const auto rows = acts.ReadRows({});
  if (!rows.ok()) return rows.status().ToString();
  return absl::StrJoin(*rows, "\n", [](std::string* out, const PeriodRow& row) {
    absl::StrAppend(out, RowText(row));
  });
}

std::string AllRuns(ActStore& acts) {
  RunFilter filter;
  filter.limit = 10000;
  const auto runs = acts.ReadRuns(filter);
  if (!runs.ok()) return runs.status().ToString();
  return absl::StrJoin(*runs, "\n", [](std::string* out, const RunRow& run) {
    absl::StrAppend(out, run.key.job, " ", run.key.period, " g", run.generation, " a", run.attempt,
                    " ", run.status, "(", run.reason, ") ", run.node, " ", TimeText(run.claimed_at),
                    " ", TimeText(run.finished_at));
  });
}

using RandomScript = Conformance;

void PlayBoth(World& world, uint64_t seed, int steps) {
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  absl::Time model_now = T0();
  DatabaseOptions options;
  options.clock = [&model_now] { return model_now; };
  model::ModelDatabase model(options);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> model_store, model.Open());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ActStore> model_acts, model.OpenActs());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Store> store, world.database().Open());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<ActStore> acts, world.database().OpenActs());
  Side predicted{model_store.get(),
                 model_acts.get(),
                 [&](absl::Time t) { model_now = t; },
                 [&](const PeriodKey& key) { return model.DeleteRow(key); },
                 {},
                 {}};
  Side asked{store.get(),
             acts.get(),
             [&](absl::Time t) { world.SetClock(t); },
             [&](const PeriodKey& key) { return world.DeleteRow(key); },
             {},
             {}};
  Script script(seed);
  ASSERT_OK(ApplyJobs(*model_acts, script.jobs()));
  ASSERT_OK(ApplyJobs(*acts, script.jobs()));
  for (int step = 0; step < steps; ++step) {
    SCOPED_TRACE(testing::Message() << "step " << step);
    script.Draw();
    const std::string prediction = script.Play(predicted);
    ASSERT_EQ(script.Play(asked), prediction);
    ASSERT_EQ(AllRows(*acts), AllRows(*model_acts)) << prediction;
  }
  EXPECT_EQ(AllRuns(*acts), AllRuns(*model_acts));
}

TEST_F(RandomScript, GetsTheModelsAnswers) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    auto fresh = TheBackend().NewWorld();
    ASSERT_OK(fresh.status());
    PlayBoth(**fresh, seed, 150);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace matins::conformance
