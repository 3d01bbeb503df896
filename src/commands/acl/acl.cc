// See acl.h.
#include "commands/acl/acl.h"

#include <fmt/format.h>

#include <utility>

#include "base/assert.h"
#include "base/os/log.h"

namespace cellar {
namespace {

std::vector<std::string_view> WordsOf(std::string_view line) {
  std::vector<std::string_view> words;
  constexpr std::string_view kBlanks = " \t\r";
  while (true) {
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return words;
    const size_t end = std::min(line.find_first_of(kBlanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

// A rule of which we know that it is good.
void ApplyOwnRule(User* user, std::string_view rule, const RuleContext& context) {
  const RuleError error = ApplyRule(user, rule, context);
  CELLAR_ASSERT(error == RuleError::kNone);
}

}  // namespace

Acl::Acl(const CommandTable& commands, const Config& config)
    : commands_(commands), config_(config) {
  default_user_ = users_.emplace(kDefaultUser, NewDefaultUser()).first->second.get();
}

RuleContext Acl::rule_context() const {
  return {commands_, static_cast<ChannelDefault>(config_.acl_pubsub_default)};
}

std::unique_ptr<User> Acl::NewUser(std::string_view name) const {
  auto user = std::make_unique<User>();
  user->name = name;
  const RuleContext context = rule_context();
  if (context.channels == ChannelDefault::kAll) {
    ApplyOwnRule(user.get(), "allchannels", context);
  }
  return user;
}

std::unique_ptr<User> Acl::NewDefaultUser() const {
  auto user = std::make_unique<User>();
  user->name = kDefaultUser;
  // As in Redis it may do everything, without a password, until the configuration says otherwise.
  for (const std::string_view rule : {"+@all", "~*", "&*", "on", "nopass"}) {
    ApplyOwnRule(user.get(), rule, {commands_, ChannelDefault::kNone});
  }
  if (!config_.requirepass.empty()) {
    const std::string rule = ">" + config_.requirepass;
    ApplyOwnRule(user.get(), rule, rule_context());
  }
  return user;
}

User* Acl::Find(std::string_view name) const {
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : found->second.get();
}

void Acl::SetDefaultPassword(std::string_view password) {
  CELLAR_ASSERT(default_user_ == Find(kDefaultUser));
  default_user_->password_hashes.clear();
  default_user_->no_password = password.empty();
  if (password.empty()) return;
  const std::string rule = ">" + std::string(password);
  ApplyOwnRule(default_user_, rule, rule_context());
}

Status Acl::LoadConfig() {
  if (!config_.requirepass.empty()) SetDefaultPassword(config_.requirepass);
  if (!config_.aclfile.empty() && !config_.users.empty()) {
    return Status::Error(
        ErrorCode::kErr,
        "users are defined both in the configuration and in an aclfile: define them in one place");
  }
  for (const std::vector<std::string>& words : config_.users) {
    ASSIGN_OR_RETURN(User user, ReadWords(words));
    if (words[0] == kDefaultUser) {
      *default_user_ = std::move(user);
    } else {
      users_.insert_or_assign(words[0], std::make_unique<User>(std::move(user)));
    }
  }
  return Status::Ok();
}

Result<User> Acl::ReadWords(const std::vector<std::string>& words) const {
  CELLAR_ASSERT(!words.empty());
  const std::string_view name = words[0];
  if (!IsUserName(name)) {
    return Status::Error(ErrorCode::kErr, "Spaces not allowed in ACL usernames");
  }
  User user = std::move(*NewUser(name));
  const Status status = ApplyRules(&user, {words.begin() + 1, words.end()}, rule_context());
  if (!status.ok()) {
    return Status::Error(ErrorCode::kErr, "user '" + words[0] + "': " + status.text());
  }
  if (!user.enabled) {
    Log(LogSeverity::kNotice, "The user '" + words[0] + "' is disabled: its rules have no 'on'");
  }
  return user;
}

bool Acl::IsPlain() const { return users_.size() == 1 && DefaultIsPlain(); }

// Users are made aside, so that a mistake in the last line leaves those that there are; reading
// goes on behind one, to name all. The texts are Redis'.
Result<Acl::Users> Acl::ReadFile(std::string_view text, std::string_view path) const {
  Users users;
  std::string errors;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = WordsOf(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) continue;
    const auto fail = [&](std::string_view what) {
      errors += fmt::format("{}:{}: {}. ", path, number, what);
    };
    if (words[0] != "user" || words.size() < 2) {
      fail("should start with user keyword followed by the username");
      continue;
    }
    if (!IsUserName(words[1])) {
      fail("the username contains invalid characters");
      continue;
    }
    if (users.contains(words[1])) {
      errors += fmt::format("WARNING: Duplicate user '{}' found on line {}. ", words[1], number);
      continue;
    }
    std::unique_ptr<User> user = NewUser(words[1]);
    const Status status = ApplyRules(user.get(), {words.begin() + 2, words.end()}, rule_context());
    if (!status.ok()) fail(status.text());
    users.emplace(words[1], std::move(user));
  }
  if (errors.empty()) return users;
  return Status::Error(ErrorCode::kErr,
                       errors +
                           "WARNING: ACL errors detected, no change to the previously active ACL "
                           "rules was performed");
}

// ApplyRules changes all or nothing, so a known user is changed in place: sessions point to it.
Result<User*> Acl::Set(std::string_view name, const std::vector<std::string_view>& rules,
                       User* before) {
  User* known = Find(name);
  std::unique_ptr<User> made = known == nullptr ? NewUser(name) : nullptr;
  User* user = known == nullptr ? made.get() : known;
  CELLAR_ASSERT(user->name == name);
  if (known != nullptr) *before = *known;
  RETURN_IF_ERROR(ApplyRules(user, rules, rule_context()));
  if (made) users_.emplace(name, std::move(made));
  return user;
}

Result<User> Acl::Changed(const User* known, std::string_view name,
                          const std::vector<std::string_view>& rules) const {
  User user = known != nullptr ? *known : *NewUser(name);
  RETURN_IF_ERROR(ApplyRules(&user, rules, rule_context()));
  return user;
}

User& Acl::Put(User user, User* before) {
  User* known = Find(user.name);
  if (known == nullptr) {
    const std::string name = user.name;
    return *users_.emplace(name, std::make_unique<User>(std::move(user))).first->second;
  }
  // In place, since sessions point to it.
  *before = std::exchange(*known, std::move(user));
  return *known;
}

std::unique_ptr<User> Acl::Remove(std::string_view name) {
  CELLAR_ASSERT(name != kDefaultUser);
  const auto found = users_.find(name);
  if (found == users_.end()) return nullptr;
  std::unique_ptr<User> user = std::move(found->second);
  users_.erase(found);
  return user;
}

// The default user keeps its address, which services hold: its content is exchanged, and the new
// object is dropped.
Acl::Users Acl::Replace(Users users) {
  Users old;
  const auto named = users.find(kDefaultUser);
  std::unique_ptr<User> fresh = named == users.end() ? NewDefaultUser() : std::move(named->second);
  auto before = std::make_unique<User>(std::exchange(*default_user_, std::move(*fresh)));
  users.insert_or_assign(std::string(kDefaultUser), std::move(users_.find(kDefaultUser)->second));
  users_.erase(users_.find(kDefaultUser));
  old = std::exchange(users_, std::move(users));
  old.emplace(kDefaultUser, std::move(before));
  CELLAR_ASSERT(Find(kDefaultUser) == default_user_);
  return old;
}

std::vector<std::string> Acl::Lines() const {
  std::vector<std::string> lines;
  for (const auto& [name, user] : users_) lines.push_back(Line(*user));
  return lines;
}

std::vector<std::string> Acl::FileLines(std::string_view requirepass_of_start) const {
  std::vector<std::string> lines;
  const bool plain = DefaultIsPlain() && config_.requirepass == requirepass_of_start;
  for (const auto& [name, user] : users_) {
    if (!plain || user.get() != default_user_) lines.push_back(Line(*user));
  }
  return lines;
}

}  // namespace cellar
