// Who a client is: AUTH and HELLO AUTH end here.
#pragma once

#include <string_view>

#include "cellar/status.h"

namespace cellar {

class Host;
struct Session;

// Makes the session that user's. "WRONGPASS invalid username-password pair or user is disabled."
Status Authenticate(Host& host, Session& session, std::string_view user, std::string_view password);

// Whether `name` may be a client's name or library name: printable, without blanks.
bool IsClientWord(std::string_view name);

}  // namespace cellar
