#include "tests/support/talk_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace matins::testing {
namespace {

constexpr int kPatienceMs = 60'000;

void AddExtension(X509* certificate, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

}  // namespace

Certificate::Certificate() {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600 * 24);
  X509_set_pubkey(certificate, key);
  X509_NAME* name = X509_get_subject_name(certificate);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
  X509_set_issuer_name(certificate, name);
  AddExtension(certificate, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate, NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  X509_sign(certificate, key, EVP_sha256());
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  SSL_CTX_use_certificate(context, certificate);
  SSL_CTX_use_PrivateKey(context, key);
  context_ = context;
  char path[] = "/tmp/matins-ca-XXXXXX";
  const int fd = mkstemp(path);
  FILE* file = fdopen(fd, "w");
  PEM_write_X509(file, certificate);
  fclose(file);
  ca_file_ = path;
  X509_free(certificate);
  EVP_PKEY_free(key);
}

Certificate::~Certificate() {
  SSL_CTX_free(static_cast<SSL_CTX*>(context_));
  unlink(ca_file_.c_str());
}

Talk::~Talk() {
  if (ssl_ != nullptr) {
    SSL_shutdown(static_cast<SSL*>(ssl_));
    SSL_free(static_cast<SSL*>(ssl_));
  }
  close(fd_);
}

bool Talk::StartTls(const Certificate& certificate) {
  SSL* ssl = SSL_new(static_cast<SSL_CTX*>(certificate.context_));
  SSL_set_fd(ssl, fd_);
  if (SSL_accept(ssl) != 1) {
    SSL_free(ssl);
    return false;
  }
  ssl_ = ssl;
  return true;
}

bool Talk::Fill() {
  char bytes[4096];
  if (ssl_ != nullptr) {
    const int n = SSL_read(static_cast<SSL*>(ssl_), bytes, sizeof bytes);
    if (n <= 0) return false;
    buffer_.append(bytes, static_cast<size_t>(n));
    return true;
  }
  pollfd asked{fd_, POLLIN, 0};
  if (poll(&asked, 1, kPatienceMs) <= 0) return false;
  const ssize_t n = read(fd_, bytes, sizeof bytes);
  if (n <= 0) return false;
  buffer_.append(bytes, static_cast<size_t>(n));
  return true;
}

bool Talk::ReadLine(std::string* line) {
  for (;;) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      *line = buffer_.substr(0, end);
      if (!line->empty() && line->back() == '\r') line->pop_back();
      buffer_.erase(0, end + 1);
      return true;
    }
    if (!Fill()) return false;
  }
}

bool Talk::ReadBytes(size_t count, std::string* bytes) {
  while (buffer_.size() < count) {
    if (!Fill()) return false;
  }
  *bytes = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return true;
}

void Talk::Write(const std::string& text) {
  if (ssl_ != nullptr) {
    SSL_write(static_cast<SSL*>(ssl_), text.data(), static_cast<int>(text.size()));
  } else if (send(fd_, text.data(), text.size(), MSG_NOSIGNAL) < 0) {
    return;
  }
}

TalkServer::TalkServer(std::function<void(Talk&)> talk) : talk_(std::move(talk)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 16) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      pipe(wake_) != 0) {
    abort();
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] {
    // A peer that does not trust the certificate hangs up while OpenSSL still writes.
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, nullptr);
    Run();
  });
}

TalkServer::~TalkServer() {
  close(wake_[1]);
  thread_.join();
  close(wake_[0]);
  close(listener_);
}

void TalkServer::Run() {
  for (;;) {
    pollfd asked[] = {{listener_, POLLIN, 0}, {wake_[0], POLLIN, 0}};
    poll(asked, 2, -1);
    if (asked[1].revents != 0) return;
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) continue;
    Talk talk(fd);
    talk_(talk);
  }
}

HttpServer::HttpServer(bool tls) {
  if (tls) certificate_ = std::make_unique<Certificate>();
  server_ = std::make_unique<TalkServer>([this](Talk& talk) { Serve(talk); });
}

HttpServer::~HttpServer() {
  {
    absl::MutexLock lock(&mutex_);
    over_ = true;
  }
  server_.reset();
}

std::string HttpServer::url(const std::string& path) const {
  return absl::StrCat(certificate_ == nullptr ? "http" : "https", "://127.0.0.1:", server_->port(),
                      path);
}

void HttpServer::Answer(int status, std::string body) {
  absl::MutexLock lock(&mutex_);
  status_ = status;
  body_ = std::move(body);
}

std::vector<HttpServer::Request> HttpServer::requests() {
  absl::MutexLock lock(&mutex_);
  return requests_;
}

void HttpServer::Serve(Talk& talk) {
  if (certificate_ != nullptr && !talk.StartTls(*certificate_)) return;
  std::string line;
  if (!talk.ReadLine(&line)) return;
  Request request;
  const std::vector<std::string> words = absl::StrSplit(line, ' ');
  request.method = words[0];
  request.path = words.size() > 1 ? words[1] : "";
  while (talk.ReadLine(&line) && !line.empty()) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    request.headers[absl::AsciiStrToLower(parts[0])] = parts.size() > 1 ? parts[1] : "";
  }
  size_t length = 0;
  if (absl::SimpleAtoi(request.headers["content-length"], &length)) {
    talk.ReadBytes(length, &request.body);
  }
  absl::MutexLock lock(&mutex_);
  requests_.push_back(std::move(request));
  if (status_ == 0) {
    mutex_.Await(absl::Condition(&over_));
    return;
  }
  talk.Write(absl::StrCat("HTTP/1.1 ", status_, " Said\r\nContent-Length: ", body_.size(),
                          "\r\nConnection: close\r\n\r\n", body_));
}

SmtpServer::SmtpServer(Tls tls) : tls_(tls) {
  if (tls != Tls::kNone) certificate_ = std::make_unique<Certificate>();
  server_ = std::make_unique<TalkServer>([this](Talk& talk) { Serve(talk); });
}

std::string SmtpServer::url() const {
  return absl::StrCat(tls_ == Tls::kWhole ? "smtps" : "smtp", "://127.0.0.1:", server_->port());
}

void SmtpServer::Answer(std::string reply) {
  absl::MutexLock lock(&mutex_);
  reply_ = std::move(reply);
}

std::vector<SmtpServer::Mail> SmtpServer::mails() {
  absl::MutexLock lock(&mutex_);
  return mails_;
}

void SmtpServer::Serve(Talk& talk) {
  if (tls_ == Tls::kWhole && !talk.StartTls(*certificate_)) return;
  talk.Write("220 test ready\r\n");
  Mail mail;
  std::string line;
  while (talk.ReadLine(&line)) {
    const std::string verb = absl::AsciiStrToUpper(line.substr(0, 4));
    if (verb == "EHLO" || verb == "HELO") {
      talk.Write(absl::StrCat("250-test\r\n",
                              tls_ == Tls::kStart && !talk.secure() ? "250-STARTTLS\r\n" : "",
                              "250 AUTH PLAIN\r\n"));
    } else if (verb == "STAR") {
      talk.Write("220 go on\r\n");
      if (!talk.StartTls(*certificate_)) return;
    } else if (verb == "AUTH") {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      std::string plain = words.size() > 2 ? words[2] : "";
      if (plain.empty()) {
        talk.Write("334 \r\n");
        talk.ReadLine(&plain);
      }
      std::string text;
      absl::Base64Unescape(plain, &text);
      const std::vector<std::string> parts = absl::StrSplit(text, '\0');
      if (parts.size() == 3) {
        mail.user = parts[1];
        mail.password = parts[2];
      }
      talk.Write("235 yes\r\n");
    } else if (verb == "MAIL") {
      mail.from = line.substr(line.find('<'));
      mail.secure = talk.secure();
      talk.Write("250 yes\r\n");
    } else if (verb == "RCPT") {
      mail.to.push_back(line.substr(line.find('<')));
      talk.Write("250 yes\r\n");
    } else if (verb == "DATA") {
      talk.Write("354 go on\r\n");
      while (talk.ReadLine(&line) && line != ".") absl::StrAppend(&mail.text, line, "\n");
      absl::MutexLock lock(&mutex_);
      if (absl::StartsWith(reply_, "250")) mails_.push_back(mail);
      talk.Write(absl::StrCat(reply_, "\r\n"));
    } else if (verb == "QUIT") {
      talk.Write("221 bye\r\n");
      return;
    } else {
      talk.Write("502 what\r\n");
    }
  }
}

}  // namespace matins::testing
