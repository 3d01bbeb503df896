// See acl_check.h.
#include "commands/acl/acl_check.h"

#include <algorithm>

#include "base/assert.h"
#include "commands/acl/acl.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/catalog/command_keys.h"
#include "engine/state/snapshot_set.h"
#include "engine/table/table.h"

namespace cellar {
namespace {

// What a command does with its tables, as bits of FamilyRights.
uint8_t RightsOf(KeyAccess access) {
  switch (access) {
    case KeyAccess::kNone:
      return 0;
    case KeyAccess::kRead:
      return kFamilyRead;
    case KeyAccess::kWrite:
      return kFamilyWrite;
    case KeyAccess::kReadWrite:
      return kFamilyRead | kFamilyWrite;
  }
  return 0;
}

bool AllowsTable(const AclSelector& selector, const KeySpec& keys, const TableName& name) {
  const uint8_t rights = RightsOf(keys.access);
  switch (keys.scope) {
    case KeyScope::kFamilies:
      // What else it does to which family shows when it runs.
      return selector.TouchesTable(name.keyspace, name.table,
                                   (rights & kFamilyWrite) != 0 ? uint8_t{kFamilyWrite} : rights);
    case KeyScope::kName:
      return selector.TouchesTable(name.keyspace, name.table, 0);
    case KeyScope::kTable:
      return selector.CoversTable(name.keyspace, name.table, rights);
    case KeyScope::kEverything:
      return selector.CoversEverything(rights);
  }
  return false;
}

// Of table@snapshot what is allowed is what is allowed of the table.
TableName TableOf(std::string_view keyspace, std::string_view word) {
  TableName name = SplitTableName(keyspace, word);
  std::string_view snapshot;
  (void)SplitSnapshot(name.table, &name.table, &snapshot);
  return name;
}

// kNothing, or what `selector` refuses and at which argument.
AclVerdict CheckSelector(const AclSelector& selector, const CommandEntry& command, Arguments args,
                         std::string_view keyspace) {
  if (!selector.AllowsCommand(command, args)) return {.denied = Denied::kCommand};
  const KeySpec& keys = command.row->keys;
  if (keys.scope == KeyScope::kEverything && !AllowsTable(selector, keys, {})) {
    return {.denied = Denied::kKey};
  }
  for (const size_t at : KeyPositions(keys, args)) {
    CELLAR_ASSERT(at < args.size());
    if (!AllowsTable(selector, keys, TableOf(keyspace, args[at]))) {
      return {.denied = Denied::kKey, .argument = at};
    }
  }
  const ChannelSpec& channels = command.row->channels;
  if (channels.first == 0) return {};
  const auto form =
      channels.patterns ? AclSelector::ChannelForm::kPattern : AclSelector::ChannelForm::kName;
  const auto first = static_cast<size_t>(channels.first);
  const size_t last = channels.last < 0 ? args.size() - 1 : first;
  for (size_t at = first; at <= last && at < args.size(); ++at) {
    if (!selector.AllowsChannel(args[at], form)) {
      return {.denied = Denied::kChannel, .argument = at};
    }
  }
  return {};
}

}  // namespace

AclVerdict CheckCommand(const User& user, const CommandEntry& command, Arguments args,
                        std::string_view keyspace) {
  // As in Redis: of the reasons of all selectors the one that came furthest is told.
  AclVerdict verdict{.denied = Denied::kCommand};
  uint64_t allowing = 0;
  CELLAR_ASSERT(user.selectors.size() <= User::kSelectorsMax);
  for (size_t i = 0; i < user.selectors.size(); ++i) {
    AclVerdict one = CheckSelector(user.selectors[i], command, args, keyspace);
    // PEER must be named (acl_selector.cc), but where nobody has made users, nodes come as this
    // one.
    if ((command.categories & kCategoryReplication) != 0 && user.name == kDefaultUser &&
        user.selectors[i].CommandsText().starts_with("+@all"))
      one = {};
    if (one.denied == Denied::kNothing) allowing |= uint64_t{1} << i;
    if (one.denied > verdict.denied ||
        (one.denied == verdict.denied && one.argument > verdict.argument)) {
      verdict = one;
    }
  }
  if (allowing == 0) return verdict;
  return {.denied = Denied::kNothing, .argument = 0, .selectors = allowing};
}

std::string DeniedInExecText(Denied denied) {
  CELLAR_ASSERT(denied != Denied::kNothing);
  std::string text =
      "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC "
      "call. This command is no longer allowed for the following reason: ";
  if (denied == Denied::kCommand) {
    return text + "no permission to execute the command or subcommand";
  }
  if (denied == Denied::kKey) return text + "no permission to touch the specified keys";
  return text + "no permission to access one of the channels used as arguments";
}

std::string DeniedText(Denied denied, const CommandEntry& command) {
  CELLAR_ASSERT(denied != Denied::kNothing);
  std::string text = "NOPERM this user has no permissions to ";
  if (denied == Denied::kCommand) return text + "run the '" + command.full_name + "' command";
  if (denied == Denied::kKey) return text + "access one of the keys used as arguments";
  return text + "access one of the channels used as arguments";
}

void CommandRights::SetTable(std::string_view keyspace, std::string_view word) {
  const TableName name = TableOf(keyspace, word);
  keyspace_ = name.keyspace;
  table_ = name.table;
}

template <typename Question>
bool CommandRights::Any(const Question& question) const {
  for (size_t i = 0; i < user_.selectors.size(); ++i) {
    if ((selectors_ >> i & 1) != 0 && question(user_.selectors[i])) return true;
  }
  return false;
}

bool CommandRights::May(std::string_view family, uint8_t rights) const {
  const bool may = Any([&](const AclSelector& selector) {
    return selector.AllowsFamily(keyspace_, table_, family, rights);
  });
  // For ACL LOG, which names what was refused.
  if (!may) refused_.assign(table_).append(":").append(family);
  return may;
}

bool CommandRights::MayRead(std::string_view family) const { return May(family, kFamilyRead); }
bool CommandRights::MayWrite(std::string_view family) const { return May(family, kFamilyWrite); }

bool CommandRights::MayWriteAll() const {
  const bool may = Any([this](const AclSelector& selector) {
    return selector.CoversTable(keyspace_, table_, kFamilyWrite);
  });
  if (!may) refused_ = table_;
  return may;
}

bool CommandRights::MayReadAll() const {
  return Any([this](const AclSelector& selector) {
    return selector.CoversTable(keyspace_, table_, kFamilyRead);
  });
}

bool CommandRights::Sees(const Table& table) const {
  const auto& families = table.schema().families;
  return Any([&](const AclSelector& selector) {
    if (selector.CoversTable(table.keyspace(), table.name(), 0)) return true;
    return std::any_of(families.begin(), families.end(), [&](const FamilySchema& family) {
      return selector.AllowsFamily(table.keyspace(), table.name(), family.name, kFamilyRead) ||
             selector.AllowsFamily(table.keyspace(), table.name(), family.name, kFamilyWrite);
    });
  });
}

bool CommandRights::MayReadEverything() const {
  return Any([](const AclSelector& selector) { return selector.CoversEverything(kFamilyRead); });
}

bool CommandRights::MayWriteEverything() const {
  return Any([](const AclSelector& selector) { return selector.CoversEverything(kFamilyWrite); });
}

bool CommandRights::MayReadTable(std::string_view keyspace, std::string_view table) const {
  return Any([&](const AclSelector& selector) {
    return selector.CoversTable(keyspace, table, kFamilyRead);
  });
}

bool CommandRights::MayWriteTable(std::string_view keyspace, std::string_view table) const {
  return Any([&](const AclSelector& selector) {
    return selector.CoversTable(keyspace, table, kFamilyWrite);
  });
}

bool CommandRights::MayReadFamily(std::string_view keyspace, std::string_view table,
                                  std::string_view family) const {
  return Any([&](const AclSelector& selector) {
    return selector.AllowsFamily(keyspace, table, family, kFamilyRead);
  });
}

bool MayReadWholeTable(const User& user, std::string_view keyspace, std::string_view table) {
  return std::any_of(user.selectors.begin(), user.selectors.end(),
                     [&](const AclSelector& selector) {
                       return selector.CoversTable(keyspace, table, kFamilyRead);
                     });
}

}  // namespace cellar
