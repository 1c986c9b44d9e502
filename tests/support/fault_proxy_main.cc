// fault_proxy SERVER_PORT [LISTEN_PORT | mariadb]: the proxy of fault_proxy.h as a program. Prints
// "listening PORT", then takes one command a line on stdin (pass, drop_reply PATTERN, drop_request
// PATTERN, hold PATTERN, release, blackhole, reset, refuse, hits, await N) and answers "ok" or the
// number of hits. Ends with its stdin.
#include <iostream>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "tests/support/fault_proxy.h"

namespace matins::testing {
namespace {

bool SetFault(FaultProxy& proxy, const std::string& verb, const std::string& pattern) {
  if (verb == "pass") return proxy.Pass(), true;
  if (verb == "drop_reply") return proxy.DropReply(pattern), true;
  if (verb == "drop_request") return proxy.DropRequest(pattern), true;
  if (verb == "hold") return proxy.Hold(pattern), true;
  if (verb == "release") return proxy.Release(), true;
  if (verb == "blackhole") return proxy.Blackhole(), true;
  if (verb == "reset") return proxy.Reset(), true;
  if (verb == "refuse") return proxy.Refuse(), true;
  return false;
}

std::string Do(FaultProxy& proxy, const std::string& line) {
  const size_t space = line.find(' ');
  const std::string verb = line.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
  int count = 0;
  if (verb == "hits") return std::to_string(proxy.hits());
  if (verb == "await" && absl::SimpleAtoi(rest, &count)) {
    proxy.AwaitHits(count);
    return std::to_string(proxy.hits());
  }
  return SetFault(proxy, verb, rest) ? "ok" : "no such command: " + line;
}

int Run(int server_port, int listen_port, FaultProxy::Wire wire) {
  auto proxy = FaultProxy::Start(server_port, listen_port, wire);
  if (!proxy.ok()) {
    std::cerr << proxy.status() << "\n";
    return 1;
  }
  std::cout << "listening " << (*proxy)->port() << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << Do(**proxy, line) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace matins::testing

int main(int argc, char** argv) {
  int server_port = 0;
  int listen_port = 0;
  const bool mariadb = argc == 3 && std::string(argv[2]) == "mariadb";
  const bool good = (argc == 2 || argc == 3) && absl::SimpleAtoi(argv[1], &server_port) &&
                    (argc == 2 || mariadb || absl::SimpleAtoi(argv[2], &listen_port));
  if (!good) {
    std::cerr << "usage: fault_proxy SERVER_PORT [LISTEN_PORT | mariadb]\n";
    return 2;
  }
  using Wire = matins::testing::FaultProxy::Wire;
  return matins::testing::Run(server_port, listen_port,
                              mariadb ? Wire::kMariadb : Wire::kPostgresql);
}
