// User: a name, passwords, whether it may come in at all, and its selectors.
//
//   on off                                  may it come in
//   >password <password #hash !hash         one password more, one less; by its hash
//   nopass resetpass                        any password does; none does
//   sanitize-payload skip-sanitize-payload  as in Redis, without an effect here
//   (rules) clearselectors                  one selector more; all of these gone
//   reset                                   as a new user
//   any other                               a rule of the root selector (acl_selector.h)
//
// Passwords are kept as SHA-256 in hexadecimal. A change is made on a copy and takes the user's
// place when all of its rules are good.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cellar/status.h"
#include "commands/acl/acl_selector.h"
#include "commands/catalog/command_table.h"

namespace cellar {

enum class ChannelDefault : int64_t { kAll, kNone };  // acl-pubsub-default

struct User {
  static constexpr size_t kSelectorsMax{64};

  std::string name;
  bool enabled{false};
  bool no_password{false};
  // Words of Redis' that mean nothing here, kept so that they come back.
  enum class Sanitize : uint8_t { kUnsaid, kYes, kSkip };
  Sanitize sanitize{Sanitize::kUnsaid};
  std::vector<std::string> password_hashes;
  std::vector<AclSelector> selectors{1};  // the first one is the root

  // Whether one selector allows everything, so that nothing need be asked.
  bool unrestricted() const;
  // Whether every right of `other` is certainly one of this user's too.
  bool Includes(const User& other) const;
  // Takes the same time wherever the passwords differ.
  bool HasPassword(std::string_view password) const;

  // The rules that make this user, as in an ACL file behind its name.
  std::string Text() const;
};

// What rules are read with.
struct RuleContext {
  const CommandTable& commands;
  ChannelDefault channels;
};

// Applies rules, all or none; the error names the rule: "Error in ACL SETUSER modifier ...".
Status ApplyRules(User* user, const std::vector<std::string_view>& rules,
                  const RuleContext& context);
// Applies one rule (a selector is one); says only what is wrong.
RuleError ApplyRule(User* user, std::string_view rule, const RuleContext& context);
std::string_view RuleErrorText(RuleError error);

// Puts the words of a selector together that blanks have torn apart. Else `*broken` is the word
// with the parenthesis that is not closed.
bool JoinSelectors(const std::vector<std::string_view>& words, std::vector<std::string>* joined,
                   std::string* broken);

// A name of users: no blanks or null bytes.
bool IsUserName(std::string_view name);

}  // namespace cellar
