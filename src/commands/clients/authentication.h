// Who a client is: AUTH and HELLO AUTH end here.
#pragma once

#include <string_view>

#include "cellar/status.h"

namespace cellar {

class Host;
struct Session;

// Who is in no session yet is told so: "NOAUTH Authentication required.", or LOADING while the
// users of a replica set are not known here.
std::string_view UnauthenticatedText(const Host& host);
// While they are not, nobody authenticates but another node, as masteruser and masterauth say; it
// may run PEER alone (Dispatcher::Refusal).
Status CheckUsersKnown(const Host& host, std::string_view name);

// Makes the session that user's. "WRONGPASS invalid username-password pair or user is disabled."
// `command` is the word with which the client says so, for ACL LOG.
Status Authenticate(Host& host, Session& session, std::string_view command, std::string_view name,
                    std::string_view password);

// Whether `name` may be a client's name or library name: printable, without blanks.
bool IsClientWord(std::string_view name);
// A word that a client has us keep for as long as it likes: its name, a channel, a prefix. TOOLARGE
// beyond so many bytes. `what` is its kind, with an article.
inline constexpr size_t kKeptWordBytesMax{64 * 1024};
Status CheckKeptWord(std::string_view what, std::string_view word);

}  // namespace cellar
