#include "plan/plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "plan/fires.h"
#include "plan/intents.h"
#include "plan/judge_rows.h"
#include "plan/misfire.h"
#include "plan/owed.h"
#include "plan/spread.h"

namespace matins {
namespace {

constexpr absl::Duration kTick = absl::Microseconds(1);
// A plan with more changes than this is cut; the rest comes with the next one.
constexpr size_t kMostIntents = 2000;

// One period that is owed: a row, or a new one.
struct Item {
  absl::Time due;
  const PeriodRow* row = nullptr;
  const NewPeriod* fresh = nullptr;
};

class Planner {
 public:
  explicit Planner(const PlanInput& input)
      : input_(input), state_(*input.state), fires_(input.versions), known_(state_) {
    write_.job = state_.job;
    write_.expected_revision = state_.revision;
    write_.cursor = state_.cursor;
  }

  absl::StatusOr<PlanWrite> Run() {
    if (state_.suspended) return Nothing();
    ASSIGN_OR_RETURN(const absl::Time after, FirstLook(input_, fires_));
    ASSIGN_OR_RETURN(expected_, Enumerate(input_, fires_, known_, after));
    RETURN_IF_ERROR(JudgeDue());
    if (expected_.complete) RETURN_IF_ERROR(PlanAhead());
    SetMarks();
    if (!expected_.stopped.ok() && ChangesNothing()) return expected_.stopped;
    return std::move(write_);
  }

 private:
  PlanWrite Nothing() {
    write_.next_look = absl::InfiniteFuture();
    return std::move(write_);
  }

  bool Triggered() const { return input_.trigger || state_.pending; }

  std::vector<Item> Owed() const {
    std::vector<Item> items;
    for (const PeriodRow& row : state_.rows) {
      if (IsGap(row) && row.due <= input_.now) items.push_back({row.due, &row, nullptr});
    }
    for (const NewPeriod& period : expected_.due) {
      items.push_back({period.fire.at, nullptr, &period});
    }
    std::stable_sort(items.begin(), items.end(),
                     [](const Item& a, const Item& b) { return a.due < b.due; });
    return items;
  }

  // Oldest first; each with the number of newer ones that are owed.
  absl::Status JudgeDue() {
    const std::vector<Item> items = Owed();
    const RowJudge rows(input_, fires_, Triggered());
    Collector collector(fires_, write_);
    for (size_t i = 0; i < items.size(); ++i) {
      const int64_t newer = static_cast<int64_t>(items.size() - 1 - i) + expected_.beyond;
      if (items[i].row != nullptr) {
        ASSIGN_OR_RETURN(std::optional<Intent> change, rows.Judge(*items[i].row, newer));
        open_ = true;
        RETURN_IF_ERROR(collector.Flush());
        if (change) RETURN_IF_ERROR(collector.Add(*std::move(change)));
        continue;
      }
      RETURN_IF_ERROR(TakeNew(*items[i].fresh, newer, rows, collector));
      if (write_.intents.size() >= kMostIntents && i + 1 < items.size()) {
        Cut(*items[i].fresh);
        break;
      }
    }
    return collector.Flush();
  }

  absl::Status TakeNew(const NewPeriod& period, int64_t newer, const RowJudge& rows,
                       Collector& collector) {
    const Job& job = fires_.job(period.version).job;
    ASSIGN_OR_RETURN(const absl::Time last, rows.LastTrigger(period));
    const absl::Time not_before = last + SpreadDelay(fires_.job(period.version), last);
    const Verdict verdict = Judge(
        job, {.due = period.fire.at, .on_time_until = OnTimeUntil(job, not_before), .newer = newer},
        input_.now);
    if (!verdict.skip.empty()) return collector.Skip(period, verdict.skip, "policy");
    ASSIGN_OR_RETURN(Intent intent, InsertOf(fires_, state_.job, period));
    intent.backfill = verdict.missed;
    intent.start_by =
        verdict.missed ? KeepUntil(job, period.fire.at) : StartBy(job, period.fire.at, not_before);
    open_ = true;
    return collector.Add(std::move(intent));
  }

  void Cut(const NewPeriod& last) {
    expected_.complete = false;
    expected_.reached = last.fire.at;
  }

  absl::Status PlanAhead() {
    for (const NewPeriod& period : expected_.ahead) {
      ASSIGN_OR_RETURN(Intent intent, InsertOf(fires_, state_.job, period));
      write_.intents.push_back(std::move(intent));
    }
    for (const PeriodRow& row : state_.rows) {
      if (row.due <= input_.now || !IsOutsideSchedule(fires_, row)) continue;
      ASSIGN_OR_RETURN(Intent intent, ChangeOf(fires_, Intent::Kind::kSkip, row));
      intent.skip_reason = reason::kChanged;
      write_.intents.push_back(std::move(intent));
    }
    return absl::OkStatus();
  }

  void SetMarks() {
    SetReached(input_, expected_.reached, write_);
    write_.triggered = Triggered();
    write_.next_look = NextLook(input_.now + input_.ahead);
  }

  absl::Time NextLook(absl::Time limit) const {
    if (!expected_.complete) return input_.now;
    absl::Time next = std::max(input_.now, expected_.next_fire - input_.ahead);
    if (!open_) return next;
    // What is open now may have failed by the fire that was planned ahead, or be one too many then.
    const std::optional<DatedFire> ahead = fires_.Next(input_.now);
    if (ahead && ahead->fire.at <= limit) next = std::min(next, ahead->fire.at);
    return next;
  }

  bool ChangesNothing() const {
    return write_.intents.empty() && write_.spans.empty() && write_.cursor == state_.cursor &&
           (!write_.gaps_filled || write_.next_gap == state_.gap_from) && !Triggered();
  }

  const PlanInput& input_;
  const JobState& state_;
  const Fires fires_;
  const Known known_;
  Expected expected_;
  bool open_ = false;  // something that is due has not ended
  PlanWrite write_;
};

}  // namespace

absl::StatusOr<PlanWrite> PlanJob(const PlanInput& input) {
  if (input.state == nullptr || input.versions.empty()) {
    return absl::InternalError("planning needs a job's state and at least one version");
  }
  return Planner(input).Run();
}

}  // namespace matins
