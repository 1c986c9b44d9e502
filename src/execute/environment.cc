#include "execute/environment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status.h"
#include "base/variable.h"
#include "execute/template.h"

namespace matins {
namespace {

constexpr size_t kMaxCheckpointBytes = 32 << 10;
constexpr size_t kMaxFileBytes = 64 << 10;
constexpr absl::string_view kPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

absl::StatusOr<std::string> ReadValue(const EnvEntry& entry) {
  const std::string where = absl::StrCat("env.", entry.name);
  const int fd = open(entry.file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return BadInput(where, absl::StrCat("cannot read ", entry.file, ": ", strerror(errno)),
                    "put the file there, readable by the node");
  }
  std::string value(kMaxFileBytes + 1, '\0');
  size_t size = 0;
  ssize_t n;
  while (size < value.size() && (n = read(fd, &value[size], value.size() - size)) > 0) {
    size += static_cast<size_t>(n);
  }
  close(fd);
  if (size > kMaxFileBytes) {
    return BadInput(where, absl::StrCat(entry.file, " has more than 64 KiB"),
                    "give the job the file's name instead");
  }
  value.resize(size);
  if (absl::EndsWith(value, "\n")) value.pop_back();
  if (absl::EndsWith(value, "\r")) value.pop_back();
  return value;
}

// W3C trace context; the same for every process of this attempt.
std::string TraceParent(int64_t fence) {
  return absl::StrFormat("00-6d6174696e73%020x-%016x-01", static_cast<uint64_t>(fence),
                         static_cast<uint64_t>(fence) | 1);
}

using Variables = std::map<std::string, std::string>;

Variables UsualVariables(const UserAccount& account) {
  return {{"PATH", std::string(kPath)}, {"HOME", account.home.empty() ? "/" : account.home},
          {"USER", account.name},       {"LOGNAME", account.name},
          {"SHELL", "/bin/sh"},         {"LANG", "C.UTF-8"}};
}

// Of two of one name the first counts, as getenv(3) has it.
Variables OwnVariables() {
  Variables variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::pair<absl::string_view, absl::string_view> sides =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    if (absl::StartsWith(sides.first, "MATINS_")) continue;
    variables.try_emplace(std::string(sides.first), sides.second);
  }
  return variables;
}

void AddOurs(const RunRequest& request, const std::string& socket,
             const std::string& checkpoint_file, Variables& variables) {
  const RunValues& values = request.values;
  variables["MATINS_JOB"] = values.job;
  variables["MATINS_TENANT"] = values.tenant;
  variables["MATINS_RUN_ID"] = absl::StrCat(request.run);
  variables["MATINS_FENCE"] = absl::StrCat(request.run);
  variables["MATINS_ATTEMPT"] = absl::StrCat(values.attempt);
  variables["MATINS_GENERATION"] = absl::StrCat(values.generation);
  variables["MATINS_PERIOD"] = values.period;
  variables["MATINS_BIZ_DATE"] = values.biz_date;
  variables["MATINS_WINDOW_START"] = values.window_start;
  variables["MATINS_WINDOW_END"] = values.window_end;
  variables["MATINS_SCHEDULED_FOR"] = values.scheduled_for;
  variables["MATINS_BACKFILL"] = values.backfill ? "1" : "0";
  for (const auto& [name, value] : values.further) variables["MATINS_" + name] = value;
  variables["MATINS_SOCKET"] = socket;
  variables["MATINS_CHECKPOINT_NUMBER"] =
      values.checkpoint_number < 0 ? "" : absl::StrCat(values.checkpoint_number);
  if (CheckpointNeedsFile(values)) {
    variables["MATINS_CHECKPOINT_FILE"] = checkpoint_file;
  } else {
    variables["MATINS_CHECKPOINT"] = values.checkpoint;
  }
  variables["TRACEPARENT"] =
      values.traceparent.empty() ? TraceParent(request.run) : values.traceparent;
}

absl::Status AddJobs(const RunRequest& request, Variables& variables) {
  for (const EnvEntry& entry : request.env) {
    RETURN_IF_ERROR(CheckEnvName(entry.name));
    std::string value;
    if (!entry.file.empty()) {
      ASSIGN_OR_RETURN(value, ReadValue(entry));
    } else {
      ASSIGN_OR_RETURN(value, ExpandTemplate(entry.value, request.values, request.run));
    }
    if (entry.name == "PATH") RETURN_IF_ERROR(CheckEnvPath(value));
    variables[entry.name] = std::move(value);
  }
  return absl::OkStatus();
}

absl::Status AddParams(const RunRequest& request, Variables& variables) {
  for (const auto& [name, value] : request.values.params) {
    if (!IsVariableName(name)) {
      return BadInput(absl::StrCat("parameter '", name, "'"), "is not a name",
                      "use letters, digits and _, not a digit first");
    }
    variables[absl::StrCat("MATINS_PARAM_", name)] = value;
  }
  return absl::OkStatus();
}

}  // namespace

bool CheckpointNeedsFile(const RunValues& values) {
  return values.checkpoint.size() > kMaxCheckpointBytes ||
         values.checkpoint.find('\0') != std::string::npos;
}

absl::StatusOr<std::vector<std::string>> BuildEnvironment(const RunRequest& request,
                                                          const UserAccount& account,
                                                          const std::string& socket,
                                                          const std::string& checkpoint_file) {
  Variables variables = request.inherit_environment ? OwnVariables() : UsualVariables(account);
  RETURN_IF_ERROR(AddJobs(request, variables));
  RETURN_IF_ERROR(AddParams(request, variables));
  AddOurs(request, socket, checkpoint_file, variables);
  std::vector<std::string> environment;
  for (const auto& [name, value] : variables) {
    if (value.find('\0') != std::string::npos) {
      return BadInput(absl::StrCat("env.", name), "has a NUL byte in it",
                      "a variable cannot hold one; hand it over in a file");
    }
    environment.push_back(absl::StrCat(name, "=", value));
  }
  return environment;
}

}  // namespace matins
