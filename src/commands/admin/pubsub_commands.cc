// SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE and their opposites, PUBLISH, SPUBLISH, PUBSUB.
#include <string>
#include <vector>

#include "base/text/glob.h"
#include "commands/admin/admin_commands.h"
#include "commands/clients/authentication.h"
#include "commands/clients/client_info.h"
#include "commands/dispatch/command_passing.h"
#include "commands/dispatch/dispatch.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/pubsub.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

constexpr std::string_view kSubscribeWords[] = {"subscribe", "psubscribe", "ssubscribe"};
constexpr std::string_view kUnsubscribeWords[] = {"unsubscribe", "punsubscribe", "sunsubscribe"};

// How many names the session listens to, as Redis counts in its confirmations.
int64_t Count(const Session& session, ChannelKind kind) {
  if (!session.pubsub) return 0;
  return static_cast<int64_t>(kind == ChannelKind::kShard
                                  ? session.pubsub->shards()
                                  : session.pubsub->channels_and_patterns());
}

// Where confirmations go. They are pushes, so that CLIENT REPLY OFF, which holds back replies, does
// not hold them back.
ReplyWriter Confirmations(CommandContext& ctx) {
  if (ctx.session.reply_mode == ReplyMode::kOn) return ctx.reply;
  return {&PushTarget(ctx.session), ctx.session.version};
}

void Subscribe(CommandContext& ctx, ChannelKind kind) {
  REPLY_IF_ERROR(ctx, CheckKept(ctx.session, ctx.host.services().config));
  const bool patterns = kind == ChannelKind::kPattern;
  for (const std::string_view name : ctx.args.subspan(1))
    REPLY_IF_ERROR(ctx, CheckKeptWord(patterns ? "a pattern" : "a channel", name));
  PubSub& pubsub = ctx.host.services().pubsub;
  ReplyWriter reply = Confirmations(ctx);
  for (const std::string_view name : ctx.args.subspan(1)) {
    (void)pubsub.Subscribe(ctx.session, kind, name);
    reply.Push(3);
    reply.Bulk(kSubscribeWords[static_cast<size_t>(kind)]);
    reply.Bulk(name);
    reply.Integer(Count(ctx.session, kind));
  }
}

void Unsubscribe(CommandContext& ctx, ChannelKind kind) {
  PubSub& pubsub = ctx.host.services().pubsub;
  ReplyWriter reply = Confirmations(ctx);
  std::vector<std::string> names;
  if (ctx.args.size() > 1) {
    names.assign(ctx.args.begin() + 1, ctx.args.end());
  } else if (ctx.session.pubsub) {
    const auto& own = ctx.session.pubsub->names[static_cast<size_t>(kind)];
    names.assign(own.begin(), own.end());
  }
  for (const std::string& name : names) {
    (void)pubsub.Unsubscribe(ctx.session, kind, name);
    reply.Push(3);
    reply.Bulk(kUnsubscribeWords[static_cast<size_t>(kind)]);
    reply.Bulk(name);
    reply.Integer(Count(ctx.session, kind));
  }
  // As in Redis there is a confirmation even if there was nothing to leave.
  if (!names.empty()) return;
  reply.Push(3);
  reply.Bulk(kUnsubscribeWords[static_cast<size_t>(kind)]);
  reply.Null();
  reply.Integer(Count(ctx.session, kind));
}

void CmdSubscribe(CommandContext& ctx) { Subscribe(ctx, ChannelKind::kChannel); }
void CmdPSubscribe(CommandContext& ctx) { Subscribe(ctx, ChannelKind::kPattern); }
void CmdSSubscribe(CommandContext& ctx) { Subscribe(ctx, ChannelKind::kShard); }
void CmdUnsubscribe(CommandContext& ctx) { Unsubscribe(ctx, ChannelKind::kChannel); }
void CmdPUnsubscribe(CommandContext& ctx) { Unsubscribe(ctx, ChannelKind::kPattern); }
void CmdSUnsubscribe(CommandContext& ctx) { Unsubscribe(ctx, ChannelKind::kShard); }

void Publish(CommandContext& ctx, ChannelKind kind) {
  const size_t receivers =
      ctx.host.services().pubsub.Publish(ctx.host, kind, ctx.args[1], ctx.args[2], Lsn{});
  // As in Redis Cluster those at other nodes are not counted.
  if (CommandPassing* const passing = ctx.host.dispatcher().passing(); passing != nullptr)
    passing->Publish(kind == ChannelKind::kShard, ctx.args[1], ctx.args[2]);
  ctx.reply.Integer(static_cast<int64_t>(receivers));
}
void CmdPublish(CommandContext& ctx) { Publish(ctx, ChannelKind::kChannel); }
void CmdSPublish(CommandContext& ctx) { Publish(ctx, ChannelKind::kShard); }

void ListChannels(CommandContext& ctx, ChannelKind kind) {
  if (ctx.args.size() > 3) {
    return ctx.Fail("ERR wrong number of arguments for '" + ctx.command.full_name + "' command");
  }
  const auto mark = ctx.reply.BeginArray(1);
  uint64_t count = 0;
  for (const auto& [name, listeners] : ctx.host.services().pubsub.registry(kind)) {
    if (ctx.args.size() == 3 && !GlobMatch(ctx.args[2], name)) continue;
    ctx.reply.Bulk(name);
    ++count;
  }
  ctx.reply.EndArray(mark, count);
}
void CmdPubsubChannels(CommandContext& ctx) { ListChannels(ctx, ChannelKind::kChannel); }
void CmdPubsubShardChannels(CommandContext& ctx) { ListChannels(ctx, ChannelKind::kShard); }

void CountListeners(CommandContext& ctx, ChannelKind kind) {
  const auto& registry = ctx.host.services().pubsub.registry(kind);
  ctx.reply.Array(2 * (ctx.args.size() - 2));  // an array in RESP3 too, as in Redis
  for (const std::string_view name : ctx.args.subspan(2)) {
    const auto found = registry.find(name);
    ctx.reply.Bulk(name);
    ctx.reply.Integer(found == registry.end() ? 0 : static_cast<int64_t>(found->second.size()));
  }
}
void CmdPubsubNumSub(CommandContext& ctx) { CountListeners(ctx, ChannelKind::kChannel); }
void CmdPubsubShardNumSub(CommandContext& ctx) { CountListeners(ctx, ChannelKind::kShard); }

void CmdPubsubNumPat(CommandContext& ctx) {
  const auto& registry = ctx.host.services().pubsub.registry(ChannelKind::kPattern);
  ctx.reply.Integer(static_cast<int64_t>(registry.size()));
}

constexpr uint32_t kPubsubFlags = kPubsub | kLoading | kStale;
constexpr uint32_t kListen = kPubsubFlags | kNoScript;

constexpr Command kPubsubSubcommands[] = {
    {.name = "channels",
     .arity = -2,
     .flags = kPubsubFlags,
     .group = "pubsub",
     .summary = "Lists the channels that have subscribers.",
     .complexity = "O(n) in the number of channels",
     .syntax = "[pattern]",
     .handler = CmdPubsubChannels},
    {.name = "numpat",
     .arity = 2,
     .flags = kPubsubFlags,
     .group = "pubsub",
     .summary = "Counts the patterns that have subscribers.",
     .complexity = "O(1)",
     .handler = CmdPubsubNumPat},
    {.name = "numsub",
     .arity = -2,
     .flags = kPubsubFlags,
     .group = "pubsub",
     .summary = "Counts the subscribers of channels.",
     .complexity = "O(n) in the number of channels named",
     .syntax = "[channel...]",
     .handler = CmdPubsubNumSub},
    {.name = "shardchannels",
     .arity = -2,
     .flags = kPubsubFlags,
     .group = "pubsub",
     .summary = "Lists the shard channels that have subscribers.",
     .complexity = "O(n) in the number of channels",
     .syntax = "[pattern]",
     .handler = CmdPubsubShardChannels},
    {.name = "shardnumsub",
     .arity = -2,
     .flags = kPubsubFlags,
     .group = "pubsub",
     .summary = "Counts the subscribers of shard channels.",
     .complexity = "O(n) in the number of channels named",
     .syntax = "[shardchannel...]",
     .handler = CmdPubsubShardNumSub},
    HelpSubcommand("pubsub"),
};

// The rows of the six listening commands differ in little.
constexpr Command Listening(std::string_view name, int16_t arity, ChannelSpec channels,
                            std::string_view summary, std::string_view syntax,
                            CommandHandler handler) {
  return {.name = name,
          .arity = arity,
          .flags = kListen,
          .channels = channels,
          .group = "pubsub",
          .summary = summary,
          .complexity = "O(n) in the number of names",
          .syntax = syntax,
          .handler = handler};
}

constexpr Command kPubSubCommands[] = {
    Listening("subscribe", -2, {.first = 1, .last = -1}, "Subscribes to channels.", "channel...",
              CmdSubscribe),
    Listening("psubscribe", -2, {.first = 1, .last = -1, .patterns = true},
              "Subscribes to all channels that match patterns.", "pattern...", CmdPSubscribe),
    Listening("ssubscribe", -2, {.first = 1, .last = -1}, "Subscribes to shard channels.",
              "shardchannel...", CmdSSubscribe),
    Listening("unsubscribe", -1, {}, "Unsubscribes from channels.", "[channel...]", CmdUnsubscribe),
    Listening("punsubscribe", -1, {}, "Unsubscribes from patterns.", "[pattern...]",
              CmdPUnsubscribe),
    Listening("sunsubscribe", -1, {}, "Unsubscribes from shard channels.", "[shardchannel...]",
              CmdSUnsubscribe),
    {.name = "publish",
     .arity = 3,
     .flags = kPubsubFlags | kFast | kMayReplicate,
     .channels = {.first = 1},
     .group = "pubsub",
     .summary = "Sends a message to the subscribers of a channel.",
     .complexity = "O(n + m) in the number of subscribers and patterns",
     .syntax = "channel message",
     .handler = CmdPublish},
    {.name = "spublish",
     .arity = 3,
     .flags = kPubsubFlags | kFast | kMayReplicate,
     .channels = {.first = 1},
     .group = "pubsub",
     .summary = "Sends a message to the subscribers of a shard channel.",
     .complexity = "O(n) in the number of subscribers",
     .syntax = "shardchannel message",
     .handler = CmdSPublish},
    {.name = "pubsub",
     .arity = -2,
     .group = "pubsub",
     .summary = "Shows channels and their subscribers.",
     .complexity = "depends on the subcommand",
     .subcommands = kPubsubSubcommands},
};

}  // namespace

std::span<const Command> PubSubCommands() { return kPubSubCommands; }

}  // namespace cellar
