#include "simulate/simulate.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "job/json.h"
#include "job/resolve.h"
#include "simulate/simulated_node.h"
#include "store/model/model_database.h"

namespace matins {
namespace {

// Between signs of life of a node that lives (store/rules.h: kNodeGone).
constexpr absl::Duration kTick = absl::Seconds(25);
// Settled periods of a job that stay in the model's memory; more where another job waits for them.
constexpr size_t kKept = 40, kKeptForOthers = 1000;
// Between removals of the others.
constexpr int kActsBetween = 64;

absl::Status CheckRequest(const SimulateRequest& request) {
  if (request.to <= request.from) {
    return BadInput("--to", absl::StrCat(FormatInstant(request.to), " is not after --from"), "");
  }
  for (const Outage& outage : request.outages) {
    if (outage.to <= outage.from) {
      return BadInput(
          "--outage",
          absl::StrCat("it ends at ", FormatInstant(outage.to), ", not after its start"),
          "write it START/END");
    }
  }
  return absl::OkStatus();
}

class Simulation {
 public:
  explicit Simulation(const SimulateRequest& request) : request_(request), now_(request.from) {}

  absl::Status Prepare();
  absl::Status Run();
  absl::StatusOr<SimulateReport> Report();

 private:
  // The end of the outage that `now_` lies in.
  std::optional<absl::Time> AwayUntil() const;
  absl::Time NextOutage() const;
  absl::Status AliveUntil(absl::Time until);
  void Forget();
  void Keep(const PeriodRow& row);

  const SimulateRequest& request_;
  absl::Time now_;
  std::map<std::string, ResolvedJob> jobs_;
  std::map<std::string, size_t> kept_;  // settled periods in memory, by job
  std::unique_ptr<model::ModelDatabase> database_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<ActStore> acts_;
  std::unique_ptr<SimulatedNode> node_;
  SimulateReport report_;
};

absl::Status Simulation::Prepare() {
  ApplyRequest apply;
  apply.source = "simulate";
  apply.act = {"simulate", "a simulation"};
  std::set<std::string> waited_for;
  for (const Job& job : request_.jobs) {
    ASSIGN_OR_RETURN(ResolvedJob resolved, ResolveJob(job));
    jobs_.emplace(job.name, std::move(resolved));
    for (const After& after : job.after) waited_for.insert(after.job);
    apply.jobs.push_back({job, JobToJson(job)});
  }
  for (const Job& job : request_.jobs) {
    kept_[job.name] = waited_for.contains(job.name) ? kKeptForOthers : kKept;
  }
  DatabaseOptions options;
  options.clock = [this] { return now_; };
  database_ = std::make_unique<model::ModelDatabase>(options);
  ASSIGN_OR_RETURN(store_, database_->Open());
  ASSIGN_OR_RETURN(acts_, database_->OpenActs());
  node_ = std::make_unique<SimulatedNode>(request_, *store_, now_);
  RETURN_IF_ERROR(node_->Tick());
  RETURN_IF_ERROR(acts_->Apply(apply).status());
  if (request_.limits.empty()) return absl::OkStatus();
  SetLimitsRequest limits;
  limits.set = request_.limits;
  limits.source = apply.source;
  limits.act = apply.act;
  return acts_->SetLimits(limits).status();
}

std::optional<absl::Time> Simulation::AwayUntil() const {
  std::optional<absl::Time> until;
  for (const Outage& outage : request_.outages) {
    if (now_ >= outage.from && now_ < outage.to) {
      until = std::max(until.value_or(outage.to), outage.to);
    }
  }
  return until;
}

absl::Time Simulation::NextOutage() const {
  absl::Time next = request_.to;
  for (const Outage& outage : request_.outages) {
    if (outage.from > now_) next = std::min(next, outage.from);
  }
  return next;
}

absl::Status Simulation::Run() {
  while (now_ < request_.to) {
    if (const std::optional<absl::Time> until = AwayUntil()) {
      node_->Die();
      now_ = std::min(*until, request_.to);
      continue;
    }
    RETURN_IF_ERROR(AliveUntil(NextOutage()));
  }
  return absl::OkStatus();
}

absl::Status Simulation::AliveUntil(absl::Time until) {
  for (int acts = 1; now_ < until; ++acts) {
    RETURN_IF_ERROR(node_->Tick());
    RETURN_IF_ERROR(node_->Act());
    if (acts % kActsBetween == 0) Forget();
    const absl::Time next = std::min(node_->NextAt(), until);
    while (next - now_ > kTick) {
      now_ += kTick;
      RETURN_IF_ERROR(node_->Tick());
      // A trigger by return of the node makes all jobs look at what they owe.
      if (node_->NextAt() < next) break;
    }
    if (node_->NextAt() >= next) now_ = next;
  }
  return absl::OkStatus();
}

// What is settled is written down and leaves the model, which looks at all that it has.
void Simulation::Forget() {
  for (const auto& [job, keep] : kept_) {
    for (const PeriodRow& row : database_->TakeSettled(job, keep)) Keep(row);
  }
}

void Simulation::Keep(const PeriodRow& row) {
  SimulatedPeriod period;
  period.key = row.key;
  period.biz_date = row.biz_date;
  period.due = row.due;
  period.status = row.status;
  period.reason = row.reason;
  period.backfill = row.backfill;
  period.finished = row.finished_at;
  if (const auto seen = node_->seen().find(row.key); seen != node_->seen().end()) {
    period.started = seen->second.first_started;
    period.attempts = seen->second.attempts;
    period.lost = seen->second.lost;
  }
  report_.periods.push_back(std::move(period));
}

absl::StatusOr<SimulateReport> Simulation::Report() {
  for (const auto& [job, keep] : kept_) {
    RowFilter filter;
    filter.job = job;
    filter.limit = 10'000'000;
    ASSIGN_OR_RETURN(const std::vector<PeriodRow> rows, acts_->ReadRows(filter));
    for (const PeriodRow& row : rows) {
      if (row.due <= request_.to) Keep(row);
    }
    ASSIGN_OR_RETURN(const std::vector<SkipSpan> spans, acts_->ReadSpans(job));
    for (const SkipSpan& span : spans) {
      report_.spans.push_back(
          {job, span.first_period, span.last_period, span.reason, span.from, span.to, span.count});
    }
    SimulatedJob summary;
    summary.name = job;
    if (const auto problem = node_->problems().find(job); problem != node_->problems().end()) {
      summary.problem = problem->second;
    }
    report_.jobs.push_back(std::move(summary));
  }
  std::sort(report_.periods.begin(), report_.periods.end(),
            [](const SimulatedPeriod& a, const SimulatedPeriod& b) {
              return std::tie(a.due, a.key) < std::tie(b.due, b.key);
            });
  report_.most_running = node_->most_running();
  report_.most_running_at = node_->most_running_at();
  SummariseSimulation(jobs_, request_.to, &report_);
  return std::move(report_);
}

}  // namespace

absl::StatusOr<SimulateReport> SimulateJobs(const SimulateRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  Simulation simulation(request);
  RETURN_IF_ERROR(simulation.Prepare());
  RETURN_IF_ERROR(simulation.Run());
  return simulation.Report();
}

}  // namespace matins
