// CONFIG GET, SET, REWRITE, RESETSTAT.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/text/glob.h"
#include "commands/admin/admin_commands.h"
#include "commands/config/cluster_options.h"
#include "commands/config/config.h"
#include "commands/config/config_file.h"
#include "commands/reports/cluster_report.h"
#include "commands/reports/help.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"
#include "replica/replication.h"

namespace cellar {
namespace {

// Those of the cluster, which this node is a part of; how many.
uint64_t ReplyClusterOptions(CommandContext& ctx) {
  const std::map<std::string, std::string> given = MapTables(ctx.store()).Options();
  uint64_t count = 0;
  for (const ClusterOption& option : ClusterOptions()) {
    const Arguments patterns = ctx.args.subspan(2);
    const bool wanted =
        std::any_of(patterns.begin(), patterns.end(), [&option](std::string_view pattern) {
          return GlobMatch(pattern, option.name, GlobCase::kInsensitive);
        });
    if (!wanted) continue;
    const auto found = given.find(std::string(option.name));
    ctx.reply.Bulk(option.name);
    ctx.reply.Bulk(found == given.end() ? option.value : std::string_view(found->second));
    ++count;
  }
  return count;
}

void CmdConfigGet(CommandContext& ctx) {
  const Config& config = ctx.host.services().config;
  const auto mark = ctx.reply.BeginMap(1);
  uint64_t count = 0;
  for (const ConfigOption& option : ConfigOptions()) {
    for (const std::string_view pattern : ctx.args.subspan(2)) {
      if (!GlobMatch(pattern, option.name, GlobCase::kInsensitive)) continue;
      ctx.reply.Bulk(option.name);
      ctx.reply.Bulk(ConfigOptionText(config, option));
      ++count;
      break;
    }
  }
  if (IsInCluster(ctx.host)) count += ReplyClusterOptions(ctx);
  ctx.reply.EndMap(mark, count);
}

std::string SetFailed(std::string_view name, std::string_view reason) {
  return "ERR CONFIG SET failed (possibly related to argument '" + std::string(name) + "') - " +
         std::string(reason);
}

// All or nothing: a copy is changed and takes the place of the configuration when every option has
// been taken over; otherwise the old values are applied again.
void CmdConfigSet(CommandContext& ctx) {
  const Arguments words = ctx.args.subspan(2);
  if (words.size() % 2 != 0) {
    return ctx.Fail("ERR wrong number of arguments for 'config|set' command");
  }
  std::vector<const ConfigOption*> options;
  for (size_t i = 0; i < words.size(); i += 2) {
    const ConfigOption* option = FindConfigOption(words[i]);
    if (const ClusterOption* const of_cluster = FindClusterOption(words[i]);
        of_cluster != nullptr && IsInCluster(ctx.host)) {
      return ctx.Fail("ERR " + std::string(of_cluster->name) +
                      " is an option of the cluster: CLUSTER CONFIG SET");
    }
    if (option == nullptr) {
      return ctx.Fail("ERR Unknown option or number of arguments for CONFIG SET - '" +
                      std::string(words[i]) + "'" + NearConfigOption(words[i]));
    }
    if ((option->flags & kConfigImmutable) != 0) {
      return ctx.Fail(SetFailed(words[i], "can't set immutable config"));
    }
    for (const ConfigOption* earlier : options) {
      if (earlier == option) return ctx.Fail(SetFailed(words[i], "duplicate parameter"));
    }
    options.push_back(option);
  }
  Config& config = ctx.host.services().config;
  const Config before = config;
  Config changed = config;
  for (size_t i = 0; i < options.size(); ++i) {
    const Status status = SetConfigOption(&changed, *options[i], words[2 * i + 1]);
    if (!status.ok()) return ctx.Fail(SetFailed(words[2 * i], status.text()));
  }
  config = std::move(changed);
  for (size_t i = 0; i < options.size(); ++i) {
    const Status status = ctx.host.ApplyConfig(options[i]->topic);
    if (status.ok()) continue;
    config = before;
    // The topics behind the one that failed have not been applied yet.
    for (size_t k = 0; k <= i; ++k) (void)ctx.host.ApplyConfig(options[k]->topic);
    return ctx.Fail(SetFailed(words[2 * i], status.text()));
  }
  ctx.reply.Ok();
}

void CmdConfigRewrite(CommandContext& ctx) {
  Services& services = ctx.host.services();
  if (!services.config_sources.can_rewrite()) {
    return ctx.Fail("ERR The server is running without a config file");
  }
  ConfigUsers users;
  if (services.config.aclfile.empty()) {  // else they are ACL SAVE's
    users.lines = services.acl.Lines();
    users.plain = services.acl.IsPlain();
    users.line_of = [&services](const std::vector<std::string>& words) -> Result<std::string> {
      ASSIGN_OR_RETURN(const User user, services.acl.ReadWords(words));
      return Acl::Line(user);
    };
  }
  Config config = services.config;
  SetClusterReadsDefault(&config, false);
  const Status status = services.config_sources.Rewrite(std::move(config), users);
  if (!status.ok()) return ctx.Fail("ERR Rewriting config file: " + status.text());
  ctx.reply.Ok();
}

void CmdConfigResetStat(CommandContext& ctx) {
  Services& services = ctx.host.services();
  const ServerStats old = services.stats;
  services.stats = ServerStats{};
  // These are no counts: when the server began, and the most that it has used.
  services.stats.start_micros = old.start_micros;
  services.stats.start_monotonic_micros = old.start_monotonic_micros;
  services.stats.memory_peak_bytes = old.memory_peak_bytes;
  services.commands.ResetStats();
  ctx.host.replication().ResetStats();
  ctx.reply.Ok();
}

constexpr uint32_t kConfigFlags = kAdmin | kNoScript | kLoading | kStale;

constexpr Command kConfigSubcommands[] = {
    {.name = "get",
     .arity = -3,
     .flags = kConfigFlags,
     .group = "server",
     .summary = "Returns the values of options.",
     .complexity = "O(n) in the number of options",
     .syntax = "pattern...",
     .handler = CmdConfigGet},
    {.name = "set",
     .arity = -4,
     .flags = kConfigFlags,
     .group = "server",
     .summary = "Sets options, all or none.",
     .complexity = "O(n) in the number of options",
     .syntax = "(parameter value)...",
     .handler = CmdConfigSet},
    {.name = "rewrite",
     .arity = 2,
     .flags = kConfigFlags,
     .group = "server",
     .summary = "Rewrites the configuration file with the current values. Comments stay.",
     .complexity = "O(n) in the size of the file",
     .handler = CmdConfigRewrite},
    {.name = "resetstat",
     .arity = 2,
     .flags = kConfigFlags,
     .group = "server",
     .summary = "Resets the counters of INFO.",
     .complexity = "O(1)",
     .handler = CmdConfigResetStat},
    HelpSubcommand("server"),
};

constexpr Command kConfigCommands[] = {
    {.name = "config",
     .arity = -2,
     .group = "server",
     .summary = "Reads and changes the configuration.",
     .complexity = "depends on the subcommand",
     .subcommands = kConfigSubcommands},
};

}  // namespace

std::span<const Command> ConfigCommands() { return kConfigCommands; }

}  // namespace cellar
