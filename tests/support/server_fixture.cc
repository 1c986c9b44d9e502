// The CTest fixtures "postgres" and "mariadb": `KIND start FILE` leaves a server running and its
// port in FILE, `KIND stop FILE` ends it. Between the two a keeper waits for the ctest that started
// it: when that ends without `stop`, killed for instance, the keeper stops the server itself.
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "tests/support/mariadb_server.h"
#include "tests/support/postgres_server.h"

namespace matins::testing {
namespace {

// A server ends within this, on a busy machine too.
constexpr int kPatienceMs = 120'000;

int OpenPid(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

// Asked by SIGTERM to end: `stop`.
volatile sig_atomic_t asked_to_end = 0;
void AskToEnd(int) { asked_to_end = 1; }

// In the keeper: no descriptor of ctest's may stay open, or ctest would wait for them.
void Detach() {
  setsid();
  FILE* streams[] = {freopen("/dev/null", "r", stdin), freopen("/dev/null", "w", stdout),
                     freopen("/dev/null", "w", stderr)};
  if (streams[0] == nullptr || streams[1] == nullptr || streams[2] == nullptr) _exit(1);
  syscall(SYS_close_range, 3, ~0U, 0);
}

// Starts the server, tells `ready` its port, and keeps it until ctest ends or somebody asks.
template <typename Server>
void Keep(pid_t ctest, int ready) {
  struct sigaction action {};
  action.sa_handler = AskToEnd;  // no SA_RESTART: poll must end
  sigaction(SIGTERM, &action, nullptr);
  auto server = Server::Start();
  const std::string answer =
      server.ok() ? std::to_string((*server)->port()) : server.status().ToString();
  if (write(ready, answer.data(), answer.size()) < 0) _exit(1);
  close(ready);
  if (!server.ok()) _exit(1);
  Detach();
  pollfd ended{OpenPid(ctest), POLLIN, 0};
  while (asked_to_end == 0) {
    if (ended.fd < 0 || poll(&ended, 1, 1000) > 0) break;
  }
  (*server)->Crash();
  // Its folder, of tens of thousands of files, may take minutes to remove: nobody waits for that.
  if (fork() <= 0) server->reset();
  _exit(0);
}

template <typename Server>
int StartServer(const std::string& file) {
  const pid_t ctest = getppid();
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 1;
  const pid_t keeper = fork();
  if (keeper == 0) {
    close(pipe_ends[0]);
    Keep<Server>(ctest, pipe_ends[1]);
  }
  close(pipe_ends[1]);
  std::string answer;
  char buffer[4096];
  for (ssize_t size; (size = read(pipe_ends[0], buffer, sizeof buffer)) > 0;) {
    answer.append(buffer, static_cast<size_t>(size));
  }
  int port = 0;
  if (!absl::SimpleAtoi(answer, &port)) {
    std::cerr << "no server for the tests: " << answer << "\n";
    return 1;
  }
  std::ofstream(file) << port << " " << keeper << "\n";
  return 0;
}

int StopServer(const std::string& file) {
  int port = 0;
  pid_t keeper = 0;
  std::ifstream(file) >> port >> keeper;
  std::remove(file.c_str());
  const int handle = keeper > 0 ? OpenPid(keeper) : -1;
  if (handle < 0 || kill(keeper, SIGTERM) != 0) {
    std::cerr << "the keeper of the tests' server has gone\n";
    return 1;
  }
  pollfd ended{handle, POLLIN, 0};
  return poll(&ended, 1, kPatienceMs) == 1 ? 0 : 1;
}

}  // namespace
}  // namespace matins::testing

int main(int argc, char** argv) {
  using namespace matins::testing;  // NOLINT: three names
  const absl::string_view kind = argc == 4 ? argv[1] : "", verb = argc == 4 ? argv[2] : "";
  if (verb == "start" && kind == "postgres") return StartServer<PostgresServer>(argv[3]);
  if (verb == "start" && kind == "mariadb") return StartServer<MariadbServer>(argv[3]);
  if (verb == "stop") return StopServer(argv[3]);
  std::cerr << "usage: server_fixture postgres|mariadb start|stop FILE\n";
  return 2;
}
