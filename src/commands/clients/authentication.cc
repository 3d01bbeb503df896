// See authentication.h.
#include "commands/clients/authentication.h"

#include <algorithm>

#include "commands/clients/acl_sessions.h"
#include "commands/session/host.h"
#include "commands/session/services.h"
#include "commands/session/session.h"

namespace cellar {

Status Authenticate(Host& host, Session& session, std::string_view command, std::string_view name,
                    std::string_view password) {
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

bool IsClientWord(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace cellar
