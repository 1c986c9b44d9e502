#include "tests/support/redis_server.h"

#include <signal.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status.h"
#include "tests/support/shared_server.h"

namespace matins::testing {
namespace {

std::string ShellWord(absl::string_view word) {
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

absl::Status RunShell(const std::string& script, const std::string& log) {
  ChildProcess::Options run;
  run.argv = {"/bin/sh", "-ec", script};
  run.output = log;
  return RunProgram(run);
}

}  // namespace

absl::StatusOr<std::unique_ptr<RedisServer>> RedisServer::Start(const Options& options) {
  std::unique_ptr<RedisServer> server(new RedisServer());
  server->options_ = options;
  ASSIGN_OR_RETURN(server->directory_, MakeServerDirectory("matins-redis"));
  if (options.tls) RETURN_IF_ERROR(server->MakeCertificate());
  RETURN_IF_ERROR(LaunchOnFreePort(absl::StrCat(server->directory_, "/log"), server->port_,
                                   [&] { return server->Launch(); }));
  return server;
}

RedisServer::~RedisServer() {
  if (directory_.empty()) return;
  Continue();
  process_.Stop(SIGTERM);
  RemoveDirectory(directory_);
}

std::string RedisServer::url() const { return absl::StrCat("redis://127.0.0.1:", port_); }

absl::Status RedisServer::MakeCertificate() const {
  const std::string d = directory_;
  return RunShell(
      absl::StrCat(
          "cd ", ShellWord(d),
          "; openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
          "-keyout ca.key -out ca.crt -days 2 -subj /CN=tests-ca; "
          "openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "
          "server.key -out server.csr -subj /CN=localhost; "
          "printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' > san; "
          "openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 "
          "-extfile san -out server.crt; chmod a+r *"),
      d + "/openssl.log");
}

absl::Status RedisServer::Launch() {
  // Valkey speaks the same; which of the two is there depends on the distribution.
  const char* const chosen = std::getenv("MATINS_TEST_REDIS_SERVER");
  absl::StatusOr<std::string> found =
      FindServerProgram(chosen != nullptr ? chosen : "redis-server");
  if (!found.ok() && chosen == nullptr) found = FindServerProgram("valkey-server");
  ASSIGN_OR_RETURN(const std::string program, std::move(found));
  ChildProcess::Options run;
  run.argv = {program};
  if (options_.sentinel) {
    // It keeps its state in that file.
    const std::string config = directory_ + "/sentinel.conf";
    std::ofstream(config) << "dir " << directory_ << "\n";
    run.argv.push_back(config);
    run.argv.push_back("--sentinel");
  }
  const std::string port = absl::StrCat(port_);
  for (const std::string& word :
       {std::string("--port"), options_.tls ? std::string("0") : port, std::string("--bind"),
        std::string("127.0.0.1"), std::string("--dir"), directory_}) {
    run.argv.push_back(word);
  }
  if (!options_.sentinel) {
    for (const char* word : {"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
                             "--enable-debug-command", "yes"}) {
      run.argv.push_back(word);
    }
  }
  if (options_.tls) {
    for (const std::string& word : {std::string("--tls-port"), port, std::string("--tls-cert-file"),
                                    directory_ + "/server.crt", std::string("--tls-key-file"),
                                    directory_ + "/server.key", std::string("--tls-ca-cert-file"),
                                    ca(), std::string("--tls-auth-clients"), std::string("no")}) {
      run.argv.push_back(word);
    }
  }
  run.argv.insert(run.argv.end(), options_.settings.begin(), options_.settings.end());
  run.output = directory_ + "/log";
  ASSIGN_OR_RETURN(process_, ChildProcess::Start(run));
  const absl::Time end = absl::Now() + absl::Seconds(60);
  while (absl::Now() < end) {
    // A server with a password answers NOAUTH, which is an answer too.
    const std::string said = Ask({"PING"});
    if (absl::StrContains(said, "PONG") || absl::StrContains(said, "NOAUTH")) {
      return absl::OkStatus();
    }
    if (!process_.Running()) return absl::InternalError("Redis ended while starting");
    absl::SleepFor(absl::Milliseconds(5));
  }
  return absl::DeadlineExceededError("Redis takes no connections after 60 s");
}

std::string RedisServer::Ask(const std::vector<std::string>& words) const {
  std::string command = absl::StrCat("redis-cli -h 127.0.0.1 -p ", port_);
  if (!options_.password.empty()) {
    absl::StrAppend(&command, " --no-auth-warning -a ", ShellWord(options_.password));
  }
  if (options_.tls) absl::StrAppend(&command, " --tls --cacert ", ShellWord(ca()));
  for (const std::string& word : words) absl::StrAppend(&command, " ", ShellWord(word));
  command += " 2>&1";
  std::string text;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "no redis-cli";
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, got);
  pclose(pipe);
  while (absl::EndsWith(text, "\n")) text.pop_back();
  return text;
}

void RedisServer::Crash() {
  Continue();
  process_.Stop(SIGKILL);
}

absl::Status RedisServer::Restart() { return Launch(); }

void RedisServer::Pause() { process_.Signal(SIGSTOP); }
void RedisServer::Continue() { process_.Signal(SIGCONT); }

}  // namespace matins::testing
