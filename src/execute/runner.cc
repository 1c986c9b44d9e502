#include "execute/runner.h"

#include <string.h>

#include "absl/strings/str_cat.h"
#include "execute/output_text.h"

namespace matins {

absl::string_view StopReasonText(StopReason reason) {
  switch (reason) {
    case StopReason::kNone:
      return "";
    case StopReason::kLeaseLost:
      return "lease lost";
    case StopReason::kTimeOut:
      return "time-out";
    case StopReason::kCancelled:
      return "cancelled";
    case StopReason::kReplaced:
      return "replaced";
    case StopReason::kShutdown:
      return "shutdown";
    case StopReason::kNodeDied:
      return "node died";
  }
  return "";
}

void OutputKept::Append(absl::string_view text, const OutputLimits& limits) {
  total_bytes += static_cast<int64_t>(text.size());
  const size_t room = static_cast<size_t>(limits.head_bytes) - head.size();
  absl::StrAppend(&head, text.substr(0, room));
  if (text.size() <= room) return;
  absl::StrAppend(&tail, text.substr(room));
  const auto most = static_cast<size_t>(limits.tail_bytes);
  if (tail.size() > most) tail.erase(0, tail.size() - most);
}

std::string OutputKept::Joined() const {
  const int64_t cut =
      total_bytes - static_cast<int64_t>(head.size()) - static_cast<int64_t>(tail.size());
  return absl::StrCat(head, CutText(head, cut, total_bytes), tail);
}

std::string CutText(absl::string_view before, int64_t cut, int64_t total) {
  if (cut <= 0) return "";
  const absl::string_view line_end = before.empty() || before.back() == '\n' ? "" : "\n";
  return absl::StrCat(line_end, "[matins: ", cut, " of ", total,
                      " bytes cut here; job key output.keep keeps more]\n");
}

std::string RunEnded::Text() const {
  std::string text;
  if (signal != 0) {
    // strsignal's buffer is not ours alone; sigdescr_np's texts are constants.
    const char* name = sigdescr_np(signal);
    text = absl::StrCat("signal ", signal, " (", name == nullptr ? "unknown" : name, ")");
  } else if (exit_code >= 0) {
    text = absl::StrCat("exit ", exit_code);
  } else {
    text = status.ok() ? "ended" : std::string(status.message());
  }
  if (stopped != StopReason::kNone) absl::StrAppend(&text, ", stopped: ", StopReasonText(stopped));
  if (!tree_dead) absl::StrAppend(&text, ", and not proven dead");
  return text;
}

}  // namespace matins
