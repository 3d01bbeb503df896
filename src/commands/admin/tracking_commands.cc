// See tracking_commands.h; what tracking is, tracking.h tells. Texts of errors are Redis'.
#include "commands/admin/tracking_commands.h"

#include <string>
#include <vector>

#include "commands/clients/authentication.h"
#include "commands/clients/client_info.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "commands/session/tracking.h"
#include "engine/schema/column_set.h"

namespace cellar {
namespace {

Status Refused(std::string text) { return Status::Error(ErrorCode::kErr, std::move(text)); }

Result<TrackingState> ParseOptions(Host& host, ArgumentCursor at,
                                   std::vector<std::string_view>* prefixes) {
  TrackingState options;
  while (!at.done()) {
    if (at.left() > 1 && at.TakeWord("redirect")) {
      if (options.redirect != 0) {
        return Refused("A client can only redirect to a single other client");
      }
      ASSIGN_OR_RETURN(const int64_t id, at.TakeInteger());
      const Session* const target = id < 1 ? nullptr : host.FindSession(static_cast<uint64_t>(id));
      if (target == nullptr || IsChannel(*target)) {
        return Refused("The client ID you want redirect to does not exist");
      }
      options.redirect = static_cast<uint64_t>(id);
    } else if (at.left() > 1 && at.TakeWord("prefix")) {
      prefixes->push_back(at.Take());
    } else if (at.TakeWord("bcast")) {
      options.bcast = true;
    } else if (at.TakeWord("optin")) {
      options.optin = true;
    } else if (at.TakeWord("optout")) {
      options.optout = true;
    } else if (at.TakeWord("noloop")) {
      options.noloop = true;
    } else {
      return Status::SyntaxError();
    }
  }
  return options;
}

bool Overlap(std::string_view a, std::string_view b) {
  return a.starts_with(b) || b.starts_with(a);
}

// Each change is compared with all prefixes, and each of these with the others.
constexpr size_t kPrefixesMax{1000};

// Two prefixes of one client must not overlap, or it would be told of things twice.
Status CheckPrefixes(const TrackingState* old, const std::vector<std::string_view>& prefixes) {
  if (prefixes.size() + (old == nullptr ? 0 : old->prefixes.size()) > kPrefixesMax) {
    return Status::Error(ErrorCode::kTooLarge,
                         "a client tracks at most " + std::to_string(kPrefixesMax) + " prefixes");
  }
  for (const std::string_view prefix : prefixes) RETURN_IF_ERROR(CheckKeptWord("a prefix", prefix));
  for (size_t i = 0; i < prefixes.size(); ++i) {
    const std::string prefix(prefixes[i]);
    if (old != nullptr) {
      for (const std::string& existing : old->prefixes) {
        if (!Overlap(prefix, existing)) continue;
        return Refused("Prefix '" + prefix + "' overlaps with an existing prefix '" + existing +
                       "'. Prefixes for a single client must not overlap.");
      }
    }
    for (size_t k = i + 1; k < prefixes.size(); ++k) {
      if (!Overlap(prefix, prefixes[k])) continue;
      return Refused("Prefix '" + prefix + "' overlaps with another provided prefix '" +
                     std::string(prefixes[k]) +
                     "'. Prefixes for a single client must not overlap.");
    }
  }
  return Status::Ok();
}

// Whether the options fit together, and to what is on already (`old`, or null).
Status CheckOptions(const TrackingState* old, const TrackingState& options,
                    const std::vector<std::string_view>& prefixes) {
  if (!options.bcast && !prefixes.empty()) {
    return Refused("PREFIX option requires BCAST mode to be enabled");
  }
  if (old != nullptr && old->bcast != options.bcast) {
    return Refused(
        "You can't switch BCAST mode on/off before disabling tracking for this client, and then "
        "re-enabling it with a different mode.");
  }
  if (options.bcast && (options.optin || options.optout)) {
    return Refused("OPTIN and OPTOUT are not compatible with BCAST");
  }
  if (options.optin && options.optout) {
    return Refused("You can't specify both OPTIN mode and OPTOUT mode");
  }
  if (old != nullptr && ((options.optin && old->optout) || (options.optout && old->optin))) {
    return Refused(
        "You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and then "
        "re-enabling it with a different mode.");
  }
  return CheckPrefixes(old, prefixes);
}

}  // namespace

void CmdClientTracking(CommandContext& ctx) {
  std::vector<std::string_view> prefixes;
  ASSIGN_OR_REPLY(ctx, TrackingState options,
                  ParseOptions(ctx.host, ArgumentCursor(ctx.args, 3), &prefixes));
  Tracking& tracking = ctx.host.services().tracking;
  if (EqualsIgnoreCase(ctx.args[2], "on")) {
    // What is told names rows and does not say which of their families has changed.
    if (ctx.rights != nullptr && !ctx.rights->MayReadEverything()) {
      return ctx.Fail(NoPermission());
    }
    REPLY_IF_ERROR(ctx, CheckOptions(ctx.session.tracking.get(), options, prefixes));
    options.prefixes.insert(prefixes.begin(), prefixes.end());
    tracking.Enable(ctx.session, options);
  } else if (EqualsIgnoreCase(ctx.args[2], "off")) {
    tracking.Disable(ctx.session);
  } else {
    return ctx.SyntaxError();
  }
  ctx.reply.Ok();
}

void CmdClientCaching(CommandContext& ctx) {
  TrackingState* state = ctx.session.tracking.get();
  if (state == nullptr) {
    return ctx.Fail(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
        "OPTOUT mode enabled");
  }
  if (EqualsIgnoreCase(ctx.args[2], "yes")) {
    if (!state->optin) {
      return ctx.Fail(
          "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
    }
  } else if (EqualsIgnoreCase(ctx.args[2], "no")) {
    if (!state->optout) {
      return ctx.Fail(
          "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
    }
  } else {
    return ctx.SyntaxError();
  }
  state->caching = true;
  ctx.reply.Ok();
}

void CmdClientGetRedir(CommandContext& ctx) {
  const TrackingState* state = ctx.session.tracking.get();
  ctx.reply.Integer(state == nullptr ? -1 : static_cast<int64_t>(state->redirect));
}

void CmdClientTrackingInfo(CommandContext& ctx) {
  const TrackingState* state = ctx.session.tracking.get();
  std::vector<std::string_view> flags{state == nullptr ? "off" : "on"};
  if (state != nullptr) {
    if (state->bcast) flags.push_back("bcast");
    if (state->optin) flags.push_back("optin");
    if (state->optin && state->caching) flags.push_back("caching-yes");
    if (state->optout) flags.push_back("optout");
    if (state->optout && state->caching) flags.push_back("caching-no");
    if (state->noloop) flags.push_back("noloop");
    if (state->broken_redirect) flags.push_back("broken_redirect");
  }
  ctx.reply.Map(3);
  ctx.reply.Bulk("flags");
  ctx.reply.Set(flags.size());
  for (const std::string_view flag : flags) ctx.reply.Bulk(flag);
  ctx.reply.Bulk("redirect");
  ctx.reply.Integer(state == nullptr ? -1 : static_cast<int64_t>(state->redirect));
  ctx.reply.Bulk("prefixes");
  ctx.reply.Array(state == nullptr ? 0 : state->prefixes.size());
  if (state == nullptr) return;
  for (const std::string& prefix : state->prefixes) ctx.reply.Bulk(prefix);
}

}  // namespace cellar
