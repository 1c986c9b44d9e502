// matins_simulator: runs seeds over the SQLite store, or over the model of the stores in memory,
// and says which promise a seed breaks.
//
//   matins_simulator --seeds FROM..TO   runs them all; exits 1 when one broke a promise
//   matins_simulator --seed N           one seed, told event by event
//   --alone             over the SQLite store without a prediction of its answers by the model
//   --model             over the model: it leaves no evidence
//   --evidence FOLDER   keeps each seed's database and testimony there, for tools/checker
//   --until-caught      ends well at the first seed that breaks a promise, and fails when none
//   does:
//                       for mutants (MATINS_MUTANT in the environment)
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "lab/simulator.h"
#include "simulator/model_simulation.h"
#include "simulator/sqlite_simulation.h"
#include "simulator/twin_simulation.h"

namespace matins {
namespace {

struct Options {
  uint64_t from = 1;
  uint64_t to = 20;
  bool story = false;
  bool until_caught = false;
  bool model = false;
  bool alone = false;
  std::string evidence;
};

int Usage() {
  std::fprintf(stderr,
               "usage: matins_simulator [--seed N | --seeds FROM..TO] [--evidence FOLDER] "
               "[--until-caught] [--alone | --model]\n");
  return 64;
}

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--until-caught") {
      options.until_caught = true;
      continue;
    }
    if (flag == "--model" || flag == "--alone") {
      (flag == "--model" ? options.model : options.alone) = true;
      continue;
    }
    if (++i == argc) return false;
    const std::string value = argv[i];
    if (flag == "--seed") {
      if (!absl::SimpleAtoi(value, &options.from)) return false;
      options.to = options.from;
      options.story = true;
    } else if (flag == "--seeds") {
      const std::pair<std::string, std::string> ends =
          absl::StrSplit(value, absl::MaxSplits("..", 1));
      if (!absl::SimpleAtoi(ends.first, &options.from) ||
          !absl::SimpleAtoi(ends.second, &options.to)) {
        return false;
      }
    } else if (flag == "--evidence") {
      options.evidence = value;
    } else {
      return false;
    }
  }
  return options.evidence.empty() || !options.model;
}

SimDatabaseMaker Maker(const Options& options, const std::string& base) {
  if (options.model) return Model();
  SimDatabaseMaker sqlite = SqliteAt(base + ".db");
  return options.alone ? sqlite : WithPrediction(std::move(sqlite), Model());
}

int Run(const Options& options) {
  const ScratchFolder scratch;
  const std::string folder = options.evidence.empty() ? scratch.path() : options.evidence;
  std::map<std::string, int64_t> seen;
  int broken_seeds = 0;
  for (uint64_t seed = options.from; seed <= options.to; ++seed) {
    const std::string base = absl::StrCat(folder, "/seed-", seed);
    SimulationOptions simulation;
    simulation.seed = seed;
    simulation.story = options.story;
    const auto report = Simulate(simulation, Maker(options, base));
    if (!report.ok()) {
      std::fprintf(stderr, "seed %lu: %s\n", seed, std::string(report.status().message()).c_str());
      return 70;
    }
    for (const auto& [what, count] : report->seen) seen[what] += count;
    if (options.evidence.empty()) {
      std::remove((base + ".db").c_str());
    } else {
      std::ofstream(base + ".testimony.jsonl") << report->testimony;
      std::ofstream(base + ".effects.jsonl") << report->effects;
      std::ofstream(base + ".jobs.jsonl") << report->jobs;
      std::ofstream(base + ".world.json") << report->world;
    }
    if (report->broken.empty()) continue;
    ++broken_seeds;
    for (const std::string& what : report->broken) {
      std::printf("seed %lu broke %s\n", seed, what.c_str());
      if (options.until_caught) return 0;
    }
  }
  for (const auto& [what, count] : seen) std::printf("%10ld %s\n", count, what.c_str());
  if (options.until_caught) {
    std::printf("no seed of %lu..%lu caught it\n", options.from, options.to);
    return 1;
  }
  std::printf("%d of %lu seeds broke a promise\n", broken_seeds, options.to - options.from + 1);
  return broken_seeds == 0 ? 0 : 1;
}

}  // namespace
}  // namespace matins

int main(int argc, char** argv) {
  matins::Options options;
  return matins::Parse(argc, argv, options) ? matins::Run(options) : matins::Usage();
}
