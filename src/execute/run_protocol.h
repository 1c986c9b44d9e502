// What a run and its node say to each other on the run's socket, for those who write a client in
// another language:
//
//   MATINS_SOCKET=PATH?key=SECRET, a UNIX stream socket. One JSON object a line, answered in order.
//   -> {"key": SECRET, "ask": "checkpoint", "number": 4, "payload": "..."}
//   -> {"key": SECRET, "ask": "result", "payload": "{\"rows\": 12}"}
//   -> {"key": SECRET, "ask": "fence"}
//   <- {"ok": true, "text": "..."}          the store has it; for fence, the text is the fence
//   <- {"ok": false, "code": "ABORTED", "error": "..."}     the store has refused it
// A payload that is not UTF-8 goes as "payload_base64". A line is at most 2 MiB, a payload 1 MiB.
#ifndef MATINS_EXECUTE_RUN_PROTOCOL_H_
#define MATINS_EXECUTE_RUN_PROTOCOL_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "execute/runner.h"

namespace matins {

inline constexpr size_t kMaxRunLine = 2 << 20;
inline constexpr size_t kMaxRunPayload = 1 << 20;

struct RunQuestion {
  std::string key;
  AskKind kind = AskKind::kFence;
  int64_t number = -1;
  std::string payload;
};

// Lines without their line end.
std::string QuestionLine(const RunQuestion& question);
absl::StatusOr<RunQuestion> ParseQuestion(absl::string_view line);
std::string AnswerLine(const RunAnswer& answer);
// The text, or the refusal with its code; DataLoss when the line is not an answer.
absl::StatusOr<std::string> ParseAnswer(absl::string_view line);

}  // namespace matins

#endif  // MATINS_EXECUTE_RUN_PROTOCOL_H_
