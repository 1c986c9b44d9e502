// What is wrong with a job file, told as a person can mend it: where, what, and the mend. All of a
// file's problems are gathered, so that one look mends them all.
#ifndef MATINS_JOB_PROBLEM_H_
#define MATINS_JOB_PROBLEM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace matins {

// A place in a file; line and column count from 1, 0: not known.
struct Mark {
  std::shared_ptr<const std::string> file;
  int line = 0;
  int column = 0;
  std::string Text() const;  // "conf.yaml:3:5"
};

struct Problem {
  bool warning = false;
  Mark at;
  std::string what;
  std::string mend;
  // "conf.yaml:3:5: what; mend", with "warning: " before the what of a warning.
  std::string Text() const;
};

// Not thread-safe. The same problem at the same place is kept once (a default that many jobs take
// over), and no more than kMost in all.
class Problems {
 public:
  static constexpr size_t kMost = 200;

  void Error(const Mark& at, absl::string_view what, absl::string_view mend);
  void Warn(const Mark& at, absl::string_view what, absl::string_view mend);
  bool has_errors() const { return errors_ > 0; }
  // In the order in which they were found.
  const std::vector<Problem>& all() const { return all_; }
  // OK, or InvalidArgument with a line for each error.
  absl::Status ToStatus() const;

 private:
  void Add(Problem problem);
  std::vector<Problem> all_;
  size_t errors_ = 0;
};

}  // namespace matins

#endif  // MATINS_JOB_PROBLEM_H_
