#include "execute/run_client.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status.h"
#include "execute/run_protocol.h"

namespace matins {
namespace {

constexpr absl::string_view kKeyMark = "?key=";

absl::StatusOr<int> Connect(absl::string_view path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::FailedPreconditionError("MATINS_SOCKET does not name a socket");
  }
  memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    const int error = errno;
    if (fd >= 0) close(fd);
    return absl::UnavailableError(absl::StrCat("the run's node does not answer at ", path, ": ",
                                               strerror(error), "; the run is being stopped"));
  }
  return fd;
}

absl::Status SendAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return InDoubtError("the run's node went away while it was told");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReceiveLine(int fd) {
  std::string line;
  char bytes[4096];
  while (line.empty() || line.back() != '\n') {
    const ssize_t n = recv(fd, bytes, sizeof(bytes), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return InDoubtError("the run's node went away before it answered");
    line.append(bytes, static_cast<size_t>(n));
  }
  line.pop_back();
  return line;
}

}  // namespace

absl::StatusOr<std::string> AskNode(const std::string& socket, const RunAskArgs& args) {
  const absl::string_view address = socket;
  const size_t mark = address.rfind(kKeyMark);
  if (mark == absl::string_view::npos) {
    return absl::FailedPreconditionError(
        "MATINS_SOCKET is not set: this works only inside a run that matins has started");
  }
  if (args.payload.size() > kMaxRunPayload) {
    return absl::InvalidArgumentError(
        "the payload has more than 1 MiB; store it elsewhere and pass its name");
  }
  ASSIGN_OR_RETURN(const int fd, Connect(address.substr(0, mark)));
  auto closer = absl::MakeCleanup([fd] { close(fd); });
  RETURN_IF_ERROR(SendAll(fd, QuestionLine({.key = socket.substr(mark + kKeyMark.size()),
                                            .kind = args.kind,
                                            .number = args.number,
                                            .payload = args.payload}) +
                                  "\n"));
  ASSIGN_OR_RETURN(const std::string line, ReceiveLine(fd));
  return ParseAnswer(line);
}

}  // namespace matins
