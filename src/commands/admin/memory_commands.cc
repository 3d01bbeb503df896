// MEMORY: what needs how much.
#include <algorithm>
#include <string>

#include "commands/admin/admin_commands.h"
#include "commands/replies/schema_commands.h"
#include "commands/reports/help.h"
#include "commands/reports/info.h"
#include "commands/session/command_context.h"
#include "commands/session/services.h"

namespace cellar {
namespace {

// Redis' names, each with what comes nearest to it here: a key is a table. An entry that is added
// has to be counted in the call of Map() as well.
void CmdMemoryStats(CommandContext& ctx) {
  const MemoryFigures memory = ctx.host.memory();
  const DataFigures data = ctx.host.data_figures();
  ServerStats& stats = ctx.host.services().stats;
  stats.memory_peak_bytes = std::max<uint64_t>(stats.memory_peak_bytes, memory.used_bytes);
  const auto entry = [&ctx](std::string_view name, uint64_t value) {
    ctx.reply.Bulk(name);
    ctx.reply.Unsigned(value);
  };
  if (ctx.rights != nullptr && !ctx.rights->MayReadEverything()) {
    // The rest tells how much data there is.
    ctx.reply.Map(2);
    entry("startup.allocated", memory.startup_bytes);
    return entry("clients.normal", memory.clients_bytes);
  }
  ctx.reply.Map(15);
  entry("peak.allocated", stats.memory_peak_bytes);
  entry("total.allocated", memory.used_bytes);
  entry("startup.allocated", memory.startup_bytes);
  entry("replication.backlog", memory.tail_bytes);
  entry("clients.slaves", memory.links_bytes);
  entry("clients.normal", memory.clients_bytes);
  entry("aof.buffer", memory.log_buffer_bytes);
  entry("overhead.total", memory.used_bytes - memory.data_bytes);
  entry("keys.count", data.tables);
  entry("keys.bytes-per-key", data.tables == 0 ? 0 : memory.data_bytes / data.tables);
  entry("cells.count", data.cells);
  entry("dataset.bytes", memory.data_bytes);
  const auto used = static_cast<double>(memory.used_bytes);
  ctx.reply.Bulk("dataset.percentage");
  ctx.reply.Double(used > 0 ? 100 * static_cast<double>(memory.data_bytes) / used : 0);
  ctx.reply.Bulk("peak.percentage");
  ctx.reply.Double(100 * used /
                   static_cast<double>(std::max<uint64_t>(stats.memory_peak_bytes, 1)));
  ctx.reply.Bulk("fragmentation");
  ctx.reply.Double(used > 0 ? static_cast<double>(memory.resident_bytes) / used : 1);
}

void CmdMemoryDoctor(CommandContext& ctx) {
  const MemoryFigures memory = ctx.host.memory();
  std::string text;
  constexpr uint64_t kSmall{64ULL << 20};
  if (memory.used_bytes - memory.startup_bytes < kSmall && memory.resident_bytes < 2 * kSmall) {
    text = "There is too little data to say anything about its memory.\n";
  } else {
    if (memory.resident_bytes > memory.used_bytes * 3 / 2) {
      text += "The process holds " + HumanBytes(memory.resident_bytes) + " for " +
              HumanBytes(memory.used_bytes) +
              " in use. That is normal after large deletes; MEMORY PURGE returns what it can.\n";
    }
    if (memory.clients_bytes > memory.data_bytes / 4) {
      text += "Clients hold " + HumanBytes(memory.clients_bytes) +
              ": CLIENT LIST shows which (tot-mem, omem, qbuf); see client-output-buffer-limit and "
              "scan-reply-max-bytes.\n";
    }
    if (text.empty()) text = "Memory looks healthy.\n";
  }
  ctx.reply.Verbatim(text, "txt");
}

void CmdMemoryPurge(CommandContext& ctx) {
  ctx.host.ReleaseFreeMemory();
  ctx.reply.Ok();
}

void CmdMemoryMallocStats(CommandContext& ctx) {
  const MemoryFigures memory = ctx.host.memory();
  ctx.reply.Verbatim(
      std::string(memory.allocator) + ": " + HumanBytes(memory.resident_bytes) + " resident\n",
      "txt");
}

constexpr Command Sub(std::string_view name, std::string_view summary, CommandHandler handler) {
  return {.name = name,
          .arity = 2,
          .group = "server",
          .summary = summary,
          .complexity = "O(n) in the number of tables and clients",
          .handler = handler};
}

constexpr Command kMemorySubcommands[] = {
    Sub("doctor", "Reports in plain words on the state of memory.", CmdMemoryDoctor),
    Sub("malloc-stats", "Returns statistics of the allocator.", CmdMemoryMallocStats),
    Sub("purge", "Returns free memory to the system.", CmdMemoryPurge),
    Sub("stats", "Returns how memory is used.", CmdMemoryStats),
    {.name = "usage",
     .arity = -3,
     .flags = kReadonly,
     .keys = {.first = 2, .access = KeyAccess::kRead, .scope = KeyScope::kName},
     .group = "server",
     .summary = "Returns the memory of a table in bytes.",
     .complexity = "O(1)",
     .syntax = "table [SAMPLES count]",
     .handler = CmdMemoryUsage},
    HelpSubcommand("server"),
};

constexpr Command kMemoryCommands[] = {
    {.name = "memory",
     .arity = -2,
     .group = "server",
     .summary = "Shows how memory is used.",
     .complexity = "depends on the subcommand",
     .subcommands = kMemorySubcommands},
};

}  // namespace

std::span<const Command> MemoryCommands() { return kMemoryCommands; }

}  // namespace cellar
