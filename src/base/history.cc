#include "base/history.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status.h"
#include "base/time.h"

namespace matins {
namespace {

class Silent final : public History {
 public:
  void Record(const HistoryEvent&) override {}
};

class FileHistory final : public History {
 public:
  explicit FileHistory(int fd) : fd_(fd) {}
  ~FileHistory() override { close(fd_); }
  void Record(const HistoryEvent& event) override {
    const std::string line = HistoryLine(event) + "\n";
    // Evidence that cannot be written is missing, and the checker says so; the run itself goes on.
    while (write(fd_, line.data(), line.size()) < 0 && errno == EINTR) {
    }
  }

 private:
  const int fd_;
};

void AppendText(std::string& line, absl::string_view name, absl::string_view value) {
  if (value.empty()) return;
  absl::StrAppend(&line, ",\"", name, "\":\"");
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      line += '\\';
      line += c;
    } else if (byte < 0x20) {
      absl::StrAppendFormat(&line, "\\u%04x", byte);
    } else {
      line += c;
    }
  }
  line += '"';
}

}  // namespace

History& NoHistory() {
  static Silent* const silent = new Silent;
  return *silent;
}

absl::StatusOr<std::unique_ptr<History>> OpenHistory(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) {
    return BadInput(path,
                    absl::StrCat("cannot be opened for the event history: ", std::strerror(errno)),
                    "name a file in a folder that can be written");
  }
  return std::make_unique<FileHistory>(fd);
}

std::string HistoryLine(const HistoryEvent& event) {
  std::string line = absl::StrCat("{\"type\":\"", event.type, "\"");
  AppendText(line, "res", event.result);
  AppendText(line, "node", event.node);
  AppendText(line, "job", event.job);
  AppendText(line, "period", event.period);
  if (event.generation > 0) absl::StrAppend(&line, ",\"gen\":", event.generation);
  if (event.fence != 0) absl::StrAppend(&line, ",\"token\":\"", event.fence, "\"");
  if (event.nonce != 0) absl::StrAppend(&line, ",\"nonce\":\"", event.nonce, "\"");
  if (event.number >= 0) absl::StrAppend(&line, ",\"n\":", event.number);
  AppendText(line, "detail", event.detail);
  absl::StrAppend(&line, ",\"mono\":", absl::StrFormat("%.6f", absl::ToDoubleSeconds(event.boot)),
                  ",\"wall\":\"", FormatInstant(event.wall), "\"}");
  return line;
}

}  // namespace matins
