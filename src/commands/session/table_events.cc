// See table_events.h.
#include "commands/session/table_events.h"

#include <utility>

#include "base/assert.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/session/host.h"
#include "commands/session/pubsub.h"
#include "commands/session/services.h"
#include "engine/table/table.h"
#include "store/store.h"

namespace cellar {
namespace {

void PublishEvent(Host& host, const TableEvents::Event& event) {
  Services& services = host.services();
  const uint32_t flags = services.config.notify_flags;
  // Published behind the change, so its record is the newest one or lies before that.
  const Lsn depends_on = host.store().last_lsn();
  const TableName table{event.keyspace, event.table};
  const std::string suffix = "@" + event.keyspace + "__:";
  if ((flags & kNotifyKeyspace) != 0) {
    (void)services.pubsub.PublishAbout(host, ChannelKind::kChannel,
                                       "__keyspace" + suffix + event.table, event.name, depends_on,
                                       &table);
  }
  if ((flags & kNotifyKeyevent) != 0) {
    (void)services.pubsub.PublishAbout(host, ChannelKind::kChannel,
                                       "__keyevent" + suffix + event.name, event.table, depends_on,
                                       &table);
  }
}

}  // namespace

void TableEvents::Publish(Host& host) {
  CELLAR_ASSERT(!host.store().in_transaction());
  Tell(host, std::exchange(waiting_, {}));
}

void TableEvents::Tell(Host& host, std::span<const Event> events) {
  for (const Event& event : events) PublishEvent(host, event);
}

namespace {

void Notify(Host& host, uint32_t kind, std::string_view event, std::string_view keyspace,
            std::string_view table) {
  CELLAR_DEBUG_ASSERT(!event.empty());
  CELLAR_DEBUG_ASSERT(kind != 0);
  Services& services = host.services();
  if ((services.config.notify_flags & kind) == 0) [[likely]]
    return;
  TableEvents::Event happened{std::string(event), std::string(keyspace), std::string(table)};
  if (host.store().in_transaction()) {
    services.table_events.Add(std::move(happened));
  } else {
    PublishEvent(host, happened);
  }
}

}  // namespace

void NotifyTrackers(Host& host, std::string_view keyspace, std::string_view table) {
  Tracking& tracking = host.services().tracking;
  if (tracking.active()) [[unlikely]]
    tracking.TableChanged(host, keyspace, table);
}

void NotifyTable(Host& host, uint32_t kind, std::string_view event, std::string_view keyspace,
                 std::string_view table) {
  NotifyTrackers(host, keyspace, table);
  Notify(host, kind, event, keyspace, table);
}

void NotifyFlushed(Host& host, std::string_view event,
                   const std::vector<std::pair<std::string, std::string>>& names) {
  Tracking& tracking = host.services().tracking;
  if (tracking.active()) [[unlikely]]
    tracking.AllChanged(host);
  for (const auto& [keyspace, table] : names) Notify(host, kNotifyGeneric, event, keyspace, table);
}

void NotifyRow(Host& host, std::string_view event, const Table& table, std::string_view row) {
  Tracking& tracking = host.services().tracking;
  if (tracking.active()) [[unlikely]]
    tracking.RowChanged(host, table, row);
  Notify(host, kNotifyTable, event, table.keyspace(), table.name());
}

}  // namespace cellar
