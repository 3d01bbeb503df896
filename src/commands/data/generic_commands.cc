// Redis' generic commands, to which a table is a key: SCAN, KEYS, EXISTS, TYPE, TOUCH, DBSIZE,
// RANDOMKEY, RENAME, RENAMENX, DEL, UNLINK, FLUSHDB, FLUSHALL, TTL, PTTL, OBJECT and MEMORY USAGE.
//
// A table never expires, and has one encoding.
// What several tables lose at once (DEL a b, FLUSHALL) is one log record.
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/text/glob.h"
#include "commands/arguments/cell_arguments.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/config/config.h"
#include "commands/data/data_commands.h"
#include "commands/feeds/feed_access.h"
#include "commands/replies/schema_commands.h"
#include "commands/replies/visible_table.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/table_events.h"
#include "resp/decimal.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

constexpr uint64_t kScanTablesDefault{10};  // Redis' COUNT

// Null if there is none: an impossible name, or another keyspace that does not exist, is no error
// to a generic command. The reply depends on the schema either way.
Table* FindKey(CommandContext& ctx, std::string_view word) {
  ctx.DependsOn(ctx.store().schema_lsn());
  const Result<Table*> table = FindTable(ctx, word);
  ctx.host.services().stats.CountLookup(table.ok());
  return table.ok() ? *table : nullptr;
}

// What has a name in a keyspace: a table or a feed.
struct NamedKey {
  uint64_t id;
  std::string_view name;
  bool is_feed;
};

// Ascending by name.
std::vector<NamedKey> KeysOf(CommandContext& ctx) {
  ctx.DependsOn(ctx.store().schema_lsn());
  std::vector<NamedKey> keys;
  for (const Table* table : VisibleTables(ctx)) keys.push_back({table->id(), table->name(), false});
  const size_t tables = keys.size();
  for (const Feed* feed : VisibleFeeds(ctx)) keys.push_back({feed->id, feed->name, true});
  std::inplace_merge(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(tables), keys.end(),
                     [](const NamedKey& a, const NamedKey& b) { return a.name < b.name; });
  return keys;
}

// Whether there is a table or a feed of that name.
bool KeyIsThere(CommandContext& ctx, std::string_view word) {
  return FindKey(ctx, word) != nullptr || FindVisibleFeed(ctx, word) != nullptr;
}

struct ScanTablesOptions {
  std::string_view pattern{"*"};
  uint64_t count{kScanTablesDefault};
  bool tables{true};
  bool feeds{true};
};

Result<ScanTablesOptions> ParseScanTables(ArgumentCursor at) {
  ScanTablesOptions options;
  while (!at.done()) {
    if (at.left() < 2) return Status::SyntaxError();
    if (at.TakeWord("MATCH")) {
      options.pattern = at.Take();
    } else if (at.TakeWord("COUNT")) {
      ASSIGN_OR_RETURN(const int64_t count, at.TakeInteger());
      if (count < 1) return Status::SyntaxError();
      options.count = static_cast<uint64_t>(count);
    } else if (at.TakeWord("TYPE")) {
      const std::string_view type = at.Take();
      options.tables = EqualsIgnoreCase(type, "table");
      options.feeds = EqualsIgnoreCase(type, "stream");
    } else {
      return Status::SyntaxError();
    }
  }
  return options;
}

// The cursor is the id of the table given out last: ids only grow and are never used again, so no
// table that was there throughout is skipped or comes twice, whatever is created, dropped or
// renamed.
void CmdScan(CommandContext& ctx) {
  int64_t after = 0;
  if (!ParseStrictInt64(ctx.args[1], &after) || after < 0) {
    return ctx.Fail("ERR invalid cursor");
  }
  ASSIGN_OR_REPLY(ctx, const ScanTablesOptions options,
                  ParseScanTables(ArgumentCursor(ctx.args, 2)));
  std::vector<NamedKey> keys = KeysOf(ctx);
  std::erase_if(keys,
                [after](const NamedKey& key) { return key.id <= static_cast<uint64_t>(after); });
  std::sort(keys.begin(), keys.end(),
            [](const NamedKey& a, const NamedKey& b) { return a.id < b.id; });
  // COUNT limits the keys that are looked at, not the matches, as in Redis. So a page may be empty
  // and still not be the last.
  const bool more = keys.size() > options.count;
  if (more) keys.resize(options.count);
  ctx.reply.Array(2);
  ctx.reply.Bulk(more ? std::to_string(keys.back().id) : "0");
  std::erase_if(keys, [&options](const NamedKey& key) {
    return !(key.is_feed ? options.feeds : options.tables) || !GlobMatch(options.pattern, key.name);
  });
  ctx.reply.Array(keys.size());
  for (const NamedKey& key : keys) ctx.reply.Bulk(key.name);
}

void CmdKeys(CommandContext& ctx) {
  std::vector<std::string_view> names;
  for (const NamedKey& key : KeysOf(ctx)) {
    if (GlobMatch(ctx.args[1], key.name)) names.push_back(key.name);
  }
  ReplyNames(ctx.reply, names);
}

// EXISTS and TOUCH: a name given twice counts twice.
void CmdExists(CommandContext& ctx) {
  int64_t found = 0;
  for (const std::string_view name : ctx.args.subspan(1)) {
    if (KeyIsThere(ctx, name)) ++found;
  }
  ctx.reply.Integer(found);
}

void CmdType(CommandContext& ctx) {
  const Table* table = FindKey(ctx, ctx.args[1]);
  if (table == nullptr && FindVisibleFeed(ctx, ctx.args[1]) != nullptr)
    return ctx.reply.SimpleString("stream");
  ctx.reply.SimpleString(table == nullptr ? "none" : "table");
}

void CmdDbSize(CommandContext& ctx) { ctx.reply.Unsigned(KeysOf(ctx).size()); }

void CmdRandomKey(CommandContext& ctx) {
  const std::vector<NamedKey> keys = KeysOf(ctx);
  if (keys.empty()) return ctx.reply.Null();
  Random random(static_cast<uint64_t>(ctx.host.clock().MonotonicMicros()));
  ctx.reply.Bulk(keys[random.Below(keys.size())].name);
}

// Both names, resolved; the table or "ERR no such key", as Redis says it.
Result<Table*> FindRenamed(CommandContext& ctx, TableName* to) {
  RETURN_IF_ERROR(CheckTableName(ctx.args[2]));
  *to = SplitTableName(ctx.session.keyspace, ctx.args[2]);
  Table* table = FindKey(ctx, ctx.args[1]);
  if (table == nullptr) {
    // A keyspace that does not exist and a feed of that name have errors of their own.
    RETURN_IF_ERROR(CheckKeyspace(ctx, SplitTableName(ctx.session.keyspace, ctx.args[1]).keyspace));
    if (FindVisibleFeed(ctx, ctx.args[1]) != nullptr) return Status::WrongKind();
    return Status::Error(ErrorCode::kErr, "no such key");
  }
  RETURN_IF_ERROR(CheckKeyspace(ctx, to->keyspace));
  return table;
}

void CmdRename(CommandContext& ctx) {
  TableName to;
  ASSIGN_OR_REPLY(ctx, Table* const table, FindRenamed(ctx, &to));
  // To its own name: nothing changes. A snapshot's table bears its old name too, but must not be
  // renamed: that is left to RenameTable, which refuses it.
  if (!table->frozen() && table->keyspace() == to.keyspace && table->name() == to.table)
    return ctx.reply.Ok();
  const std::string old_keyspace = table->keyspace();
  const std::string old_name = table->name();
  REPLY_IF_ERROR(ctx,
                 ctx.store().RenameTable(*table, to.keyspace, to.table, Store::Overwrite::kYes));
  ReplyChange(ctx, Status::Ok());
  NotifyRenamed(ctx.host, {old_keyspace, old_name}, to);
}

void CmdRenameNx(CommandContext& ctx) {
  TableName to;
  ASSIGN_OR_REPLY(ctx, Table* const table, FindRenamed(ctx, &to));
  if (KeyIsThere(ctx, ctx.args[2])) return ctx.reply.Integer(0);
  const std::string old_keyspace = table->keyspace();
  const std::string old_name = table->name();
  REPLY_IF_ERROR(ctx,
                 ctx.store().RenameTable(*table, to.keyspace, to.table, Store::Overwrite::kNo));
  ctx.DependsOn(ctx.store().schema_lsn());
  ctx.reply.Integer(1);
  NotifyRenamed(ctx.host, {old_keyspace, old_name}, to);
}

// Drops all of `tables` and `feeds` or none, as one record of the log (inside EXEC as a part of its
// record).
Status DropKeys(Store& store, const std::vector<Table*>& tables,
                const std::vector<const Feed*>& feeds) {
  // Of those that can never be dropped the first one says so, before any other is gone: a plain
  // EXEC takes nothing back.
  const auto fixed =
      std::find_if(tables.begin(), tables.end(), [](const Table* one) { return one->fixed(); });
  if (fixed != tables.end()) return store.DropTable(**fixed);
  // EXEC has begun a transaction already and ends it: this joins it.
  const bool inside = store.in_transaction();
  if (!inside) store.BeginTransaction(Store::Atomicity::kAll);
  Status status;
  for (Table* table : tables) {
    status = store.DropTable(*table);
    if (!status.ok()) break;
  }
  for (const Feed* feed : feeds) {
    if (status.ok()) status = store.DropFeed(*feed);
  }
  if (inside) return status;
  if (status.ok()) {
    store.CommitTransaction();
  } else {
    store.RollBackTransaction();
  }
  return status;
}

using TableNames = std::vector<std::pair<std::string, std::string>>;  // keyspace, table

TableNames NamesOf(const std::vector<Table*>& tables) {
  TableNames names;
  for (const Table* table : tables) names.emplace_back(table->keyspace(), table->name());
  return names;
}

void CmdDel(CommandContext& ctx) {
  std::vector<Table*> tables;
  std::vector<const Feed*> feeds;
  for (const std::string_view name : ctx.args.subspan(1)) {
    Table* table = FindKey(ctx, name);
    // A name that is given twice stands for one table, which can be dropped only once.
    if (table != nullptr && std::find(tables.begin(), tables.end(), table) == tables.end())
      tables.push_back(table);
    const Feed* feed =
        table == nullptr ? ctx.store().FindFeed(ctx.session.keyspace, name) : nullptr;
    if (feed == nullptr || std::find(feeds.begin(), feeds.end(), feed) != feeds.end()) continue;
    REPLY_IF_ERROR(ctx, CheckMayMakeFeed(ctx.rights, *feed));
    feeds.push_back(feed);
  }
  TableNames names = NamesOf(tables);
  for (const Feed* feed : feeds) names.emplace_back(feed->keyspace, feed->name);
  const Status status = DropKeys(ctx.store(), tables, feeds);
  ctx.DependsOn(ctx.store().schema_lsn());
  if (!status.ok()) return ctx.Fail(status);
  ctx.reply.Unsigned(names.size());
  for (const auto& [keyspace, name] : names) {
    NotifyTable(ctx.host, kNotifyGeneric, "del", keyspace, name);
  }
  // Who waits for entries of a feed that is gone gets the error now, not at the next poll.
  if (!feeds.empty()) ctx.host.WakeTasks();
}

// FLUSHDB and FLUSHALL take SYNC or ASYNC: memory of dropped tables is always freed in slices.
bool FlushArgumentsFit(CommandContext& ctx) {
  return ctx.args.size() == 1 || (ctx.args.size() == 2 && (EqualsIgnoreCase(ctx.args[1], "SYNC") ||
                                                           EqualsIgnoreCase(ctx.args[1], "ASYNC")));
}

void Flush(CommandContext& ctx, const std::vector<std::string>& keyspaces) {
  if (!FlushArgumentsFit(ctx)) return ctx.SyntaxError();
  std::vector<Table*> tables;
  for (const std::string& keyspace : keyspaces) {
    const std::vector<Table*> more = ctx.store().Tables(keyspace);
    tables.insert(tables.end(), more.begin(), more.end());
  }
  const TableNames names = NamesOf(tables);
  const Status status = DropKeys(ctx.store(), tables, {});
  ReplyChange(ctx, status);
  if (status.ok()) NotifyFlushed(ctx.host, "del", names);
}

void CmdFlushDb(CommandContext& ctx) { Flush(ctx, {ctx.session.keyspace}); }
// The cluster's own tables are no client's to drop.
void CmdFlushAll(CommandContext& ctx) {
  std::vector<std::string> keyspaces = ctx.store().Keyspaces();
  std::erase_if(keyspaces, [&ctx](const std::string& keyspace) {
    return !CheckKeyspaceOpen(ctx.store().engine(), keyspace).ok();
  });
  Flush(ctx, keyspaces);
}

void CmdTtl(CommandContext& ctx) {
  const bool is_table = FindKey(ctx, ctx.args[1]) != nullptr;
  ctx.reply.Integer(is_table || FindVisibleFeed(ctx, ctx.args[1]) != nullptr ? -1 : -2);
}

void CmdObjectEncoding(CommandContext& ctx) {
  if (FindKey(ctx, ctx.args[2]) == nullptr) return ctx.reply.Null();
  ctx.reply.Bulk("btree");
}
void CmdObjectRefCount(CommandContext& ctx) {
  if (FindKey(ctx, ctx.args[2]) == nullptr) return ctx.reply.Null();
  ctx.reply.Integer(1);
}
void CmdObjectIdleTime(CommandContext& ctx) {
  if (FindKey(ctx, ctx.args[2]) == nullptr) return ctx.reply.Null();
  ctx.reply.Integer(0);
}
void CmdObjectFreq(CommandContext& ctx) {
  if (FindKey(ctx, ctx.args[2]) == nullptr) return ctx.reply.Null();
  ctx.Fail(
      "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that "
      "when switching between policies at runtime LRU and LFU data will take some time to adjust.");
}

constexpr KeySpec kOneNamed{.first = 1, .access = KeyAccess::kRead, .scope = KeyScope::kName};
constexpr KeySpec kAllNamed{
    .first = 1, .last = -1, .access = KeyAccess::kRead, .scope = KeyScope::kName};
constexpr KeySpec kAllWritten{
    .first = 1, .last = -1, .access = KeyAccess::kWrite, .scope = KeyScope::kTable};
constexpr KeySpec kTwoWritten{
    .first = 1, .last = 2, .access = KeyAccess::kReadWrite, .scope = KeyScope::kTable};
constexpr KeySpec kEveryTable{.access = KeyAccess::kWrite, .scope = KeyScope::kEverything};

constexpr Command Object(std::string_view name, std::string_view summary, CommandHandler handler) {
  return {.name = name,
          .arity = 3,
          .flags = kReadonly,
          .categories = kCategoryKeyspace,
          .keys = {.first = 2, .access = KeyAccess::kRead, .scope = KeyScope::kName},
          .group = "generic",
          .summary = summary,
          .complexity = "O(1)",
          .syntax = "table",
          .handler = handler};
}

constexpr Command kObjectSubcommands[] = {
    Object("encoding", "Returns how a table is stored: btree.", CmdObjectEncoding),
    Object("freq", "Refused: access frequency is not counted.", CmdObjectFreq),
    Object("idletime", "Returns 0: idle time is not recorded.", CmdObjectIdleTime),
    Object("refcount", "Returns 1.", CmdObjectRefCount),
    HelpSubcommand("generic"),
};

constexpr Command kGenericCommands[] = {
    {.name = "scan",
     .arity = -2,
     .flags = kReadonly,
     .categories = kCategoryKeyspace,
     .group = "generic",
     .summary = "Iterates over the names of the tables in the keyspace.",
     .complexity = "O(n log n) for each call, where n is the number of tables",
     .syntax = "cursor [MATCH pattern] [COUNT count] [TYPE type]",
     .handler = CmdScan},
    {.name = "keys",
     .arity = 2,
     .flags = kReadonly,
     .categories = kCategoryKeyspace | kCategoryDangerous,
     .group = "generic",
     .summary = "Returns the names of the tables that match a pattern.",
     .complexity = "O(n) where n is the number of tables of the keyspace",
     .syntax = "pattern",
     .handler = CmdKeys},
    {.name = "exists",
     .arity = -2,
     .flags = kReadonly | kFast,
     .categories = kCategoryKeyspace,
     .keys = kAllNamed,
     .group = "generic",
     .summary = "Returns how many of the tables exist.",
     .complexity = "O(n) where n is the number of names",
     .syntax = "table...",
     .handler = CmdExists},
    {.name = "touch",
     .arity = -2,
     .flags = kReadonly | kFast,
     .categories = kCategoryKeyspace,
     .keys = kAllNamed,
     .group = "generic",
     .summary = "Returns how many of the tables exist.",
     .complexity = "O(n) where n is the number of names",
     .syntax = "table...",
     .handler = CmdExists},
    {.name = "type",
     .arity = 2,
     .flags = kReadonly | kFast,
     .categories = kCategoryKeyspace,
     .keys = kOneNamed,
     .group = "generic",
     .summary = "Returns table, or none if there is no such table.",
     .complexity = "O(1)",
     .syntax = "table",
     .handler = CmdType},
    {.name = "dbsize",
     .arity = 1,
     .flags = kReadonly | kFast,
     .categories = kCategoryKeyspace,
     .group = "generic",
     .summary = "Returns the number of tables in the keyspace.",
     .complexity = "O(n) where n is the number of tables of the keyspace",
     .syntax = "",
     .handler = CmdDbSize},
    {.name = "randomkey",
     .arity = 1,
     .flags = kReadonly,
     .categories = kCategoryKeyspace,
     .group = "generic",
     .summary = "Returns the name of a random table of the keyspace.",
     .complexity = "O(n) where n is the number of tables of the keyspace",
     .syntax = "",
     .handler = CmdRandomKey},
    {.name = "rename",
     .arity = 3,
     .flags = kWrite,
     .categories = kCategoryKeyspace,
     .keys = kTwoWritten,
     .group = "generic",
     .summary = "Renames a table, replacing any table of the new name.",
     .complexity = "O(log n) where n is the number of tables",
     .syntax = "table new-table",
     .handler = CmdRename},
    {.name = "renamenx",
     .arity = 3,
     .flags = kWrite | kFast,
     .categories = kCategoryKeyspace,
     .keys = kTwoWritten,
     .group = "generic",
     .summary = "Renames a table if the new name is free. Returns 1, or 0 if it is taken.",
     .complexity = "O(log n) where n is the number of tables",
     .syntax = "table new-table",
     .handler = CmdRenameNx},
    {.name = "del",
     .arity = -2,
     .flags = kWrite,
     .categories = kCategoryKeyspace,
     .keys = kAllWritten,
     .group = "generic",
     .summary = "Drops tables, all in one step. Returns how many there were.",
     .complexity = "O(n) where n is the number of names; memory is freed in slices",
     .syntax = "table...",
     .handler = CmdDel},
    {.name = "unlink",
     .arity = -2,
     .flags = kWrite | kFast,
     .categories = kCategoryKeyspace,
     .keys = kAllWritten,
     .group = "generic",
     .summary = "Drops tables, all in one step. Returns how many there were.",
     .complexity = "O(n) where n is the number of names; memory is freed in slices",
     .syntax = "table...",
     .handler = CmdDel},
    {.name = "ttl",
     .arity = 2,
     .flags = kReadonly | kFast,
     .categories = kCategoryKeyspace,
     .keys = kOneNamed,
     .group = "generic",
     .summary = "Returns -1: cells expire, tables do not.",
     .complexity = "O(1)",
     .syntax = "table",
     .handler = CmdTtl},
    {.name = "pttl",
     .arity = 2,
     .flags = kReadonly | kFast,
     .categories = kCategoryKeyspace,
     .keys = kOneNamed,
     .group = "generic",
     .summary = "Returns -1: cells expire, tables do not.",
     .complexity = "O(1)",
     .syntax = "table",
     .handler = CmdTtl},
    {.name = "object",
     .arity = -2,
     .categories = kCategoryKeyspace,
     .group = "generic",
     .summary = "Returns internals of a table.",
     .complexity = "depends on the subcommand",
     .subcommands = kObjectSubcommands},
    {.name = "flushdb",
     .arity = -1,
     .flags = kWrite,
     .categories = kCategoryKeyspace | kCategoryDangerous,
     .keys = kEveryTable,
     .group = "server",
     .summary = "Drops all tables of the keyspace.",
     .complexity = "O(n) where n is the number of tables; memory is freed in slices",
     .syntax = "[ASYNC|SYNC]",
     .handler = CmdFlushDb},
    {.name = "flushall",
     .arity = -1,
     .flags = kWrite,
     .categories = kCategoryKeyspace | kCategoryDangerous,
     .keys = kEveryTable,
     .group = "server",
     .summary = "Drops all tables of all keyspaces. The keyspaces stay.",
     .complexity = "O(n) where n is the number of tables; memory is freed in slices",
     .syntax = "[ASYNC|SYNC]",
     .handler = CmdFlushAll},
};

}  // namespace

std::span<const Command> GenericCommands() { return kGenericCommands; }

void CmdMemoryUsage(CommandContext& ctx) {
  if (ctx.args.size() != 3) {
    // SAMPLES is Redis' word for how closely to look; here the figure is exact.
    int64_t samples = 0;
    if (ctx.args.size() != 5 || !EqualsIgnoreCase(ctx.args[3], "SAMPLES") ||
        !ParseStrictInt64(ctx.args[4], &samples) || samples < 0) {
      return ctx.SyntaxError();
    }
  }
  const Table* table = FindKey(ctx, ctx.args[2]);
  if (table == nullptr) return ctx.reply.Null();
  ctx.reply.Unsigned(VisibleBytes(ctx.rights, *table));
}

}  // namespace cellar
