// See acl_user.h.
#include "commands/acl/acl_user.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.h"
#include "base/text/ascii.h"

namespace cellar {
namespace {

std::string HashPassword(std::string_view password) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): OpenSSL reads unsigned bytes.
  (void)SHA256(reinterpret_cast<const unsigned char*>(password.data()), password.size(),
               digest.data());
  std::string hex;
  for (const unsigned char byte : digest) AppendHex(static_cast<char>(byte), &hex);
  return hex;
}

bool IsPasswordHash(std::string_view text) {
  return text.size() == 2 * SHA256_DIGEST_LENGTH &&
         text.find_first_not_of(kHexDigits) == std::string_view::npos;
}

RuleError ChangePassword(User* user, std::string_view rule) {
  CELLAR_ASSERT(!rule.empty());
  const bool clear = rule[0] == '>' || rule[0] == '<';
  const bool adds = rule[0] == '>' || rule[0] == '#';
  const std::string_view text = rule.substr(1);
  if (!clear && !IsPasswordHash(text)) return RuleError::kBadHash;
  const std::string hash = clear ? HashPassword(text) : std::string(text);
  std::vector<std::string>& hashes = user->password_hashes;
  const auto found = std::find(hashes.begin(), hashes.end(), hash);
  if (adds) {
    if (found == hashes.end()) hashes.push_back(hash);
    user->no_password = false;
    return RuleError::kNone;
  }
  if (found == hashes.end()) return RuleError::kNoPassword;
  hashes.erase(found);
  return RuleError::kNone;
}

RuleError AddSelector(User* user, std::string_view rule, const CommandTable& commands) {
  CELLAR_ASSERT(rule.size() >= 2);  // its parentheses
  AclSelector selector;
  std::string_view rest = rule.substr(1, rule.size() - 2);
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    const RuleError error = selector.Apply(rest.substr(0, end), commands);
    if (error != RuleError::kNone) return error;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (user->selectors.size() >= User::kSelectorsMax) return RuleError::kTooMany;
  user->selectors.push_back(std::move(selector));
  return RuleError::kNone;
}

void Reset(User* user, const RuleContext& context) {
  User fresh;
  fresh.name = user->name;
  fresh.sanitize = User::Sanitize::kYes;
  if (context.channels == ChannelDefault::kAll) {
    (void)fresh.selectors[0].Apply("allchannels", context.commands);
  }
  *user = std::move(fresh);
}

}  // namespace

bool User::unrestricted() const {
  return std::any_of(selectors.begin(), selectors.end(),
                     [](const AclSelector& selector) { return selector.unrestricted(); });
}

bool User::Includes(const User& other) const {
  return std::all_of(other.selectors.begin(), other.selectors.end(), [this](const AclSelector& s) {
    return std::any_of(selectors.begin(), selectors.end(),
                       [&s](const AclSelector& own) { return own.Includes(s); });
  });
}

bool User::HasPassword(std::string_view password) const {
  if (no_password) return true;
  const std::string given = HashPassword(password);
  int same = 0;
  for (const std::string& hash : password_hashes) {
    CELLAR_ASSERT(hash.size() == given.size());
    same |= CRYPTO_memcmp(given.data(), hash.data(), given.size()) == 0 ? 1 : 0;
  }
  return same != 0;
}

std::string User::Text() const {
  std::string text = enabled ? "on" : "off";
  if (no_password) text += " nopass";
  if (sanitize == Sanitize::kYes) text += " sanitize-payload";
  if (sanitize == Sanitize::kSkip) text += " skip-sanitize-payload";
  for (const std::string& hash : password_hashes) text.append(" #").append(hash);
  CELLAR_ASSERT(!selectors.empty());
  text.append(" ").append(selectors[0].Text());
  for (size_t i = 1; i < selectors.size(); ++i) {
    text.append(" (").append(selectors[i].Text()).append(")");
  }
  return text;
}

RuleError ApplyRule(User* user, std::string_view rule, const RuleContext& context) {
  if (rule.empty()) return RuleError::kNone;
  const auto is = [rule](std::string_view word) { return EqualsIgnoreCase(rule, word); };
  if (is("on") || is("off")) {
    user->enabled = is("on");
  } else if (is("sanitize-payload")) {
    user->sanitize = User::Sanitize::kYes;
  } else if (is("skip-sanitize-payload")) {
    user->sanitize = User::Sanitize::kSkip;
  } else if (is("nopass") || is("resetpass")) {
    user->no_password = is("nopass");
    user->password_hashes.clear();
  } else if (rule[0] == '>' || rule[0] == '<' || rule[0] == '#' || rule[0] == '!') {
    return ChangePassword(user, rule);
  } else if (rule[0] == '(' && rule.back() == ')') {
    return AddSelector(user, rule, context.commands);
  } else if (is("clearselectors")) {
    user->selectors.resize(1);
  } else if (is("reset")) {
    Reset(user, context);
  } else {
    return user->selectors[0].Apply(rule, context.commands);
  }
  return RuleError::kNone;
}

std::string_view RuleErrorText(RuleError error) {
  switch (error) {
    case RuleError::kNone:
      break;
    case RuleError::kSyntax:
      return "Syntax error";
    case RuleError::kUnknownCommand:
      return "Unknown command or category name in ACL";
    case RuleError::kAllKeys:
      return "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and does "
             "not have any effect. Try 'resetkeys' to start with an empty list of patterns";
    case RuleError::kAllChannels:
      return "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and "
             "does not have any effect. Try 'resetchannels' to start with an empty list of "
             "channels";
    case RuleError::kNoPassword:
      return "The password you are trying to remove from the user does not exist";
    case RuleError::kBadHash:
      return "The password hash must be exactly 64 characters and contain only lowercase "
             "hexadecimal characters";
    case RuleError::kFirstArgument:
      return "Allowing first-arg of a subcommand is not supported";
    case RuleError::kTooMany:
      return "Too many selectors";
  }
  return {};
}

bool JoinSelectors(const std::vector<std::string_view>& words, std::vector<std::string>* joined,
                   std::string* broken) {
  bool open = false;
  for (const std::string_view word : words) {
    const bool closes = word.ends_with(')');
    if (open) {
      CELLAR_ASSERT(!joined->empty());
      joined->back().append(" ").append(word);
      open = !closes;
      continue;
    }
    joined->emplace_back(word);
    open = word.starts_with('(') && !closes;
    if (open) *broken = word;
  }
  return !open;
}

Status ApplyRules(User* user, const std::vector<std::string_view>& rules,
                  const RuleContext& context) {
  std::vector<std::string> joined;
  std::string broken;
  if (!JoinSelectors(rules, &joined, &broken)) {
    return Status::Error(ErrorCode::kErr,
                         "Unmatched parenthesis in acl selector starting at '" + broken + "'.");
  }
  User changed = *user;
  for (const std::string& rule : joined) {
    const RuleError error = ApplyRule(&changed, rule, context);
    if (error == RuleError::kNone) continue;
    return Status::Error(ErrorCode::kErr, "Error in ACL SETUSER modifier '" + rule +
                                              "': " + std::string(RuleErrorText(error)));
  }
  *user = std::move(changed);
  return Status::Ok();
}

bool IsUserName(std::string_view name) {
  return std::none_of(name.begin(), name.end(),
                      [](char c) { return c == '\0' || c == ' ' || (c >= '\t' && c <= '\r'); });
}

}  // namespace cellar
