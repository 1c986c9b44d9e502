#include "bench/drive/line.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace matins::bench {
namespace {

// Fields 14 to 17 of /proc/PID/stat: user and system time, its own and its dead children's.
double StatSeconds(int pid, int& parent) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  parent = 0;
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 2));
  std::string skipped;
  double ticks = 0;
  for (int field = 3; fields >> skipped && field <= 17; ++field) {
    if (field == 4) parent = std::atoi(skipped.c_str());
    if (field >= 14) ticks += std::atof(skipped.c_str());
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

void Die(absl::string_view what) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(what.size()), what.data());
  std::fflush(stderr);
  _exit(1);
}

void DieUnlessOk(const absl::Status& status, absl::string_view doing) {
  if (!status.ok()) Die(absl::StrCat(doing, ": ", status.ToString()));
}

Options::Options(int argc, char** argv, std::map<std::string, std::string> defaults)
    : values_(defaults.begin(), defaults.end()) {
  values_.emplace("store", "");
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (!absl::StartsWith(word, "--") || !values_.contains(word.substr(2))) {
      std::string known;
      for (const auto& [name, value] : values_) absl::StrAppend(&known, " --", name, " ", value);
      Die(absl::StrCat("unknown option ", word, "; known, with their defaults:", known));
    }
    const bool alone = i + 1 == argc || absl::StartsWith(argv[i + 1], "--");
    values_[std::string(word.substr(2))] = alone ? "true" : argv[++i];
  }
  if (Text("store").empty()) Die("--store URL names a fresh, empty store");
}

const std::string& Options::Text(absl::string_view name) const {
  return values_.find(name)->second;
}

int64_t Options::Int(absl::string_view name) const {
  int64_t value;
  if (!absl::SimpleAtoi(Text(name), &value)) {
    Die(absl::StrCat("--", name, " ", Text(name), " is no number"));
  }
  return value;
}

bool Options::IsPostgres() const { return absl::StartsWith(Text("store"), "postgres"); }

Line::Line(absl::string_view bench, const Options& options)
    : text_(absl::StrCat("{\"bench\":\"", bench, "\",\"store\":\"",
                         options.IsPostgres() ? "postgresql" : "sqlite", "\"")) {}

Line& Line::Add(absl::string_view name, absl::string_view text) {
  absl::StrAppend(&text_, ",\"", name, "\":\"", text, "\"");
  return *this;
}
Line& Line::Add(absl::string_view name, int64_t value) {
  absl::StrAppend(&text_, ",\"", name, "\":", value);
  return *this;
}
Line& Line::Add(absl::string_view name, bool value) {
  absl::StrAppend(&text_, ",\"", name, "\":", value ? "true" : "false");
  return *this;
}
Line& Line::Add(absl::string_view name, double value) {
  absl::StrAppendFormat(&text_, ",\"%s\":%.*f", name, value >= 1000 ? 1 : 4, value);
  return *this;
}
Line& Line::AddLatencies(absl::string_view prefix, std::vector<absl::Duration> values) {
  for (const auto& [name, rank] : {std::pair{"p50_ms", 0.5}, {"p99_ms", 0.99}, {"max_ms", 1.0}}) {
    Add(absl::StrCat(prefix, name), absl::ToDoubleMilliseconds(Percentile(values, rank)));
  }
  return *this;
}
void Line::Print() {
  std::printf("%s}\n", text_.c_str());
  std::fflush(stdout);
}

absl::Duration Percentile(std::vector<absl::Duration>& values, double rank) {
  if (values.empty()) return absl::ZeroDuration();
  std::sort(values.begin(), values.end());
  const double index = std::ceil(rank * static_cast<double>(values.size())) - 1;
  return values[static_cast<size_t>(std::max(0.0, index))];
}

double CpuSeconds(int pid) {
  if (pid <= 0) return 0;
  int parent = 0;
  double seconds = StatSeconds(pid, parent);
  DIR* const proc = opendir("/proc");
  while (const dirent* entry = readdir(proc)) {
    const int other = std::atoi(entry->d_name);
    if (other <= 0) continue;
    const double its = StatSeconds(other, parent);
    if (parent == pid) seconds += its;
  }
  closedir(proc);
  return seconds;
}

double StoreCpuSeconds() {
  const char* const pid = getenv("MATINS_BENCH_STORE_PID");
  return pid == nullptr ? 0 : CpuSeconds(std::atoi(pid));
}

double OwnCpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace matins::bench
