// Under `valgrind --tool=callgrind --collect-atstart=no`: one dump for each of the pure parts,
// named by it. Prints each name and how many operations its dump is of.
#include <valgrind/callgrind.h>

#include <cstdio>

#include "pure.h"

int main() {
  for (const matins::bench::PureWork& work : matins::bench::AllPureWork()) {
    work.run();  // what is made but once
    CALLGRIND_TOGGLE_COLLECT;
    work.run();
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS_AT(work.name.c_str());
    std::printf("%s %d\n", work.name.c_str(), work.operations);
  }
  return 0;
}
