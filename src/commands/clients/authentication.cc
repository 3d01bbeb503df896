// See authentication.h.
#include "commands/clients/authentication.h"

#include <algorithm>
#include <string>

#include "commands/clients/acl_sessions.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "commands/session/session.h"

namespace cellar {
namespace {

constexpr std::string_view kUnknownUsers{"Cellar does not know yet what users the replica set has"};

}  // namespace

std::string_view UnauthenticatedText(const Host& host) {
  static const std::string kLoadingLine = "LOADING " + std::string(kUnknownUsers);
  return host.services().acl.taken_over().holds ? std::string_view(kLoadingLine)
                                                : "NOAUTH Authentication required.";
}

Status CheckUsersKnown(const Host& host, std::string_view name) {
  if (!host.services().acl.taken_over().holds) return Status::Ok();
  const Config& config = host.services().config;
  const std::string_view node =
      config.masteruser.empty() ? kDefaultUser : std::string_view(config.masteruser);
  if (!config.masterauth.empty() && name == node) return Status::Ok();
  return Status::Error(ErrorCode::kLoading, std::string(kUnknownUsers));
}

Status Authenticate(Host& host, Session& session, std::string_view command, std::string_view name,
                    std::string_view password) {
  RETURN_IF_ERROR(CheckUsersKnown(host, name));
  const User* user = host.services().acl.Find(name);
  // One error for all three, so that it does not tell which names there are.
  if (user == nullptr || !user->enabled || !user->HasPassword(password)) {
    LogDenied(host, session, Denied::kAuth, command, name);
    return Status::Error(ErrorCode::kWrongPass,
                         "invalid username-password pair or user is disabled.");
  }
  BecomeUser(session, *user);
  session.authenticated = true;
  // What an earlier user of the connection was told of may be hidden from this one.
  if (session.restricted && session.tracking) host.services().tracking.Disable(session);
  return Status::Ok();
}

Status CheckKeptWord(std::string_view what, std::string_view word) {
  if (word.size() <= kKeptWordBytesMax) return Status::Ok();
  return Status::Error(ErrorCode::kTooLarge, std::string(what) + " has at most " +
                                                 std::to_string(kKeptWordBytesMax) + " bytes");
}

bool IsClientWord(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace cellar
