// Any bytes as a line of a batch: the answer is a line of JSON.
#include <cstdint>
#include <cstdlib>

#include "nlohmann/json.hpp"
#include "schedule/batch.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view line(reinterpret_cast<const char*>(data), size);
  const std::string answer = matins::AnswerBatchLine(line, absl::FromUnixSeconds(1790000000));
  const auto json = nlohmann::json::parse(answer, nullptr, false);
  if (!json.is_object() || json.size() != 1 || answer.find('\n') != std::string::npos) std::abort();
  return 0;
}
