// Feeds: made and dropped like tables; what they keep of the log.
#include <utility>

#include "base/assert.h"
#include "base/text/quote.h"
#include "engine/schema/column_set.h"
#include "engine/schema/rebuild.h"
#include "store/requests.h"
#include "store/store.h"

namespace cellar {

const Feed* Store::FindFeed(std::string_view keyspace, std::string_view name) const {
  if (engine_->feeds().empty()) return nullptr;
  const size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    keyspace = name.substr(0, slash);
    name.remove_prefix(slash + 1);
  }
  return engine_->feeds().Find(keyspace, name);
}

// What it names must be there.
Status Store::CheckFeed(const Feed& feed) const {
  for (const Feed::On& on : feed.on) {
    const Table* table = engine_->FindTable(feed.keyspace, on.table);
    if (table == nullptr) {
      return Status::Error(ErrorCode::kNoTable,
                           "no table " + Quote(on.table) + " in keyspace " + Quote(feed.keyspace));
    }
    if (on.family.empty()) continue;
    Result<const FamilySchema*> family = RequireFamily(table->schema(), on.family);
    if (!family.ok()) return InTable(std::move(family).status(), *table);
  }
  if (feed.prefixes.empty()) return Status::Ok();
  if (feed.on.empty() || std::any_of(feed.on.begin(), feed.on.end(), [&feed](const Feed::On& on) {
        return on.table != feed.on.front().table;
      })) {
    return Status::Error(ErrorCode::kErr, "PREFIX goes with one table");
  }
  const Table* table = engine_->FindTable(feed.keyspace, feed.on.front().table);
  for (const std::string& prefix : feed.prefixes)
    RETURN_IF_ERROR(table->schema().key.EncodePrefix(prefix).status());
  return Status::Ok();
}

// A feed tells of records behind the last one that is committed now. What makes its tables anew, as
// they are now, is logged with it: its reader begins from there.
Status Store::CreateFeed(std::string_view keyspace, std::string_view name, Feed feed) {
  RETURN_IF_ERROR(SplitTableName(&keyspace, &name));
  feed.keyspace = keyspace;
  RETURN_IF_ERROR(CheckFeed(feed));
  RETURN_IF_ERROR(CheckNewTable(keyspace, name));
  if (!options_.journal.log_enabled && !journal_->Stats().log_enabled) {
    return Status::Error(ErrorCode::kErr,
                         "a feed is read from the log, and there is none (appendonly no)");
  }
  if (engine_->feeds().size() >= kFeedsMax) {
    return Status::Error(ErrorCode::kTooLarge,
                         "there are at most " + std::to_string(kFeedsMax) + " feeds");
  }
  if (feed.by_row) RETURN_IF_ERROR(CheckFeature(Feature::kRowEntries));
  if (has_other_sets()) {
    RETURN_IF_ERROR(CheckFeature(Feature::kCuts));
    if (!catalog_.keeper->KnowCuts()) {
      return Status::Error(ErrorCode::kTryAgain,
                           "not all sets of the cluster have said that they know feeds of several "
                           "sets: one is away, or has members of an earlier version");
    }
  }
  if (has_other_sets() && catalog_.keeper->KnowHomes() && CheckFeature(Feature::kWholeGroups).ok())
    feed.home.set = catalog_.keeper->NextHome(engine_->feeds());
  feed.after_micros = journal_->last_commit_micros();
  FeedSchemas schemas;
  for (const Table* table : engine_->Tables(keyspace)) {
    if (!feed.CoversTable(table->name())) continue;
    std::string text;
    for (const std::string& command :
         RebuildCommands(table->name(), table->schema(), [&](const FamilySchema& family) {
           return feed.CoversFamily(table->name(), family.name);
         })) {
      if (!text.empty()) text += '\n';
      text += command;
    }
    schemas.tables.emplace_back(table->name(), std::move(text));
  }
  std::string bytes = EncodeFeedDefinition(feed);
  EncodeFeedSchemas(schemas, &bytes);
  BeginMutation();
  mutation_.CreateFeed(keyspace, name, engine_->table_id_next(), bytes);
  RETURN_IF_ERROR(CommitSchema(nullptr));
  feed_log_->NoteFeed();
  return Status::Ok();
}

Status Store::DropFeed(const Feed& feed) {
  BeginMutation();
  mutation_.DropFeed(feed.id);
  return CommitSchema(nullptr);
}

Status Store::ChangeFeedGroup(uint64_t feed_id, std::string_view group,
                              const FeedGroupChanges& changes) {
  CELLAR_ASSERT(!changes.empty());
  BeginMutation();
  mutation_.ChangeFeedGroup(feed_id, group, changes.bytes());
  return CommitMutation(nullptr, 1);
}

Status Store::UpdateFeedLog() { return feed_log_->Update(now_micros_, applied_lsn()); }

void Store::set_log_keep_bytes(uint64_t bytes) {
  options_.log_keep_bytes = bytes;
  feed_log_->set_keep_bytes(bytes);
}

void Store::set_feed_sync(int64_t micros) {
  options_.feed_sync_micros = micros;
  feed_log_->set_sync_micros(micros);
}

bool Store::SweepFeeds() {
  bool more = false;
  const Result<std::optional<FeedLog::Trim>> trim =
      feed_log_->Sweep(now_micros_, applied_lsn(), &more);
  if (!trim.ok()) return false;  // readers hear of it
  if (!*trim || following_) return more;
  BeginMutation();
  mutation_.TrimFeed((*trim)->feed_id, (*trim)->bytes);
  return CommitMutation(nullptr, 0).ok() && more;
}

// More than PreImages takes down is refused by Reserve.
static_assert(PreImages::kBytesMax >= kRecordPayloadBytesMax);

void Store::TakePreImages(const Table& table, Resolved is_resolved) {
  if (!engine_->TellsOldOf(table)) return;
  pre_images_.Begin(now_micros_, PreImages::Taken::kTogether);
  has_pre_images_ = true;
  if (is_resolved == Resolved::kYes && resolver_->TakeOldOfLonePut(&pre_images_)) return;
  const Status taken = pre_images_.TakeAll(mutation_.Since(part_begin_), table);
  CELLAR_ASSERT(taken.ok());
}

void Store::ReserveMicros() {
  MutationReader reader(mutation_.Since(kMutationHeaderBytes));
  DecodedOp op;
  uint64_t changes = 0;
  while (reader.Next(&op)) {
    const bool is_change =
        op.op != MutationOp::kStep && op.op != MutationOp::kTable && op.op != MutationOp::kRow;
    changes += op.op == MutationOp::kPreImages ? op.number : is_change ? 1 : 0;
  }
  const int64_t micros = FeedMicrosOfStep(changes);
  if (micros > 1) journal_->SkipMicros(micros - 1);
}

}  // namespace cellar
