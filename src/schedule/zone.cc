#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "base/status.h"
#include "schedule/schedule.h"

namespace matins {
namespace {

// Where the zone database lies: the same two places that Abseil reads.
std::string ZoneFolder() {
  const char* tzdir = std::getenv("TZDIR");
  return tzdir != nullptr && *tzdir != '\0' ? tzdir : "/usr/share/zoneinfo";
}

bool IsFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool HasZoneData() {
  struct stat info;
  return stat(absl::StrCat(ZoneFolder(), "/Europe").c_str(), &info) == 0;
}

// Names of zones as the database lists them: its compact source has all, aliases included.
std::vector<std::string> KnownNames() {
  std::vector<std::string> names;
  std::ifstream compact(absl::StrCat(ZoneFolder(), "/tzdata.zi"));
  for (std::string line; std::getline(compact, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() >= 2 && words[0] == "Z") names.push_back(words[1]);
    if (words.size() >= 3 && words[0] == "L") names.push_back(words[2]);
  }
  return names;
}

// The zone that a person may have meant: another case, blanks for underscores, or the city alone.
std::string DidYouMean(absl::string_view name) {
  const std::string wanted = absl::AsciiStrToLower(name);
  for (const std::string& known : KnownNames()) {
    const std::string lower = absl::AsciiStrToLower(known);
    if (lower == wanted || absl::EndsWith(lower, absl::StrCat("/", wanted))) return known;
  }
  return "";
}

bool IsPlainName(absl::string_view name) {
  if (name.empty() || name.size() > 64 || !absl::ascii_isupper(name[0])) return false;
  for (const char c : name) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("/_+-", c)) return false;
  }
  // Abseil's own spelling of fixed offsets is no name of the database.
  return !absl::StartsWith(name, "Fixed/") && name != "Factory";
}

// A zone that was found stays what it was for as long as the process lives, as Abseil keeps it: its
// file is not looked for again. Thread-safe.
class LoadedZones {
 public:
  std::optional<absl::TimeZone> Find(absl::string_view name) {
    absl::MutexLock lock(&mutex_);
    const auto it = zones_.find(name);
    return it == zones_.end() ? std::nullopt : std::optional(it->second);
  }
  void Add(absl::string_view name, absl::TimeZone zone) {
    absl::MutexLock lock(&mutex_);
    zones_.emplace(name, zone);
  }

 private:
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, absl::TimeZone> zones_ ABSL_GUARDED_BY(mutex_);
};

LoadedZones& Loaded() {
  static auto& zones = *new LoadedZones;
  return zones;
}

}  // namespace

absl::StatusOr<absl::TimeZone> LoadZone(absl::string_view name) {
  if (name == "UTC") return absl::UTCTimeZone();
  if (const std::optional<absl::TimeZone> known = Loaded().Find(name)) return *known;
  const std::string where = absl::StrCat("timezone '", name, "'");
  if (!HasZoneData()) {
    return absl::FailedPreconditionError(
        absl::StrCat(where, ": there is no zone data in ", ZoneFolder(),
                     "; install the package tzdata, or let TZDIR name the folder that has it"));
  }
  absl::TimeZone zone;
  if (IsPlainName(name) && IsFile(absl::StrCat(ZoneFolder(), "/", name)) &&
      absl::LoadTimeZone(std::string(name), &zone)) {
    Loaded().Add(name, zone);
    return zone;
  }
  const std::string meant = DidYouMean(name);
  return BadInput(where, "is no zone of the IANA database",
                  meant.empty() ? std::string("write a name like Asia/Shanghai, Europe/Berlin or "
                                              "UTC; offsets and abbreviations are not taken")
                                : absl::StrCat("did you mean ", meant, "?"));
}

std::string ZoneDataVersion() {
  for (const char* file : {"/tzdata.zi", "/+VERSION"}) {
    std::ifstream in(ZoneFolder() + file);
    std::string line;
    if (!std::getline(in, line)) continue;
    absl::string_view version = line;
    if (absl::ConsumePrefix(&version, "# version ") || file[1] == '+') {
      return std::string(absl::StripAsciiWhitespace(version));
    }
  }
  return "unknown";
}

}  // namespace matins
