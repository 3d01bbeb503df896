// Feeds in the catalog: their mutations, and what is noted of tables for those who read the log
// later (feeds/feed_set.h).
#include <algorithm>

#include "engine/state/engine.h"
#include "engine/state/malformed.h"

namespace cellar {
bool Engine::TellsOldOf(const Table& table) const {
  if (!feeds_.tells_old()) return false;
  const auto [at, fresh] = tells_old_.try_emplace(table.id());
  if (!fresh) return at->second;
  const std::vector<const Feed*> feeds = feeds_.Feeds(table.keyspace());
  at->second = std::any_of(feeds.begin(), feeds.end(), [&table](const Feed* feed) {
    return feed->tells_pre_images() && feed->CoversTable(table.name());
  });
  return at->second;
}

Status Engine::ApplyFeedOp(const DecodedOp& op) {
  tells_old_.clear();
  switch (op.op) {
    case MutationOp::kCreateFeed:
      return CreateFeed(op);
    case MutationOp::kDropFeed:
      if (feeds_.FindById(op.id) == nullptr) return Malformed("a feed that does not exist");
      feeds_.Drop(op.id);
      return Status::Ok();
    case MutationOp::kFeedGroup:
      if (feeds_.FindById(FeedOfGroups(op.id)) == nullptr)
        return Malformed("a feed that does not exist");
      return feeds_.groups().Apply(op.id, op.first, op.second)
                 ? Status::Ok()
                 : Malformed("a group that cannot be so");
    case MutationOp::kFeedHome:
      return feeds_.SetHome(op.id, op.first, cluster().set) ? Status::Ok()
                                                            : Malformed("a home that cannot be so");
    default:
      return feeds_.Trim(op.id, op.first) ? Status::Ok() : Malformed("a feed that cannot be so");
  }
}

Status Engine::CreateFeed(const DecodedOp& op) {
  Feed feed;
  feed.id = op.id;
  feed.keyspace = op.first;
  feed.name = op.second;
  std::string_view rest = op.third;
  FeedSchemas schemas;
  if (!DecodeFeedDefinition(&rest, &feed) || !DecodeFeedSchemas(&rest, &schemas) || !rest.empty())
    return Malformed("a feed that cannot be read");
  const auto keyspace = keyspaces_.find(op.first);
  const bool is_free = keyspace != keyspaces_.end() && !keyspace->second.contains(op.second) &&
                       feeds_.Find(op.first, op.second) == nullptr;
  if (!is_free || !IsName(op.second) || op.id < numbers_.table_id || feeds_.size() >= kFeedsMax)
    return Malformed("a feed that exists already");
  numbers_.table_id = op.id + 1;
  if (feeds_.empty()) SeedHistory(feed.after_micros);
  feeds_.Add(std::move(feed));
  return Status::Ok();
}

// What there is now is what there was at `micros`, or has come in this step.
void Engine::SeedHistory(int64_t micros) {
  for (const auto& [id, table] : tables_) {
    const TableVersion* known = feeds_.history().At(id, INT64_MAX);
    const int64_t from = known == nullptr ? micros : std::max(micros, known->from_micros);
    std::string schema;
    EncodeTableSchema(table->schema(), &schema);
    feeds_.history().Note(id, {from, table->keyspace(), table->name(), std::move(schema)});
  }
}

void Engine::NoteHistory(uint64_t table_id) {
  const Table* table = FindTableById(table_id);
  TableVersion version{.from_micros = history_micros_, .keyspace = {}, .name = {}, .schema = {}};
  if (table != nullptr) {
    version.keyspace = table->keyspace();
    version.name = table->name();
    EncodeTableSchema(table->schema(), &version.schema);
  }
  feeds_.history().Note(table_id, std::move(version));
}

void Engine::NoteHistoryOf(const DecodedOp& op, const std::vector<uint64_t>& dropped) {
  switch (op.op) {
    case MutationOp::kCreateTable:
    case MutationOp::kCopyTable:
    case MutationOp::kRenameTable:
    case MutationOp::kSetSchema:
    case MutationOp::kDropTable:
      return NoteHistory(op.id);
    default:
      for (const uint64_t id : dropped) NoteHistory(id);
  }
}

}  // namespace cellar
