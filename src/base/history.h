// The event history: what a node asked and was told, one JSON object a line, written before the
// call is sent and after its answer (witness W1 of the checker). It decides nothing; it lets
// somebody else judge.
#ifndef MATINS_BASE_HISTORY_H_
#define MATINS_BASE_HISTORY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace matins {

struct HistoryEvent {
  absl::string_view type;    // claim, start, hb, ckpt, commit, complete, fail, resolve, reap, stop, ...
  // inv, ok, refused, info (no answer came), busy (nothing took effect; it is asked again)
  absl::string_view result;
  absl::string_view node;
  absl::string_view job;
  absl::string_view period;
  int generation = 0;  // 0: not known
  int64_t fence = 0;   // 0: none; written as a decimal string
  int64_t nonce = 0;
  int64_t number = -1;  // a checkpoint's number; -1: none
  absl::string_view detail;
  absl::Duration boot;  // the node's boot clock
  absl::Time wall;      // the node's wall clock: evidence alone
};

// Thread-safe.
class History {
 public:
  virtual ~History() = default;
  virtual void Record(const HistoryEvent& event) = 0;
};

// Forgets everything.
History& NoHistory();

// Appends to `path`, each line by one write(2), so that a kill leaves whole lines and several
// processes may share it.
absl::StatusOr<std::unique_ptr<History>> OpenHistory(const std::string& path);

// The line of `event`, without a newline.
std::string HistoryLine(const HistoryEvent& event);

}  // namespace matins

#endif  // MATINS_BASE_HISTORY_H_
