// AclSelector: one set of rights of a user: which commands, which families of which tables, which
// channels. A user has one that its rules speak of directly and more in parentheses; a command is
// allowed if one of them allows all of it.
//
//   rule                    meaning
//   +cmd -cmd +cmd|sub      a command, with its subcommands; one subcommand alone
//   +cmd|word               a command that has no subcommands, with this first argument alone
//   +@cat -@cat             the commands of a category; @all (allcommands, nocommands): all of them
//   ~p                      families whose name `table:family` matches p, to read and to write
//   %R~p %W~p %RW~p         the same to read, to write, or both
//   allkeys (~*) resetkeys  all families; none
//   &p                      channels; of a pattern to listen to: the very same pattern
//   allchannels (&*)        all channels
//   resetchannels           none
//
// A pattern with a `/` is matched with `keyspace/table:family`, another one in every keyspace. What
// concerns a table as a whole needs a pattern that covers all families it may ever have, such as
// `web:*`: the answer then tells nothing of the families that are there.
//
// The rules about commands are kept as they came, without those that later ones have made
// meaningless, and are shown so. Redis is the source of the rules, their words and their errors.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/glob.h"
#include "commands/arguments/arguments.h"
#include "commands/catalog/command_table.h"

namespace cellar {

// Bits of what is done with a family. No bit: to know of it.
enum FamilyRights : uint8_t { kFamilyRead = 1, kFamilyWrite = 2 };

enum class RuleError : uint8_t {
  kNone,
  kSyntax,
  kUnknownCommand,
  kAllKeys,      // a pattern after ~*
  kAllChannels,  // a pattern after &*
  kNoPassword,
  kBadHash,
  kFirstArgument,
  kTooMany,
};

class AclSelector {
 public:
  static constexpr size_t kCommandsMax{1024};

  // Applies a rule about commands, families or channels. On an error nothing has changed.
  RuleError Apply(std::string_view rule, const CommandTable& table);

  // Whether it may run the command with these arguments, whatever tables and channels they name.
  bool AllowsCommand(const CommandEntry& command, Arguments args) const;
  // Whether one of the patterns gives all of `rights` to the family.
  bool AllowsFamily(std::string_view keyspace, std::string_view table, std::string_view family,
                    uint8_t rights) const;
  // Whether some family of such a table could be allowed.
  bool TouchesTable(std::string_view keyspace, std::string_view table, uint8_t rights) const;
  // Whether every family of such a table is allowed, each right by one pattern.
  bool CoversTable(std::string_view keyspace, std::string_view table, uint8_t rights) const;
  // Whether every family of every table is allowed.
  bool CoversEverything(uint8_t rights) const;
  enum class ChannelForm : uint8_t { kName, kPattern };
  bool AllowsChannel(std::string_view channel, ChannelForm form) const;

  bool unrestricted() const { return all_commands_ && all_keys_ && all_channels_; }
  // Whether everything that `other` allows is certainly allowed by this one too.
  bool Includes(const AclSelector& other) const;
  const std::vector<std::string>& channels() const { return channels_; }

  // As ACL GETUSER shows them, and as rules in ACL LIST's order: keys, channels, commands.
  std::string CommandsText() const;
  std::string KeysText() const;
  std::string ChannelsText() const;
  std::string Text() const;

 private:
  struct KeyPattern {
    std::string pattern;
    uint8_t rights;
    bool with_keyspace;
    friend bool operator==(const KeyPattern&, const KeyPattern&) = default;
  };

  RuleError AddKeyPattern(std::string_view rule);
  RuleError AddChannel(std::string_view rule);
  RuleError ChangeCommand(std::string_view rule, const CommandTable& table);
  RuleError AllowFirstArgument(std::string_view rule, const CommandEntry& command,
                               std::string_view word);
  RuleError ChangeCategory(std::string_view rule, const CommandTable& table);
  void SetAllCommands(bool allowed);
  void SetCommand(const CommandEntry& command, bool allowed);
  // Forgets the rules about the command and its subcommands.
  void DropRules(std::string_view full_name);
  uint8_t ReachTable(GlobReach least, std::string_view keyspace, std::string_view table,
                     uint8_t rights) const;

  bool all_commands_{false};
  bool all_keys_{false};
  bool all_channels_{false};
  std::bitset<kCommandsMax> commands_;  // by CommandEntry::id
  std::vector<std::string> rules_{"-@all"};
  std::map<uint16_t, std::vector<std::string>> first_arguments_;  // of commands without their bit
  std::vector<KeyPattern> keys_;
  std::vector<std::string> channels_;
};

}  // namespace cellar
