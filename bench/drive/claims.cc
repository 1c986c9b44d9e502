// A drain, and what a claim costs, beside many rows. First a node drains some of what is due; then
// one caller without a node asks START and ends what it granted, in batches, and each START is
// timed. `--beside`: `nothing`; `not_due`, a million planned rows that are due in a year; `jobs`, a
// million jobs whose next fire is in a year; `due`, a backlog of a million rows that are due, of
// which the runs are a part.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/drive/node_process.h"
#include "bench/drive/stage.h"
#include "store/store.h"

namespace matins::bench {
namespace {

constexpr absl::string_view kOneOff = "misfire: each, start_deadline: 1h, run: { handler: noop }";

void Fill(Stage& stage, const std::string& beside, int64_t rows) {
  if (beside == "nothing") return;
  if (beside == "jobs") return stage.FillJobs(rows);
  stage.FillPlanned(rows, beside == "due" ? -absl::Hours(1) : absl::Hours(24 * 365));
}

struct Drained {
  int64_t done = 0;  // with what was under way when `runs` of them were
  double per_second = 0;
};

// By a node: from its first handler's first instruction to the end of `runs` of them.
Drained DrainByNode(const Options& options, int64_t runs) {
  NodeProcesses node(options);
  node.Go();
  node.Await([&](const Shared& shared) { return shared.finished >= runs; }, absl::Minutes(4));
  const int64_t seen = node.shared().finished;
  const absl::Time last = absl::FromUnixMicros(node.shared().last_finished_us);
  const absl::Duration took = last - absl::FromUnixMicros(node.shared().first_entered_us);
  node.Stop();
  if (node.shared().entered < runs) Die("runs have failed");
  // What it was about to start when it was stopped, it handed back.
  return {node.shared().finished - node.shared().failed,
          static_cast<double>(seen) / absl::ToDoubleSeconds(took)};
}

std::vector<FinishRequest> EndsOf(const StartAnswers& answers, const StartRequest& start) {
  std::vector<FinishRequest> ends;
  for (const StartAnswer& answer : answers.rows) {
    if (!answer.claim) Die(absl::StrCat(answer.key.job, " ", answer.key.period, " was refused"));
    FinishRequest end;
    end.ticket = TicketOf(*answer.claim);
    end.outcome.kind = Outcome::Kind::kDone;
    end.node = start.node.name;
    ends.push_back(std::move(end));
  }
  return ends;
}

// One caller; answers how many it ran.
int64_t ClaimAndEnd(Stage& stage, int64_t runs, std::vector<absl::Duration>& claims) {
  auto store = stage.database().Open();
  DieUnlessOk(store.status(), "opening the store");
  StartRequest start;
  start.node = {"bench/claims", {"handler:noop"}};
  start.also_due = static_cast<int>(stage.options().Int("batch"));
  int64_t done = 0;
  while (done < runs) {
    ++start.nonce;
    const absl::Time sent = absl::Now();
    const auto answers = (*store)->Start(start);
    claims.push_back(absl::Now() - sent);
    DieUnlessOk(answers.status(), "START");
    const std::vector<FinishRequest> ends = EndsOf(*answers, start);
    if (ends.empty()) Die(absl::StrCat("nothing is due after ", done, " runs"));
    const auto refusals = (*store)->Finish(ends);
    DieUnlessOk(refusals.status(), "the end");
    for (const Refusal& refusal : *refusals) {
      if (!refusal.accepted()) Die(absl::StrCat("an end was refused: ", refusal.why));
    }
    done += static_cast<int64_t>(ends.size());
  }
  return done;
}

// So many of what is due.
void MakeDue(Stage& stage, int64_t runs, absl::string_view of) {
  const absl::Time at = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 8 + runs / 4000);
  stage.ApplyOneOffs(runs, at, kOneOff, of);
  absl::SleepFor(at + absl::Milliseconds(10) - absl::Now());
  stage.Plan();
}

void Run(const Options& options) {
  const int64_t runs = options.Int("runs");
  const std::string& beside = options.Text("beside");
  Stage stage(options);
  Fill(stage, beside, options.Int("rows"));
  if (beside != "due") MakeDue(stage, runs, "drained");
  stage.Rest();
  const Drained drained = DrainByNode(options, runs);
  if (beside != "due") MakeDue(stage, runs, "claimed");
  stage.Rest();
  std::vector<absl::Duration> claims;
  const absl::Time begin = absl::Now();
  const int64_t done = ClaimAndEnd(stage, runs, claims);
  const double seconds = absl::ToDoubleSeconds(absl::Now() - begin);
  ProveDoneAmong(stage, drained.done + done);
  Line("claims", options)
      .Add("beside", beside)
      .Add("rows", options.Int("rows"))
      .Add("runs", runs)
      .Add("per_second", drained.per_second)
      .Add("by_one_caller_per_second", static_cast<double>(done) / seconds)
      .AddLatencies("", claims)
      .Print();
}

}  // namespace
}  // namespace matins::bench

int main(int argc, char** argv) {
  const matins::bench::Options options(
      argc, argv,
      {{"beside", "nothing"}, {"rows", "1000000"}, {"runs", "20000"}, {"batch", "100"}});
  matins::bench::Run(options);
}
