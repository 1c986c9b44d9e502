#include "schedule/batch.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "base/time.h"
#include "nlohmann/json.hpp"
#include "schedule/schedule.h"

namespace matins {
namespace {

using Json = nlohmann::json;

constexpr std::pair<absl::string_view, Dialect> kDialects[] = {
    {"auto", Dialect::kAuto},
    {"vixie5", Dialect::kVixie5},
    {"seconds6", Dialect::kSeconds6},
    {"quartz", Dialect::kQuartz},
    {"oncalendar", Dialect::kOnCalendar}};

struct Question {
  std::string expr;
  ScheduleOptions options;
  absl::Time from;
  int n = 1;
};

absl::StatusOr<std::string> TextOf(const Json& line, const char* key, const char* otherwise) {
  const auto found = line.find(key);
  if (found == line.end() && otherwise != nullptr) return std::string(otherwise);
  if (found == line.end() || !found->is_string()) {
    return BadInput(key, found == line.end() ? "is missing" : "is not a string",
                    "write it as a JSON string");
  }
  return found->get<std::string>();
}

absl::StatusOr<Dialect> DialectOf(absl::string_view name) {
  for (const auto& [known, dialect] : kDialects) {
    if (name == known) return dialect;
  }
  return BadInput("dialect", absl::StrCat("'", name, "' is not known"),
                  "write auto, vixie5, seconds6, quartz or oncalendar");
}

absl::StatusOr<int> CountOf(const Json& line) {
  const auto found = line.find("n");
  if (found == line.end()) return 1;
  // A number past 64 bits reads as a floating one, so the type refuses it too.
  const bool whole = found->is_number_integer();
  const bool huge = found->is_number_unsigned() && found->get<uint64_t>() > kMostBatchFires;
  if (!whole || huge || found->get<int64_t>() < 1 || found->get<int64_t>() > kMostBatchFires) {
    return BadInput("n", "is out of range",
                    absl::StrCat("write a whole number from 1 to ", kMostBatchFires));
  }
  return found->get<int>();
}

absl::StatusOr<Question> ReadQuestion(absl::string_view text, absl::Time now) {
  const Json line = Json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (!line.is_object()) {
    return BadInput("line", "is not a JSON object",
                    "write {\"expr\":\"0 1 * * *\",\"tz\":\"Asia/Shanghai\",\"n\":3}");
  }
  Question question;
  ASSIGN_OR_RETURN(question.expr, TextOf(line, "expr", nullptr));
  ASSIGN_OR_RETURN(const std::string dialect, TextOf(line, "dialect", "auto"));
  ASSIGN_OR_RETURN(question.options.dialect, DialectOf(dialect));
  ASSIGN_OR_RETURN(const std::string tz, TextOf(line, "tz", "UTC"));
  ASSIGN_OR_RETURN(question.options.zone, LoadZone(tz));
  question.from = now;
  if (line.contains("from")) {
    ASSIGN_OR_RETURN(const std::string from, TextOf(line, "from", nullptr));
    ASSIGN_OR_RETURN(question.from, ParseInstant(from));
  }
  ASSIGN_OR_RETURN(question.n, CountOf(line));
  return question;
}

absl::StatusOr<std::string> Answer(absl::string_view line, absl::Time now) {
  ASSIGN_OR_RETURN(const Question question, ReadQuestion(line, now));
  ASSIGN_OR_RETURN(const Schedule schedule, Schedule::Parse(question.expr, question.options));
  std::string answer = "{\"next\":[";
  absl::Time after = question.from;
  for (int i = 0; i < question.n; ++i) {
    const std::optional<Fire> fire = schedule.Next(after);
    if (!fire.has_value()) break;
    absl::StrAppend(&answer, i == 0 ? "\"" : ",\"", FormatInstant(fire->at), "\"");
    after = fire->at;
  }
  return absl::StrCat(answer, "]}");
}

}  // namespace

std::string AnswerBatchLine(absl::string_view line, absl::Time now) {
  const absl::StatusOr<std::string> answer = Answer(line, now);
  if (answer.ok()) return *answer;
  // Bytes of the line that are no UTF-8 may stand in the message; the answer is JSON all the same.
  return Json{{"error", std::string(answer.status().message())}}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace matins
