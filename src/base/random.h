// The random source is passed in, so that a seed repeats a run.
#ifndef MATINS_BASE_RANDOM_H_
#define MATINS_BASE_RANDOM_H_

#include <cstdint>
#include <random>
#include <string>

namespace matins {

// Not thread-safe; give each thread its own.
class Random {
 public:
  virtual ~Random() = default;
  virtual uint64_t Next() = 0;
  // Uniform in [0, below); below > 0.
  uint64_t Below(uint64_t below);
  // True once in `n` times on average.
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // 128 bits as 32 hex digits.
  std::string Hex128();
};

// The kernel's random numbers: for nonces, incarnations and secrets.
class SystemRandom final : public Random {
 public:
  uint64_t Next() override;
};

class SeededRandom final : public Random {
 public:
  explicit SeededRandom(uint64_t seed) : engine_(seed) {}
  uint64_t Next() override { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace matins

#endif  // MATINS_BASE_RANDOM_H_
