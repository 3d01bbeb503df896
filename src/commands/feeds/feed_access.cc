// See feed_access.h.
#include "commands/feeds/feed_access.h"

#include <algorithm>
#include <string>

#include "base/text/quote.h"
#include "commands/arguments/schema_arguments.h"
#include "engine/schema/column_set.h"
#include "store/store.h"

namespace cellar {

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

Status CheckNamedSeldom(std::vector<const Feed*> feeds) {
  constexpr size_t kTimesMax{8};
  std::sort(feeds.begin(), feeds.end());
  for (size_t i = kTimesMax; i < feeds.size(); ++i) {
    if (feeds[i] != feeds[i - kTimesMax]) continue;
    return Status::Error(ErrorCode::kTooLarge, "a command names a feed at most " +
                                                   std::to_string(kTimesMax) + " times, and " +
                                                   Quote(feeds[i]->name) + " more often");
  }
  return Status::Ok();
}

}  // namespace cellar
