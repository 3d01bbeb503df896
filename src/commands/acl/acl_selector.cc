// See acl_selector.h.
// Rules change a selector (Apply, and what it calls). Allows..., Touches... and Covers... only ask.
#include "commands/acl/acl_selector.h"

#include <algorithm>

#include "base/assert.h"

namespace cellar {
namespace {

bool HasBlankOrNull(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return c == '\0' || c == ' ' || (c >= '\t' && c <= '\r'); });
}

std::string Lowered(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = LowerChar(c);
  return lower;
}

// The bit of a category's name; 0 if there is none. (Categories without commands have bits too.)
uint32_t CategoryOf(std::string_view name) {
  for (const NamedBit& category : CategoryNames()) {
    if (EqualsIgnoreCase(name, category.name)) return category.bit;
  }
  return 0;
}

// PEER: by it another server is trusted with all data, and in a set with votes, which no wider word
// than its own name or @replication shall bring about. @all and other categories leave it as it is.
bool MustBeNamed(const CommandEntry& command) {
  return (command.categories & kCategoryReplication) != 0;
}

template <typename Bits>
Bits WithNamed(Bits commands, const CommandTable& table) {
  for (const auto& entry : table.entries()) {
    if (MustBeNamed(*entry)) commands.set(entry->id);
  }
  return commands;
}

}  // namespace

RuleError AclSelector::Apply(std::string_view rule, const CommandTable& table) {
  if (rule.empty()) return RuleError::kNone;
  if (EqualsIgnoreCase(rule, "allkeys") || rule == "~*") {
    all_keys_ = true;
    keys_.clear();
  } else if (EqualsIgnoreCase(rule, "resetkeys")) {
    all_keys_ = false;
    keys_.clear();
  } else if (EqualsIgnoreCase(rule, "allchannels") || rule == "&*") {
    all_channels_ = true;
    channels_.clear();
  } else if (EqualsIgnoreCase(rule, "resetchannels")) {
    all_channels_ = false;
    channels_.clear();
  } else if (EqualsIgnoreCase(rule, "allcommands") || EqualsIgnoreCase(rule, "+@all")) {
    const std::bitset<kCommandsMax> before = commands_;
    SetAllCommands(true);
    for (const auto& entry : table.entries()) {
      if (!MustBeNamed(*entry)) continue;
      commands_.set(entry->id, before.test(entry->id));
      if (before.test(entry->id)) rules_.push_back("+" + entry->full_name);
    }
  } else if (EqualsIgnoreCase(rule, "nocommands") || EqualsIgnoreCase(rule, "-@all")) {
    SetAllCommands(false);
  } else if (rule[0] == '~' || rule[0] == '%') {
    return AddKeyPattern(rule);
  } else if (rule[0] == '&') {
    return AddChannel(rule);
  } else if (rule[0] == '+' || rule[0] == '-') {
    return rule.size() > 1 && rule[1] == '@' ? ChangeCategory(rule, table)
                                             : ChangeCommand(rule, table);
  } else {
    return RuleError::kSyntax;
  }
  return RuleError::kNone;
}

RuleError AclSelector::AddKeyPattern(std::string_view rule) {
  if (all_keys_) return RuleError::kAllKeys;
  uint8_t rights = kFamilyRead | kFamilyWrite;
  size_t at = 1;
  if (rule[0] == '%') {
    rights = 0;
    for (; at < rule.size() && rule[at] != '~'; ++at) {
      const char letter = LowerChar(rule[at]);
      const uint8_t bit = letter == 'r' ? kFamilyRead : letter == 'w' ? kFamilyWrite : 0;
      if (bit == 0 || (rights & bit) != 0) return RuleError::kSyntax;
      rights |= bit;
    }
    if (at == rule.size() || rights == 0) return RuleError::kSyntax;
    ++at;
  }
  CELLAR_ASSERT(rights != 0);
  const std::string_view pattern = rule.substr(at);
  if (HasBlankOrNull(pattern)) return RuleError::kSyntax;
  for (KeyPattern& known : keys_) {
    if (known.pattern != pattern) continue;
    known.rights |= rights;
    return RuleError::kNone;
  }
  keys_.push_back({std::string(pattern), rights, pattern.find('/') != std::string_view::npos});
  return RuleError::kNone;
}

RuleError AclSelector::AddChannel(std::string_view rule) {
  if (all_channels_) return RuleError::kAllChannels;
  const std::string_view pattern = rule.substr(1);
  if (HasBlankOrNull(pattern)) return RuleError::kSyntax;
  if (std::find(channels_.begin(), channels_.end(), pattern) == channels_.end()) {
    channels_.emplace_back(pattern);
  }
  return RuleError::kNone;
}

// What was said of single commands before means nothing any more, so it is not shown either.
void AclSelector::SetAllCommands(bool allowed) {
  all_commands_ = allowed;
  if (allowed) {
    commands_.set();
  } else {
    commands_.reset();
  }
  first_arguments_.clear();
  rules_ = {allowed ? "+@all" : "-@all"};
}

void AclSelector::SetCommand(const CommandEntry& command, bool allowed) {
  CELLAR_ASSERT(command.id < kCommandsMax);
  commands_.set(command.id, allowed);
  first_arguments_.erase(command.id);
  if (!allowed && !MustBeNamed(command)) all_commands_ = false;
}

void AclSelector::DropRules(std::string_view full_name) {
  std::erase_if(rules_, [full_name](const std::string& rule) {
    const std::string_view name = std::string_view(rule).substr(1);
    return name == full_name ||
           (name.starts_with(full_name) && name.substr(full_name.size()).starts_with('|'));
  });
}

// A container stands for its subcommands too. A rule that changes nothing is not kept; one that
// makes all or no commands allowed becomes @all, as Redis shows it.
RuleError AclSelector::ChangeCommand(std::string_view rule, const CommandTable& table) {
  CELLAR_ASSERT(rule[0] == '+' || rule[0] == '-');
  const bool allowed = rule[0] == '+';
  const std::string_view name = rule.substr(1);
  const size_t bar = name.rfind('|');
  if (allowed && bar != std::string_view::npos) {
    const CommandEntry* front = table.FindByFullName(name.substr(0, bar));
    if (front == nullptr) return RuleError::kUnknownCommand;
    if (front->parent != nullptr) return RuleError::kFirstArgument;
    if (bar + 1 == name.size()) return RuleError::kSyntax;
    if (front->subcommands.empty()) return AllowFirstArgument(rule, *front, name.substr(bar + 1));
  }
  const CommandEntry* command = table.FindByFullName(name);
  if (command == nullptr) return RuleError::kUnknownCommand;
  bool changes = commands_.test(command->id) != allowed || first_arguments_.contains(command->id);
  for (const CommandEntry* sub : command->subcommands) {
    changes = changes || commands_.test(sub->id) != allowed;
  }
  if (!changes) return RuleError::kNone;
  DropRules(command->full_name);
  SetCommand(*command, allowed);
  for (const CommandEntry* sub : command->subcommands) SetCommand(*sub, allowed);
  rules_.push_back((allowed ? "+" : "-") + command->full_name);
  if (commands_.none() && first_arguments_.empty()) {
    SetAllCommands(false);
  } else if (!all_commands_ && WithNamed(commands_, table).all()) {
    return Apply("+@all", table);
  }
  return RuleError::kNone;
}

// Only allowing is known for a first argument, and only while the command itself is not allowed.
RuleError AclSelector::AllowFirstArgument(std::string_view rule, const CommandEntry& command,
                                          std::string_view word) {
  if (commands_.test(command.id)) return RuleError::kNone;
  CELLAR_ASSERT(!all_commands_);
  std::vector<std::string>& words = first_arguments_[command.id];
  const auto same = [word](const std::string& known) { return EqualsIgnoreCase(known, word); };
  if (std::any_of(words.begin(), words.end(), same)) return RuleError::kNone;
  words.emplace_back(word);
  rules_.push_back("+" + command.full_name + std::string(rule.substr(rule.rfind('|'))));
  return RuleError::kNone;
}

// A category is a set of commands at this moment: a command that a later version adds to it is not
// meant.
RuleError AclSelector::ChangeCategory(std::string_view rule, const CommandTable& table) {
  const uint32_t category = CategoryOf(rule.substr(2));
  if (category == 0) return RuleError::kUnknownCommand;
  const bool allowed = rule[0] == '+';
  std::erase_if(rules_, [rule](const std::string& known) {
    return EqualsIgnoreCase(std::string_view(known).substr(1), rule.substr(1));
  });
  for (const auto& entry : table.entries()) {
    if ((entry->categories & category) == 0) continue;
    if (allowed && MustBeNamed(*entry) && category != kCategoryReplication) continue;
    SetCommand(*entry, allowed);
    // What was said of this command alone means nothing any more, if all of it is in the category.
    const bool whole = std::all_of(
        entry->subcommands.begin(), entry->subcommands.end(),
        [category](const CommandEntry* sub) { return (sub->categories & category) != 0; });
    if (whole) DropRules(entry->full_name);
  }
  rules_.push_back(Lowered(rule));
  return RuleError::kNone;
}

bool AclSelector::AllowsCommand(const CommandEntry& command, Arguments args) const {
  if (commands_.test(command.id) || command.Has(kNoAuth)) return true;
  const auto words = first_arguments_.find(command.id);
  if (words == first_arguments_.end() || args.size() < 2) return false;
  return std::any_of(words->second.begin(), words->second.end(),
                     [args](const std::string& word) { return EqualsIgnoreCase(args[1], word); });
}

// Patterns are tried one after the other, each against the name with or without the keyspace.
bool AclSelector::AllowsFamily(std::string_view keyspace, std::string_view table,
                               std::string_view family, uint8_t rights) const {
  if (all_keys_) return true;
  std::string name(keyspace);
  name.append("/").append(table).append(":").append(family);
  const std::string_view with_keyspace = name;
  const std::string_view without = with_keyspace.substr(keyspace.size() + 1);
  return std::any_of(keys_.begin(), keys_.end(), [&](const KeyPattern& key) {
    return (key.rights & rights) == rights &&
           GlobMatch(key.pattern, key.with_keyspace ? with_keyspace : without);
  });
}

// Which of `rights` some pattern gives to families of the table: to some at least, or to all that
// it may ever have.
uint8_t AclSelector::ReachTable(GlobReach least, std::string_view keyspace, std::string_view table,
                                uint8_t rights) const {
  CELLAR_ASSERT(rights != 0);
  CELLAR_ASSERT(!all_keys_);
  std::string name(keyspace);
  name.append("/").append(table).append(":");
  const std::string_view with_keyspace = name;
  const std::string_view without = with_keyspace.substr(keyspace.size() + 1);
  uint8_t reached = 0;
  for (const KeyPattern& key : keys_) {
    if ((key.rights & rights & ~reached) == 0) continue;
    if (GlobReachBehind(key.pattern, key.with_keyspace ? with_keyspace : without) >= least) {
      reached |= key.rights;
    }
  }
  return reached & rights;
}

bool AclSelector::TouchesTable(std::string_view keyspace, std::string_view table,
                               uint8_t rights) const {
  if (all_keys_) return true;
  const uint8_t any = rights == 0 ? kFamilyRead | kFamilyWrite : rights;
  const uint8_t reached = ReachTable(GlobReach::kSome, keyspace, table, any);
  return rights == 0 ? reached != 0 : reached == rights;
}

bool AclSelector::CoversTable(std::string_view keyspace, std::string_view table,
                              uint8_t rights) const {
  if (all_keys_) return true;
  const uint8_t any = rights == 0 ? kFamilyRead | kFamilyWrite : rights;
  const uint8_t reached = ReachTable(GlobReach::kAll, keyspace, table, any);
  return rights == 0 ? reached != 0 : reached == rights;
}

bool AclSelector::CoversEverything(uint8_t rights) const {
  if (all_keys_) return true;
  uint8_t covered = 0;
  for (const KeyPattern& key : keys_) {
    if (!key.pattern.empty() && key.pattern.find_first_not_of('*') == std::string::npos) {
      covered |= key.rights;
    }
  }
  return (covered & rights) == rights;
}

bool AclSelector::AllowsChannel(std::string_view channel, ChannelForm form) const {
  if (all_channels_) return true;
  return std::any_of(channels_.begin(), channels_.end(), [&](const std::string& pattern) {
    return form == ChannelForm::kPattern ? pattern == channel : GlobMatch(pattern, channel);
  });
}

// Errs towards no: patterns are compared as texts, so a wider pattern in other words does not count
// as wider.
bool AclSelector::Includes(const AclSelector& other) const {
  const auto has = [](const auto& all, const auto& one) {
    return std::find(all.begin(), all.end(), one) != all.end();
  };
  if ((other.commands_ & ~commands_).any()) return false;
  for (const auto& [command, words] : other.first_arguments_) {
    if (commands_.test(command)) continue;
    const auto own = first_arguments_.find(command);
    if (own == first_arguments_.end()) return false;
    for (const std::string& word : words) {
      if (!has(own->second, word)) return false;
    }
  }
  if (other.all_keys_ && !all_keys_) return false;
  if (other.all_channels_ && !all_channels_) return false;
  return (all_keys_ || std::all_of(other.keys_.begin(), other.keys_.end(),
                                   [&](const KeyPattern& key) { return has(keys_, key); })) &&
         (all_channels_ ||
          std::all_of(other.channels_.begin(), other.channels_.end(),
                      [&](const std::string& channel) { return has(channels_, channel); }));
}

std::string AclSelector::CommandsText() const {
  std::string text;
  for (const std::string& rule : rules_) text.append(text.empty() ? "" : " ").append(rule);
  return text;
}

std::string AclSelector::KeysText() const {
  if (all_keys_) return "~*";
  std::string text;
  for (const KeyPattern& key : keys_) {
    if (!text.empty()) text += ' ';
    if (key.rights == kFamilyRead) text += "%R";
    if (key.rights == kFamilyWrite) text += "%W";
    text.append("~").append(key.pattern);
  }
  return text;
}

std::string AclSelector::ChannelsText() const {
  if (all_channels_) return "&*";
  std::string text;
  for (const std::string& channel : channels_) {
    text.append(text.empty() ? "&" : " &").append(channel);
  }
  return text;
}

std::string AclSelector::Text() const {
  std::string text = KeysText();
  if (!text.empty()) text += ' ';
  if (!all_channels_) text += channels_.empty() ? "resetchannels" : "resetchannels ";
  return text.append(ChannelsText()).append(" ").append(CommandsText());
}

}  // namespace cellar
