// A quick door that says anything (I22): in a simulation nothing may come of it but a delay.
#ifndef MATINS_LAB_LYING_DOOR_H_
#define MATINS_LAB_LYING_DOOR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "lease/door.h"

namespace matins {

// The same lies for the same seed, in the order in which they are asked for.
class LyingDoor final : public Door {
 public:
  explicit LyingDoor(uint64_t seed) : random_(seed) {}

  std::vector<DoorAnswer> Enter(absl::Span<const DoorKey> keys) override {
    std::vector<DoorAnswer> answers(keys.size());
    for (DoorAnswer& answer : answers) {
      if (random_.OneIn(2)) continue;
      answer = {false, "nobody", absl::InfiniteDuration()};
      if (random_.OneIn(2)) answer.left = absl::Milliseconds(random_.Below(20'000));
    }
    return answers;
  }
  void Leave(absl::Span<const std::string>) override {}

 private:
  SeededRandom random_;
};

}  // namespace matins

#endif  // MATINS_LAB_LYING_DOOR_H_
