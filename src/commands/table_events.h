// Keyspace notifications: changes of tables, published as Redis publishes changes of keys.
//
//   __keyspace@0__:planes   <- "cput"        notify-keyspace-events K
//   __keyevent@0__:cput     <- "planes"      E
#pragma once

#include <cstdint>
#include <string_view>

namespace cellar {

class Host;

// Publishes if `kind` (a NotifyFlags bit, kNotifyTable for cells) is switched on.
void NotifyTable(Host& host, uint32_t kind, std::string_view event, std::string_view keyspace,
                 std::string_view table);

}  // namespace cellar
