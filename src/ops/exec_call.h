// One call of `matins exec`, step by step. For exec.cc alone.
#ifndef MATINS_OPS_EXEC_CALL_H_
#define MATINS_OPS_EXEC_CALL_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/events.h"
#include "engine/job_turn.h"
#include "job/job_state.h"
#include "lease/door.h"
#include "ops/exec.h"
#include "ops/exec_runner.h"
#include "ops/session.h"
#include "store/database.h"

namespace matins {

// What the engine says that a call has to know of; all of it comes on the call's own thread.
class ExecEvents final : public EngineEvents {
 public:
  explicit ExecEvents(ExecHost& host) : host_(host) {}
  void OnEvent(const EngineEvent& event) override;

  // Of the run that began last.
  void Begin() { accepted_.reset(), refused_.clear(); }
  const std::optional<Outcome>& accepted() const { return accepted_; }
  const std::string& refused() const { return refused_; }  // why its result does not count

 private:
  ExecHost& host_;
  std::optional<Outcome> accepted_;
  std::string refused_;
};

class ExecCall {
 public:
  ExecCall(const ExecRequest& request, ExecHost& host)
      : request_(request), host_(host), events_(host), runner_(request.program) {}

  absl::StatusOr<ExecAnswer> Run();

 private:
  using Seen = JobTurn::Seen;
  // An answer: the call is over. Nothing: it goes on.
  using Verdict = absl::StatusOr<std::optional<ExecAnswer>>;
  // What comes next with a period: it is tried (or looked at) again when the boot clock says `at`;
  // the next one has its turn; or the call is over.
  struct Next {
    enum class Kind { kAgain, kNext, kOver };
    Kind kind = Kind::kNext;
    absl::Duration at;
    ExecAnswer answer;
  };

  // ---- getting there ----
  absl::Status Prepare();
  absl::Status OpenTurn();
  absl::Status OpenDoor();
  absl::Status Settle();  // the job is in the store as the call wants it
  absl::StatusOr<Seen> ReadThawed();
  absl::Status Compare(const JobState& state);
  absl::Status Apply();
  absl::Status PlanFirstFire();
  absl::Status WithSession(const std::function<absl::Status(Session&)>& use);
  // Tries again while the store is away, for as long as the request says, where `again` says so of
  // the error.
  absl::Status Patiently(const std::function<absl::Status()>& what,
                         bool (*again)(const absl::Status&) = absl::IsUnavailable);

  // ---- what is owed ----
  Verdict FirstPass();
  Verdict SecondPass();
  Verdict RunAll(const std::vector<PeriodRow>& rows);
  // Both set seen_, and plan what is due until then.
  absl::Status Look(absl::Duration ahead);
  absl::Status LookAnew();  // as the store is now
  const PeriodRow* Find(absl::string_view period) const;
  std::vector<PeriodRow> Owed(absl::Time by) const;
  std::optional<absl::Time> FireMeantAhead() const;
  absl::StatusOr<Next> NothingToRun();
  absl::Status TellNothingOwed();
  std::string NextFireText() const;

  // ---- one period ----
  Verdict RunPeriod(const PeriodRow& row);
  absl::StatusOr<Next> Attempt(const PeriodRow& row);
  // Nothing: the store is asked.
  absl::StatusOr<std::optional<Next>> AskDoor(const PeriodRow& row, const std::string& key);
  absl::Status Follow(int64_t run);
  absl::StatusOr<Next> Judged(const PeriodRow& row, const Outcome& outcome);
  ExecAnswer BadEnd() const;
  absl::StatusOr<Next> Refused(const PeriodRow& row, const StartAnswer& answer);
  absl::StatusOr<Next> InTheWay(const PeriodRow& row, const StartAnswer& answer);
  Next Held(const std::string& text);
  Next StandsFailed(const PeriodRow& row);
  absl::Status TellSettled(const PeriodKey& key);
  // Whether the wait ended without a signal that ends the call.
  bool WaitUntil(absl::Duration until);
  void TakeSignal(int signal);
  ExecAnswer Stopped() const;
  Next Again(absl::Duration in) const;
  static Next Over(ExecEnd end, int code = 0) { return {Next::Kind::kOver, {}, {end, code}}; }
  void Say(absl::string_view line) { host_.Tell(line, /*news=*/false); }
  void News(absl::string_view line) { host_.Tell(line, /*news=*/true); }

  const ExecRequest& request_;
  ExecHost& host_;
  ExecEvents events_;
  ExecRunner runner_;
  std::unique_ptr<Door> door_;                // null: none; the turn has it too
  std::optional<absl::Duration> door_since_;  // when it first said that another is at work
  std::unique_ptr<Database> database_;
  std::unique_ptr<JobTurn> turn_;
  DefinitionPtr job_;
  Seen seen_;  // the job as it was looked at last
  absl::Duration ttl_ = LockSpec{}.ttl;
  bool retry_ = request_.retry;
  bool is_new_ = false;                         // this call made it known
  absl::Time last_due_ = absl::InfinitePast();  // of what this call has taken upon itself
  int asked_to_end_ = 0;                        // by this signal
  int last_bad_ = 0;  // the code of a command whose period is DONE all the same
  std::string told_;  // said last of who has it; not said again
};

}  // namespace matins

#endif  // MATINS_OPS_EXEC_CALL_H_
