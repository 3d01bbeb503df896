// See table_events.h.
#include "commands/table_events.h"

#include <algorithm>
#include <string>

#include "commands/command_keys.h"
#include "commands/command_table.h"
#include "commands/config.h"
#include "commands/host.h"
#include "commands/pubsub.h"
#include "commands/services.h"
#include "commands/session.h"

namespace cellar {

void NotifyTable(Host& host, uint32_t kind, std::string_view event, std::string_view keyspace,
                 std::string_view table) {
  Services& services = host.services();
  const uint32_t flags = services.config.notify_flags;
  if ((flags & kind) == 0) [[likely]]
    return;
  const std::string suffix = "@" + std::string(keyspace) + "__:";
  if ((flags & kNotifyKeyspace) != 0) {
    (void)services.pubsub.Publish(host, ChannelKind::kChannel,
                                  "__keyspace" + suffix + std::string(table), event);
  }
  if ((flags & kNotifyKeyevent) != 0) {
    (void)services.pubsub.Publish(host, ChannelKind::kChannel,
                                  "__keyevent" + suffix + std::string(event), table);
  }
}

void NotifyWritten(Host& host, const Session& session, const CommandEntry& command, Arguments args,
                   std::string_view reply) {
  for (const std::string_view nothing : {"-", "$-1", "*-1", "_", ":0\r"}) {
    if (reply.starts_with(nothing)) return;
  }
  const bool generic = (command.categories & (kCategoryKeyspace | kCategorySchema)) != 0;
  std::string event = command.full_name;
  std::replace(event.begin(), event.end(), '|', '.');
  const bool rename = event.starts_with("rename");
  if (event == "unlink") event = "del";
  for (const size_t position : KeyPositions(command.row->keys, args.size())) {
    std::string_view keyspace = session.keyspace;
    std::string_view table = args[position];
    if (const size_t slash = table.find('/'); slash != std::string_view::npos) {
      keyspace = table.substr(0, slash);
      table = table.substr(slash + 1);
    }
    if (rename) event = position == 1 ? "rename_from" : "rename_to";
    NotifyTable(host, generic ? kNotifyGeneric : kNotifyTable, event, keyspace, table);
  }
}

}  // namespace cellar
