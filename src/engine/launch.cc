#include "engine/launch.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "engine/timing.h"
#include "engine/witness.h"
#include "nlohmann/json.hpp"

namespace matins {
namespace {

absl::StatusOr<std::vector<std::pair<std::string, std::string>>> ParamsOf(const Claim& claim) {
  std::vector<std::pair<std::string, std::string>> params;
  if (claim.params.empty()) return params;
  const nlohmann::json object = nlohmann::json::parse(claim.params, nullptr, false);
  if (!object.is_object()) {
    return BadInput(absl::StrCat(claim.key.job, " ", claim.key.period, ", params"),
                    absl::StrCat("not a JSON object: ", claim.params),
                    "give each parameter as name=value");
  }
  for (const auto& [name, value] : object.items()) {
    params.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return params;
}

Program ProgramOf(const RunSpec& spec) {
  switch (spec.kind) {
    case RunKind::kCommand:
      return {.argv = spec.command};
    case RunKind::kShell:
      return {.shell = spec.shell};
    case RunKind::kHandler:
      return {.handler = spec.handler};
    case RunKind::kExec:
      // Only the call itself knows; its runner puts it in.
      return {};
  }
  return {};
}

absl::StatusOr<RunValues> ValuesOf(const LiveRun& run) {
  const Claim& claim = run.claim;
  RunValues values;
  values.job = claim.key.job;
  values.tenant = run.job().tenant;
  values.period = claim.key.period;
  values.biz_date = FormatDay(claim.biz_date);
  values.window_start = FormatInstant(claim.window_start);
  values.window_end = FormatInstant(claim.window_end);
  values.scheduled_for = FormatInstant(claim.due);
  values.generation = claim.generation;
  values.attempt = claim.attempt;
  values.backfill = claim.backfill;
  if (claim.checkpoint > 0) values.checkpoint_number = claim.checkpoint;
  values.checkpoint = claim.checkpoint_data;
  ASSIGN_OR_RETURN(values.params, ParamsOf(claim));
  return values;
}

absl::StatusOr<RunRequest> RequestOf(const LiveRun& run, const RunSpec& spec,
                                     absl::Duration last_proof) {
  const Job& job = run.job();
  RunRequest request;
  request.program = ProgramOf(spec);
  ASSIGN_OR_RETURN(request.values, ValuesOf(run));
  request.dir = job.dir;
  request.user = job.user;
  request.umask = job.umask;
  for (const auto& [name, value] : job.env) request.env.push_back({name, value.text, value.file});
  request.output.head_bytes = job.output_keep_bytes / 2;
  request.output.tail_bytes = job.output_keep_bytes - request.output.head_bytes;
  request.lease = LeaseDeadline(last_proof, job.lock.ttl, job.grace);
  request.time_out = run.time_out;
  request.abort_on_lease_lost = job.on_lease_lost == OnLeaseLost::kAbortProcess;
  return request;
}

}  // namespace

absl::StatusOr<RunRequest> RunRequestOf(const LiveRun& run, const NodeOptions& options) {
  ASSIGN_OR_RETURN(RunRequest request, RequestOf(run, run.job().run, run.sent));
  request.run = run.claim.fence;
  if (run.job().run.kind != RunKind::kHandler) {
    request.give_back = {options.give_back_program, options.store_url, run.claim.nonce};
  }
  return request;
}

absl::StatusOr<RunRequest> CheckRequestOf(const LiveRun& run, absl::Duration last_proof) {
  // Nothing is given back for it: its node writes the result, or the lease ends.
  ASSIGN_OR_RETURN(RunRequest request, RequestOf(run, *run.job().check, last_proof));
  request.run = CheckId(run.claim.fence);
  return request;
}

void TakeClaim(EngineNode& node, Store& store, const Claim& claim, absl::Duration sent,
               std::vector<RunRequest>& requests) {
  ++node.counters.claims;
  Testify(node, "claim", "ok", TicketOf(claim));
  node.Say(event::kClaimed, claim.key, claim.fence);
  auto run = std::make_shared<LiveRun>();
  run->claim = claim;
  run->sent = sent;
  run->received = node.clock.BootNow();
  absl::StatusOr<DefinitionPtr> definition =
      node.definitions.Current(store, claim.key.job, claim.current_version);
  absl::Status failed = definition.status();
  if (definition.ok()) {
    run->definition = *std::move(definition);
    const Job& job = run->job();
    run->time_out = TimeOutDeadline(sent, job.timeout, job.grace, job.lock.ttl);
    absl::StatusOr<RunRequest> request = RunRequestOf(*run, node.options);
    failed = request.status();
    if (request.ok()) requests.push_back(*std::move(request));
  }
  const bool sooner = node.live.Add(run);
  if (!failed.ok()) {
    node.not_launched.Put({run, std::move(failed)});
    node.Ring(LaneKind::kFinish);
  } else if (sooner) {
    node.Ring(LaneKind::kBeat);
  }
}

}  // namespace matins
