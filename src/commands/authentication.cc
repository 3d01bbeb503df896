// See authentication.h.
#include "commands/authentication.h"

#include <algorithm>
#include <string>

#include "commands/host.h"
#include "commands/services.h"
#include "commands/session.h"

namespace cellar {

Status Authenticate(Host& host, Session& session, std::string_view user,
                    std::string_view password) {
  (void)password;
  if (user != "default") {
    ++host.services().stats.auth_failures;
    return Status::Error(ErrorCode::kWrongPass,
                         "invalid username-password pair or user is disabled.");
  }
  session.user_name = user;
  session.authenticated = true;
  return Status::Ok();
}

bool IsClientWord(std::string_view name) {
  return std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

}  // namespace cellar
