// CLIENT: who is connected, and what may be said to them.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "commands/admin/admin_commands.h"
#include "commands/admin/tracking_commands.h"
#include "commands/clients/authentication.h"
#include "commands/clients/client_info.h"
#include "commands/dispatch/command_passing.h"
#include "commands/dispatch/dispatch.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "resp/decimal.h"

namespace cellar {
namespace {

void CmdClientId(CommandContext& ctx) { ctx.reply.Integer(static_cast<int64_t>(ctx.session.id)); }

void CmdClientInfo(CommandContext& ctx) {
  ctx.reply.Verbatim(ClientLine(ctx.session, ctx.now_micros), "txt");
}

void CmdClientGetName(CommandContext& ctx) {
  if (ctx.session.name.empty()) return ctx.reply.Null();
  ctx.reply.Bulk(ctx.session.name);
}

void CmdClientSetName(CommandContext& ctx) {
  if (!IsClientWord(ctx.args[2])) {
    return ctx.Fail("ERR Client names cannot contain spaces, newlines or special characters.");
  }
  REPLY_IF_ERROR(ctx, CheckKeptWord("the name of a client", ctx.args[2]));
  ctx.session.name = ctx.args[2];
  ctx.reply.Ok();
}

void CmdClientSetInfo(CommandContext& ctx) {
  const bool lib_name = EqualsIgnoreCase(ctx.args[2], "lib-name");
  if (!lib_name && !EqualsIgnoreCase(ctx.args[2], "lib-ver")) {
    return ctx.Fail("ERR Unrecognized option '" + std::string(ctx.args[2]) + "'");
  }
  if (!IsClientWord(ctx.args[3])) {
    return ctx.Fail("ERR " + std::string(lib_name ? "lib-name" : "lib-ver") +
                    " cannot contain spaces, newlines or special characters.");
  }
  REPLY_IF_ERROR(ctx, CheckKeptWord(lib_name ? "lib-name" : "lib-ver", ctx.args[3]));
  (lib_name ? ctx.session.lib_name : ctx.session.lib_version) = ctx.args[3];
  ctx.reply.Ok();
}

void CmdClientList(CommandContext& ctx) {
  ArgumentCursor at(ctx.args, 2);
  std::function<bool(const Session&)> wanted = [](const Session&) { return true; };
  std::vector<uint64_t> ids;
  if (at.TakeWord("type") && at.left() == 1) {
    const std::string_view word = at.Take();
    const auto type = ClientClassOfWord(word);
    if (!type) return ctx.Fail("ERR Unknown client type '" + std::string(word) + "'");
    wanted = [type](const Session& session) { return ClassOf(session) == *type; };
  } else if (at.TakeWord("id") && !at.done()) {
    while (!at.done()) {
      const auto id = at.TakeInteger();
      if (!id.ok() || *id < 1) return ctx.Fail("ERR Invalid client ID");
      ids.push_back(static_cast<uint64_t>(*id));
    }
    wanted = [&ids](const Session& session) {
      return std::find(ids.begin(), ids.end(), session.id) != ids.end();
    };
  } else if (ctx.args.size() > 2) {
    return ctx.SyntaxError();
  }
  std::string text;
  ctx.host.ForEachSession([&](Session& session) {
    if (wanted(session)) text += ClientLine(session, ctx.now_micros);
  });
  ctx.reply.Verbatim(text, "txt");
}

// --- CLIENT KILL ---

struct KillFilter {
  std::optional<std::string_view> address;
  std::optional<std::string_view> local_address;
  std::optional<std::string_view> user;
  std::optional<ClientClass> type;
  uint64_t id{0};
  int64_t age_min_s{0};
  bool skip_me{true};

  bool Matches(const Session& session, int64_t now_micros) const {
    if (address && session.address != *address) return false;
    if (local_address && session.local_address != *local_address) return false;
    if (user && session.user_name != *user) return false;
    if (type && ClassOf(session) != *type) return false;
    if (id != 0 && session.id != id) return false;
    return age_min_s == 0 || (now_micros - session.created_micros) / 1'000'000 >= age_min_s;
  }
};

// CLIENT KILL with pairs of a filter and its value: a client must match all of them, and of one
// that is repeated the last counts. *filter borrows the words.
Status ParseKillFilter(Arguments args, const Acl& users, KillFilter* filter) {
  for (size_t i = 2; i < args.size(); i += 2) {
    if (i + 1 == args.size()) return Status::SyntaxError();
    const std::string_view word = args[i];
    const std::string_view value = args[i + 1];
    if (EqualsIgnoreCase(word, "id")) {
      int64_t id = 0;
      if (!ParseStrictInt64(value, &id) || id < 1) {
        return Status::Error(ErrorCode::kErr, "client-id should be greater than 0");
      }
      filter->id = static_cast<uint64_t>(id);
    } else if (EqualsIgnoreCase(word, "maxage")) {
      ASSIGN_OR_RETURN(filter->age_min_s,
                       IntegerArgument(value, 1, std::numeric_limits<int64_t>::max(),
                                       "maxage should be greater than 0"));
    } else if (EqualsIgnoreCase(word, "type")) {
      filter->type = ClientClassOfWord(value);
      if (!filter->type) {
        return Status::Error(ErrorCode::kErr, "Unknown client type '" + std::string(value) + "'");
      }
    } else if (EqualsIgnoreCase(word, "addr")) {
      filter->address = value;
    } else if (EqualsIgnoreCase(word, "laddr")) {
      filter->local_address = value;
    } else if (EqualsIgnoreCase(word, "user")) {
      if (users.Find(value) == nullptr) {
        return Status::Error(ErrorCode::kErr, "No such user '" + std::string(value) + "'");
      }
      filter->user = value;
    } else if (EqualsIgnoreCase(word, "skipme")) {
      filter->skip_me = EqualsIgnoreCase(value, "yes");
      if (!filter->skip_me && !EqualsIgnoreCase(value, "no")) return Status::SyntaxError();
    } else {
      return Status::SyntaxError();
    }
  }
  return Status::Ok();
}

void CmdClientKill(CommandContext& ctx) {
  KillFilter filter;
  const bool old_form = ctx.args.size() == 3;
  if (old_form) {
    filter.address = ctx.args[2];
    filter.skip_me = false;
  } else {
    REPLY_IF_ERROR(ctx, ParseKillFilter(ctx.args, ctx.host.services().acl, &filter));
  }
  int64_t killed = 0;
  std::string elsewhere;
  ctx.host.ForEachSession([&](Session& session) {
    if (!filter.Matches(session, ctx.now_micros)) return;
    if (IsChannel(session)) {
      elsewhere = NodeOfChannel(session);
      return;
    }
    if (&session == &ctx.session) {
      if (filter.skip_me) return;
      session.EndAfterReplies();  // it still gets its reply
    } else {
      ctx.host.KillSession(session);
    }
    ++killed;
  });
  const bool names_one = filter.address.has_value() || filter.id != 0;
  if (names_one && killed == 0 && !elsewhere.empty())
    return ctx.Fail("ERR it belongs to node " + elsewhere);
  if (!old_form) return ctx.reply.Integer(killed);
  if (killed == 0) return ctx.Fail("ERR No such client");
  ctx.reply.Ok();
}

// --- PAUSE, REPLY and the small switches ---

void CmdClientPause(CommandContext& ctx) {
  Host::Pause pause = Host::Pause::kAll;
  if (ctx.args.size() > 4) return ctx.SyntaxError();
  if (ctx.args.size() == 4) {
    if (EqualsIgnoreCase(ctx.args[3], "write")) {
      pause = Host::Pause::kWrites;
    } else if (!EqualsIgnoreCase(ctx.args[3], "all")) {
      return ctx.Fail("ERR CLIENT PAUSE mode must be WRITE or ALL");
    }
  }
  const auto millis = IntegerArgument(ctx.args[2]);
  constexpr int64_t kMillisMax{std::numeric_limits<int64_t>::max() / 4000};
  if (!millis.ok() || *millis > kMillisMax) {
    return ctx.Fail("ERR timeout is not an integer or out of range");
  }
  if (*millis < 0) return ctx.Fail("ERR timeout is negative");
  ctx.host.PauseClients(ctx.now_micros + *millis * 1000, pause);
  ctx.reply.Ok();
}

void CmdClientUnpause(CommandContext& ctx) {
  ctx.host.UnpauseClients();
  ctx.reply.Ok();
}

void CmdClientReply(CommandContext& ctx) {
  Session& session = ctx.session;
  if (EqualsIgnoreCase(ctx.args[2], "on")) {
    session.reply_mode = ReplyMode::kOn;
    ctx.reply.Ok();
  } else if (EqualsIgnoreCase(ctx.args[2], "off")) {
    session.reply_mode = ReplyMode::kOff;
  } else if (EqualsIgnoreCase(ctx.args[2], "skip")) {
    // OFF stays: behind one skipped command it would be ON.
    if (session.reply_mode == ReplyMode::kOn) session.reply_mode = ReplyMode::kSkipNext;
  } else {
    ctx.SyntaxError();
  }
}

// Reads ON or OFF into `*flag`.
void Switch(CommandContext& ctx, bool* flag) {
  const bool on = EqualsIgnoreCase(ctx.args[2], "on");
  if (!on && !EqualsIgnoreCase(ctx.args[2], "off")) return ctx.SyntaxError();
  *flag = on;
  ctx.reply.Ok();
}
void CmdClientNoEvict(CommandContext& ctx) { Switch(ctx, &ctx.session.switches.no_evict); }
// From then on it is told of tables that it asks TABLET LIST or TABLET ROUTE of.
void CmdClientTablets(CommandContext& ctx) {
  bool on = false;
  const bool is_resp3 = ctx.session.version == RespVersion::k3;
  if (EqualsIgnoreCase(ctx.args[2], "on") && !is_resp3)
    return ctx.Fail("ERR CLIENT TABLETS ON needs RESP3: HELLO 3");
  Switch(ctx, &on);
  if (ctx.outcome.failed()) return;
  TabletListeners& listeners = ctx.host.services().tablet_listeners;
  if (on)
    listeners.Begin(ctx.session);
  else
    listeners.End(ctx.session);
}
// Words that are not known are of newer clients, and ignored as in Valkey.
void CmdClientCapa(CommandContext& ctx) {
  for (const std::string_view word : ctx.args.subspan(2)) {
    if (EqualsIgnoreCase(word, "redirect")) ctx.session.switches.redirects = true;
  }
  ctx.reply.Ok();
}

void CmdClientNoTouch(CommandContext& ctx) { Switch(ctx, &ctx.session.switches.no_touch); }

// Waits for the answer of the node that a client's command was passed on to.
class UnblockTask final : public Task {
 public:
  UnblockTask(CommandPassing& passing, uint64_t ticket) : passing_(passing), ticket_(ticket) {}
  UnblockTask(const UnblockTask&) = delete;
  UnblockTask& operator=(const UnblockTask&) = delete;
  ~UnblockTask() override { passing_.ForgetUnblocking(ticket_); }

  TaskProgress Step(TaskContext& context) override {
    using Unblocked = CommandPassing::Unblocked;
    const Unblocked answer = passing_.AnswerToUnblock(ticket_);
    // EXEC does not wait: asked it was.
    if (answer == Unblocked::kNotYet && !context.budget.unlimited()) return TaskProgress::kWaiting;
    context.reply.Integer(answer == Unblocked::kNo ? 0 : 1);
    return TaskProgress::kDone;
  }

 private:
  CommandPassing& passing_;
  const uint64_t ticket_;
};

void CmdClientUnblock(CommandContext& ctx) {
  ASSIGN_OR_REPLY(ctx, const int64_t id, IntegerArgument(ctx.args[2]));
  if (ctx.args.size() > 4 || (ctx.args.size() == 4 && !EqualsIgnoreCase(ctx.args[3], "timeout") &&
                              !EqualsIgnoreCase(ctx.args[3], "error"))) {
    return ctx.Fail("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
  }
  Session* session = id > 0 ? ctx.host.FindSession(static_cast<uint64_t>(id)) : nullptr;
  const bool error = ctx.args.size() == 4 && EqualsIgnoreCase(ctx.args[3], "error");
  const UnblockReason reason = error ? UnblockReason::kError : UnblockReason::kTimeout;
  // It may wait where its command was passed on to.
  CommandPassing* const passing = ctx.host.dispatcher().passing();
  if (session != nullptr && session->task == nullptr && passing != nullptr) {
    const uint64_t ticket = passing->AskToUnblock(*session, reason);
    if (ticket != 0) return ctx.Continue(std::make_unique<UnblockTask>(*passing, ticket));
  }
  // Only a task that waits says yes: one that works is not blocked.
  if (session == nullptr || !session->task || !session->task->work->Unblock(reason)) {
    return ctx.reply.Integer(0);
  }
  ctx.host.WakeTasks();
  ctx.reply.Integer(1);
}

constexpr uint32_t kClientFlags = kNoScript | kLoading | kStale;

constexpr Command Sub(std::string_view name, int16_t arity, uint32_t flags,
                      std::string_view summary, std::string_view syntax, CommandHandler handler) {
  return {.name = name,
          .arity = arity,
          .flags = kClientFlags | flags,
          .categories = kCategoryConnection,
          .group = "connection",
          .summary = summary,
          .complexity = (flags & kAdmin) != 0 ? "O(n) in the number of clients" : "O(1)",
          .syntax = syntax,
          .handler = handler};
}

constexpr Command kClientSubcommands[] = {
    Sub("caching", 3, 0, "Says whether reads of the next command are tracked (OPTIN, OPTOUT).",
        "(YES | NO)", CmdClientCaching),
    Sub("capa", -3, 0, "Says what the client can do: REDIRECT, go to the leader by itself.",
        "capability...", CmdClientCapa),
    Sub("getname", 2, 0, "Returns the name of the connection.", "", CmdClientGetName),
    Sub("getredir", 2, 0, "Returns the client that gets invalidations: 0 is this one, -1 none.", "",
        CmdClientGetRedir),
    Sub("id", 2, 0, "Returns the id of the connection.", "", CmdClientId),
    Sub("info", 2, 0, "Returns information about the connection.", "", CmdClientInfo),
    Sub("kill", -3, kAdmin, "Closes connections.",
        "(ip:port | (ID id | TYPE (NORMAL | MASTER | REPLICA | PUBSUB) | USER username | ADDR "
        "ip:port | LADDR ip:port | SKIPME (YES | NO) | MAXAGE seconds)...)",
        CmdClientKill),
    Sub("list", -2, kAdmin, "Lists the connections.",
        "[TYPE (NORMAL | MASTER | REPLICA | PUBSUB)] [ID id...]", CmdClientList),
    Sub("no-evict", 3, kAdmin,
        "Keeps this connection when clients take more than maxmemory-clients.", "(ON | OFF)",
        CmdClientNoEvict),
    Sub("no-touch", 3, 0, "Accepted and ignored: reads leave no trace.", "(ON | OFF)",
        CmdClientNoTouch),
    Sub("pause", -3, kAdmin, "Suspends the commands of all clients, or only their writes.",
        "milliseconds [WRITE | ALL]", CmdClientPause),
    Sub("reply", 3, 0, "Turns replies to this connection off and on.", "(ON | OFF | SKIP)",
        CmdClientReply),
    Sub("setinfo", 4, 0, "Names the client library.", "(LIB-NAME libname | LIB-VER libver)",
        CmdClientSetInfo),
    Sub("setname", 3, 0, "Names the connection.", "connection-name", CmdClientSetName),
    Sub("tablets", 3, 0, "Turns on pushes of tablets that change, of tables asked for.",
        "(ON | OFF)", CmdClientTablets),
    Sub("tracking", -3, 0, "Turns on invalidations of rows and tables that the client has read.",
        "(ON | OFF) [REDIRECT client-id] [PREFIX prefix]... [BCAST] [OPTIN] [OPTOUT] [NOLOOP]",
        CmdClientTracking),
    Sub("trackinginfo", 2, 0, "Returns the state of client-side caching.", "",
        CmdClientTrackingInfo),
    Sub("unblock", -3, kAdmin, "Unblocks a waiting client.", "client-id [TIMEOUT|ERROR]",
        CmdClientUnblock),
    Sub("unpause", 2, kAdmin, "Ends CLIENT PAUSE.", "", CmdClientUnpause),
    HelpSubcommand("connection"),
};

constexpr Command kClientCommands[] = {
    {.name = "client",
     .arity = -2,
     .categories = kCategoryConnection,
     .group = "connection",
     .summary = "Lists, names and closes connections.",
     .complexity = "depends on the subcommand",
     .subcommands = kClientSubcommands},
};

}  // namespace

std::span<const Command> ClientCommands() { return kClientCommands; }

}  // namespace cellar
