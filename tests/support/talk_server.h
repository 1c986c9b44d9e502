// Small servers for tests of what Matins says to others: HTTP and SMTP on a free port of 127.0.0.1,
// in a thread of their own, with TLS where it is asked for. They keep what they were told, and say
// what the test wants said.
#ifndef MATINS_TESTS_SUPPORT_TALK_SERVER_H_
#define MATINS_TESTS_SUPPORT_TALK_SERVER_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/mutex.h"

namespace matins::testing {

// A certificate for 127.0.0.1 and localhost, by an authority of its own, made anew for each.
class Certificate {
 public:
  Certificate();
  ~Certificate();
  const std::string& ca_file() const { return ca_file_; }

 private:
  friend class Talk;
  void* context_ = nullptr;  // SSL_CTX
  std::string ca_file_;
};

// One connection, seen from the server.
class Talk {
 public:
  explicit Talk(int fd) : fd_(fd) {}
  ~Talk();
  bool StartTls(const Certificate& certificate);
  // Without its line end; false: the other has gone.
  bool ReadLine(std::string* line);
  bool ReadBytes(size_t count, std::string* bytes);
  void Write(const std::string& text);
  bool secure() const { return ssl_ != nullptr; }

 private:
  bool Fill();
  int fd_;
  void* ssl_ = nullptr;
  std::string buffer_;
};

// Takes one connection after the other, until it is destroyed.
class TalkServer {
 public:
  explicit TalkServer(std::function<void(Talk&)> talk);
  ~TalkServer();
  int port() const { return port_; }

 private:
  void Run();
  const std::function<void(Talk&)> talk_;
  int listener_ = -1, port_ = 0;
  int wake_[2] = {-1, -1};
  std::thread thread_;
};

class HttpServer {
 public:
  struct Request {
    std::string method, path, body;
    std::map<std::string, std::string> headers;  // names in lower case
  };
  explicit HttpServer(bool tls = false);
  std::string url(const std::string& path) const;
  std::string ca_file() const { return certificate_ == nullptr ? "" : certificate_->ca_file(); }
  // What all that follow are answered; status 0: nothing at all, until the server goes.
  void Answer(int status, std::string body);
  std::vector<Request> requests();

 private:
  void Serve(Talk& talk);
  std::unique_ptr<Certificate> certificate_;
  absl::Mutex mutex_;
  int status_ = 200;
  std::string body_ = "ok";
  std::vector<Request> requests_;
  bool over_ = false;
  std::unique_ptr<TalkServer> server_;

 public:
  ~HttpServer();
};

class SmtpServer {
 public:
  enum class Tls { kNone, kStart, kWhole };
  struct Mail {
    std::string from;
    std::vector<std::string> to;
    std::string text, user, password;
    bool secure = false;
  };
  explicit SmtpServer(Tls tls = Tls::kNone);
  std::string url() const;
  std::string ca_file() const { return certificate_ == nullptr ? "" : certificate_->ca_file(); }
  // The reply to DATA's end from now on: "250 taken".
  void Answer(std::string reply);
  std::vector<Mail> mails();

 private:
  void Serve(Talk& talk);
  const Tls tls_;
  std::unique_ptr<Certificate> certificate_;
  absl::Mutex mutex_;
  std::string reply_ = "250 taken";
  std::vector<Mail> mails_;
  std::unique_ptr<TalkServer> server_;
};

}  // namespace matins::testing

#endif  // MATINS_TESTS_SUPPORT_TALK_SERVER_H_
