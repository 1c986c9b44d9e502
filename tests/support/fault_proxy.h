// A TCP proxy between a client and PostgreSQL (or its pgbouncer) or MariaDB on 127.0.0.1 that loses
// what a test tells it to lose:
//
//   auto proxy = FaultProxy::Start(TestPostgresPort());
//   const std::string url = OnPort(TestPostgresUrl(), (*proxy)->port());
//   (*proxy)->DropReply("COMMIT");           // takes effect in the server, the client never hears
//   store->Finish(...);                      // in doubt
//   ASSERT_TRUE((*proxy)->AwaitHits(1));     // the server has answered, and nobody heard it
//
// Patterns are bytes as the client sends them, looked for across the borders of packets; matching
// minds case. Connections must be in clear text, as those to the tests' servers are.
#ifndef MATINS_TESTS_SUPPORT_FAULT_PROXY_H_
#define MATINS_TESTS_SUPPORT_FAULT_PROXY_H_

#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace matins::testing {

// Thread-safe. One fault at a time: each call replaces what the one before had asked for.
class FaultProxy {
 public:
  static constexpr int kAlways = -1;

  // Whose protocol goes through: by it the proxy knows when the server has answered in full.
  enum class Wire { kPostgresql, kMariadb };

  // On `listen_port` of 127.0.0.1, or a free one; passes everything until told otherwise.
  static absl::StatusOr<std::unique_ptr<FaultProxy>> Start(int server_port, int listen_port = 0,
                                                           Wire wire = Wire::kPostgresql);
  ~FaultProxy();
  FaultProxy(const FaultProxy&) = delete;
  FaultProxy& operator=(const FaultProxy&) = delete;

  int port() const { return port_; }

  void Pass();
  // The request reaches the server; its answer is swallowed, and the client's connection is reset
  // once the server is ready for the next query. A hit when that has happened.
  void DropReply(const std::string& pattern, int times = 1);
  // The request never reaches the server; the client's connection is reset. A hit at once.
  void DropRequest(const std::string& pattern, int times = 1);
  // The client's connection is reset at once (a hit); the request waits in the proxy, on its open
  // connection to the server, until Release(), which answers when the server has.
  void Hold(const std::string& pattern, int times = 1);
  void Release();
  // Nothing goes either way and no connection ends, until Pass(). New connections are taken.
  void Blackhole();
  // Resets every connection, now. New ones are served.
  void Reset();
  // Resets every connection, now and as they come, until Pass(): the server seems to be away.
  void Refuse();

  int hits() const;  // since Start
  // False when `count` hits have not come within `patience`.
  bool AwaitHits(int count, absl::Duration patience = absl::Seconds(30)) const;

 private:
  enum class Mode { kPass, kDropReply, kDropRequest, kHold, kBlackhole, kRefuse };
  struct Connection;

  FaultProxy() = default;
  void Set(Mode mode, const std::string& pattern, int times);
  void Wake() const;
  void Serve();
  void Accept();
  void ReadClient(Connection& connection);
  void ReadServer(Connection& connection);
  void OnMatch(Connection& connection, const std::string& bytes);
  void Hit();
  void ResetLocked();
  void RemoveClosed();

  Wire wire_ = Wire::kPostgresql;
  int port_ = 0;
  int server_port_ = 0;
  int listener_ = -1;
  int wake_ = -1;
  std::thread thread_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  Mode mode_ = Mode::kPass;
  std::string pattern_;
  int times_ = 0;
  int hits_ = 0;
  bool ending_ = false;
  std::list<Connection> connections_;
};

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_FAULT_PROXY_H_
