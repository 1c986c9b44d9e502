// The node's side of a run's socket (run_protocol.h).
#ifndef MATINS_EXECUTE_RUN_SOCKET_H_
#define MATINS_EXECUTE_RUN_SOCKET_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "execute/event_loop.h"
#include "execute/run_protocol.h"
#include "execute/runner.h"
#include "execute/user.h"

namespace matins {

// Made anywhere, then used on the loop's thread alone. Limits: 16 connections at a time, 64 asks
// that wait.
class RunSocket {
 public:
  using OnAsk = std::function<void(RunAsked)>;

  // Listens at `folder`/socket, 0600, owned by `owner` where one is given; `key` is the secret.
  static absl::StatusOr<std::unique_ptr<RunSocket>> Listen(const std::string& folder,
                                                           std::string key,
                                                           const std::optional<UserAccount>& owner);
  ~RunSocket();

  // For MATINS_SOCKET.
  std::string Address() const;
  void Serve(EventLoop& loop, OnAsk on_ask);
  void Reply(int64_t ask, const RunAnswer& answer);

 private:
  struct Connection {
    int fd = -1;
    std::string in;
    std::string out;
    // What was asked and not yet answered to the client, in order: its ask, and the line once
    // known.
    std::deque<std::pair<int64_t, std::optional<std::string>>> asked;
    bool closing = false;  // no more is read; it goes when all is written
  };

  RunSocket(int fd, std::string path, std::string key)
      : fd_(fd), path_(std::move(path)), key_(std::move(key)) {}

  void Accept();
  void OnReady(Connection& connection, uint32_t events);
  void TakeLine(Connection& connection, absl::string_view line);
  void Settle(Connection& connection);
  void Close(int fd);

  const int fd_;
  const std::string path_;
  const std::string key_;
  EventLoop* loop_ = nullptr;
  OnAsk on_ask_;
  std::map<int, Connection> connections_;
  int64_t last_ask_ = 0;
  int waiting_ = 0;
};

}  // namespace matins

#endif  // MATINS_EXECUTE_RUN_SOCKET_H_
