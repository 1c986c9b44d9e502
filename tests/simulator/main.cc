// matins_simulator: runs seeds over the SQLite store, or over the model of the stores in memory,
// and says which promise a seed breaks.
//
//   matins_simulator --seeds FROM..TO   runs them all; exits 1 when one broke a promise
//   matins_simulator --kept FILE        those that FILE names, a line each; a remark follows #
//   matins_simulator --seed N           one seed, told event by event
//   --alone             over the SQLite store without a prediction of its answers by the model
//   --model             over the model: it leaves no evidence
//   --evidence FOLDER   keeps each seed's database and testimony there, for tools/checker
//   --deaf              of three nodes or more one hears no answer any more, in peace too: all has
//   to
//                       be done without it (I20)
//   --twice             runs each seed once more after all the others, the last one first, and
//                       demands the same history of it to the letter; without the prediction,
//                       which changes nothing
//   --until-caught      ends well at the first seed that breaks a promise, and fails when none
//                       does: for mutants (MATINS_MUTANT in the environment)
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "lab/simulator.h"
#include "simulator/model_simulation.h"
#include "simulator/sqlite_simulation.h"
#include "simulator/twin_simulation.h"

namespace matins {
namespace {

struct Options {
  uint64_t from = 1;
  uint64_t to = 20;
  std::string kept;
  bool story = false;
  bool until_caught = false;
  bool model = false;
  bool alone = false;
  bool twice = false;
  bool deaf = false;
  std::string evidence;
};

int Usage() {
  std::fprintf(
      stderr,
      "usage: matins_simulator [--seed N | --seeds FROM..TO | --kept FILE] [--evidence FOLDER] "
      "[--until-caught | --twice] [--alone | --model] [--deaf]\n");
  return 64;
}

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--until-caught") {
      options.until_caught = true;
      continue;
    }
    if (flag == "--model" || flag == "--alone" || flag == "--twice" || flag == "--deaf") {
      (flag == "--model"   ? options.model
       : flag == "--deaf"  ? options.deaf
       : flag == "--alone" ? options.alone
                           : options.twice) = true;
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
    } else if (flag == "--kept") {
      options.kept = value;
    } else if (flag == "--evidence") {
      options.evidence = value;
    } else {
      return false;
    }
  }
  return (options.evidence.empty() || !options.model) && !(options.twice && options.until_caught);
}

SimDatabaseMaker Maker(const Options& options, const std::string& base) {
  if (options.model) return Model();
  SimDatabaseMaker sqlite = SqliteAt(base + ".db");
  return options.alone ? sqlite : WithPrediction(std::move(sqlite), Model());
}

absl::StatusOr<SimulationReport> RunSeed(const Options& options, uint64_t seed,
                                         const std::string& base) {
  SimulationOptions simulation;
  simulation.seed = seed;
  simulation.deaf = options.deaf;
  simulation.story = options.story;
  absl::StatusOr<SimulationReport> report = Simulate(simulation, Maker(options, base));
  if (!report.ok()) {
    std::fprintf(stderr, "seed %lu: %s\n", seed, std::string(report.status().message()).c_str());
  } else if (options.evidence.empty()) {
    std::remove((base + ".db").c_str());
  } else {
    std::ofstream(base + ".testimony.jsonl") << report->testimony;
    std::ofstream(base + ".effects.jsonl") << report->effects;
    std::ofstream(base + ".jobs.jsonl") << report->jobs;
    std::ofstream(base + ".world.json") << report->world;
  }
  return report;
}

// All that a seed left behind.
std::string HistoryOf(const SimulationReport& report) {
  std::string history = absl::StrCat(report.jobs, report.testimony, report.effects, report.world);
  for (const auto& [what, count] : report.seen) absl::StrAppend(&history, count, " ", what, "\n");
  return absl::StrCat(history, absl::StrJoin(report.broken, "\n"));
}

// What of a history comes first that the other has not.
std::string FirstDifference(const std::string& first, const std::string& second) {
  const std::vector<std::string> a = absl::StrSplit(first, '\n'), b = absl::StrSplit(second, '\n');
  const auto at = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return absl::StrCat("first  ", at.first == a.end() ? "(the end)" : *at.first, "\n  second ",
                      at.second == b.end() ? "(the end)" : *at.second);
}

// A seed is the same run whatever ran before it in this process.
int RunAgain(Options options, const std::map<uint64_t, std::string>& histories) {
  const ScratchFolder scratch;
  options.alone = true;
  options.evidence.clear();
  int other = 0;
  for (auto it = histories.rbegin(); it != histories.rend(); ++it) {
    const auto report =
        RunSeed(options, it->first, absl::StrCat(scratch.path(), "/seed-", it->first));
    if (!report.ok()) return 70;
    const std::string history = HistoryOf(*report);
    if (history == it->second) continue;
    ++other;
    std::printf("seed %lu was another run the second time:\n  %s\n", it->first,
                FirstDifference(it->second, history).c_str());
  }
  std::printf("%d of %zu seeds were another run the second time\n", other, histories.size());
  return other == 0 ? 0 : 1;
}

// None: the file cannot be read, or says something else than a number.
std::vector<uint64_t> Seeds(const Options& options) {
  std::vector<uint64_t> seeds;
  if (options.kept.empty()) {
    for (uint64_t seed = options.from; seed <= options.to; ++seed) seeds.push_back(seed);
    return seeds;
  }
  std::ifstream file(options.kept);
  for (std::string line; std::getline(file, line);) {
    const absl::string_view text =
        absl::StripAsciiWhitespace(absl::string_view(line).substr(0, line.find('#')));
    if (text.empty()) continue;
    uint64_t seed;
    if (!absl::SimpleAtoi(text, &seed)) return {};
    seeds.push_back(seed);
  }
  return seeds;
}

int Run(const Options& options) {
  const std::vector<uint64_t> seeds = Seeds(options);
  if (seeds.empty()) return Usage();
  const ScratchFolder scratch;
  const std::string folder = options.evidence.empty() ? scratch.path() : options.evidence;
  std::map<std::string, int64_t> seen;
  std::map<uint64_t, std::string> histories;
  int broken_seeds = 0;
  for (const uint64_t seed : seeds) {
    const auto report = RunSeed(options, seed, absl::StrCat(folder, "/seed-", seed));
    if (!report.ok()) return 70;
    for (const auto& [what, count] : report->seen) seen[what] += count;
    if (options.twice) histories[seed] = HistoryOf(*report);
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
  std::printf("%d of %zu seeds broke a promise\n", broken_seeds, seeds.size());
  const int again = options.twice ? RunAgain(options, histories) : 0;
  return broken_seeds == 0 ? again : 1;
}

}  // namespace
}  // namespace matins

int main(int argc, char** argv) {
  matins::Options options;
  return matins::Parse(argc, argv, options) ? matins::Run(options) : matins::Usage();
}
