// The limit to hold a figure against: the columns that Matins writes for a run, written by whatever
// statements are fastest, with none of the questions that Matins asks first. A claim updates the
// run's row in job_watermark; its end updates it again and inserts a row in job_run; both are
// durable when they return.
//
// Tables: `bare` ones have Matins' columns, the primary keys and the one index that finds what is
// due; `matins` ones are those that Matins migrates to, with all indexes and triggers.
#ifndef MATINS_BENCH_FLOOR_FLOOR_H_
#define MATINS_BENCH_FLOOR_FLOOR_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "bench/drive/line.h"

namespace matins::bench {

struct Setting {
  std::string store;  // URL, as Matins takes it
  std::string shape;  // `jobs`: runs x 1; `periods`: 1 job x runs
  bool bare = true;
  int64_t runs = 0;
};

// One connection, of one thread. Every failure ends the program with a message.
class Connection {
 public:
  virtual ~Connection() = default;
  // Claims up to `batch` rows that are due; answers how many.
  virtual int Claim(int batch) = 0;
  // Ends what was claimed last.
  virtual void Finish() = 0;
  // Both, in this order, in one commit.
  virtual int FinishAndClaim(int batch) = 0;
  // Claims the row with this number (from 0), due or not.
  virtual void ClaimRow(int64_t row) = 0;
};

class Floor {
 public:
  virtual ~Floor() = default;
  // Makes the tables and the planned rows, row i due at `first` + i * `apart`, and leaves the store
  // as it is after a checkpoint.
  virtual void Prepare(const Setting& setting, absl::Time first, absl::Duration apart) = 0;
  virtual std::unique_ptr<Connection> Connect() = 0;
  // Rows that are DONE and have their row in job_run.
  virtual int64_t Done() = 0;
};

// The program: options, measure, one line of JSON (bench/README.md).
int Main(int argc, char** argv, Floor& floor);

}  // namespace matins::bench

#endif  // MATINS_BENCH_FLOOR_FLOOR_H_
