// See sessions.h.
#include "cellar-web/sessions.h"

#include <sys/random.h>

#include <algorithm>
#include <vector>

#include "base/assert.h"
#include "base/text/ascii.h"
#include "cellar-web/json_reply.h"
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

Result<client::Reply> Call(client::Connection* connection, const std::vector<std::string>& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  std::string bytes;
  client::AppendCommand(views, &bytes);
  RETURN_IF_ERROR(connection->Append(bytes));
  return connection->Read();
}

}  // namespace

Result<std::string> Sessions::Begin(const std::string& user, const std::string& password) {
  {
    const std::lock_guard lock(mutex_);
    if (Clock::now() - failures_since_ > std::chrono::minutes(1)) failures_ = 0;
    if (failures_ >= kFailuresMax)
      return Status::Error(ErrorCode::kTryAgain,
                           "there have been too many wrong passwords; wait a minute");
  }
  auto session = std::make_shared<Session>();
  session->options = server_;
  session->options.user = user;
  session->options.password = password;
  session->options.reply_seconds = kReplySeconds;
  Result<client::Connection> connected = client::Connection::Open(session->options);
  if (!connected.ok()) {
    const std::lock_guard lock(mutex_);
    if (connected.status().code() != ErrorCode::kIo && failures_++ == 0)
      failures_since_ = Clock::now();
    return connected.status();
  }
  session->connection = *std::move(connected);
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

Result<client::Reply> Sessions::Send(Session* session, const Question& question) {
  if (!session->connection) {
    Result<client::Connection> connected = client::Connection::Open(session->options);
    if (!connected.ok()) return connected.status();
    session->connection = *std::move(connected);
    session->keyspace = "0";
  }
  if (session->keyspace != question.keyspace) {
    ASSIGN_OR_RETURN(client::Reply reply,
                     Call(&*session->connection, {"SELECT", question.keyspace}));
    if (!client::ErrorText(*reply).empty()) return reply;
    session->keyspace = question.keyspace;
  }
  return Call(&*session->connection, question.words);
}

Status Sessions::Ask(const std::string& name, const Question& question, std::string* json) {
  const std::shared_ptr<Session> session = Find(name);
  if (session == nullptr) return Status::Error(ErrorCode::kNoAuth, "log in first");
  const std::lock_guard lock(session->mutex);
  // A connection that was lost since the last time is made anew, once.
  const bool was_connected = session->connection.has_value();
  Result<client::Reply> reply = Send(session.get(), question);
  if (!reply.ok()) session->connection.reset();
  if (!reply.ok() && was_connected) reply = Send(session.get(), question);
  if (!reply.ok()) {
    session->connection.reset();
    return reply.status();
  }
  if (const auto error = client::ErrorText(**reply); !error.empty())
    return Status::Error(ErrorCode::kErr, std::string(error));
  AppendJson(**reply, json);
  return Status::Ok();
}

}  // namespace cellar::web
