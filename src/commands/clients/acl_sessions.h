// What users mean to those who are connected: who a client is, and what happens to it when its
// user's rights change while it is connected.
//
// A change counts from the next command on; and at once: a read that is still running for a user
// who has lost something is ended with NOPERM (with the connection, if a part of its reply has been
// sent), a listener that may no longer listen is disconnected, as in Redis, and so is MONITOR; a
// transaction with watches of such a user fails. Clients of a user that is gone are disconnected.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/acl/acl.h"
#include "commands/acl/acl_log.h"

namespace cellar {

class Host;
struct Session;

// Makes a connection, new or after RESET, one of the default user; authenticated if that one needs
// no password.
void BecomeDefaultUser(Host& host, Session& session);
void BecomeUser(Session& session, const User& user);

// `user` was `before`, and its rules have changed.
void RightsChanged(Host& host, const User& before, const User& user);

// ACL LOAD disconnects everybody but the default user's clients; a reload of the configuration only
// those whose user has changed or is gone.
enum class LoadVictims : uint8_t { kAll, kChanged };
// Where the aclfile is: a relative name is one in `dir`.
std::string AclFilePath(const Config& config);
// Reads the aclfile. Nothing has changed yet.
Result<Acl::Users> ReadAclFile(const Host& host);
// Makes `users` all that there are.
void InstallUsers(Host& host, Acl::Users users, LoadVictims victims, Session* current);
// Both in turn. All or nothing.
Status LoadAclFile(Host& host, LoadVictims victims, Session* current);
// Writes the users into the aclfile.
Status SaveAclFile(Host& host);
// The users of the `user` lines in the configuration. Nothing has changed yet.
Result<std::vector<User>> ReadConfigUsers(const Host& host);
// Makes each of these users what it is here. Others stay.
void PutUsers(Host& host, std::vector<User> users);
// Disconnects the clients of users that are about to go.
void DisconnectUsers(Host& host, const std::vector<const User*>& users, Session* current);
// The same where they get the replies to what has been carried out. kChanged: of users that are
// others than those who have authenticated; links of nodes stay.
enum class UserEnd : uint8_t { kGone, kChanged };
void EndUsers(Host& host, const std::vector<const User*>& users, UserEnd end);

// Counts a refusal and enters it into ACL LOG. `object` is what was refused.
void LogDenied(Host& host, const Session& session, Denied denied, std::string_view object,
               std::string_view user);

}  // namespace cellar
