// See tablet_changes.h.
#include "store/tablet_changes.h"

#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/scans/scan_ranges.h"
#include "store/store.h"

namespace cellar {
namespace {

Status Moved(const Table& table, std::string_view row) {
  return Status::Error(ErrorCode::kTryAgain,
                       "row " + Quote(row) + " of table " + Quote(table.name()) + " has moved");
}

}  // namespace

Result<std::string> EncodeTabletBound(const Table& table, std::string_view text) {
  if (text.empty()) return std::string();
  ASSIGN_OR_RETURN(KeyBound bound,
                   table.schema().key.EncodeBound(text, BoundEdge::kInclusive, BoundSide::kMin));
  if (bound.bytes.size() > kTabletEndBytesMax) {
    return Status::Error(ErrorCode::kTooLarge,
                         "a tablet's end of " + FormatUint64(bound.bytes.size()) +
                             " bytes, the limit is " + FormatUint64(kTabletEndBytesMax));
  }
  return std::move(bound.bytes);
}

std::string TabletBoundText(const Table& table, std::string_view bound) {
  if (bound.empty()) return {};
  return DecodeFirstComponents(table.schema().key, bound).value_or(std::string(bound));
}

size_t TabletsOwned(const Engine& engine) {
  size_t count = 0;
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1)) {
    if (table->tablets() != nullptr) count += table->tablets()->list().size();
  }
  return count;
}

Status CheckTabletsFit(const Engine& engine, size_t more) {
  const size_t count = TabletsOwned(engine) + more;
  if (count <= kTabletsMax) return Status::Ok();
  return Status::Error(
      ErrorCode::kTooLarge,
      "a set of " + FormatUint64(count) + " tablets, the limit is " + FormatUint64(kTabletsMax));
}

Status TabletChanges::RequireLive(const Table& table) const {
  CELLAR_ASSERT(store_.engine_->cluster().active());
  return Store::CheckLive(table);
}

Status TabletChanges::Init(uint64_t cluster_id) {
  CELLAR_ASSERT(cluster_id > 0);
  const Engine& engine = *store_.engine_;
  if (engine.cluster().active()) {
    return Status::Error(ErrorCode::kErr,
                         "this set is set " + FormatUint64(engine.cluster().set) + " of a cluster");
  }
  RETURN_IF_ERROR(store_.CheckFeature(Feature::kTablets));
  TabletsByTable tables;
  for (const Table* table = engine.FindTableFrom(0); table != nullptr;
       table = engine.FindTableFrom(table->id() + 1)) {
    tables.emplace(table->id(), Tablets::Whole());
  }
  if (tables.size() > kTabletsMax) {
    return Status::Error(ErrorCode::kTooLarge, FormatUint64(tables.size()) +
                                                   " tables, a set has at most " +
                                                   FormatUint64(kTabletsMax) + " tablets");
  }
  std::string state;
  EncodeClusterState({.cluster_id = cluster_id}, tables, &state);
  store_.BeginMutation();
  store_.mutation_.SetTablets(state);
  return store_.CommitSchema(nullptr);
}

Status TabletChanges::End() {
  CELLAR_ASSERT(store_.engine_->cluster().active());
  std::string state;
  EncodeClusterState({}, {}, &state);
  store_.BeginMutation();
  store_.mutation_.SetTablets(state);
  return store_.CommitSchema(nullptr);
}

Status TabletChanges::Assign(Table& table, std::vector<Tablet> tablets) {
  RETURN_IF_ERROR(RequireLive(table));
  const size_t before = table.tablets()->list().size();
  if (tablets.size() > before)
    RETURN_IF_ERROR(CheckTabletsFit(*store_.engine_, tablets.size() - before));
  const Tablets::Pointer next = Tablets::Make(std::move(tablets));
  if (next == nullptr) return Status::Error(ErrorCode::kErr, "tablets ascend without overlap");
  std::string bytes;
  next->Encode(&bytes);
  store_.BeginMutation();
  store_.mutation_.AssignTablets(table.id(), bytes);
  return store_.CommitSchema(nullptr);
}

Status TabletChanges::Split(Table& table, std::span<const std::string_view> rows) {
  RETURN_IF_ERROR(RequireLive(table));
  RETURN_IF_ERROR(CheckTabletsFit(*store_.engine_, rows.size()));
  Tablets::Pointer tablets = table.shared_tablets();
  store_.BeginMutation();
  for (const std::string_view row : rows) {
    ASSIGN_OR_RETURN(const std::string bound, EncodeTabletBound(table, row));
    const Tablet* const tablet = tablets->Find(bound);
    if (tablet == nullptr) return Moved(table, row);
    if (tablet->begin == bound)
      return Status::Error(ErrorCode::kErr, "the tablet ends there already");
    tablets = tablets->Split(bound);
    store_.mutation_.SplitTablet(table.id(), bound);
  }
  return store_.CommitSchema(nullptr);
}

Status TabletChanges::Merge(Table& table, std::string_view row) {
  RETURN_IF_ERROR(RequireLive(table));
  ASSIGN_OR_RETURN(const std::string bound, EncodeTabletBound(table, row));
  const Tablet* const tablet = table.tablets()->Find(bound);
  if (tablet == nullptr) return Moved(table, row);
  if (tablet->end.empty()) {
    return Status::Error(ErrorCode::kErr,
                         "the tablet is the last one of table " + Quote(table.name()));
  }
  if (table.tablets()->Merge(bound) == nullptr) {
    return Status::Error(ErrorCode::kErr, "the next tablet is another set's: TABLET MOVE first");
  }
  store_.BeginMutation();
  store_.mutation_.MergeTablets(table.id(), bound);
  return store_.CommitSchema(nullptr);
}

}  // namespace cellar
