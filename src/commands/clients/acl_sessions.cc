// See acl_sessions.h.
#include "commands/clients/acl_sessions.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/assert.h"
#include "base/os/file.h"
#include "base/os/log.h"
#include "commands/clients/client_info.h"
#include "commands/session/host.h"
#include "commands/session/pubsub.h"
#include "commands/session/services.h"
#include "commands/session/session.h"
#include "commands/session/transaction.h"

namespace cellar {
namespace {

const User& UserOf(Host& host, const Session& session) {
  return session.user == nullptr ? host.services().acl.default_user() : *session.user;
}

// Whether the user may go on listening to everything that the session listens to. As in Redis,
// which selector allows a channel does not matter.
bool MayListen(const User& user, const PubSubState& state) {
  const auto allowed = [&user](std::string_view name, AclSelector::ChannelForm form) {
    return std::any_of(user.selectors.begin(), user.selectors.end(),
                       [&](const AclSelector& s) { return s.AllowsChannel(name, form); });
  };
  for (const ChannelKind kind :
       {ChannelKind::kChannel, ChannelKind::kPattern, ChannelKind::kShard}) {
    const auto form = kind == ChannelKind::kPattern ? AclSelector::ChannelForm::kPattern
                                                    : AclSelector::ChannelForm::kName;
    for (const std::string& name : state.names[static_cast<size_t>(kind)]) {
      if (!allowed(name, form)) return false;
    }
  }
  return true;
}

bool MayMonitor(Host& host, const User& user) {
  const CommandEntry* monitor = host.services().commands.Find("monitor");
  CELLAR_ASSERT(monitor != nullptr);
  return std::any_of(user.selectors.begin(), user.selectors.end(),
                     [monitor](const AclSelector& s) { return s.AllowsCommand(*monitor, {}); });
}

// The session has lost some right.
void Restrain(Host& host, Session& session, const User& user) {
  if (session.tracking && session.restricted) host.services().tracking.Disable(session);
  const bool disconnected = (session.pubsub && !MayListen(user, *session.pubsub)) ||
                            (session.monitor && !MayMonitor(host, user));
  if (disconnected) return host.KillSession(session);
  CELLAR_ASSERT(session.task == nullptr || session.task->command != nullptr);
  // What it has read so far may be hidden now: StepTask puts an error in its place.
  if (session.task && !session.task->command->row->keys.none()) {
    session.task->revoked = true;
    host.WakeTasks();
  }
  // EXEC would tell whether what is watched has changed. The user may no longer know that, so EXEC
  // will be refused.
  if (session.transaction && !session.transaction->watches.empty()) {
    session.transaction->aborted = true;
  }
}

}  // namespace

std::string AclFilePath(const Config& config) {
  return config.aclfile.starts_with('/') ? config.aclfile : JoinPath(config.dir, config.aclfile);
}

void BecomeUser(Session& session, const User& user) {
  session.user = &user;
  session.user_name = user.name;
  session.restricted = !user.unrestricted();
}

void BecomeDefaultUser(Host& host, Session& session) {
  const User& user = host.services().acl.default_user();
  BecomeUser(session, user);
  session.authenticated =
      user.enabled && user.no_password && !host.services().acl.taken_over().holds;
}

// Who has lost nothing keeps all that it listens to and runs; else each of these is looked at
// again.
void RightsChanged(Host& host, const User& before, const User& user) {
  const bool lost = !user.Includes(before);
  host.ForEachSession([&](Session& session) {
    if (&UserOf(host, session) != &user) return;
    session.restricted = !user.unrestricted();
    if (lost) Restrain(host, session, user);
  });
}

void DisconnectUsers(Host& host, const std::vector<const User*>& users, Session* current) {
  host.ForEachSession([&](Session& session) {
    const User* user = &UserOf(host, session);
    if (std::find(users.begin(), users.end(), user) == users.end()) return;
    // Whatever still comes from it, comes from nobody.
    BecomeUser(session, host.services().acl.default_user());
    session.authenticated = false;
    if (&session == current) {
      session.EndAfterReplies();  // it still gets its reply
    } else {
      host.KillSession(session);
    }
  });
}

// What goes on ends with the connection, but for the change of users that has ended its own user.
void EndUsers(Host& host, const std::vector<const User*>& users, UserEnd end) {
  host.ForEachSession([&](Session& session) {
    const User* const user = &UserOf(host, session);
    if (std::find(users.begin(), users.end(), user) == users.end()) return;
    if (end == UserEnd::kChanged && (session.peer != PeerRole::kNone || !session.authenticated))
      return;
    const bool changes_users = session.task != nullptr && session.task->command != nullptr &&
                               (session.task->command->Is(CommandRole::kUserChange) ||
                                session.task->command->Is(CommandRole::kUsers));
    const bool goes_on = (session.task != nullptr && !changes_users) || session.pubsub != nullptr ||
                         session.monitor || session.peer != PeerRole::kNone;
    BecomeUser(session, host.services().acl.default_user());
    session.authenticated = false;
    if (goes_on) return host.KillSession(session);
    if (session.tracking != nullptr) host.services().tracking.Disable(session);
    session.EndAfterReplies();
    host.ScheduleFlush(session);
  });
}

Result<Acl::Users> ReadAclFile(const Host& host) {
  const std::string path = AclFilePath(host.services().config);
  Result<std::string> text = ReadWholeFile(FileSystem::Posix(), path);
  if (!text.ok()) {
    return Status::Error(ErrorCode::kErr, "Error loading ACLs: " + text.status().text());
  }
  return host.services().acl.ReadFile(*text, path);
}

// Sessions point to users, so the new ones are in place before the old ones go. Where only changed
// ones are to be disconnected (LoadVictims), sessions of a user that is the same in the new list
// move over to that.
void InstallUsers(Host& host, Acl::Users users, LoadVictims victims, Session* current) {
  Acl& acl = host.services().acl;
  const Acl::Users old = acl.Replace(std::move(users));
  std::vector<const User*> gone;
  for (const auto& [name, held] : old) {
    const User* const before = held.get();
    const User* const now = acl.Find(name);
    if (name == kDefaultUser) {
      CELLAR_ASSERT(now != nullptr);  // it is in every list of users
      RightsChanged(host, *before, *now);
    } else if (victims == LoadVictims::kChanged && now != nullptr &&
               now->Text() == before->Text()) {
      host.ForEachSession([&](Session& session) {
        if (session.user == before) session.user = now;
      });
    } else {
      gone.push_back(before);
    }
  }
  DisconnectUsers(host, gone, current);
  const Config& config = host.services().config;
  if (!config.requirepass.empty() && !acl.default_user().HasPassword(config.requirepass)) {
    Log(LogSeverity::kWarning, "requirepass has no effect: the aclfile " + AclFilePath(config) +
                                   " gives the user 'default' other passwords");
  }
}

Status LoadAclFile(Host& host, LoadVictims victims, Session* current) {
  ASSIGN_OR_RETURN(Acl::Users users, ReadAclFile(host));
  InstallUsers(host, std::move(users), victims, current);
  return Status::Ok();
}

Result<std::vector<User>> ReadConfigUsers(const Host& host) {
  std::vector<User> users;
  for (const std::vector<std::string>& line : host.services().config.users) {
    ASSIGN_OR_RETURN(User user, host.services().acl.ReadWords(line));
    users.push_back(std::move(user));
  }
  return users;
}

void PutUsers(Host& host, std::vector<User> users) {
  for (User& user : users) {
    User before;
    const User& now = host.services().acl.Put(std::move(user), &before);
    RightsChanged(host, before, now);
  }
}

Status SaveAclFile(Host& host) {
  std::string text;
  const Services& services = host.services();
  for (const std::string& line : services.acl.FileLines(services.config_sources.requirepass()))
    text.append(line).append("\n");
  Status status = ReplaceFile(AclFilePath(host.services().config), text);
  if (status.ok()) return status;
  Log(LogSeverity::kWarning, "ACL SAVE: " + status.text());
  return Status::Error(ErrorCode::kErr,
                       "There was an error trying to save the ACLs. Please check the server logs "
                       "for more information");
}

void LogDenied(Host& host, const Session& session, Denied denied, std::string_view object,
               std::string_view user) {
  CELLAR_ASSERT(denied != Denied::kNothing);
  Services& services = host.services();
  ServerStats& stats = services.stats;
  uint64_t* const counters[] = {nullptr, &stats.acl_denied_command, &stats.acl_denied_key,
                                &stats.acl_denied_channel, &stats.auth_failures};
  ++*counters[static_cast<size_t>(denied)];
  const int64_t now = host.now_micros();
  services.acl.log().Add({.count = 1,
                          .reason = denied,
                          .in_transaction = session.in_multi() || session.exec_running,
                          .object = std::string(object.substr(0, AclLog::kNameBytesMax)),
                          .user = std::string(user.substr(0, AclLog::kNameBytesMax)),
                          .client = ClientLine(session, now),
                          .time_micros = now},
                         static_cast<size_t>(services.config.acllog_max_len));
}

}  // namespace cellar
