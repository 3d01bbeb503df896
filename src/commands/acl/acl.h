// Acl: the users, by name, and the log of refusals. `default` is always there: it is who a client
// is before it says otherwise.
//
// Users come from `user` lines of the configuration or from the file that `aclfile` names (one such
// line each), never from both; ACL SETUSER changes them, ACL SAVE and CONFIG REWRITE write them.
// What a change means to those who are connected is in acl_sessions.h, what a command may in
// acl_check.h.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/acl/acl_log.h"
#include "commands/acl/acl_user.h"
#include "commands/catalog/command_table.h"
#include "commands/config/config.h"

namespace cellar {

inline constexpr std::string_view kDefaultUser = "default";

class Acl {
 public:
  using Users = std::map<std::string, std::unique_ptr<User>, std::less<>>;

  // Both outlive it. Commands are looked up when rules are read, not now.
  Acl(const CommandTable& commands, const Config& config);
  Acl(const Acl&) = delete;
  Acl& operator=(const Acl&) = delete;

  User& default_user() { return *default_user_; }
  // Null if there is none.
  User* Find(std::string_view name) const;
  const Users& users() const { return users_; }
  AclLog& log() { return log_; }

  // requirepass: the default user's one password, or none is needed if it is empty.
  void SetDefaultPassword(std::string_view password);
  // What requirepass and the `user` lines of the configuration say. Once, at start. Then comes
  // LoadAclFile if there is an aclfile; both together are an error.
  Status LoadConfig();
  // The user that a `user` line of the configuration makes: a name, then rules.
  Result<User> ReadWords(const std::vector<std::string>& words) const;
  // The users of a file's text. The error lists everything that is wrong.
  Result<Users> ReadFile(std::string_view text, std::string_view path) const;

  // Makes or changes a user, all rules or none. `*before` is what it was (a new one: nothing
  // allowed).
  Result<User*> Set(std::string_view name, const std::vector<std::string_view>& rules,
                    User* before);
  // What the rules make of a user, or of a new one if `known` is null; nothing has changed.
  Result<User> Changed(const User* known, std::string_view name,
                       const std::vector<std::string_view>& rules) const;
  // Makes a user, or puts it in the place of the one with its name, which goes to `*before`.
  User& Put(User user, User* before);
  // Takes a user out; null if there is none. REQUIRES: not the default user.
  std::unique_ptr<User> Remove(std::string_view name);
  // Puts other users in the place of all. The default user keeps its address, and is as requirepass
  // alone makes it if `users` has none. Returns those that were there.
  Users Replace(Users users);

  // "user name rules": a line of a file.
  static std::string Line(const User& user) { return "user " + user.name + " " + user.Text(); }
  std::vector<std::string> Lines() const;
  // The lines of an aclfile: without the default user while it is what requirepass alone makes it,
  // so that requirepass goes on counting; but with it where that is not the password with which the
  // next start begins.
  std::vector<std::string> FileLines(std::string_view requirepass_of_start) const;
  // Whether there is nothing but the default user, as it is at first start (and requirepass).
  bool IsPlain() const;
  RuleContext rule_context() const;
  // What the log of a replica set has committed last (clients/set_users.h).
  struct TakenOver {
    bool holds{false};  // nobody is let in before that is known
    bool seen{false};
    uint64_t index{0};  // of the record
    std::string text{};
  };
  TakenOver& taken_over() { return taken_over_; }
  const TakenOver& taken_over() const { return taken_over_; }

 private:
  std::unique_ptr<User> NewUser(std::string_view name) const;
  // The default user as it is at first start, with the password that requirepass says.
  std::unique_ptr<User> NewDefaultUser() const;
  bool DefaultIsPlain() const { return NewDefaultUser()->Text() == default_user_->Text(); }

  const CommandTable& commands_;
  const Config& config_;
  Users users_;
  User* default_user_;
  AclLog log_;
  TakenOver taken_over_;
};

}  // namespace cellar
