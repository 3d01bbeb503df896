// See monitor_sight.h.
#include "commands/dispatch/monitor_sight.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/assert.h"
#include "commands/acl/acl_check.h"
#include "commands/acl/acl_user.h"
#include "commands/acl/feed_rights.h"
#include "commands/arguments/feed_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/arguments/snapshot_arguments.h"
#include "commands/catalog/command_keys.h"
#include "commands/catalog/command_syntax.h"
#include "commands/session/host.h"
#include "engine/state/snapshot_set.h"
#include "store/store.h"

namespace cellar {
namespace {

// Arguments that name no table, whatever stands in their place.
constexpr std::string_view kPlainArguments[] = {
    "bits",     "client-id",   "clientname", "command-name", "count", "cursor",  "event",
    "k",        "keyspace",    "libname",    "libver",       "index", "message", "milliseconds",
    "numlocal", "numreplicas", "password",   "protover",     "ratio", "seconds", "section",
    "timeout",  "username",    "version"};

bool IsPlain(const SyntaxNode& node) {
  if (node.kind == SyntaxNode::Kind::kToken) return true;
  if (node.kind != SyntaxNode::Kind::kArgument)
    return std::all_of(node.children.begin(), node.children.end(), IsPlain);
  return std::find(std::begin(kPlainArguments), std::end(kPlainArguments), node.name) !=
         std::end(kPlainArguments);
}

// How many words behind the command's name are plain, whatever they are.
size_t PlainWords(const Command& row) {
  // The rows live as long as the process. The loop's thread alone dispatches commands.
  static std::unordered_map<const Command*, size_t> known;
  const auto [found, added] = known.try_emplace(&row, 0);
  if (!added) return found->second;
  const std::vector<SyntaxNode> syntax = ParseSyntax(row.syntax);
  if (std::all_of(syntax.begin(), syntax.end(), IsPlain)) {
    found->second = SIZE_MAX;
  } else {
    const auto end = std::find_if(syntax.begin(), syntax.end(), [](const SyntaxNode& node) {
      return node.kind != SyntaxNode::Kind::kArgument || node.optional || node.multiple ||
             !node.token.empty() || !IsPlain(node);
    });
    found->second = static_cast<size_t>(end - syntax.begin());
  }
  return found->second;
}

struct Sight {
  Host& host;
  const User& watcher;
  const CommandRights rights;
  std::string_view keyspace;
  const CommandEntry& command;
  Arguments args;

  bool SeesTable(std::string_view in, std::string_view word) const {
    const TableName name = SplitTableName(in, word);
    return rights.MayReadTable(name.keyspace, name.table.substr(0, name.table.find(kSnapshotSign)));
  }
};

// The name of something new, which may be that of a table, too.
bool SeesName(const Sight& sight, std::string_view word) {
  return !sight.host.loading() &&
         (sight.host.store().FindTableIfAny(sight.keyspace, word) == nullptr ||
          sight.SeesTable(sight.keyspace, word));
}

bool SeesTables(const Sight& sight) {
  const std::vector<size_t> keys = KeyPositions(sight.command.row->keys, sight.args);
  return !keys.empty() && std::all_of(keys.begin(), keys.end(), [&sight](size_t at) {
    return sight.SeesTable(sight.keyspace, sight.args[at]);
  });
}

// A name that no feed has may be anything.
bool SeesFeeds(const Sight& sight) {
  const KeySpec& spec = sight.command.row->feeds;
  const std::vector<size_t> feeds = KeyPositions(spec, sight.args);
  if (feeds.empty() || sight.host.loading()) return false;
  // As many ids as names: else the command is refused, and one of the ids is a name.
  const bool whole = spec.keyword.empty() || feeds.back() + feeds.size() + 1 == sight.args.size();
  return whole && std::all_of(feeds.begin(), feeds.end(), [&sight](size_t at) {
           const std::optional<FeedWord> word = ParseFeedWord(sight.args[at]);
           const Feed* const feed =
               word ? sight.host.store().FindFeed(sight.keyspace, word->feed) : nullptr;
           return feed != nullptr && MayReadFeed(&sight.rights, *feed);
         });
}

bool HearsChannels(const Sight& sight) {
  const ChannelSpec& spec = sight.command.row->channels;
  const auto form =
      spec.patterns ? AclSelector::ChannelForm::kPattern : AclSelector::ChannelForm::kName;
  const auto first = static_cast<size_t>(spec.first);
  const size_t end = spec.last < 0 ? sight.args.size() : first + 1;
  for (size_t at = first; at < end; ++at) {
    const bool hears = std::any_of(
        sight.watcher.selectors.begin(), sight.watcher.selectors.end(),
        [&](const AclSelector& selector) { return selector.AllowsChannel(sight.args[at], form); });
    if (!hears) return false;
  }
  return true;
}

bool SeesFeedCreate(const Sight& sight) {
  Result<Feed> feed = ParseFeedCreate(ArgumentCursor(sight.args, 3));
  if (!feed.ok() || !SeesName(sight, sight.args[2])) return false;
  feed->keyspace = SplitTableName(sight.keyspace, sight.args[2]).keyspace;
  return MayReadFeed(&sight.rights, *feed);
}

bool SeesSnapshotCreate(const Sight& sight) {
  const Result<SnapshotRequest> request = ParseSnapshotCreate(ArgumentCursor(sight.args, 3));
  if (!request.ok() || !SeesName(sight, sight.args[2])) return false;
  if (!request->names_tables) return false;  // all tables of the keyspace
  const std::string_view keyspace = SplitTableName(sight.keyspace, sight.args[2]).keyspace;
  return std::all_of(request->tables.begin(), request->tables.end(), [&](std::string_view table) {
    return sight.rights.MayReadTable(keyspace, table);
  });
}

bool SeesSnapshot(const Sight& sight) {
  if (sight.host.loading() || !SeesName(sight, sight.args[2])) return false;
  const TableName name = SplitTableName(sight.keyspace, sight.args[2]);
  const auto snapshot = sight.host.store().FindSnapshot(name.keyspace, name.table);
  if (!snapshot.ok()) return false;
  const auto& tables = (*snapshot)->tables;
  return std::all_of(tables.begin(), tables.end(), [&](const auto& table) {
    return sight.rights.MayReadTable((*snapshot)->keyspace, table.first);
  });
}

// Its second table is one that access control asks for when it runs.
bool SeesCopy(const Sight& sight) {
  std::string_view to = sight.keyspace;
  for (size_t at = 3; at + 1 < sight.args.size(); ++at) {
    if (EqualsIgnoreCase(sight.args[at], "DB")) to = sight.args[at + 1];
  }
  return sight.SeesTable(sight.keyspace, sight.args[1]) && sight.SeesTable(to, sight.args[2]);
}

// Commands that name tables beside their keys.
struct OwnRule {
  std::string_view command;
  bool (*sees)(const Sight& sight);
};
constexpr OwnRule kOwnRules[] = {{"copy", SeesCopy},
                                 {"feed|create", SeesFeedCreate},
                                 {"snapshot|create", SeesSnapshotCreate},
                                 {"snapshot|drop", SeesSnapshot},
                                 {"snapshot|info", SeesSnapshot}};

}  // namespace

bool MaySeeCommand(Host& host, const User& watcher, std::string_view keyspace,
                   const CommandEntry& command, Arguments args) {
  const Sight sight{host, watcher, CommandRights(watcher, ~uint64_t{0}), keyspace, command, args};
  if (sight.rights.MayReadEverything()) return true;
  for (const OwnRule& rule : kOwnRules) {
    if (rule.command == command.full_name) return rule.sees(sight);
  }
  const Command& row = *command.row;
  if (!row.keys.none()) return SeesTables(sight);
  if (!row.feeds.none()) return SeesFeeds(sight);
  if (row.channels.first != 0) return HearsChannels(sight);
  const size_t name_words = command.full_name.find('|') == std::string::npos ? 1 : 2;
  CELLAR_ASSERT(args.size() >= name_words);
  return args.size() - name_words <= PlainWords(row);
}

}  // namespace cellar
