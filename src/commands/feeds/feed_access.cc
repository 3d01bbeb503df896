// See feed_access.h.
#include "commands/feeds/feed_access.h"

#include <algorithm>
#include <optional>
#include <string>

#include "base/text/number.h"
#include "base/text/quote.h"
#include "commands/arguments/schema_arguments.h"
#include "commands/session/services.h"
#include "engine/feeds/feed_group.h"
#include "engine/feeds/merged_id.h"
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

const Feed* FeedNamed(Store& store, std::string_view keyspace, std::string_view word) {
  const std::optional<FeedWord> named = ParseFeedWord(word);
  const ClusterState& cluster = store.engine().cluster();
  const bool is_here = named && (!named->set || (cluster.active() && *named->set == cluster.set));
  return is_here ? store.FindFeed(keyspace, named->feed) : nullptr;
}

const Feed* FindVisibleFeed(const CommandContext& ctx, std::string_view word) {
  const Feed* feed = FeedNamed(ctx.store(), ctx.session.keyspace, word);
  return feed != nullptr && MayReadFeed(ctx.rights, *feed) ? feed : nullptr;
}

Result<const Feed*> FindFeed(const CommandContext& ctx, std::string_view word) {
  const Feed* feed = FeedNamed(ctx.store(), ctx.session.keyspace, word);
  if (feed != nullptr) return MayReadFeed(ctx.rights, *feed) ? Result(feed) : NoPermission();
  // A table that the user sees is a key of the wrong kind. A hidden one is nothing at all.
  const TableName name = SplitTableName(ctx.session.keyspace, word);
  const Table* table = ctx.store().engine().FindTable(name.keyspace, name.table);
  if (table != nullptr && (ctx.rights == nullptr || ctx.rights->Sees(*table)))
    return Status::WrongKind();
  return Status::Error(ErrorCode::kNoFeed,
                       "no feed " + Quote(name.table) + " in keyspace " + Quote(name.keyspace));
}

bool IsWholeFeed(Host& host, const Feed& feed, std::string_view word) {
  Store& store = host.store();
  const ClusterState& cluster = store.engine().cluster();
  if (!cluster.active() || word.find('@') != word.npos) return false;
  return cluster.set != 0 || host.services().cluster_map.Sets(store).size() > 1 ||
         store.engine().feeds().groups().Of(WholeFeedGroups(feed.id)) != nullptr;
}

Result<uint64_t> FindGroupsOf(Host& host, const Feed& feed, std::string_view word) {
  if (!IsWholeFeed(host, feed, word)) return feed.id;
  RETURN_IF_ERROR(CheckGroupsHere(host, feed, word));
  return WholeFeedGroups(feed.id);
}

Status CheckGroupsHere(Host& host, const Feed& feed, std::string_view word) {
  const FeedHome& home = feed.home;
  if (home.set != host.store().engine().cluster().set) {
    return Status::Error(ErrorCode::kTryAgain, "the groups of feed " + Quote(word) +
                                                   " are at set " + FormatUint64(home.set));
  }
  if (!home.awaits) return Status::Ok();
  return Status::Error(ErrorCode::kTryAgain, "the groups of feed " + Quote(word) +
                                                 " are on their way from set " +
                                                 FormatUint64(home.from.value_or(0)));
}

FeedId WholeIdOf(const FeedId& id) {
  return IsOwnId(id) && id != FeedId{} ? MergedIdOf(0, id) : id;
}

FeedId OwnId(const CommandContext& ctx, const FeedId& id) {
  const ClusterState& cluster = ctx.store().engine().cluster();
  return cluster.active() && id != FeedId::Max() ? OwnIdUpTo(cluster.set, id) : id;
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
