#include "conformance/checks.h"

#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "base/status.h"
#include "conformance/kit.h"
#include "store/rules.h"

namespace matins::conformance {
namespace {

#define VERIFY(condition, what)                                                           \
  do {                                                                                    \
    if (!(condition)) {                                                                   \
      return absl::FailedPreconditionError(absl::StrCat(what, " (line ", __LINE__, ")")); \
    }                                                                                     \
  } while (false)

struct Stage {
  std::unique_ptr<Store> store;
  std::unique_ptr<ActStore> acts;
};

absl::StatusOr<Stage> Open(World& world, const std::vector<Job>& jobs) {
  Stage stage;
  ASSIGN_OR_RETURN(stage.store, world.database().Open());
  ASSIGN_OR_RETURN(stage.acts, world.database().OpenActs());
  RETURN_IF_ERROR(ApplyJobs(*stage.acts, jobs));
  return stage;
}

absl::StatusOr<std::string> CheckpointOne(Store& store, const Ticket& ticket, int64_t number,
                                          const std::string& data) {
  const CheckpointRequest request{ticket, number, data};
  ASSIGN_OR_RETURN(const std::vector<Refusal> answers, store.Checkpoint({&request, 1}));
  return answers.at(0).why;
}

absl::StatusOr<ResolveAnswer::Kind> ResolveOne(Store& store, const Ticket& ticket,
                                               Outcome outcome = {}) {
  const FinishRequest request{ticket, std::move(outcome), "n1"};
  ASSIGN_OR_RETURN(const std::vector<ResolveAnswer> answers, store.Resolve({&request, 1}));
  return answers.at(0).kind;
}

absl::Status OneRowAPeriod(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  RETURN_IF_ERROR(Done(*s.store, TicketOf(claim)).status());
  ASSIGN_OR_RETURN(const bool written, PlanDays(*s.store, job, {0, 0}));
  VERIFY(written, "the second plan was not taken");
  ASSIGN_OR_RETURN(const PeriodRow row, RowOf(*s.acts, KeyOf("a", 0)));
  VERIFY(row.status == PeriodStatus::kDone, "planning again changed a DONE period");
  VERIFY(row.fence == claim.fence, "planning again changed the fence");
  return absl::OkStatus();
}

absl::Status OnlyTheCurrentTicketIsHeard(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim old, Claimed(*s.store, KeyOf("a", 0)));
  world.SetClock(At(31));
  ASSIGN_OR_RETURN(const bool reaped, ReapOne(*s.store, TicketOf(old)));
  VERIFY(reaped, "a dead lease was not reaped");
  ASSIGN_OR_RETURN(const Claim current, Claimed(*s.store, KeyOf("a", 0), "n2"));
  ASSIGN_OR_RETURN(const PeriodRow before, RowOf(*s.acts, KeyOf("a", 0)));
  Ticket wrong_nonce = TicketOf(current);
  ++wrong_nonce.nonce;
  for (const Ticket& ticket : {TicketOf(old), wrong_nonce}) {
    ASSIGN_OR_RETURN(const ExtendAnswer extend, ExtendOne(*s.store, ticket, absl::Seconds(30)));
    VERIFY(extend.refusal.why == "fence", absl::StrCat("heartbeat: '", extend.refusal.why, "'"));
    ASSIGN_OR_RETURN(std::string why, CheckpointOne(*s.store, ticket, 7, "x"));
    VERIFY(why == "fence", absl::StrCat("checkpoint: '", why, "'"));
    for (const Outcome::Kind kind : {Outcome::Kind::kDone, Outcome::Kind::kRetry,
                                     Outcome::Kind::kFailed, Outcome::Kind::kReturned}) {
      Outcome outcome;
      outcome.kind = kind;
      ASSIGN_OR_RETURN(why, FinishOne(*s.store, ticket, outcome));
      VERIFY(why == "fence", absl::StrCat("result: '", why, "'"));
    }
    ASSIGN_OR_RETURN(const bool taken, ReapOne(*s.store, ticket));
    VERIFY(!taken, "reaped by a ticket that is not current");
  }
  ASSIGN_OR_RETURN(const PeriodRow after, RowOf(*s.acts, KeyOf("a", 0)));
  VERIFY(after.change == before.change, "a refused call changed the row");
  return absl::OkStatus();
}

absl::Status NothingIsAcceptedAfterTheLease(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  world.SetClock(claim.lease_until);
  ASSIGN_OR_RETURN(std::string why, CheckpointOne(*s.store, TicketOf(claim), 1, "x"));
  VERIFY(why == "lease", absl::StrCat("checkpoint at the lease's end: '", why, "'"));
  ASSIGN_OR_RETURN(why, Done(*s.store, TicketOf(claim)));
  VERIFY(why == "lease", absl::StrCat("result at the lease's end: '", why, "'"));
  return absl::OkStatus();
}

absl::Status AHeartbeatNeverRevives(World& world) {
  Job job = PlainJob("a");
  job.timeout = absl::Seconds(50);
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  const Ticket ticket = TicketOf(claim);
  world.SetClock(At(20));
  ASSIGN_OR_RETURN(ExtendAnswer answer, ExtendOne(*s.store, ticket, absl::Seconds(30)));
  VERIFY(answer.refusal.accepted() && answer.lease_until == At(50), "a live lease is extended");
  ASSIGN_OR_RETURN(answer, ExtendOne(*s.store, ticket, absl::Seconds(5)));
  VERIFY(answer.lease_until == At(50), "a heartbeat shortened the lease");
  world.SetClock(At(40));
  ASSIGN_OR_RETURN(answer, ExtendOne(*s.store, ticket, absl::Seconds(30)));
  VERIFY(answer.lease_until == At(60), "a heartbeat passed the time-out");
  world.SetClock(At(60));
  ASSIGN_OR_RETURN(answer, ExtendOne(*s.store, ticket, absl::Seconds(30)));
  VERIFY(answer.refusal.why == "deadline", absl::StrCat("at run_until: ", answer.refusal.why));
  return absl::OkStatus();
}

absl::Status AnEndedLeaseStaysEnded(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  world.SetClock(At(30));
  ASSIGN_OR_RETURN(const ExtendAnswer answer,
                   ExtendOne(*s.store, TicketOf(claim), absl::Seconds(30)));
  VERIFY(answer.refusal.why == "lease", absl::StrCat("heartbeat: '", answer.refusal.why, "'"));
  ASSIGN_OR_RETURN(const PeriodRow row, RowOf(*s.acts, KeyOf("a", 0)));
  VERIFY(row.lease_until == At(30), "the lease moved");
  return absl::OkStatus();
}

// The call waits for the lock while its lease ends: it must be judged by the time behind the lock.
absl::Status TheClockIsReadBehindTheLock(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  ASSIGN_OR_RETURN(std::unique_ptr<World::Lock> lock, world.HoldLock(KeyOf("a", 0)));
  absl::Notification at_the_lock;
  SetFaultHook([&](absl::string_view point) {
    if (absl::EndsWith(point, "finish.before_lock") && !at_the_lock.HasBeenNotified()) {
      at_the_lock.Notify();
    }
    return absl::OkStatus();
  });
  absl::StatusOr<std::string> why;
  std::thread finisher([&] { why = Done(*s.store, TicketOf(claim)); });
  at_the_lock.WaitForNotification();
  world.SetClock(At(31));
  lock.reset();
  finisher.join();
  SetFaultHook(nullptr);
  RETURN_IF_ERROR(why.status());
  VERIFY(*why == "lease", absl::StrCat("accepted after the lease had ended: '", *why, "'"));
  return absl::OkStatus();
}

absl::Status AReapRepeatsItsCondition(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim old, Claimed(*s.store, KeyOf("a", 0)));
  ASSIGN_OR_RETURN(const bool alive, ReapOne(*s.store, TicketOf(old)));
  VERIFY(!alive, "a live lease was reaped");
  world.SetClock(At(31));
  ASSIGN_OR_RETURN(const std::vector<StaleRun> stale, s.store->ReadStale(10));
  VERIFY(stale.size() == 1 && stale[0].row.fence == old.fence, "the dead lease is not listed");
  ASSIGN_OR_RETURN(const bool first, ReapOne(*s.store, TicketOf(old)));
  VERIFY(first, "a dead lease was not reaped");
  ASSIGN_OR_RETURN(const Claim current, Claimed(*s.store, KeyOf("a", 0), "n2"));
  RETURN_IF_ERROR(Done(*s.store, TicketOf(current)).status());
  ASSIGN_OR_RETURN(const bool again, ReapOne(*s.store, TicketOf(old)));
  VERIFY(!again, "reaped a period that is not that ticket's");
  ASSIGN_OR_RETURN(const PeriodRow row, RowOf(*s.acts, KeyOf("a", 0)));
  VERIFY(row.status == PeriodStatus::kDone, "a late reap undid DONE");
  return absl::OkStatus();
}

absl::Status AnOlderPeriodBlocks(World& world) {
  const Job job = StrictJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  world.SetClock(DueOf(3));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0, 1, 2}).status());
  ASSIGN_OR_RETURN(StartAnswer answer, StartOne(*s.store, KeyOf("a", 1)));
  VERIFY(answer.result == StartResult::kBlocked, "started before its predecessor was tried");
  VERIFY(answer.blocker == KeyOf("a", 0).period, "the blocker is not named");
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  Outcome failed;
  failed.kind = Outcome::Kind::kFailed;
  failed.reason = reason::kExit;
  RETURN_IF_ERROR(FinishOne(*s.store, TicketOf(claim), failed).status());
  ASSIGN_OR_RETURN(answer, StartOne(*s.store, KeyOf("a", 1)));
  VERIFY(answer.result == StartResult::kBlocked, "a FAILED period does not block");
  const PeriodKey key = KeyOf("a", 0);
  RETURN_IF_ERROR(s.acts->Skip({&key, 1}, {"cli:test", "the source was empty"}));
  ASSIGN_OR_RETURN(answer, StartOne(*s.store, KeyOf("a", 1)));
  VERIFY(answer.result == StartResult::kStarted, "a SKIPPED period blocks");
  return absl::OkStatus();
}

absl::Status FencesRise(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  int64_t last = 0;
  double second = 0;
  for (int round = 0; round < 3; ++round) {
    ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
    VERIFY(claim.fence > last, absl::StrCat("fence ", claim.fence, " after ", last));
    last = claim.fence;
    second += 31;
    world.SetClock(At(second));
    ASSIGN_OR_RETURN(const bool reaped, ReapOne(*s.store, TicketOf(claim)));
    VERIFY(reaped, "not reaped");
    ASSIGN_OR_RETURN(const PeriodRow row, RowOf(*s.acts, KeyOf("a", 0)));
    VERIFY(row.fence > last, "a reap did not burn the fence");
    last = row.fence;
  }
  RETURN_IF_ERROR(world.DeleteRow(KeyOf("a", 0)));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  VERIFY(claim.fence > last, "deleting the row let the fence fall back");
  VERIFY(claim.generation == 2, "the deleted period is not in a new generation");
  ASSIGN_OR_RETURN(const int64_t epoch, s.acts->BumpEpoch({"cli:test", "failover"}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {1}).status());
  RETURN_IF_ERROR(Done(*s.store, TicketOf(claim)).status());
  world.SetClock(DueOf(1));
  ASSIGN_OR_RETURN(const Claim next, Claimed(*s.store, KeyOf("a", 1)));
  VERIFY(next.fence >> 40 == epoch, "the epoch is not in the fence's high bits");
  VERIFY(next.fence - (epoch << 40) > FirstNumber(At(second)),
         "two restores of one copy within ten minutes give fences twice");
  return absl::OkStatus();
}

absl::Status AResolvedAnswerStays(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  world.SetClock(DueOf(3));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0, 1, 2}).status());
  // A live lease: the same conditional completion is made now, or the answer is no for ever.
  ASSIGN_OR_RETURN(const Claim first, Claimed(*s.store, KeyOf("a", 0)));
  ASSIGN_OR_RETURN(ResolveAnswer::Kind kind, ResolveOne(*s.store, TicketOf(first)));
  ASSIGN_OR_RETURN(std::string late, Done(*s.store, TicketOf(first)));
  VERIFY(late != "", "a late result was accepted after its outcome had been told");
  ASSIGN_OR_RETURN(PeriodRow row, RowOf(*s.acts, KeyOf("a", 0)));
  VERIFY((row.status == PeriodStatus::kDone) == (kind == ResolveAnswer::Kind::kCommitted),
         "the answer is not what stands");
  // It had taken effect: the answer is yes, however often it is asked.
  ASSIGN_OR_RETURN(const Claim second, Claimed(*s.store, KeyOf("a", 1)));
  RETURN_IF_ERROR(Done(*s.store, TicketOf(second)).status());
  for (int i = 0; i < 2; ++i) {
    ASSIGN_OR_RETURN(kind, ResolveOne(*s.store, TicketOf(second)));
    VERIFY(kind == ResolveAnswer::Kind::kCommitted, "DONE by this ticket, and the answer is no");
  }
  // The job's own commit has not come: no, and it must fail when it comes.
  ASSIGN_OR_RETURN(const Claim third, Claimed(*s.store, KeyOf("a", 2)));
  Outcome by_job;
  by_job.kind = Outcome::Kind::kDoneByJob;
  ASSIGN_OR_RETURN(kind, ResolveOne(*s.store, TicketOf(third), by_job));
  VERIFY(kind == ResolveAnswer::Kind::kNotCommitted, "nothing was committed");
  ASSIGN_OR_RETURN(late, Done(*s.store, TicketOf(third)));
  VERIFY(late == "fence", absl::StrCat("the fence was not burnt: '", late, "'"));
  ASSIGN_OR_RETURN(const StartAnswer next, StartOne(*s.store, KeyOf("a", 2), "n2"));
  VERIFY(next.result == StartResult::kOldLease, "claimed over a lease that still lives");
  return absl::OkStatus();
}

absl::Status CheckpointsOnlyGoForward(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim first, Claimed(*s.store, KeyOf("a", 0)));
  ASSIGN_OR_RETURN(std::string why, CheckpointOne(*s.store, TicketOf(first), 5, "five"));
  VERIFY(why.empty(), why);
  for (const int64_t number : {5, 4}) {
    ASSIGN_OR_RETURN(why, CheckpointOne(*s.store, TicketOf(first), number, "less"));
    VERIFY(why == "checkpoint", "a checkpoint went back");
  }
  world.SetClock(At(31));
  RETURN_IF_ERROR(ReapOne(*s.store, TicketOf(first)).status());
  ASSIGN_OR_RETURN(const Claim second, Claimed(*s.store, KeyOf("a", 0), "n2"));
  VERIFY(second.checkpoint == 5 && second.checkpoint_data == "five",
         "the new owner does not get the last accepted checkpoint");
  ASSIGN_OR_RETURN(why, CheckpointOne(*s.store, TicketOf(second), 5, "again"));
  VERIFY(why == "checkpoint", "a checkpoint went back across owners");
  RETURN_IF_ERROR(Done(*s.store, TicketOf(second)).status());
  RETURN_IF_ERROR(s.acts->Reopen(KeyOf("a", 0), "", {"cli:test", "again"}));
  ASSIGN_OR_RETURN(const Claim third, Claimed(*s.store, KeyOf("a", 0)));
  VERIFY(third.checkpoint == 0 && third.generation == 2, "a new generation begins at a checkpoint");
  return absl::OkStatus();
}

absl::Status ADeletedRowsLeaseIsWaitedFor(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  RETURN_IF_ERROR(world.DeleteRow(KeyOf("a", 0)));
  ASSIGN_OR_RETURN(std::string why, Done(*s.store, TicketOf(claim)));
  VERIFY(why == "gone", absl::StrCat("the deleted row's owner: '", why, "'"));
  ASSIGN_OR_RETURN(const JobState state, ReadState(*s.store, "a"));
  VERIFY(state.gap_from == DueOf(0), "the period is not a gap again");
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(StartAnswer answer, StartOne(*s.store, KeyOf("a", 0), "n2"));
  VERIFY(answer.result == StartResult::kOldLease, "claimed over the lease of the deleted row");
  ASSIGN_OR_RETURN(why, Done(*s.store, TicketOf(claim)));
  VERIFY(why == "fence", "the old owner is heard in the new generation");
  world.SetClock(claim.lease_until);
  ASSIGN_OR_RETURN(answer, StartOne(*s.store, KeyOf("a", 0), "n2"));
  VERIFY(answer.result == StartResult::kStarted, "not claimed after the old lease");
  VERIFY(answer.claim->generation == 2, "not a new generation");
  return absl::OkStatus();
}

absl::Status ADeletedRowsLeaseOutlastsASkipAndAReopening(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  RETURN_IF_ERROR(world.DeleteRow(KeyOf("a", 0)));
  // Its run is said to be dead, and its lock is free; the lease is what is left.
  RETURN_IF_ERROR(s.store->ReportDead({TicketOf(claim)}));
  Intent missed = DayIntent(job, 0);
  missed.skip_reason = reason::kMissed;
  RETURN_IF_ERROR(PlanIntents(*s.store, "a", {missed}).status());
  RETURN_IF_ERROR(s.acts->Reopen(KeyOf("a", 0), "", {"cli:test", "now"}));
  ASSIGN_OR_RETURN(StartAnswer answer, StartOne(*s.store, KeyOf("a", 0), "n2"));
  VERIFY(answer.result == StartResult::kOldLease, "claimed over the lease of the deleted row");
  // Told once more when that row is deleted too.
  RETURN_IF_ERROR(world.DeleteRow(KeyOf("a", 0)));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(answer, StartOne(*s.store, KeyOf("a", 0), "n2"));
  VERIFY(answer.result == StartResult::kOldLease, "claimed over the lease of the row before that");
  world.SetClock(claim.lease_until);
  ASSIGN_OR_RETURN(answer, StartOne(*s.store, KeyOf("a", 0), "n2"));
  VERIFY(answer.result == StartResult::kStarted, "not claimed after the old lease");
  return absl::OkStatus();
}

absl::Status FinalStatesAreFinal(World& world) {
  const Job job = PlainJob("a");
  ASSIGN_OR_RETURN(Stage s, Open(world, {job}));
  RETURN_IF_ERROR(PlanDays(*s.store, job, {0}).status());
  ASSIGN_OR_RETURN(const Claim claim, Claimed(*s.store, KeyOf("a", 0)));
  RETURN_IF_ERROR(Done(*s.store, TicketOf(claim)).status());
  ASSIGN_OR_RETURN(const std::string twice, Done(*s.store, TicketOf(claim)));
  VERIFY(twice == "fence", absl::StrCat("a second result: '", twice, "'"));
  std::vector<Intent> intents;
  for (const auto kind : {Intent::Kind::kSkip, Intent::Kind::kReattempt, Intent::Kind::kJudge,
                          Intent::Kind::kInsert}) {
    Intent intent = DayIntent(job, 0);
    intent.kind = kind;
    if (kind == Intent::Kind::kSkip) intent.skip_reason = reason::kMissed;
    intents.push_back(intent);
  }
  RETURN_IF_ERROR(PlanIntents(*s.store, "a", intents).status());
  const PeriodKey key = KeyOf("a", 0);
  VERIFY(!s.acts->Skip({&key, 1}, {"cli:test", "no"}).ok(), "a DONE period was skipped");
  ASSIGN_OR_RETURN(const StartAnswer start, StartOne(*s.store, key));
  VERIFY(start.result == StartResult::kTaken, "a DONE period was started");
  ASSIGN_OR_RETURN(const PeriodRow row, RowOf(*s.acts, key));
  VERIFY(row.status == PeriodStatus::kDone && row.generation == 1, "DONE did not last");
  return absl::OkStatus();
}

}  // namespace

const std::vector<Check>& AllChecks() {
  static const auto* const checks = new std::vector<Check>{
      {"I0.OneRowAPeriod", &OneRowAPeriod, {Mutant::kNoUniqueKey}, {}},
      {"I1.AReapRepeatsItsCondition", &AReapRepeatsItsCondition, {Mutant::kBlindReap}, {}},
      {"I2.FinalStatesAreFinal", &FinalStatesAreFinal, {Mutant::kNoUniqueKey}, {}},
      {"I3.OnlyTheCurrentTicketIsHeard", &OnlyTheCurrentTicketIsHeard, {Mutant::kNoFenceCheck}, {}},
      {"I4.NothingIsAcceptedAfterTheLease",
       &NothingIsAcceptedAfterTheLease,
       {Mutant::kNoLeaseCheck},
       {}},
      {"I4.TheClockIsReadBehindTheLock",
       &TheClockIsReadBehindTheLock,
       {Mutant::kClockBeforeLock},
       Capability::kLocks},
      {"I5.AHeartbeatNeverRevives",
       &AHeartbeatNeverRevives,
       {Mutant::kNoLeaseCheck, Mutant::kBeatShortens, Mutant::kBeatPastTimeOut},
       {}},
      {"I5.AnEndedLeaseStaysEnded",
       &AnEndedLeaseStaysEnded,
       {Mutant::kReviveLease, Mutant::kNoLeaseCheck},
       {}},
      {"I6.FencesRise", &FencesRise, {Mutant::kNoFenceBump}, {}},
      {"I7.ADeletedRowsLeaseIsWaitedFor", &ADeletedRowsLeaseIsWaitedFor, {Mutant::kNoOldLease}, {}},
      {"I7.ADeletedRowsLeaseOutlastsASkipAndAReopening",
       &ADeletedRowsLeaseOutlastsASkipAndAReopening,
       {Mutant::kNoOldLease},
       {}},
      {"I9.AResolvedAnswerStays",
       &AResolvedAnswerStays,
       {Mutant::kNaiveResolve, Mutant::kResolveBurnsNothing, Mutant::kNoOldLease},
       {}},
      {"I10.CheckpointsOnlyGoForward",
       &CheckpointsOnlyGoForward,
       {Mutant::kCheckpointBack, Mutant::kNoCheckpointOffer},
       {}},
      {"I16.AnOlderPeriodBlocks", &AnOlderPeriodBlocks, {Mutant::kNoOrder}, {}},
  };
  return *checks;
}

}  // namespace matins::conformance
