// See tablet_changes.h.
#include "store/tablet_changes.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/scans/scan_ranges.h"
#include "engine/state/owned_tablets.h"
#include "store/catalog_changes.h"
#include "store/move_changes.h"
#include "store/requests.h"
#include "store/store.h"

namespace cellar {
namespace {

Status Moved(const Table& table, std::string_view row) {
  return Status::Error(ErrorCode::kTryAgain,
                       "row " + Quote(row) + " of table " + Quote(table.name()) + " has moved");
}

Status BecameAnother() {
  return Status::Error(ErrorCode::kErr, "the tablet is another one by now");
}

Status EndsThere() { return Status::Error(ErrorCode::kErr, "the tablet ends there already"); }

// Each op makes all of a table's tablets anew: of many bounds what comes of them is logged instead.
constexpr size_t kSplitOpsMax{16};

// REQUIRES: the bounds ascend, each inside of a tablet.
Tablets::Pointer CutAll(const std::vector<Tablet>& tablets, std::vector<std::string> bounds) {
  std::vector<Tablet> pieces;
  pieces.reserve(tablets.size() + bounds.size());
  auto bound = bounds.begin();
  for (const Tablet& tablet : tablets) {
    pieces.push_back(tablet);
    for (; bound != bounds.end() && tablet.Contains(*bound); ++bound) {
      pieces.back().end = *bound;
      pieces.push_back({.begin = std::move(*bound), .end = tablet.end, .epoch = tablet.epoch});
    }
  }
  CELLAR_ASSERT(bound == bounds.end());
  return Tablets::Make(std::move(pieces));
}

Status CheckColocate(const Order& key, const Placement& placement) {
  const size_t components = key.components().size();
  if (placement.colocate <= components) return Status::Ok();
  return Status::Error(ErrorCode::kErr, "COLOCATE names more key components than there are: " +
                                            FormatUint64(components));
}

// Of this set or another one, as a whole.
bool IsOneTablet(const Table& table, const CatalogKeeper* keeper) {
  const Tablets& own = *table.tablets();
  if (own.list().size() == 1) return own.owns_all();
  return own.list().empty() && keeper != nullptr && keeper->IsWholeElsewhere(table.id());
}

}  // namespace

bool HasUnique(const TableSchema& schema) {
  return std::any_of(schema.indexes.begin(), schema.indexes.end(),
                     [](const IndexSchema& index) { return index.unique; });
}

bool MayEndThere(const TableSchema& schema, std::string_view bound) {
  return bound.empty() || (!schema.placement.whole && CheckGroups(schema, bound).ok());
}

Result<std::vector<Tablet>> JoinedTablets(const Engine& engine, const Table& table,
                                          const TableSchema& schema) {
  std::vector<Tablet> joined;
  const Tablet* before = nullptr;
  for (const Tablet& tablet : table.tablets()->list()) {
    if (MayEndThere(schema, tablet.begin)) {
      joined.push_back(tablet);
    } else {
      if (joined.empty() || joined.back().end != tablet.begin)
        return Moved(table, TabletBoundText(table, tablet.begin));
      RETURN_IF_ERROR(CheckRests(engine, table, *before));
      RETURN_IF_ERROR(CheckRests(engine, table, tablet));
      joined.back().end = tablet.end;
      joined.back().epoch = std::max(joined.back().epoch, tablet.epoch);
    }
    before = &tablet;
  }
  return joined;
}

Status ClusterKeeps() {
  return Status::Error(ErrorCode::kErr, "keyspace " + Quote(kClusterKeyspace) +
                                            " is the cluster's own, which alone changes it");
}

Status CheckKeyspaceOpen(const Engine& engine, std::string_view keyspace) {
  const bool kept = keyspace == kClusterKeyspace && engine.cluster().active();
  return kept ? ClusterKeeps() : Status::Ok();
}

Result<std::string> EncodeTabletBound(const TableSchema& schema, std::string_view text) {
  if (text.empty()) return std::string();
  ASSIGN_OR_RETURN(KeyBound bound,
                   schema.key.EncodeBound(text, BoundEdge::kInclusive, BoundSide::kMin));
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

std::string TabletRangeText(const Table* table, std::string_view begin, std::string_view end) {
  const auto bound = [table](std::string_view encoded) {
    return Quote(table == nullptr ? std::string(encoded) : TabletBoundText(*table, encoded));
  };
  return (begin.empty() ? "from the front" : "from " + bound(begin)) +
         (end.empty() ? " to the end" : " to " + bound(end));
}

Status CheckGroups(const TableSchema& schema, std::string_view bound) {
  const uint32_t components = schema.placement.colocate;
  if (components == 0) return Status::Ok();
  const size_t group_bytes = schema.key.ComponentsSize(bound, components);
  if (group_bytes == 0 || group_bytes == bound.size()) return Status::Ok();
  return Status::Error(ErrorCode::kErr, "rows of one group must stay together: the first " +
                                            FormatUint64(components) + " key components");
}

Result<Tablets::Pointer> TabletsOfNew(const TableSchema& schema,
                                      std::span<const std::string_view> split_at) {
  RETURN_IF_ERROR(CheckColocate(schema.key, schema.placement));
  std::vector<std::string> bounds(1);
  for (const std::string_view row : split_at) {
    ASSIGN_OR_RETURN(std::string bound, EncodeTabletBound(schema, row));
    RETURN_IF_ERROR(CheckGroups(schema, bound));
    bounds.push_back(std::move(bound));
  }
  if (schema.placement.whole && !split_at.empty())
    return Status::Error(ErrorCode::kErr, "a WHOLE table is not split");
  std::sort(bounds.begin(), bounds.end());
  std::vector<Tablet> tablets;
  tablets.reserve(bounds.size());
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (i > 0 && bounds[i] == bounds[i - 1]) return EndsThere();
    tablets.push_back({.begin = bounds[i], .end = i + 1 < bounds.size() ? bounds[i + 1] : ""});
  }
  return Tablets::Make(std::move(tablets));
}

Status CheckMayBecomeWhole(const Table& table, const CatalogKeeper* keeper) {
  if (IsOneTablet(table, keeper)) return Status::Ok();
  return Status::Error(ErrorCode::kErr, "a UNIQUE index needs TABLE ALTER " + table.name() +
                                            " WHOLE, or COLOCATE by its first columns");
}

Status CheckHasTablets(const Table& table) {
  if (!table.frozen()) return Status::Ok();
  return Status::Error(ErrorCode::kErr,
                       Quote(table.shown_name()) + " is a snapshot, which has no tablets");
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
  std::vector<const Table*> wholes;
  for (const auto& [id, tablets] : tables) {
    const TableSchema& schema = engine.FindTableById(id)->schema();
    if (HasUnique(schema) && !schema.placement.whole) wholes.push_back(engine.FindTableById(id));
  }
  if (!wholes.empty()) RETURN_IF_ERROR(store_.CheckFeature(Feature::kPlacement));
  std::string state;
  EncodeClusterState({.cluster_id = cluster_id, .set = 0, .catalog = 1}, tables, &state);
  store_.BeginMutation();
  store_.mutation_.SetTablets(state);
  for (const Table* table : wholes) {
    TableSchema schema = table->schema();
    schema.placement.whole = true;
    std::string bytes;
    EncodeTableSchema(schema, &bytes);
    store_.mutation_.SetSchema(table->id(), bytes);
  }
  return store_.CommitLocalSchema(nullptr);
}

Status TabletChanges::End() {
  CELLAR_ASSERT(store_.engine_->cluster().active());
  std::string state;
  EncodeClusterState({}, {}, &state);
  store_.BeginMutation();
  store_.mutation_.SetTablets(state);
  return store_.CommitLocalSchema(nullptr);
}

Status TabletChanges::OpenAs(uint64_t set_id, const std::map<uint64_t, MoveEnd>& ended) {
  CELLAR_ASSERT(store_.engine_->cluster().active());
  CELLAR_ASSERT(set_id != 0);
  RETURN_IF_ERROR(store_.CheckFeature(Feature::kCuts));
  store_.BeginMutation();
  store_.mutation_.Move(MutationOp::kOpenAs, 0, EncodeOpenAs(set_id));
  const ClusterState& cluster = store_.engine_->cluster();
  // What a recipient has of a tablet may be of records that this set has lost, and whose numbers
  // others get by now.
  const bool comes_back = cluster.opened_as != 0 && cluster.opened_as != set_id;
  for (const auto& [job, move] : cluster.moves.out())
    if (comes_back && !move.given) store_.mutation_.Move(MutationOp::kMoveCancel, job, {});
  for (const auto& [job, end] : ended) {
    const MoveOut* const out = cluster.moves.FindOut(job);
    if (comes_back && out != nullptr && out->given && end == MoveEnd::kMoved)
      store_.mutation_.Move(MutationOp::kMoveDone, job, {});
    if (comes_back && cluster.moves.FindIn(job) != nullptr)
      store_.mutation_.Move(MutationOp::kMoveCancel, job, {});
  }
  return store_.CommitLocalSchema(nullptr);
}

Status TabletChanges::Settle(const TabletMoves& moves, const TabletsByTable& tablets) {
  const Engine& engine = *store_.engine_;
  CELLAR_ASSERT(engine.cluster().active());
  CELLAR_ASSERT(!store_.in_transaction_);
  ClusterState state = engine.cluster();
  state.moves = moves;
  TabletsByTable all = OwnedTabletsOf(engine);
  for (const auto& [id, own] : tablets) {
    if (engine.FindTableById(id) == nullptr)
      return Status::Error(ErrorCode::kCorruption, "tablets of a table that is not there");
    all[id] = own;
  }
  std::string bytes;
  EncodeClusterState(state, all, &bytes);
  store_.BeginMutation();
  store_.mutation_.SetTablets(bytes);
  return store_.CommitLocalSchema(nullptr);
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
  return store_.CommitLocalSchema(nullptr);
}

Status TabletChanges::Split(Table& table, std::span<const std::string_view> rows) {
  RETURN_IF_ERROR(RequireLive(table));
  if (table.schema().placement.whole) {
    return Status::Error(ErrorCode::kErr, "table " + table.name() + " is WHOLE: TABLE ALTER " +
                                              table.name() + " SPREAD");
  }
  RETURN_IF_ERROR(CheckTabletsFit(*store_.engine_, rows.size()));
  std::vector<std::string> bounds;
  bounds.reserve(rows.size());
  for (const std::string_view row : rows) {
    ASSIGN_OR_RETURN(std::string bound, EncodeTabletBound(table.schema(), row));
    RETURN_IF_ERROR(CheckGroups(table.schema(), bound));
    const Tablet* const tablet = table.tablets()->Find(bound);
    if (tablet == nullptr) return Moved(table, row);
    if (tablet->begin == bound) return EndsThere();
    RETURN_IF_ERROR(CheckRests(*store_.engine_, table, *tablet));
    bounds.push_back(std::move(bound));
  }
  std::sort(bounds.begin(), bounds.end());
  if (std::adjacent_find(bounds.begin(), bounds.end()) != bounds.end()) return EndsThere();
  store_.BeginMutation();
  if (bounds.size() <= kSplitOpsMax) {
    for (const std::string& bound : bounds) store_.mutation_.SplitTablet(table.id(), bound);
    return store_.CommitLocalSchema(nullptr);
  }
  std::string bytes;
  CutAll(table.tablets()->list(), bounds)->Encode(&bytes);
  store_.mutation_.AssignTablets(table.id(), bytes);
  return store_.CommitLocalSchema(nullptr);
}

Status TabletChanges::SplitAt(Table& table, const Tablet& tablet, std::string_view bound) {
  RETURN_IF_ERROR(RequireLive(table));
  RETURN_IF_ERROR(CheckTabletsFit(*store_.engine_, 1));
  RETURN_IF_ERROR(CheckGroups(table.schema(), bound));
  const Tablet* const owned = table.tablets()->Find(tablet.begin);
  const bool may = owned != nullptr && *owned == tablet && !table.schema().placement.whole &&
                   bound > tablet.begin && tablet.Contains(bound) &&
                   bound.size() <= kTabletEndBytesMax && IsBoundOf(table.schema().key, bound);
  if (!may) return BecameAnother();
  RETURN_IF_ERROR(CheckRests(*store_.engine_, table, tablet));
  store_.BeginMutation();
  store_.mutation_.SplitTablet(table.id(), bound);
  return store_.CommitLocalSchema(nullptr);
}

Status TabletChanges::Merge(Table& table, std::string_view row) {
  RETURN_IF_ERROR(RequireLive(table));
  ASSIGN_OR_RETURN(const std::string bound, EncodeTabletBound(table.schema(), row));
  const Tablet* const tablet = table.tablets()->Find(bound);
  if (tablet == nullptr) return Moved(table, row);
  RETURN_IF_ERROR(CheckRests(*store_.engine_, table, *tablet));
  if (tablet->end.empty()) {
    return Status::Error(ErrorCode::kErr,
                         "the tablet is the last one of table " + Quote(table.name()));
  }
  if (table.tablets()->Merge(bound) == nullptr) {
    return Status::Error(ErrorCode::kErr, "the next tablet is another set's: TABLET MOVE first");
  }
  RETURN_IF_ERROR(CheckRests(*store_.engine_, table, *table.tablets()->Find(tablet->end)));
  store_.BeginMutation();
  store_.mutation_.MergeTablets(table.id(), bound);
  return store_.CommitLocalSchema(nullptr);
}

Status TabletChanges::MergeAt(Table& table, const Tablet& tablet, std::string_view end) {
  RETURN_IF_ERROR(RequireLive(table));
  const Tablet* const owned = table.tablets()->Find(tablet.begin);
  const bool is_last = tablet.end.empty();
  const Tablet* const next = is_last ? nullptr : table.tablets()->Find(tablet.end);
  const bool may = owned != nullptr && *owned == tablet && next != nullptr &&
                   next->begin == tablet.end && next->end == end;
  if (!may) return BecameAnother();
  RETURN_IF_ERROR(CheckRests(*store_.engine_, table, tablet));
  RETURN_IF_ERROR(CheckRests(*store_.engine_, table, *next));
  store_.BeginMutation();
  store_.mutation_.MergeTablets(table.id(), tablet.begin);
  return store_.CommitLocalSchema(nullptr);
}

Status TabletChanges::Place(Table& table, const Placement& placement) {
  RETURN_IF_ERROR(Store::CheckLive(table));
  const bool in_cluster = store_.engine_->cluster().active();
  TableSchema schema = table.schema();
  RETURN_IF_ERROR(CheckColocate(schema.key, placement));
  if (in_cluster && HasUnique(schema) && !placement.whole) {
    return Status::Error(ErrorCode::kErr,
                         "table " + Quote(table.name()) + " has a UNIQUE index, which needs WHOLE");
  }
  if (schema.placement == placement) return Status::Ok();
  RETURN_IF_ERROR(store_.CheckFeature(Feature::kPlacement));
  // Where the tablets of other sets end, they alone may change.
  const bool binds = placement.whole || placement.colocate != 0;
  if (store_.has_other_sets() && binds && !table.tablets()->owns_all() &&
      !IsOneTablet(table, store_.catalog_.keeper)) {
    return Status::Error(
        ErrorCode::kCrossSet,
        "table " + Quote(table.name()) +
            " has rows on other sets: TABLET MOVE its tablets to set 0 first, or say COLOCATE "
            "and WHOLE when it is created; nothing was done");
  }
  schema.placement = placement;
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  std::string joined_bytes;
  if (in_cluster) {
    ASSIGN_OR_RETURN(const std::vector<Tablet> joined,
                     JoinedTablets(*store_.engine_, table, schema));
    if (joined.size() < table.tablets()->list().size())
      Tablets::Make(joined)->Encode(&joined_bytes);
  }
  store_.BeginMutation();
  store_.mutation_.SetSchema(table.id(), bytes);
  if (!joined_bytes.empty()) store_.mutation_.AssignTablets(table.id(), joined_bytes);
  return store_.CommitSchema(&table);
}

}  // namespace cellar
