// COMMAND and its subcommands: the command table as clients and redis-cli read it.
#include <string>
#include <vector>

#include "base/text/glob.h"
#include "commands/admin/admin_commands.h"
#include "commands/catalog/command_keys.h"
#include "commands/catalog/command_syntax.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

void WriteInfo(ReplyWriter& reply, const CommandEntry& entry);

void WriteFlags(ReplyWriter& reply, const CommandEntry& entry) {
  const auto mark = reply.BeginArray(4);
  uint64_t count = 0;
  for (const NamedBit& flag : CommandFlagNames()) {
    if (!entry.Has(flag.bit)) continue;
    reply.SimpleString(flag.name);
    ++count;
  }
  reply.EndArray(mark, count);
}

void WriteCategories(ReplyWriter& reply, const CommandEntry& entry) {
  const auto mark = reply.BeginArray(4);
  uint64_t count = 0;
  for (const NamedBit& category : CategoryNames()) {
    if ((entry.categories & category.bit) == 0) continue;
    reply.SimpleString("@" + std::string(category.name));
    ++count;
  }
  reply.EndArray(mark, count);
}

// As in Redis 7: where to begin to look for keys, and how to find them from there. Commands here
// need three kinds: at a fixed place, behind a keyword (STREAMS), and as many as a number says.
void WriteKeySpecs(ReplyWriter& reply, const KeySpec& keys) {
  if (keys.none()) return reply.Array(0);
  const bool counted = keys.count > 0;
  const auto number = [&reply](std::string_view name, int64_t value) {
    reply.Bulk(name);
    reply.Integer(value);
  };
  reply.Array(1);
  reply.Map(3);
  reply.Bulk("flags");
  const std::vector<std::string_view> flags = KeyAccessFlags(keys.access);
  reply.Array(flags.size());
  for (const std::string_view flag : flags) reply.SimpleString(flag);
  const bool named = !keys.keyword.empty();
  reply.Bulk("begin_search");
  reply.Map(2);
  reply.Bulk("type");
  reply.Bulk(named ? "keyword" : "index");
  reply.Bulk("spec");
  reply.Map(named ? 2 : 1);
  if (named) {
    reply.Bulk("keyword");
    reply.Bulk(keys.keyword);
    number("startfrom", keys.first);
  } else {
    number("index", counted ? keys.count : keys.first);
  }
  reply.Bulk("find_keys");
  reply.Map(2);
  reply.Bulk("type");
  reply.Bulk(counted ? "keynum" : "range");
  reply.Bulk("spec");
  reply.Map(3);
  if (counted) {
    number("keynumidx", 0);
    number("firstkey", 1);
    return number("keystep", 1);
  }
  number("lastkey", keys.last < 0 ? keys.last : keys.last == 0 ? 0 : keys.last - keys.first);
  number("keystep", keys.step);
  // 2: the first half of what is left. Behind STREAMS the other half are ids.
  number("limit", named ? 2 : 0);
}

// The first key, the last one, and the step between them; nothing where they move.
void WriteKeyRange(ReplyWriter& reply, const KeySpec& keys) {
  const bool moves = keys.first == 0 || !keys.keyword.empty();
  reply.Integer(moves ? 0 : keys.first);
  reply.Integer(moves ? 0 : keys.last == 0 ? keys.first : keys.last);
  reply.Integer(moves ? 0 : keys.step);
}

void WriteInfo(ReplyWriter& reply, const CommandEntry& entry) {
  const Command& row = *entry.row;
  reply.Array(10);
  reply.Bulk(entry.full_name);
  reply.Integer(row.arity);
  WriteFlags(reply, entry);
  WriteKeyRange(reply, row.shown_keys());
  WriteCategories(reply, entry);
  reply.Array(0);  // tips
  WriteKeySpecs(reply, row.shown_keys());
  reply.Array(entry.subcommands.size());
  for (const CommandEntry* sub : entry.subcommands) WriteInfo(reply, *sub);
}

// A map for each argument, nested as the syntax is. Its length goes ahead: an entry that is added
// has to be counted in the call of Map() as well.
void WriteNodes(ReplyWriter& reply, std::string_view command,
                const std::vector<SyntaxNode>& nodes) {
  reply.Array(nodes.size());
  for (const SyntaxNode& node : nodes) {
    const std::string_view type = SyntaxTypeWord(command, node);
    const bool key = type == "key";
    const bool flagged = node.optional || node.multiple;
    reply.Map(2u + (key ? 1u : 0u) + (node.token.empty() ? 0u : 1u) + (flagged ? 1u : 0u) +
              (node.children.empty() ? 0u : 1u));
    reply.Bulk("name");
    reply.Bulk(node.name);
    reply.Bulk("type");
    reply.Bulk(type);
    if (key) {
      reply.Bulk("key_spec_index");
      reply.Integer(0);
    }
    if (!node.token.empty()) {
      reply.Bulk("token");
      reply.Bulk(node.token);
    }
    if (flagged) {
      reply.Bulk("flags");
      reply.Array((node.optional ? 1u : 0u) + (node.multiple ? 1u : 0u) +
                  (node.multiple_token ? 1u : 0u));
      if (node.optional) reply.SimpleString("optional");
      if (node.multiple) reply.SimpleString("multiple");
      if (node.multiple_token) reply.SimpleString("multiple_token");
    }
    if (!node.children.empty()) {
      reply.Bulk("arguments");
      WriteNodes(reply, command, node.children);
    }
  }
}

// The documentation of one command: a map.
void WriteDocs(ReplyWriter& reply, const CommandEntry& entry) {
  const Command& row = *entry.row;
  reply.Map(4u + (row.syntax.empty() ? 0u : 1u) + (entry.subcommands.empty() ? 0u : 1u));
  reply.Bulk("summary");
  reply.Bulk(row.summary);
  reply.Bulk("since");
  reply.Bulk(row.since);
  reply.Bulk("group");
  reply.Bulk(row.group);
  reply.Bulk("complexity");
  reply.Bulk(row.complexity);
  if (!row.syntax.empty()) {
    reply.Bulk("arguments");
    WriteNodes(reply, entry.full_name, ParseSyntax(row.syntax));
  }
  if (!entry.subcommands.empty()) {
    reply.Bulk("subcommands");
    reply.Map(entry.subcommands.size());
    for (const CommandEntry* sub : entry.subcommands) {
      reply.Bulk(sub->full_name);
      WriteDocs(reply, *sub);
    }
  }
}

void CmdCommand(CommandContext& ctx) {
  const auto& commands = ctx.host.services().commands.commands();
  ctx.reply.Array(commands.size());
  for (const CommandEntry* entry : commands) WriteInfo(ctx.reply, *entry);
}

void CmdCommandCount(CommandContext& ctx) {
  ctx.reply.Integer(static_cast<int64_t>(ctx.host.services().commands.commands().size()));
}

void CmdCommandInfo(CommandContext& ctx) {
  if (ctx.args.size() == 2) return CmdCommand(ctx);
  ctx.reply.Array(ctx.args.size() - 2);
  for (const std::string_view name : ctx.args.subspan(2)) {
    const CommandEntry* entry = ctx.host.services().commands.FindByFullName(name);
    if (entry == nullptr) {
      ctx.reply.Null();
    } else {
      WriteInfo(ctx.reply, *entry);
    }
  }
}

void CmdCommandDocs(CommandContext& ctx) {
  const CommandTable& table = ctx.host.services().commands;
  std::vector<const CommandEntry*> chosen;
  if (ctx.args.size() == 2) chosen.assign(table.commands().begin(), table.commands().end());
  for (const std::string_view name : ctx.args.subspan(2)) {
    if (const CommandEntry* entry = table.FindByFullName(name)) chosen.push_back(entry);
  }
  ctx.reply.Map(chosen.size());
  for (const CommandEntry* entry : chosen) {
    ctx.reply.Bulk(entry->full_name);
    WriteDocs(ctx.reply, *entry);
  }
}

// Which commands COMMAND LIST FILTERBY lets through.
Result<std::function<bool(const CommandEntry&)>> ListFilter(const CommandTable& table,
                                                            Arguments args) {
  using Filter = std::function<bool(const CommandEntry&)>;
  if (args.size() == 2) return Filter([](const CommandEntry&) { return true; });
  if (args.size() != 5 || !EqualsIgnoreCase(args[2], "filterby")) return Status::SyntaxError();
  const std::string_view value = args[4];
  if (EqualsIgnoreCase(args[3], "pattern")) {
    return Filter([value](const CommandEntry& entry) {
      return GlobMatch(value, entry.full_name, GlobCase::kInsensitive);
    });
  }
  if (EqualsIgnoreCase(args[3], "aclcat")) {
    uint32_t wanted = 0;
    for (const NamedBit& category : CategoryNames()) {
      if (EqualsIgnoreCase(value, category.name)) wanted = category.bit;
    }
    return Filter([wanted](const CommandEntry& entry) { return (entry.categories & wanted) != 0; });
  }
  (void)table;
  // There are no modules, so none of their commands.
  if (EqualsIgnoreCase(args[3], "module")) return Filter([](const CommandEntry&) { return false; });
  return Status::SyntaxError();
}

void CmdCommandList(CommandContext& ctx) {
  const CommandTable& table = ctx.host.services().commands;
  ASSIGN_OR_REPLY(ctx, const auto filter, ListFilter(table, ctx.args));
  const bool with_subcommands = ctx.args.size() > 2;
  const auto mark = ctx.reply.BeginArray(100);
  uint64_t count = 0;
  for (const auto& entry : table.entries()) {
    if ((entry->parent != nullptr && !with_subcommands) || !filter(*entry)) continue;
    ctx.reply.Bulk(entry->full_name);
    ++count;
  }
  ctx.reply.EndArray(mark, count);
}

// The command that the words after COMMAND GETKEYS are, checked as if it were to run.
Result<const CommandEntry*> CommandOfWords(const CommandTable& table, Arguments words) {
  const CommandEntry* entry = table.Find(words[0]);
  if (entry != nullptr && words.size() > 1 && !entry->subcommands.empty()) {
    const CommandEntry* sub = CommandTable::FindSubcommand(*entry, words[1]);
    entry = sub != nullptr || entry->row->handler == nullptr ? sub : entry;
  }
  if (entry == nullptr) return Status::Error(ErrorCode::kErr, "Invalid command specified");
  if (entry->row->shown_keys().none()) {
    return Status::Error(ErrorCode::kErr, "The command has no key arguments");
  }
  const auto count = static_cast<int64_t>(words.size());
  const int16_t arity = entry->row->arity;
  if (arity >= 0 ? count != arity : count < -arity) {
    return Status::Error(ErrorCode::kErr, "Invalid number of arguments specified for command");
  }
  return entry;
}

void RefuseKeys(CommandContext& ctx) { ctx.Fail("ERR Invalid arguments specified for command"); }

void CmdCommandGetKeys(CommandContext& ctx) {
  const Arguments words = ctx.args.subspan(2);
  ASSIGN_OR_REPLY(ctx, const CommandEntry* entry,
                  CommandOfWords(ctx.host.services().commands, words));
  const std::vector<size_t> positions = KeyPositions(entry->row->shown_keys(), words);
  if (positions.empty() && !entry->Has(kNoMandatoryKeys)) return RefuseKeys(ctx);
  ctx.reply.Array(positions.size());
  for (const size_t position : positions) ctx.reply.Bulk(words[position]);
}

void CmdCommandGetKeysAndFlags(CommandContext& ctx) {
  const Arguments words = ctx.args.subspan(2);
  ASSIGN_OR_REPLY(ctx, const CommandEntry* entry,
                  CommandOfWords(ctx.host.services().commands, words));
  const std::vector<size_t> positions = KeyPositions(entry->row->shown_keys(), words);
  if (positions.empty() && !entry->Has(kNoMandatoryKeys)) return RefuseKeys(ctx);
  const std::vector<std::string_view> flags = KeyAccessFlags(entry->row->shown_keys().access);
  ctx.reply.Array(positions.size());
  for (const size_t position : positions) {
    ctx.reply.Array(2);
    ctx.reply.Bulk(words[position]);
    ctx.reply.Array(flags.size());
    for (const std::string_view flag : flags) ctx.reply.SimpleString(flag);
  }
}

constexpr uint32_t kCommandFlags = kLoading | kStale;

constexpr Command kCommandSubcommands[] = {
    {.name = "count",
     .arity = 2,
     .flags = kCommandFlags,
     .categories = kCategoryConnection,
     .group = "server",
     .summary = "Returns the number of commands.",
     .complexity = "O(1)",
     .handler = CmdCommandCount},
    {.name = "docs",
     .arity = -2,
     .flags = kCommandFlags,
     .categories = kCategoryConnection,
     .group = "server",
     .summary = "Returns documentation of commands: summary, arguments, cost.",
     .complexity = "O(n) in the number of commands",
     .syntax = "[command-name...]",
     .handler = CmdCommandDocs},
    {.name = "getkeys",
     .arity = -3,
     .flags = kCommandFlags,
     .categories = kCategoryConnection,
     .group = "server",
     .summary = "Returns the tables that a command names.",
     .complexity = "O(n) in the number of arguments",
     .syntax = "command [arg...]",
     .handler = CmdCommandGetKeys},
    {.name = "getkeysandflags",
     .arity = -3,
     .flags = kCommandFlags,
     .categories = kCategoryConnection,
     .group = "server",
     .summary = "Returns the tables that a command names and how it uses them.",
     .complexity = "O(n) in the number of arguments",
     .syntax = "command [arg...]",
     .handler = CmdCommandGetKeysAndFlags},
    {.name = "info",
     .arity = -2,
     .flags = kCommandFlags,
     .categories = kCategoryConnection,
     .group = "server",
     .summary = "Returns the arity, flags and keys of commands.",
     .complexity = "O(n) in the number of commands",
     .syntax = "[command-name...]",
     .handler = CmdCommandInfo},
    {.name = "list",
     .arity = -2,
     .flags = kCommandFlags,
     .categories = kCategoryConnection,
     .group = "server",
     .summary = "Returns the names of the commands.",
     .complexity = "O(n) in the number of commands",
     .syntax = "[FILTERBY (MODULE name | ACLCAT category | PATTERN pattern)]",
     .handler = CmdCommandList},
    HelpSubcommand("server"),
};

constexpr Command kCommandCommands[] = {
    {.name = "command",
     .arity = -1,
     .flags = kCommandFlags,
     .categories = kCategoryConnection,
     .group = "server",
     .summary = "Returns details of all commands.",
     .complexity = "O(n) in the number of commands",
     .subcommands = kCommandSubcommands,
     .handler = CmdCommand},
};

}  // namespace

std::span<const Command> CommandCommands() { return kCommandCommands; }

}  // namespace cellar
