#include "cli/log.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"
#include "view/table.h"

namespace matins {
namespace {

spdlog::logger& Logger() {
  static spdlog::logger* const logger = [] {
    auto* made = new spdlog::logger("matins", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_formatter(std::make_unique<spdlog::pattern_formatter>(
        "%Y-%m-%dT%H:%M:%S.%eZ %l %v", spdlog::pattern_time_type::utc));
    return made;
  }();
  return *logger;
}

// A line of the text is a line of the log; those after the first are indented, so that none can
// pass for one of the node's own.
void Write(spdlog::level::level_enum level, absl::string_view text) {
  bool first = true;
  for (const absl::string_view part : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::string line = absl::StrCat(first ? "" : "  ", Harmless(part, false));
    Logger().log(level, spdlog::string_view_t(line.data(), line.size()));
    first = false;
  }
}

}  // namespace

void LogInfo(absl::string_view text) { Write(spdlog::level::info, text); }
void LogWarning(absl::string_view text) { Write(spdlog::level::warn, text); }
void LogError(absl::string_view text) { Write(spdlog::level::err, text); }

void EventLog::OnEvent(const EngineEvent& event) {
  std::string line(event.name);
  if (!event.key.job.empty()) absl::StrAppend(&line, " job=", event.key.job);
  if (!event.key.period.empty()) absl::StrAppend(&line, " period=", event.key.period);
  if (event.fence != 0) absl::StrAppend(&line, " run=", event.fence);
  if (!event.detail.empty()) absl::StrAppend(&line, " ", event.detail);
  event.alarm ? LogWarning(line) : LogInfo(line);
}

}  // namespace matins
