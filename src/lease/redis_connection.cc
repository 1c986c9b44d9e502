#include "lease/redis_connection.h"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"

namespace matins {
namespace {

void Encode(const RedisCommand& command, std::string& out) {
  absl::StrAppend(&out, "*", command.size(), "\r\n");
  for (const absl::string_view word : command) {
    absl::StrAppend(&out, "$", word.size(), "\r\n", word, "\r\n");
  }
}

RedisReply Converted(const redisReply& from) {
  RedisReply reply;
  switch (from.type) {
    case REDIS_REPLY_INTEGER:
      reply.type = RedisReply::Type::kInteger;
      reply.integer = from.integer;
      break;
    case REDIS_REPLY_ERROR:
      reply.type = RedisReply::Type::kError;
      reply.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      reply.type = RedisReply::Type::kText;
      reply.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_ARRAY:
      reply.type = RedisReply::Type::kList;
      for (size_t i = 0; i < from.elements; ++i) {
        reply.items.push_back(Converted(*from.element[i]));
      }
      break;
    default:
      break;
  }
  return reply;
}

absl::Status Refused(absl::string_view where, const absl::Status& status) {
  return Annotate(status, absl::StrCat("Redis at ", where));
}

}  // namespace

bool RedisReply::IsError(absl::string_view code) const {
  return type == Type::kError && absl::StartsWith(text, code);
}

absl::Status RedisReply::ToStatus() const {
  if (type != Type::kError) return absl::OkStatus();
  for (const char* code : {"NOAUTH", "WRONGPASS", "NOPERM", "ERR AUTH", "ERR invalid password"}) {
    if (!IsError(code)) continue;
    return absl::PermissionDeniedError(absl::StrCat(
        text,
        "; give user and password in the URL (redis://USER:PASSWORD@host, or password_file=) "
        "and let the user have our keys and scripts (ACL: ~matins:* +@all -@dangerous)"));
  }
  for (const char* code : {"LOADING", "READONLY", "MASTERDOWN", "BUSY", "OOM", "NOREPLICAS",
                           "MISCONF", "CLUSTERDOWN", "TRYAGAIN", "UNKILLABLE"}) {
    if (IsError(code)) return StoreAwayError(text);
  }
  if (IsError("WRONGTYPE") || absl::StrContains(text, "WRONGTYPE")) {
    return absl::FailedPreconditionError(
        absl::StrCat("another program keeps something else at this key (", text,
                     "); choose another key, or give us a prefix of our own: ?prefix=NAME"));
  }
  return absl::FailedPreconditionError(text);
}

RedisConnection::RedisConnection(RedisUrl url, Clock& clock)
    : url_(std::move(url)), clock_(clock) {}

RedisConnection::~RedisConnection() { Close(); }

void RedisConnection::Close() {
  socket_ = nullptr;
  if (reader_ != nullptr) redisReaderFree(reader_);
  reader_ = nullptr;
}

absl::StatusOr<std::vector<RedisReply>> RedisConnection::Call(
    absl::Span<const RedisCommand> commands, absl::Duration patience) {
  const absl::Duration until = clock_.BootNow() + patience;
  if (socket_ == nullptr) {
    const absl::Status connected = Connect(until);
    if (!connected.ok()) {
      Close();
      return Refused(url_.description, connected);
    }
  }
  auto replies = Exchange(commands, until);
  if (!replies.ok()) {
    Close();
    return InDoubtError(
        absl::StrCat("Redis at ", url_.description, ": ", replies.status().message()));
  }
  // A primary that has become a replica, or is on its way out: the next call looks where to go.
  for (const RedisReply& reply : *replies) {
    if (reply.IsError("READONLY") || reply.IsError("MASTERDOWN")) Close();
  }
  return replies;
}

absl::Status RedisConnection::Connect(absl::Duration until) {
  RedisPlace place = url_.places[0];
  if (!url_.master.empty()) {
    ASSIGN_OR_RETURN(place, AskSentinels(until));
  }
  RETURN_IF_ERROR(Enter(place, url_.user, url_.password, url_.database, until));
  return CheckRole(until);
}

absl::StatusOr<RedisPlace> RedisConnection::AskSentinels(absl::Duration until) {
  const size_t count = url_.places.size();
  absl::Status last;
  for (size_t i = 0; i < count; ++i) {
    const size_t which = (first_sentinel_ + i) % count;
    // One that is dead must leave time for the others.
    const absl::Duration now = clock_.BootNow();
    const absl::Duration share = now + (until - now) / static_cast<int64_t>(count - i + 1);
    last = Enter(url_.places[which], url_.sentinel_user, url_.sentinel_password, 0, share);
    if (!last.ok()) continue;
    const RedisCommand ask = {"SENTINEL", "get-master-addr-by-name", url_.master};
    const auto replies = Exchange({ask}, share);
    last = replies.status();
    if (!last.ok()) continue;
    const RedisReply& reply = (*replies)[0];
    last = reply.ToStatus();
    RedisPlace place;
    if (reply.items.size() == 2 && absl::SimpleAtoi(reply.items[1].text, &place.port)) {
      place.host = reply.items[0].text;
      first_sentinel_ = which;
      return place;
    }
    if (last.ok()) {
      last = StoreAwayError(absl::StrCat("the sentinel knows no server '", url_.master,
                                         "'; name it as its `sentinel monitor` line does"));
    }
  }
  return last;
}

absl::Status RedisConnection::Enter(const RedisPlace& place, const std::string& user,
                                    const std::string& password, int database,
                                    absl::Duration until) {
  Close();
  const TlsFiles tls{url_.tls, url_.tls_ca, url_.tls_cert, url_.tls_key};
  ASSIGN_OR_RETURN(socket_, Socket::Connect(clock_, place.host, place.port, tls, until));
  reader_ = redisReaderCreate();
  std::vector<RedisCommand> commands;
  if (!user.empty()) {
    commands.push_back({"AUTH", user, password});
  } else if (!password.empty()) {
    commands.push_back({"AUTH", password});
  }
  const std::string number = absl::StrCat(database);
  if (database != 0) commands.push_back({"SELECT", number});
  if (commands.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, Exchange(commands, until));
  for (const RedisReply& reply : replies) RETURN_IF_ERROR(reply.ToStatus());
  return absl::OkStatus();
}

absl::Status RedisConnection::CheckRole(absl::Duration until) {
  const RedisCommand role = {"ROLE"};
  ASSIGN_OR_RETURN(const std::vector<RedisReply> replies, Exchange({role}, until));
  const RedisReply& reply = replies[0];
  // A user may be let have no ROLE: then READONLY says the same later.
  if (reply.IsError("NOPERM")) return absl::OkStatus();
  RETURN_IF_ERROR(reply.ToStatus());
  const std::string what = reply.items.empty() ? "" : reply.items[0].text;
  if (what == "master") return absl::OkStatus();
  if (what == "sentinel") {
    return absl::FailedPreconditionError(
        "this is a sentinel; write redis+sentinel://host:26379/mymaster");
  }
  return StoreAwayError(
      absl::StrCat("this server is a ", what, "; name the primary, or its sentinels"));
}

absl::StatusOr<std::vector<RedisReply>> RedisConnection::Exchange(
    absl::Span<const RedisCommand> commands, absl::Duration until) {
  out_.clear();
  for (const RedisCommand& command : commands) Encode(command, out_);
  RETURN_IF_ERROR(socket_->Send(out_, until));
  std::vector<RedisReply> replies;
  replies.reserve(commands.size());
  for (size_t i = 0; i < commands.size(); ++i) {
    ASSIGN_OR_RETURN(RedisReply reply, ReadReply(until));
    replies.push_back(std::move(reply));
  }
  return replies;
}

absl::StatusOr<RedisReply> RedisConnection::ReadReply(absl::Duration until) {
  for (;;) {
    void* raw = nullptr;
    if (redisReaderGetReply(reader_, &raw) != REDIS_OK) {
      return StoreAwayError(absl::StrCat("this is no Redis: ", reader_->errstr));
    }
    if (raw != nullptr) {
      const std::unique_ptr<void, void (*)(void*)> owned(raw, freeReplyObject);
      return Converted(*static_cast<redisReply*>(raw));
    }
    in_.clear();
    RETURN_IF_ERROR(socket_->Receive(in_, until));
    redisReaderFeed(reader_, in_.data(), in_.size());
  }
}

}  // namespace matins
