// The model under the conformance suite: what it predicts is what the others must answer.
#include <atomic>

#include "base/time.h"
#include "conformance/fixture.h"
#include "store/model/model_database.h"

namespace matins::conformance {
namespace {

class ModelWorld final : public World {
 public:
  Database& database() override { return database_; }
  void SetClock(absl::Time now) override { *micros_ = ToMicros(now); }
  absl::Status DeleteRow(const PeriodKey& key) override { return database_.DeleteRow(key); }

 private:
  const std::shared_ptr<std::atomic<int64_t>> micros_ =
      std::make_shared<std::atomic<int64_t>>(ToMicros(T0()));
  model::ModelDatabase database_{[this] {
    DatabaseOptions options;
    options.clock = [micros = micros_] { return FromMicros(*micros); };
    return options;
  }()};
};

class ModelBackend final : public Backend {
 public:
  std::string name() const override { return "model"; }
  std::set<Capability> capabilities() const override { return {}; }
  std::set<Mutant> mutants() const override { return {}; }
  absl::StatusOr<std::unique_ptr<World>> NewWorld() override {
    return std::make_unique<ModelWorld>();
  }
};

}  // namespace

std::unique_ptr<Backend> MakeBackend() { return std::make_unique<ModelBackend>(); }

}  // namespace matins::conformance
