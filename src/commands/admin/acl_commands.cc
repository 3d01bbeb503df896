// ACL: users, their rights, and who was refused what.
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/ascii.h"
#include "base/text/quote.h"
#include "commands/acl/acl.h"
#include "commands/acl/acl_check.h"
#include "commands/admin/admin_commands.h"
#include "commands/clients/acl_sessions.h"
#include "commands/clients/set_users.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

constexpr int64_t kPasswordBitsMax{4096};
constexpr int64_t kPasswordBitsDefault{256};
constexpr int64_t kLogShownDefault{10};

Acl& AclOf(const CommandContext& ctx) { return ctx.host.services().acl; }

void WrongArguments(CommandContext& ctx) {
  ctx.Fail("ERR unknown subcommand or wrong number of arguments for '" + std::string(ctx.args[1]) +
           "'. Try ACL HELP.");
}

void CmdAclCat(CommandContext& ctx) {
  if (ctx.args.size() > 3) return WrongArguments(ctx);
  if (ctx.args.size() == 2) {
    ctx.reply.Array(CategoryNames().size());
    for (const NamedBit& category : CategoryNames()) ctx.reply.Bulk(category.name);
    return;
  }
  const auto names = CategoryNames();
  const auto wanted = std::find_if(names.begin(), names.end(), [&ctx](const NamedBit& category) {
    return EqualsIgnoreCase(ctx.args[2], category.name);
  });
  if (wanted == names.end()) {
    return ctx.Fail("ERR Unknown category '" + std::string(ctx.args[2].substr(0, 128)) + "'");
  }
  const auto mark = ctx.reply.BeginArray(4);
  uint64_t count = 0;
  for (const auto& entry : ctx.host.services().commands.entries()) {
    if ((entry->categories & wanted->bit) == 0) continue;
    ctx.reply.Bulk(entry->full_name);
    ++count;
  }
  ctx.reply.EndArray(mark, count);
}

void CmdAclSetUser(CommandContext& ctx) {
  if (!IsUserName(ctx.args[2])) {
    return ctx.Fail("ERR Usernames can't contain spaces or null characters");
  }
  if (SetUsers::AreOfSet(ctx.host)) return SetUsers::Set(ctx);
  const Arguments rules = ctx.args.subspan(3);
  User before;
  ASSIGN_OR_REPLY(ctx, const User* user,
                  AclOf(ctx).Set(ctx.args[2], {rules.begin(), rules.end()}, &before));
  RightsChanged(ctx.host, before, *user);
  ctx.reply.Ok();
}

void CmdAclDelUser(CommandContext& ctx) {
  const Arguments names = ctx.args.subspan(2);
  if (std::find(names.begin(), names.end(), kDefaultUser) != names.end()) {
    return ctx.Fail("ERR The 'default' user cannot be removed");
  }
  if (SetUsers::AreOfSet(ctx.host)) return SetUsers::Delete(ctx);
  // Sessions point to these users until DisconnectUsers has given them another one.
  std::vector<std::unique_ptr<User>> removed;
  std::vector<const User*> gone;
  for (const std::string_view name : names) {
    std::unique_ptr<User> user = AclOf(ctx).Remove(name);
    if (user == nullptr) continue;
    gone.push_back(user.get());
    removed.push_back(std::move(user));
  }
  DisconnectUsers(ctx.host, gone, &ctx.session);
  ctx.reply.Integer(static_cast<int64_t>(removed.size()));
}

void ReplySelector(ReplyWriter& reply, const AclSelector& selector) {
  reply.Bulk("commands");
  reply.Bulk(selector.CommandsText());
  reply.Bulk("keys");
  reply.Bulk(selector.KeysText());
  reply.Bulk("channels");
  reply.Bulk(selector.ChannelsText());
}

void CmdAclGetUser(CommandContext& ctx) {
  const User* user = AclOf(ctx).Find(ctx.args[2]);
  if (user == nullptr) return ctx.reply.Null();
  std::vector<std::string_view> flags{user->enabled ? "on" : "off"};
  if (user->no_password) flags.emplace_back("nopass");
  if (user->sanitize == User::Sanitize::kYes) flags.emplace_back("sanitize-payload");
  if (user->sanitize == User::Sanitize::kSkip) flags.emplace_back("skip-sanitize-payload");
  ReplyWriter& reply = ctx.reply;
  reply.Map(6);
  reply.Bulk("flags");
  reply.Set(flags.size());
  for (const std::string_view flag : flags) reply.Bulk(flag);
  reply.Bulk("passwords");
  reply.Array(user->password_hashes.size());
  for (const std::string& hash : user->password_hashes) reply.Bulk(hash);
  ReplySelector(reply, user->selectors[0]);
  reply.Bulk("selectors");
  reply.Array(user->selectors.size() - 1);
  for (size_t i = 1; i < user->selectors.size(); ++i) {
    reply.Map(3);
    ReplySelector(reply, user->selectors[i]);
  }
}

void CmdAclList(CommandContext& ctx) {
  const std::vector<std::string> lines = AclOf(ctx).Lines();
  ctx.reply.Array(lines.size());
  for (const std::string& line : lines) ctx.reply.Bulk(line);
}

void CmdAclUsers(CommandContext& ctx) {
  ctx.reply.Array(AclOf(ctx).users().size());
  for (const auto& [name, user] : AclOf(ctx).users()) ctx.reply.Bulk(name);
}

void CmdAclWhoAmI(CommandContext& ctx) { ctx.reply.Bulk(ctx.session.user_name); }

void CmdAclGenPass(CommandContext& ctx) {
  if (ctx.args.size() > 3) return WrongArguments(ctx);
  int64_t bits = kPasswordBitsDefault;
  if (ctx.args.size() == 3) {
    ASSIGN_OR_REPLY(ctx, bits, IntegerArgument(ctx.args[2]));
  }
  if (bits <= 0 || bits > kPasswordBitsMax) {
    return ctx.Fail(
        "ERR ACL GENPASS argument must be the number of bits for the output password, a positive "
        "number up to 4096");
  }
  std::array<unsigned char, kPasswordBitsMax / 8> random{};
  if (RAND_bytes(random.data(), static_cast<int>(random.size())) != 1) {
    return ctx.Fail("ERR the system provides no random bytes");
  }
  std::string password;
  for (int64_t i = 0; i < (bits + 3) / 4; ++i) {
    const unsigned char byte = random[static_cast<size_t>(i / 2)];
    password += kHexDigits[i % 2 == 0 ? byte >> 4 : byte & 15];
  }
  ctx.reply.Bulk(password);
}

void ReplyLogEntry(ReplyWriter& reply, const AclLogEntry& entry, int64_t now_micros) {
  const auto text = [&reply](std::string_view field, std::string_view value) {
    reply.Bulk(field);
    reply.Bulk(value);
  };
  reply.Map(7);
  reply.Bulk("count");
  reply.Unsigned(entry.count);
  text("reason", DeniedWord(entry.reason));
  text("context", entry.in_transaction ? "multi" : "toplevel");
  text("object", entry.object);
  text("username", entry.user);
  reply.Bulk("age-seconds");
  reply.Double(static_cast<double>(now_micros - entry.time_micros) / 1e6);
  text("client-info", entry.client);
}

void CmdAclLog(CommandContext& ctx) {
  AclLog& log = AclOf(ctx).log();
  if (ctx.args.size() > 3) return WrongArguments(ctx);
  int64_t shown = kLogShownDefault;
  if (ctx.args.size() == 3) {
    if (EqualsIgnoreCase(ctx.args[2], "reset")) {
      log.Reset();
      return ctx.reply.Ok();
    }
    ASSIGN_OR_REPLY(ctx, shown, IntegerArgument(ctx.args[2]));
  }
  const auto wanted = static_cast<size_t>(std::max<int64_t>(shown, 0));
  const size_t count = std::min(wanted, log.entries().size());
  ctx.reply.Array(count);
  for (size_t i = 0; i < count; ++i) ReplyLogEntry(ctx.reply, log.entries()[i], ctx.now_micros);
}

// Asks what the dispatcher would ask of that user, and runs nothing. A refusal is the answer and no
// error: it comes as a bulk string. Names of tables are those in the keyspace of the client that
// asks.
void CmdAclDryRun(CommandContext& ctx) {
  const User* user = AclOf(ctx).Find(ctx.args[2]);
  if (user == nullptr) {
    return ctx.Fail("ERR User '" + std::string(ctx.args[2]) + "' not found");
  }
  const Arguments words = ctx.args.subspan(3);
  const CommandEntry* command = ctx.host.services().commands.Find(words[0]);
  if (command != nullptr && !command->subcommands.empty()) {
    const CommandEntry* sub =
        words.size() > 1 ? CommandTable::FindSubcommand(*command, words[1]) : nullptr;
    command = words.size() > 1 ? sub : command;
  }
  if (command == nullptr) {
    return ctx.Fail("ERR Command '" + std::string(words[0]) + "' not found");
  }
  const auto count = static_cast<int64_t>(words.size());
  const int16_t arity = command->row->arity;
  if (arity >= 0 ? count != arity : count < -arity) {
    return ctx.Fail("ERR wrong number of arguments for '" + command->full_name + "' command");
  }
  const AclVerdict verdict = CheckCommand(*user, *command, words, ctx.session.keyspace);
  if (verdict.denied == Denied::kNothing) return ctx.reply.Ok();
  std::string text = "This user has no permissions to ";
  if (verdict.denied == Denied::kCommand) {
    text += "run the '" + command->full_name + "' command";
  } else if (verdict.argument == 0) {
    text += "access all keys";
  } else {
    text += "access the '" + std::string(words[verdict.argument]) + "' ";
    text += verdict.denied == Denied::kKey ? "key" : "channel";
  }
  ctx.reply.Bulk(text);
}

// The file, or an error that there is none.
bool HasFile(CommandContext& ctx) {
  if (!ctx.host.services().config.aclfile.empty()) return true;
  ctx.Fail(
      "ERR This Redis instance is not configured to use an ACL file. You may want to specify users "
      "via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a "
      "configuration file set) in order to store users in the configuration.");
  return false;
}

void CmdAclLoad(CommandContext& ctx) {
  if (!HasFile(ctx)) return;
  if (SetUsers::AreLogged(ctx.host))
    return ctx.Fail("ERR users belong to the replica set, not to the aclfile: ACL SETUSER");
  REPLY_IF_ERROR(ctx, LoadAclFile(ctx.host, LoadVictims::kAll, &ctx.session));
  ctx.reply.Ok();
}

void CmdAclSave(CommandContext& ctx) {
  if (!HasFile(ctx)) return;
  REPLY_IF_ERROR(ctx, SaveAclFile(ctx.host));
  ctx.reply.Ok();
}

constexpr uint32_t kOpen = kNoScript | kLoading | kStale;
constexpr uint32_t kOperators = kAdmin | kOpen;

constexpr Command kAclSubcommands[] = {
    {.name = "cat",
     .arity = -2,
     .flags = kOpen,
     .group = "server",
     .summary = "Lists the categories, or the commands of one.",
     .complexity = "O(n) in the number of commands",
     .syntax = "[category]",
     .handler = CmdAclCat},
    {.name = "deluser",
     .arity = -3,
     .flags = kOperators | kSkipMonitor,
     .group = "server",
     .summary = "Deletes users and disconnects their clients.",
     .complexity = "O(n) in the number of clients",
     .syntax = "username...",
     .handler = CmdAclDelUser},
    {.name = "dryrun",
     .arity = -4,
     .flags = kOperators,
     .group = "server",
     .summary = "Checks whether a user may run a command, without running it.",
     .complexity = "O(n) in the number of rules",
     .syntax = "username command [arg...]",
     .handler = CmdAclDryRun},
    {.name = "genpass",
     .arity = -2,
     .flags = kOpen,
     .group = "server",
     .summary = "Returns a random password in hexadecimal.",
     .complexity = "O(1)",
     .syntax = "[bits]",
     .handler = CmdAclGenPass},
    {.name = "getuser",
     .arity = 3,
     .flags = kOperators,
     .group = "server",
     .summary = "Returns the flags, password hashes and rules of a user.",
     .complexity = "O(n) in the number of rules",
     .syntax = "username",
     .handler = CmdAclGetUser},
    {.name = "list",
     .arity = 2,
     .flags = kOperators,
     .group = "server",
     .summary = "Returns all users as lines of an ACL file.",
     .complexity = "O(n) in the number of users",
     .handler = CmdAclList},
    {.name = "load",
     .arity = 2,
     .flags = kOperators,
     .group = "server",
     .summary = "Reloads the ACL file, all of it or nothing.",
     .complexity = "O(n) in the number of users",
     .handler = CmdAclLoad},
    {.name = "log",
     .arity = -2,
     .flags = kOperators,
     .group = "server",
     .summary = "Returns or clears the newest refusals.",
     .complexity = "O(n) in the number of entries",
     .syntax = "[count|RESET]",
     .handler = CmdAclLog},
    {.name = "save",
     .arity = 2,
     .flags = kOperators,
     .group = "server",
     .summary = "Saves the users to the ACL file.",
     .complexity = "O(n) in the number of users",
     .handler = CmdAclSave},
    {.name = "setuser",
     .arity = -3,
     .flags = kOperators | kSkipMonitor,
     .group = "server",
     .summary = "Creates or changes a user; all rules apply, or none.",
     .complexity = "O(n) in the number of rules",
     .syntax = "username [rule...]",
     .handler = CmdAclSetUser},
    {.name = "users",
     .arity = 2,
     .flags = kOperators,
     .group = "server",
     .summary = "Returns the names of all users.",
     .complexity = "O(n) in the number of users",
     .handler = CmdAclUsers},
    {.name = "whoami",
     .arity = 2,
     .flags = kOpen,
     .group = "server",
     .summary = "Returns the user of the connection.",
     .complexity = "O(1)",
     .handler = CmdAclWhoAmI},
    HelpSubcommand("server"),
};

constexpr Command kAclCommands[] = {
    {.name = "acl",
     .arity = -2,
     .group = "server",
     .summary = "Shows and changes users and their rights.",
     .complexity = "depends on the subcommand",
     .subcommands = kAclSubcommands},
};

}  // namespace

std::span<const Command> AclCommands() { return kAclCommands; }

}  // namespace cellar
