// The scheduler behind the public class. This side knows the engine, and of the public headers
// types.h alone: the public Job and the engine's have one name.
#ifndef MATINS_LIBRARY_CORE_H_
#define MATINS_LIBRARY_CORE_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "engine/events.h"
#include "execute/handler_runner.h"
#include "matins/types.h"
#include "store/fence_sql.h"

namespace matins {

class Database;
class Drive;

// A file or folder that goes with its owner; an empty path is none.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  absl::Status Make();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Thread-safe. Scheduler (matins/scheduler.h) says what each method does.
class Core final : private EngineEvents {
 public:
  // `clock` is the TestClock's, or null.
  static absl::StatusOr<std::unique_ptr<Core>> Open(SchedulerOptions options, Clock* clock);

  ~Core() override;
  absl::Status AddHandler(absl::string_view name, Handler handler);
  // `name` stands for the text in messages.
  absl::StatusOr<Applied> Apply(const std::string& name, absl::string_view yaml,
                                const ApplyOptions& options);
  absl::Status Start();
  absl::Status Drain(absl::Duration patience);
  absl::Status Step();
  absl::StatusOr<std::string> RunPeriodByHand(const ByHand& request);
  absl::StatusOr<PeriodState> Wait(absl::string_view job, absl::string_view period,
                                   absl::Duration timeout);
  absl::StatusOr<PeriodState> Read(absl::string_view job, absl::string_view period);
  absl::Status Cancel(int64_t fence, absl::string_view reason);

  // Where a `commit: job` handler writes DONE.
  const CommitPlace& commit_place() const { return place_; }
  Clock* test_clock() const { return test_clock_; }

 private:
  Core(SchedulerOptions options, Clock* clock);
  absl::Status OpenStore();
  bool by_hand() const { return test_clock_ != nullptr; }
  // Null before Start and from Drain on.
  Drive* drive();
  void LookNow();
  void OnEvent(const EngineEvent& event) override;
  bool Listens() const override { return options_.on_event != nullptr; }

  SchedulerOptions options_;
  Clock* const test_clock_;
  TemporaryFolder folder_;
  CommitPlace place_;
  std::unique_ptr<Database> database_;
  absl::Mutex mutex_;
  std::map<std::string, Handler> handlers_ ABSL_GUARDED_BY(mutex_);
  bool left_ ABSL_GUARDED_BY(mutex_) = false;
  // Periods that were FAILED when a run was asked for, until that is waited for: how they stood.
  std::map<std::pair<std::string, std::string>, int64_t> failed_ ABSL_GUARDED_BY(mutex_);
  // Last: it uses all of the above, and ending it waits for handlers.
  std::unique_ptr<Drive> drive_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace matins

#endif  // MATINS_LIBRARY_CORE_H_
