#include "matins/scheduler.h"

#include <utility>

#include "base/status.h"
#include "library/core.h"
#include "library/run_context.h"
#include "library/test_clock.h"

namespace matins {
inline namespace api {

struct Scheduler::Impl {
  std::unique_ptr<Core> core;
};

Scheduler::Scheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scheduler::~Scheduler() = default;

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Open(SchedulerOptions options) {
  Clock* const clock = options.clock == nullptr ? nullptr : &options.clock->impl().clock;
  auto impl = std::make_unique<Impl>();
  ASSIGN_OR_RETURN(impl->core, Core::Open(std::move(options), clock));
  return std::unique_ptr<Scheduler>(new Scheduler(std::move(impl)));
}

absl::Status Scheduler::AddHandler(absl::string_view name, RunHandler handler) {
  Core& core = *impl_->core;
  return core.AddHandler(
      name, [handler = std::move(handler), &core](HandlerContext& run) -> absl::Status {
        ASSIGN_OR_RETURN(auto impl,
                         RunContext::Impl::Make(run, core.commit_place(), core.test_clock()));
        RunContext context(std::move(impl));
        return handler(context);
      });
}

absl::StatusOr<Applied> Scheduler::Apply(const Job& job, const ApplyOptions& options) {
  return impl_->core->Apply("program/" + job.name, ToYaml(job), options);
}

absl::StatusOr<Applied> Scheduler::Apply(absl::string_view yaml, const ApplyOptions& options) {
  return impl_->core->Apply("program", yaml, options);
}

absl::Status Scheduler::Start() { return impl_->core->Start(); }
absl::Status Scheduler::Drain(absl::Duration patience) { return impl_->core->Drain(patience); }
absl::Status Scheduler::Step() { return impl_->core->Step(); }

absl::StatusOr<std::string> Scheduler::RunByHand(const ByHand& request) {
  return impl_->core->RunPeriodByHand(request);
}

absl::StatusOr<PeriodState> Scheduler::Wait(absl::string_view job, absl::string_view period,
                                            absl::Duration timeout) {
  return impl_->core->Wait(job, period, timeout);
}

absl::StatusOr<PeriodState> Scheduler::Read(absl::string_view job, absl::string_view period) {
  return impl_->core->Read(job, period);
}

absl::Status Scheduler::Cancel(int64_t fence, absl::string_view reason) {
  return impl_->core->Cancel(fence, reason);
}

}  // namespace api
}  // namespace matins
