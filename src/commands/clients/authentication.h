// Who a client is: AUTH and HELLO AUTH end here.
#pragma once

#include <string_view>

#include "cellar/status.h"

namespace cellar {

class Host;
struct Session;

// Makes the session that user's. "WRONGPASS invalid username-password pair or user is disabled."
// `command` is the word with which the client says so, for ACL LOG.
Status Authenticate(Host& host, Session& session, std::string_view command, std::string_view name,
                    std::string_view password);

// Whether `name` may be a client's name or library name: printable, without blanks.
bool IsClientWord(std::string_view name);

}  // namespace cellar
