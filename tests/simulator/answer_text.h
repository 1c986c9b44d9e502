// Answers of stores as text, to be compared and to be read where they differ. What is said for
// people alone (messages, blockers) is left out: each store has its own words.
#ifndef MATINS_TESTS_SIMULATOR_ANSWER_TEXT_H_
#define MATINS_TESTS_SIMULATOR_ANSWER_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "store/act_store.h"
#include "store/store.h"

namespace matins {

std::string Text(const PeriodRow& row);
std::string Text(const JobState& state);
std::string Text(const DueJobs& due);
std::string Text(const JobDefinition& definition);
std::string Text(const HeldRow& row);
std::string Text(const PlanAnswers& answers);
std::string Text(const HoldAnswer& answer);
std::string Text(const StartAnswers& answers);
std::string Text(const Ticket& ticket);
std::string Text(const ExtendAnswer& answer);
std::string Text(const Refusal& refusal);
std::string Text(const ResolveAnswer& answer);
std::string Text(const StaleRun& run);
std::string Text(const TickAnswer& answer);
std::string Text(const ApplyAnswer& answer);
std::string Text(const SkipSpan& span);
std::string Text(const RunRow& run);
std::string Text(const JobRow& job);
inline std::string Text(bool yes) { return yes ? "yes" : "no"; }
inline std::string Text(int64_t number) { return absl::StrCat(number); }
inline std::string Text(const absl::Status& status) {
  return absl::StrCat("status ", static_cast<int>(status.code()));
}

template <typename T>
std::string Text(const std::vector<T>& items) {
  std::string text;
  for (const auto& item : items) absl::StrAppend(&text, "\n  ", Text(item));
  return text;
}

template <typename T>
std::string Text(const absl::StatusOr<T>& answer) {
  return answer.ok() ? Text(*answer) : Text(answer.status());
}

}  // namespace matins

#endif  // MATINS_TESTS_SIMULATOR_ANSWER_TEXT_H_
