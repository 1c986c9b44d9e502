#include "simulator/model_simulation.h"

#include <memory>
#include <utility>

#include "store/model/model_database.h"

namespace matins {
namespace {

class ModelSimulation final : public SimDatabase {
 public:
  explicit ModelSimulation(DatabaseOptions options) : database_(std::move(options)) {}

  Database& database() override { return database_; }
  absl::Status DeleteRow(const PeriodKey& key) override { return database_.DeleteRow(key); }
  absl::Status InsertDoneRow(const PeriodKey& key) override { return database_.InsertDoneRow(key); }

 private:
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
