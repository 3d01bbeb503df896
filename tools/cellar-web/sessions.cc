// See sessions.h.
#include "cellar-web/sessions.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "client/command_words.h"

namespace cellar::web {
namespace {

constexpr int kReplySeconds{20};  // of the server, before it counts as gone

std::string NewName() {
  char bytes[16];
  CELLAR_ASSERT(getrandom(bytes, sizeof(bytes), 0) == static_cast<ssize_t>(sizeof(bytes)));
  std::string name;
  for (const char byte : bytes) AppendHex(byte, &name);
  return name;
}

// Whether the server has not closed it, as it has when it was started anew since the last question.
bool IsAlive(const client::Connection& connection) {
  char byte = 0;
  const ssize_t got = recv(connection.descriptor(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

bool Sessions::MayTry(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  const auto is_over = [now](const auto& failures) {
    return now - failures.second.since > std::chrono::minutes(1);
  };
  if (failures_.size() >= kAddressesMax) std::erase_if(failures_, is_over);
  if (failures_.size() >= kAddressesMax && !failures_.contains(address)) {
    failures_.erase(failures_.begin());
  }
  const auto own = failures_.try_emplace(address, Failures{.since = now}).first;
  if (is_over(*own)) own->second = Failures{.since = now};
  if (own->second.count >= kFailuresMax) return false;
  ++own->second.count;
  return true;
}

void Sessions::TakeBack(const std::string& address) {
  const std::lock_guard lock(mutex_);
  const auto own = failures_.find(address);
  if (own == failures_.end()) return;
  if (own->second.count > 0) --own->second.count;
  if (own->second.count == 0) failures_.erase(own);
}

Result<std::string> Sessions::Begin(const std::string& address, const std::string& user,
                                    const std::string& password) {
  if (!MayTry(address)) {
    return Status::Error(ErrorCode::kTryAgain,
                         "there have been too many wrong passwords; wait a minute");
  }
  auto session = std::make_shared<Session>();
  session->options = server_;
  session->options.user = user;
  session->options.password = password;
  session->options.reply_seconds = kReplySeconds;
  Result<client::Connection> connected = client::Connection::Open(session->options);
  // A server that is not there has refused no password.
  if (connected.ok() || connected.status().code() == ErrorCode::kIo) TakeBack(address);
  if (!connected.ok()) return connected.status();
  session->idle.push_back({*std::move(connected), "0"});
  session->used = Clock::now();
  std::string name = NewName();
  const std::lock_guard lock(mutex_);
  DropOld();
  sessions_[name] = std::move(session);
  return name;
}

// Makes room for one.
void Sessions::DropOld() {
  const auto now = Clock::now();
  std::erase_if(sessions_,
                [now](const auto& session) { return now - session.second->used > kIdleMax; });
  if (sessions_.size() < kSessionsMax) return;
  sessions_.erase(std::min_element(
      sessions_.begin(), sessions_.end(),
      [](const auto& a, const auto& b) { return a.second->used < b.second->used; }));
}

void Sessions::End(const std::string& name) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(name);
}

std::shared_ptr<Sessions::Session> Sessions::Find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(name);
  if (found == sessions_.end()) return nullptr;
  const auto now = Clock::now();
  if (now - found->second->used > kIdleMax) {
    sessions_.erase(found);
    return nullptr;
  }
  found->second->used = now;
  return found->second;
}

bool Sessions::IsThere(const std::string& name) { return Find(name) != nullptr; }

Result<Sessions::Link> Sessions::Take(Session* session, bool fresh) {
  {
    std::unique_lock lock(session->mutex);
    session->is_free.wait(lock, [session] { return session->busy < kLinksMax; });
    ++session->busy;
    while (!fresh && !session->idle.empty()) {
      Link link = std::move(session->idle.back());
      session->idle.pop_back();
      if (IsAlive(link.connection)) return link;
    }
  }
  Result<client::Connection> made = client::Connection::Open(session->options);
  if (!made.ok()) return made.status();
  return Link{*std::move(made), "0"};
}

JsonReply Sessions::SendOn(Link* link, const Question& question, std::string* json) {
  if (link->keyspace != question.keyspace) {
    const Result<client::Reply> reply = link->connection.Call({"SELECT", question.keyspace});
    if (!reply.ok()) return {reply.status(), false};
    if (const auto error = client::ErrorText(**reply); !error.empty())
      return {Status::Error(ErrorCode::kErr, std::string(error)), true};
    link->keyspace = question.keyspace;
  }
  const std::vector<std::string_view> words(question.words.begin(), question.words.end());
  std::string bytes;
  client::AppendCommand(words, &bytes);
  if (const Status sent = link->connection.Send(bytes); !sent.ok()) return {sent, false};
  client::ReplyStream stream(link->connection);
  return question.piece_offset ? AppendPiece(&stream, *question.piece_offset, json)
                               : AppendJson(&stream, json);
}

Status Sessions::Ask(const std::string& name, const Question& question, std::string* json) {
  const std::shared_ptr<Session> session = Find(name);
  if (session == nullptr) return Status::Error(ErrorCode::kNoAuth, "log in first");
  Result<Link> link = Take(session.get(), question.is_typed);
  const auto asked = Clock::now();
  JsonReply reply = link.ok() ? SendOn(&*link, question, json) : JsonReply{link.status(), false};
  if (!reply.status.ok() && !reply.is_whole && link.ok() &&
      Clock::now() - asked >= std::chrono::seconds(kReplySeconds)) {
    reply.status = Status::Error(ErrorCode::kIo, "the server has not answered within " +
                                                     std::to_string(kReplySeconds) + " seconds");
  }
  const std::lock_guard lock(session->mutex);
  CELLAR_ASSERT(session->busy > 0);
  --session->busy;
  if (link.ok() && reply.is_whole && !question.is_typed) session->idle.push_back(*std::move(link));
  session->is_free.notify_one();
  return reply.status;
}

}  // namespace cellar::web
