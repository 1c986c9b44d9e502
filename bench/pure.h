// The pure parts that cost while a scheduler lives: when jobs are due, what they owe, what a file
// says. Measured in time by pure_bench, and in instructions by `instructions/`.
#ifndef MATINS_BENCH_PURE_H_
#define MATINS_BENCH_PURE_H_

#include <functional>
#include <string>
#include <vector>

namespace matins::bench {

struct PureWork {
  std::string name;   // "next/every_5_minutes": stored values and goals are found by it
  std::string label;  // for people: the expression
  int operations;     // how many of what the name says one `run` does
  std::function<void()> run;
};

// All is made beforehand that `run` does not measure: zones are loaded, definitions read.
std::vector<PureWork> AllPureWork();

}  // namespace matins::bench

#endif  // MATINS_BENCH_PURE_H_
