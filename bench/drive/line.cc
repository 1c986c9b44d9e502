#include "bench/drive/line.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace matins::bench {
namespace {

// Of /proc/PID/stat: the parent, and the CPU time of the process itself and of its dead children.
struct Stat {
  int parent = 0;
  double own = 0, dead_children = 0;
};

Stat StatOf(int pid) {
  Stat stat;
  std::ifstream in(absl::StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return stat;
  std::istringstream fields(text.substr(name_end + 2));
  std::string word;
  const auto tick = static_cast<double>(sysconf(_SC_CLK_TCK));
  for (int field = 3; fields >> word && field <= 17; ++field) {
    if (field == 4) stat.parent = std::atoi(word.c_str());
    if (field == 14 || field == 15) stat.own += std::atof(word.c_str()) / tick;
    if (field >= 16) stat.dead_children += std::atof(word.c_str()) / tick;
  }
  return stat;
}

// The numbers that a folder of /proc is named by.
std::vector<int> NumbersIn(const std::string& folder) {
  std::vector<int> numbers;
  DIR* const all = opendir(folder.c_str());
  if (all == nullptr) return numbers;
  while (const dirent* entry = readdir(all)) {
    const int number = std::atoi(entry->d_name);
    if (number > 0) numbers.push_back(number);
  }
  closedir(all);
  return numbers;
}

// Nanoseconds on a processor, of all its threads; or what /proc/PID/stat says.
double OwnSecondsOf(int pid, const Stat& stat) {
  double ns = 0;
  const std::string threads = absl::StrCat("/proc/", pid, "/task");
  for (const int thread : NumbersIn(threads)) {
    std::ifstream in(absl::StrCat(threads, "/", thread, "/schedstat"));
    double its = 0;
    if (in >> its) ns += its;
  }
  return ns > 0 ? ns / 1e9 : stat.own;
}

double StatusMib(int pid, absl::string_view key) {
  std::ifstream in(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; in >> word;) {
    double kib = 0;
    if (word == key && in >> kib) return kib / 1024;
  }
  return 0;
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

absl::string_view Options::Store() const {
  const absl::string_view url = Text("store");
  for (const absl::string_view store : {"mariadb", "redis", "sqlite"}) {
    if (absl::StartsWith(url, store)) return store;
  }
  return "postgresql";
}

Line::Line(absl::string_view bench, const Options& options)
    : text_(absl::StrCat("{\"bench\":\"", bench, "\",\"store\":\"", options.Store(), "\"")) {}

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

std::vector<int> ChildrenOf(int pid) {
  std::vector<int> children;
  for (const int other : NumbersIn("/proc")) {
    if (StatOf(other).parent == pid) children.push_back(other);
  }
  return children;
}

double CpuSeconds(int pid) {
  if (pid <= 0) return 0;
  // Again where a child ended meanwhile: it may be missing from both sums, or be in both.
  for (double ended = -1;;) {
    const Stat stat = StatOf(pid);
    double seconds = OwnSecondsOf(pid, stat) + stat.dead_children;
    for (const int child : ChildrenOf(pid)) seconds += OwnSecondsOf(child, StatOf(child));
    if (ended == stat.dead_children && StatOf(pid).dead_children == ended) return seconds;
    ended = stat.dead_children;
  }
}

double ResidentMib(int pid) { return StatusMib(pid, "VmRSS:"); }
double MostResidentMib(int pid) { return StatusMib(pid, "VmHWM:"); }

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
