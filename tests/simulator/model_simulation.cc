#include "simulator/model_simulation.h"

#include <functional>
#include <memory>
#include <utility>

#include "simulator/plain_instant.h"
#include "store/model/model_database.h"

namespace matins {
namespace {

class ModelSimulation final : public SimDatabase {
 public:
  explicit ModelSimulation(DatabaseOptions options)
      : clock_(options.clock), database_(std::move(options)) {}

  Database& database() override { return database_; }
  absl::Status DeleteRow(const PeriodKey& key) override { return database_.DeleteRow(key); }
  absl::Status InsertDoneRow(const PeriodKey& key) override { return database_.InsertDoneRow(key); }
  absl::StatusOr<bool> CommitByJob(const PeriodKey& key, int generation, int64_t fence) override {
    const PlainInstant now = PlainInstantOf(clock_());
    return database_.CommitByJob(key, generation, fence, now.compared, now.written);
  }

 private:
  const std::function<absl::Time()> clock_;
  model::ModelDatabase database_;
};

}  // namespace

SimDatabaseMaker Model() {
  return [](std::function<absl::Time()> clock) -> absl::StatusOr<std::unique_ptr<SimDatabase>> {
    DatabaseOptions options;
    options.clock = std::move(clock);
    return std::make_unique<ModelSimulation>(std::move(options));
  };
}

}  // namespace matins
