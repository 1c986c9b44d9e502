#ifndef MATINS_LIBRARY_RUN_CONTEXT_H_
#define MATINS_LIBRARY_RUN_CONTEXT_H_

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "execute/handler_runner.h"
#include "matins/run_context.h"
#include "store/fence_sql.h"

namespace matins {
inline namespace api {

struct RunContext::Impl {
  // Fails where what the engine wrote cannot be read, which is a bug.
  // `test_clock`: what the statements of `commit: job` are to take for SQLite's clock; null: its
  // own.
  static absl::StatusOr<std::unique_ptr<Impl>> Make(HandlerContext& handler,
                                                    const CommitPlace& place, Clock* test_clock);
  const RunValues& values() const { return handler->request().values; }

  HandlerContext* handler = nullptr;
  CommitPlace place;
  Clock* test_clock = nullptr;
  absl::CivilDay biz_date;
  absl::Time window_start, window_end, scheduled_for;
  std::map<std::string, std::string> params;
  mutable absl::Mutex mutex;
  std::optional<Checkpoint> checkpoint ABSL_GUARDED_BY(mutex);
};

}  // namespace api
}  // namespace matins

#endif  // MATINS_LIBRARY_RUN_CONTEXT_H_
