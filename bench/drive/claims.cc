// What a claim costs beside many rows: START and the end of what it granted, in batches, by one
// caller without a node. Beside nothing, a million rows that are not due, or a million that are.
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/drive/stage.h"
#include "store/store.h"

namespace matins::bench {
namespace {

constexpr absl::string_view kOneOff = "misfire: each, start_deadline: 1h, run: { handler: noop }";

absl::Duration Timed(absl::Time begin) { return absl::Now() - begin; }

void Run(const Options& options) {
  const int64_t runs = options.Int("runs");
  const int64_t rows = options.Int("rows");
  const bool due = options.Text("beside") == "due";
  Stage stage(options);
  if (options.Text("beside") != "nothing") {
    stage.FillPlanned(rows, due ? -absl::Hours(1) : absl::Hours(24 * 365));
  }
  if (!due) {
    const absl::Time at = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now()) + 8 + runs / 4000);
    stage.ApplyOneOffs(runs, at, kOneOff);
    absl::SleepFor(at + absl::Milliseconds(10) - absl::Now());
    stage.Plan();
  }
  stage.Rest();
  auto store = stage.database().Open();
  DieUnlessOk(store.status(), "opening the store");
  StartRequest start;
  start.node = {"bench/claims", {"handler:noop"}};
  start.also_due = static_cast<int>(options.Int("batch"));
  std::vector<absl::Duration> claims;
  int64_t done = 0;
  const absl::Time begin = absl::Now();
  while (done < runs) {
    ++start.nonce;
    const absl::Time sent = absl::Now();
    const auto answers = (*store)->Start(start);
    claims.push_back(Timed(sent));
    DieUnlessOk(answers.status(), "START");
    std::vector<FinishRequest> ends;
    for (const StartAnswer& answer : answers->rows) {
      if (!answer.claim) Die(absl::StrCat(answer.key.job, " ", answer.key.period, " was refused"));
      FinishRequest end;
      end.ticket = TicketOf(*answer.claim);
      end.outcome.kind = Outcome::Kind::kDone;
      end.node = start.node.name;
      ends.push_back(std::move(end));
    }
    if (ends.empty()) Die(absl::StrCat("nothing is due after ", done, " runs"));
    const auto refusals = (*store)->Finish(ends);
    DieUnlessOk(refusals.status(), "the end");
    for (const Refusal& refusal : *refusals) {
      if (!refusal.accepted()) Die(absl::StrCat("an end was refused: ", refusal.why));
    }
    done += static_cast<int64_t>(ends.size());
  }
  const double seconds = absl::ToDoubleSeconds(Timed(begin));
  Line("claims", options)
      .Add("beside", options.Text("beside"))
      .Add("rows", rows)
      .Add("runs", done)
      .Add("per_second", static_cast<double>(done) / seconds)
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
