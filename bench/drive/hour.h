// An hour of a store's life on PostgreSQL, played in less: 1,000 jobs that fire each minute.
#ifndef MATINS_BENCH_DRIVE_HOUR_H_
#define MATINS_BENCH_DRIVE_HOUR_H_

#include <cstdint>

#include "bench/drive/stage.h"

namespace matins::bench {

// The hour's jobs are applied; before anything else is done with them.
void ApplyHour(Stage& stage);
// Their 60,000 periods are planned by a planning node and run by one in a process of its own, as
// any backlog; and, one transaction each, the rows are written that a node writes at each tick (the
// clock's mark and its sign of life, 3,600 times) and planning at each fire (each job's row and its
// entry in the index of next looks, 60 times). Answers how many runs there were.
int64_t LiveAnHour(Stage& stage);
// Rows that nobody needs any more but one who has an old snapshot.
int64_t DeadRows(Stage& stage);

}  // namespace matins::bench

#endif  // MATINS_BENCH_DRIVE_HOUR_H_
