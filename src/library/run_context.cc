#include "library/run_context.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/status.h"
#include "base/time.h"
#include "store/fence_sql.h"

namespace matins {
inline namespace api {
namespace {

// Names have no backslash, whose meaning is not the same everywhere.
std::string Literal(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "''"}}), "'");
}

// The statement with job, period, generation and fence in the places of its four parameters.
std::string Filled(absl::string_view statement, const RunContext& run) {
  const std::string values[] = {Literal(run.job()), Literal(run.period()),
                                absl::StrCat(run.generation()), absl::StrCat(run.fence())};
  std::string filled;
  size_t next = 0;
  for (const char c : statement) {
    if (c == '?') {
      filled += values[next++];
    } else {
      filled += c;
    }
  }
  return filled;
}

// A transaction of the test's own connection reads the test's clock as well.
std::string OnClock(std::string sql, Clock* test_clock) {
  if (test_clock == nullptr) return sql;
  const std::string now =
      absl::FormatTime("%Y-%m-%d %H:%M:%E3S", test_clock->WallNow(), absl::UTCTimeZone());
  return absl::StrReplaceAll(sql, {{"'now'", Literal(now)}});
}

// In MariaDB a statement may name another database than the session's.
std::string InDatabase(std::string sql, const CommitPlace& place) {
  if (place.dialect != FenceDialect::kMariadb) return sql;
  const std::string there = absl::StrCat("`", place.schema, "`.");
  return absl::StrReplaceAll(sql, {{"job_watermark", absl::StrCat(there, "job_watermark")},
                                   {"job_run", absl::StrCat(there, "job_run")},
                                   {"matins_now()", absl::StrCat(there, "matins_now()")}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunContext::Impl>> RunContext::Impl::Make(HandlerContext& handler,
                                                                         const CommitPlace& place,
                                                                         Clock* test_clock) {
  auto impl = std::make_unique<Impl>();
  impl->handler = &handler;
  impl->place = place;
  impl->test_clock = test_clock;
  const RunValues& values = impl->values();
  ASSIGN_OR_RETURN(impl->biz_date, ParseDay(values.biz_date));
  ASSIGN_OR_RETURN(impl->window_start, ParseInstant(values.window_start));
  ASSIGN_OR_RETURN(impl->window_end, ParseInstant(values.window_end));
  ASSIGN_OR_RETURN(impl->scheduled_for, ParseInstant(values.scheduled_for));
  impl->params.insert(values.params.begin(), values.params.end());
  if (values.checkpoint_number > 0) {
    absl::MutexLock lock(&impl->mutex);
    impl->checkpoint = {values.checkpoint_number, values.checkpoint};
  }
  return impl;
}

RunContext::RunContext(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RunContext::~RunContext() = default;

const std::string& RunContext::job() const { return impl_->values().job; }
const std::string& RunContext::tenant() const { return impl_->values().tenant; }
const std::string& RunContext::period() const { return impl_->values().period; }
absl::CivilDay RunContext::biz_date() const { return impl_->biz_date; }
absl::Time RunContext::window_start() const { return impl_->window_start; }
absl::Time RunContext::window_end() const { return impl_->window_end; }
absl::Time RunContext::scheduled_for() const { return impl_->scheduled_for; }
int RunContext::generation() const { return impl_->values().generation; }
int RunContext::attempt() const { return impl_->values().attempt; }
bool RunContext::backfill() const { return impl_->values().backfill; }
const std::map<std::string, std::string>& RunContext::params() const { return impl_->params; }

int64_t RunContext::fence() const { return impl_->handler->request().run; }

absl::Status RunContext::ConfirmOwner() {
  return impl_->handler->Ask(AskKind::kFence, -1, "").status();
}

std::optional<Checkpoint> RunContext::checkpoint() const {
  absl::MutexLock lock(&impl_->mutex);
  return impl_->checkpoint;
}

absl::Status RunContext::SaveCheckpoint(int64_t number, absl::string_view data) {
  if (number < 1) {
    return BadInput("SaveCheckpoint", absl::StrCat("number ", number), "count from 1");
  }
  if (data.size() > 64 * 1024) {
    return BadInput("SaveCheckpoint", absl::StrCat(data.size(), " bytes of data"),
                    "keep up to 64 KiB; more belongs in a file or table of its own");
  }
  RETURN_IF_ERROR(impl_->handler->Ask(AskKind::kCheckpoint, number, std::string(data)).status());
  absl::MutexLock lock(&impl_->mutex);
  if (!impl_->checkpoint || impl_->checkpoint->number < number) {
    impl_->checkpoint = {number, std::string(data)};
  }
  return absl::OkStatus();
}

absl::Status RunContext::SetResult(absl::string_view json) {
  return impl_->handler->Ask(AskKind::kResult, -1, std::string(json)).status();
}

void RunContext::Print(absl::string_view text) { impl_->handler->Print(text); }

bool RunContext::stop_requested() const { return stop_token().stop_requested(); }
std::stop_token RunContext::stop_token() const { return impl_->handler->stop_token(); }

StopCause RunContext::stop_cause() const {
  switch (impl_->handler->stop_reason()) {
    case StopReason::kNone:
      return StopCause::kNone;
    case StopReason::kTimeOut:
      return StopCause::kTimeOut;
    case StopReason::kCancelled:
      return StopCause::kCancelled;
    case StopReason::kReplaced:
      return StopCause::kReplaced;
    case StopReason::kShutdown:
      return StopCause::kShutdown;
    case StopReason::kLeaseLost:
    case StopReason::kNodeDied:
      break;
  }
  return StopCause::kLeaseLost;
}

std::vector<CommitStatement> RunContext::CommitSql() const {
  const FenceStatements& sql = FenceSql(impl_->place.dialect);
  std::vector<CommitStatement> statements;
  // The caller's session looks elsewhere; until its COMMIT, here as well.
  if (impl_->place.dialect == FenceDialect::kPostgresql && !impl_->place.schema.empty()) {
    statements.push_back({absl::StrCat("SELECT set_config('search_path', ",
                                       Literal(absl::StrCat("\"", impl_->place.schema, "\",")),
                                       " || current_setting('search_path'), true)")});
  }
  for (const std::string* each : {&sql.lock, &sql.commit, &sql.record}) {
    const std::string here = InDatabase(OnClock(*each, impl_->test_clock), impl_->place);
    statements.push_back({Filled(here, *this), each == &sql.commit});
  }
  return statements;
}

absl::Status RunContext::WriteDone(
    const std::function<absl::StatusOr<int64_t>(absl::string_view sql)>& execute) {
  for (const CommitStatement& statement : CommitSql()) {
    ASSIGN_OR_RETURN(const int64_t changed, execute(statement.sql));
    if (statement.decides && changed != 1) {
      return absl::AbortedError(absl::StrCat("run ", fence(), " no longer owns ", job(), " ",
                                             period(), "; roll back, and write nothing more"));
    }
  }
  return absl::OkStatus();
}

}  // namespace api
}  // namespace matins
