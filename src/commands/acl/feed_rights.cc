// See feed_rights.h.
#include "commands/acl/feed_rights.h"

#include <algorithm>

namespace cellar {

bool MayReadFeed(const CommandRights* rights, const Feed& feed) {
  if (rights == nullptr || rights->MayReadEverything()) return true;
  // Tables that come later belong to it too, so no right to single ones is enough.
  if (feed.covers_keyspace()) return false;
  return std::all_of(feed.on.begin(), feed.on.end(), [&](const Feed::On& on) {
    return on.family.empty() ? rights->MayReadTable(feed.keyspace, on.table)
                             : rights->MayReadFamily(feed.keyspace, on.table, on.family);
  });
}

}  // namespace cellar
