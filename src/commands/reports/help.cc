// See help.h.
#include "commands/reports/help.h"

#include <string>

#include "base/text/ascii.h"
#include "commands/session/command_context.h"

namespace cellar {
namespace {}  // namespace

void CmdHelp(CommandContext& ctx) {
  const CommandEntry* container = ctx.command.parent;
  ctx.reply.Array(1 + 2 * container->subcommands.size());
  ctx.reply.SimpleString(UpperText(container->row->name) +
                         " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (const CommandEntry* sub : container->subcommands) {
    std::string line = UpperText(sub->row->name);
    if (!sub->row->syntax.empty()) line.append(" ").append(sub->row->syntax);
    ctx.reply.SimpleString(line);
    ctx.reply.SimpleString("    " + std::string(sub->row->summary));
  }
}

}  // namespace cellar
