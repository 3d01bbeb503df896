// PING, ECHO, HELLO, AUTH, SELECT, QUIT, RESET: what a client says about its connection.
#include <string>

#include "base/text/quote.h"
#include "cellar/version.h"
#include "commands/admin/admin_commands.h"
#include "commands/clients/acl_sessions.h"
#include "commands/clients/authentication.h"
#include "commands/session/command_context.h"
#include "commands/session/pubsub.h"
#include "commands/session/services.h"
#include "commands/session/transaction.h"
#include "replica/replication.h"
#include "resp/decimal.h"
#include "store/store.h"

namespace cellar {
namespace {

void CmdPing(CommandContext& ctx) {
  if (ctx.args.size() > 2) {
    return ctx.Fail("ERR wrong number of arguments for 'ping' command");
  }
  const std::string_view message = ctx.args.size() == 2 ? ctx.args[1] : std::string_view{};
  if (ctx.session.pubsub != nullptr && !ctx.reply.resp3() && InSubscribedMode(ctx.session))
      [[unlikely]] {
    ctx.reply.Array(2);
    ctx.reply.Bulk("pong");
    return ctx.reply.Bulk(message);
  }
  if (ctx.args.size() == 2) return ctx.reply.Bulk(message);
  ctx.reply.Raw("+PONG\r\n");
}

void CmdEcho(CommandContext& ctx) { ctx.reply.Bulk(ctx.args[1]); }

// What HELLO's options ask for, read before anything is done.
struct HelloRequest {
  int64_t version{0};  // 0: as it is
  bool authenticate{false};
  std::string_view user;
  std::string_view password;
  bool set_name{false};
  std::string_view name;
};

Status ParseHello(Arguments args, HelloRequest* request) {
  if (args.size() < 2) return Status::Ok();
  if (!ParseStrictInt64(args[1], &request->version)) {
    return Status::Error(ErrorCode::kErr, "Protocol version is not an integer or out of range");
  }
  if (request->version != 2 && request->version != 3) {
    return Status::Error(ErrorCode::kNoProto, "unsupported protocol version");
  }
  ArgumentCursor at(args, 2);
  while (!at.done()) {
    const std::string_view word = at.Peek();
    if (at.left() > 2 && at.TakeWord("auth")) {
      request->authenticate = true;
      request->user = at.Take();
      request->password = at.Take();
    } else if (at.left() > 1 && at.TakeWord("setname")) {
      request->set_name = true;
      request->name = at.Take();
    } else {
      return Status::Error(ErrorCode::kErr,
                           "Syntax error in HELLO option '" + std::string(word) + "'");
    }
  }
  if (request->set_name && !IsClientWord(request->name)) {
    return Status::Error(ErrorCode::kErr,
                         "Client names cannot contain spaces, newlines or special characters.");
  }
  return CheckKeptWord("the name of a client", request->name);
}

// AUTH comes first: without it, or if it fails, neither name nor version change. The reply is in
// the version that was asked for, so its writer is made behind the change.
void CmdHello(CommandContext& ctx) {
  HelloRequest request;
  REPLY_IF_ERROR(ctx, ParseHello(ctx.args, &request));
  Session& session = ctx.session;
  if (request.authenticate) {
    REPLY_IF_ERROR(ctx,
                   Authenticate(ctx.host, session, ctx.args[0], request.user, request.password));
  }
  if (!session.authenticated) {
    REPLY_IF_ERROR(ctx, CheckUsersKnown(ctx.host, {}));
    return ctx.Fail(
        "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO "
        "<proto> AUTH <user> <pass> option can be used to authenticate the client and select the "
        "RESP protocol version at the same time");
  }
  if (request.set_name) session.name = request.name;
  if (request.version != 0) {
    session.version = request.version == 3 ? RespVersion::k3 : RespVersion::k2;
  }
  ReplyWriter reply = session.writer();
  reply.Map(7);
  reply.Bulk("server");
  reply.Bulk("redis");
  reply.Bulk("version");
  reply.Bulk(kRedisVersion);
  reply.Bulk("proto");
  reply.Integer(static_cast<int64_t>(session.version));
  reply.Bulk("id");
  reply.Integer(static_cast<int64_t>(session.id));
  reply.Bulk("mode");
  reply.Bulk("standalone");
  reply.Bulk("role");
  reply.Bulk(ctx.host.replication().is_leader() ? "master" : "replica");
  reply.Bulk("modules");
  reply.Array(0);
}

void CmdAuth(CommandContext& ctx) {
  if (ctx.args.size() > 3) return ctx.SyntaxError();
  const bool named = ctx.args.size() == 3;
  REPLY_IF_ERROR(ctx, CheckUsersKnown(ctx.host, named ? ctx.args[1] : kDefaultUser));
  if (!named && ctx.host.services().acl.default_user().no_password) {
    return ctx.Fail(
        "ERR AUTH <password> called without any password configured for the default user. Are you "
        "sure your configuration is correct?");
  }
  REPLY_IF_ERROR(ctx, Authenticate(ctx.host, ctx.session, ctx.args[0],
                                   named ? ctx.args[1] : kDefaultUser, ctx.args.back()));
  ctx.reply.Ok();
}

void CmdSelect(CommandContext& ctx) {
  const std::string_view name = ctx.args[1];
  // That a keyspace is there, or is not, may be a change that is not durable yet.
  ctx.DependsOn(ctx.store().schema_lsn());
  if (ctx.store().KeyspaceExists(name)) {
    ctx.session.keyspace = name;
    return ctx.reply.Ok();
  }
  // A number is meant as one of Redis' databases and gets the error that Redis has for it.
  int64_t index = 0;
  if (ParseStrictInt64(name, &index)) return ctx.Fail("ERR DB index is out of range");
  ctx.Fail(Status::Error(ErrorCode::kNoKeyspace, "no keyspace " + Quote(name)));
}

void CmdReset(CommandContext& ctx) {
  Session& session = ctx.session;
  DiscardTransaction(ctx.host, session);
  ctx.host.services().pubsub.UnsubscribeAll(session);
  if (session.monitor) --ctx.host.services().monitors;
  session.monitor = false;
  ctx.host.services().tracking.Disable(session);
  ctx.host.services().tablet_listeners.End(session);
  session.switches = {};
  session.reply_mode = ReplyMode::kOn;
  session.version = RespVersion::k2;
  session.name.clear();
  session.keyspace = "0";
  BecomeDefaultUser(ctx.host, session);
  ctx.reply.SimpleString("RESET");
}

void CmdQuit(CommandContext& ctx) {
  ctx.session.EndAfterReplies();
  ctx.reply.Ok();
}

constexpr Command kConnectionCommands[] = {
    {.name = "ping",
     .arity = -1,
     .flags = kFast | kStale,
     .categories = kCategoryConnection,
     .group = "connection",
     .summary = "Returns PONG, or the message.",
     .complexity = "O(1)",
     .syntax = "[message]",
     .handler = CmdPing},
    {.name = "echo",
     .arity = 2,
     .flags = kFast | kStale,
     .categories = kCategoryConnection,
     .group = "connection",
     .summary = "Returns the message.",
     .complexity = "O(1)",
     .syntax = "message",
     .handler = CmdEcho},
    {.name = "hello",
     .arity = -1,
     .flags = kFast | kLoading | kStale | kNoAuth | kNoScript | kAllowBusy,
     .categories = kCategoryConnection,
     .group = "connection",
     .summary = "Chooses the protocol version; may also authenticate and name the connection.",
     .complexity = "O(1)",
     .syntax = "[protover [AUTH username password] [SETNAME clientname]]",
     .handler = CmdHello},
    {.name = "auth",
     .arity = -2,
     .flags = kFast | kLoading | kStale | kNoAuth | kNoScript | kAllowBusy,
     .categories = kCategoryConnection,
     .group = "connection",
     .summary = "Authenticates the connection.",
     .complexity = "O(n) in the number of passwords of the user",
     .syntax = "[username] password",
     .handler = CmdAuth},
    {.name = "select",
     .arity = 2,
     .flags = kFast | kStale,
     .categories = kCategoryConnection,
     .group = "connection",
     .summary = "Selects the keyspace of the connection.",
     .complexity = "O(log n) in the number of keyspaces",
     .syntax = "keyspace",
     .handler = CmdSelect},
    {.name = "reset",
     .arity = 1,
     .flags = kFast | kLoading | kStale | kNoAuth | kNoScript | kImmediate | kAllowBusy,
     .categories = kCategoryConnection,
     .group = "connection",
     .summary = "Resets the connection to its initial state.",
     .complexity = "O(1)",
     .handler = CmdReset},
    {.name = "quit",
     .arity = -1,
     .flags = kFast | kLoading | kStale | kNoAuth | kNoScript | kImmediate | kAllowBusy,
     .categories = kCategoryConnection,
     .group = "connection",
     .summary = "Closes the connection.",
     .complexity = "O(1)",
     .syntax = "",
     .handler = CmdQuit},
};

}  // namespace

std::span<const Command> ConnectionCommands() { return kConnectionCommands; }

}  // namespace cellar
