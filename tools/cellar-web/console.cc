// See console.h.
#include "cellar-web/console.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/ascii.h"
#include "client/command_words.h"

namespace cellar::web {
namespace {

// Which no rule of a user's can take away, since they come before it is known who somebody is.
constexpr std::array<std::string_view, 4> kOfNobody{"AUTH", "HELLO", "QUIT", "RESET"};

}  // namespace

Result<client::Reply> Console::Ask(const std::vector<std::string_view>& words) {
  if (!connection_) {
    Result<client::Connection> made = client::Connection::Open(server_);
    if (!made.ok()) return made.status();
    connection_ = *std::move(made);
  }
  std::string bytes;
  client::AppendCommand(words, &bytes);
  RETURN_IF_ERROR(connection_->Append(bytes));
  return connection_->Read();
}

Status Console::Check(const std::vector<std::string>& words) {
  if (server_.user.empty()) {
    return Status::Error(ErrorCode::kErr,
                         "no command may be typed here: cellar-web needs --console-user");
  }
  if (std::find(kOfNobody.begin(), kOfNobody.end(), UpperText(words.front())) != kOfNobody.end()) {
    return Status::Error(ErrorCode::kErr, "only what reads may be typed, and " +
                                              UpperText(words.front()) + " changes who asks");
  }
  std::vector<std::string_view> asked{"ACL", "DRYRUN", server_.user};
  asked.insert(asked.end(), words.begin(), words.end());
  const std::lock_guard lock(mutex_);
  const bool was_connected = connection_.has_value();
  Result<client::Reply> reply = Ask(asked);
  if (!reply.ok()) connection_.reset();
  if (!reply.ok() && was_connected) reply = Ask(asked);
  if (!reply.ok()) {
    connection_.reset();
    // Who it is that may not is not to be taken for whoever sits there.
    return Status::Error(
        reply.status().code() == ErrorCode::kIo ? ErrorCode::kIo : ErrorCode::kErr,
        "user " + server_.user + ", who says what may be typed: " + reply.status().text());
  }
  if (const auto error = client::ErrorText(**reply); !error.empty())
    return Status::Error(ErrorCode::kErr, std::string(error));
  const std::string_view said((*reply)->str, (*reply)->len);
  if ((*reply)->type == REDIS_REPLY_STATUS && said == "OK") return Status::Ok();
  return Status::Error(ErrorCode::kErr, "only what reads may be typed: of user " + server_.user +
                                            " the server says: " + std::string(said));
}

}  // namespace cellar::web
