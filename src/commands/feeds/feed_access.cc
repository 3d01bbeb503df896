// See feed_access.h.
#include "commands/feeds/feed_access.h"

#include <algorithm>

#include "base/text/quote.h"
#include "commands/words/schema_arguments.h"
#include "engine/schema/column_set.h"
#include "store/store.h"

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

Status CheckMayMakeFeed(const CommandRights* rights, const Feed& feed) {
  if (rights == nullptr || rights->MayWriteEverything()) return Status::Ok();
  const bool may = !feed.covers_keyspace() &&
                   std::all_of(feed.on.begin(), feed.on.end(), [&](const Feed::On& on) {
                     return rights->MayWriteTable(feed.keyspace, on.table);
                   });
  return may ? Status::Ok() : NoPermission();
}

std::vector<const Feed*> VisibleFeeds(const CommandContext& ctx) {
  std::vector<const Feed*> feeds = ctx.store().engine().feeds().Feeds(ctx.session.keyspace);
  std::erase_if(feeds, [&ctx](const Feed* feed) { return !MayReadFeed(ctx.rights, *feed); });
  return feeds;
}

const Feed* FindVisibleFeed(const CommandContext& ctx, std::string_view word) {
  const Feed* feed = ctx.store().FindFeed(ctx.session.keyspace, word);
  return feed != nullptr && MayReadFeed(ctx.rights, *feed) ? feed : nullptr;
}

Result<const Feed*> FindFeed(const CommandContext& ctx, std::string_view word) {
  const Feed* feed = ctx.store().FindFeed(ctx.session.keyspace, word);
  if (feed != nullptr) return MayReadFeed(ctx.rights, *feed) ? Result(feed) : NoPermission();
  // A table that the user sees is a key of the wrong kind. A hidden one is nothing at all.
  const TableName name = SplitTableName(ctx.session.keyspace, word);
  const Table* table = ctx.store().engine().FindTable(name.keyspace, name.table);
  if (table != nullptr && (ctx.rights == nullptr || ctx.rights->Sees(*table)))
    return Status::WrongKind();
  return Status::Error(ErrorCode::kNoFeed,
                       "no feed " + Quote(name.table) + " in keyspace " + Quote(name.keyspace));
}

}  // namespace cellar
