// See table_events.h.
#include "commands/table_events.h"

#include <string>

#include "commands/host.h"
#include "commands/pubsub.h"
#include "commands/services.h"

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

}  // namespace cellar
