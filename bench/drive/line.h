// What all drivers share: options, and the one line of JSON (bench/README.md).
#ifndef MATINS_BENCH_DRIVE_LINE_H_
#define MATINS_BENCH_DRIVE_LINE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace matins::bench {

// Ends the program with exit code 1 and this on standard error.
[[noreturn]] void Die(absl::string_view what);
void DieUnlessOk(const absl::Status& status, absl::string_view doing);

// "--name value" and "--name" alone, which is "true". Unknown names end the program.
class Options {
 public:
  Options(int argc, char** argv, std::map<std::string, std::string> defaults);
  const std::string& Text(absl::string_view name) const;
  int64_t Int(absl::string_view name) const;
  bool Flag(absl::string_view name) const { return Text(name) == "true"; }
  // Of --store: postgresql, mariadb, sqlite or redis.
  absl::string_view Store() const;
  bool IsPostgres() const { return Store() == "postgresql"; }
  bool IsMariadb() const { return Store() == "mariadb"; }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

// The line: what was measured, then figures, in the order in which they are added.
class Line {
 public:
  Line(absl::string_view bench, const Options& options);
  Line& Add(absl::string_view name, absl::string_view text);
  Line& Add(absl::string_view name, int64_t value);
  Line& Add(absl::string_view name, bool value);
  Line& Add(absl::string_view name, double value);
  // p50, p99 and max of `values`, in milliseconds: "p50_ms" with `prefix` before it.
  Line& AddLatencies(absl::string_view prefix, std::vector<absl::Duration> values);
  void Print();

 private:
  std::string text_;
};

// The value at `rank` (0..1) of what is sorted here; zero where there is none.
absl::Duration Percentile(std::vector<absl::Duration>& values, double rank);

// CPU seconds of a process, its threads and its children so far; 0 for pid 0. Of what lives, to the
// nanosecond where the kernel tells; of dead children, to its clock's tick.
double CpuSeconds(int pid);
std::vector<int> ChildrenOf(int pid);
// Of the server that MATINS_BENCH_STORE_PID names, or 0.
double StoreCpuSeconds();
double OwnCpuSeconds();
// Memory of a process in RAM: now, or the most there ever was.
double ResidentMib(int pid);
double MostResidentMib(int pid);

}  // namespace matins::bench

#endif  // MATINS_BENCH_DRIVE_LINE_H_
