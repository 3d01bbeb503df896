// Keyspaces, tables and families: each change is checked, then one atomic, logged mutation.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/schema/column_set.h"
#include "engine/schema/type_change.h"
#include "store/requests.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

Status RequireName(std::string_view what, std::string_view name) {
  if (IsName(name)) return Status::Ok();
  return Status::Error(ErrorCode::kErr, "invalid " + std::string(what) + " name " + Quote(name) +
                                            ": it must match [A-Za-z0-9_][A-Za-z0-9_.-]{0,63}");
}

// What is said, or what an aggregate has where nothing is.
Result<std::optional<ValueType>> TypeOfNewFamily(const NewFamily& family) {
  const FoldKind fold = family.options.fold.value_or(FoldKind::kNone);
  std::optional<ValueType> type;
  if (family.options.type) type = *family.options.type;
  if (!type && fold != FoldKind::kNone && fold != FoldKind::kHll) type = ValueType::kI64;
  if (FoldTakesType(fold, type)) return type;
  CELLAR_ASSERT(type.has_value());
  return Status::Error(ErrorCode::kErr, "family " + Quote(family.name) + ": AGGREGATE " +
                                            std::string(FoldKindName(fold)) + " excludes TYPE " +
                                            std::string(ValueTypeName(*type)));
}

}  // namespace

// --- keyspaces

Status Store::CreateKeyspace(std::string_view name) {
  RETURN_IF_ERROR(RequireName("keyspace", name));
  if (engine_->KeyspaceExists(name)) {
    return Status::Error(ErrorCode::kBusyKey, "keyspace " + Quote(name) + " exists already");
  }
  BeginMutation();
  mutation_.CreateKeyspace(name);
  return CommitSchema(nullptr);
}

Status Store::DropKeyspace(std::string_view name) {
  if (!engine_->KeyspaceExists(name)) {
    return Status::Error(ErrorCode::kNoKeyspace, "no keyspace " + Quote(name));
  }
  if (IsBuiltInKeyspace(name)) {
    return Status::Error(ErrorCode::kErr, "keyspace " + Quote(name) + " cannot be dropped");
  }
  RETURN_IF_ERROR(CheckKeyspaceOpen(*engine_, name));
  BeginMutation();
  mutation_.DropKeyspace(name);
  return CommitSchema(nullptr);
}

// --- tables

Status Store::CheckNewTable(std::string_view keyspace, std::string_view name) const {
  RETURN_IF_ERROR(RequireName("table", name));
  RETURN_IF_ERROR(CheckKeyspaceOpen(*engine_, keyspace));
  if (engine_->feeds().Find(keyspace, name) != nullptr) {
    return Status::Error(ErrorCode::kBusyKey,
                         Quote(name) + " is a feed in keyspace " + Quote(keyspace));
  }
  if (engine_->FindTable(keyspace, name) == nullptr) return Status::Ok();
  return Status::Error(ErrorCode::kBusyKey,
                       "table " + Quote(name) + " exists already in keyspace " + Quote(keyspace));
}

Status Store::CreateTable(std::string_view keyspace, std::string_view name, const Order& key,
                          const std::vector<NewFamily>& families) {
  return CreateTable(keyspace, name,
                     {.key = key, .families = families, .placement = {}, .split_at = {}});
}

// Each set takes its share. A server alone keeps none, and takes no more than a set could.
static Status CheckNewTabletsFit(const Engine& engine, const CatalogKeeper* keeper, size_t count) {
  if (!engine.cluster().active())
    return count <= kTabletsMax
               ? Status::Ok()
               : Status::Error(ErrorCode::kTooLarge,
                               "a set has at most " + FormatUint64(kTabletsMax) + " tablets");
  if (keeper == nullptr || !keeper->has_others()) return CheckTabletsFit(engine, count);
  ASSIGN_OR_RETURN(const std::vector<uint64_t> sets, keeper->Deal(count));
  return CheckTabletsFit(engine, static_cast<size_t>(std::count(sets.begin(), sets.end(), 0U)));
}

// Everything is checked, down to the last family, before the op is made; the engine then only
// carries it out.
Status Store::CreateTable(std::string_view keyspace, std::string_view name, const NewTable& table) {
  RETURN_IF_ERROR(SplitTableName(&keyspace, &name));
  RETURN_IF_ERROR(CheckNewTable(keyspace, name));
  TableSchema schema;
  schema.key = table.key;
  schema.placement = table.placement;
  ASSIGN_OR_RETURN(const Tablets::Pointer tablets, TabletsOfNew(schema, table.split_at));
  RETURN_IF_ERROR(CheckNewTabletsFit(*engine_, has_other_sets() ? catalog_.keeper : nullptr,
                                     tablets->list().size()));
  if (table.placement.any()) RETURN_IF_ERROR(CheckFeature(Feature::kPlacement));
  uint64_t tree_id_next = engine_->tree_id_next();
  schema.groups.push_back({std::string(kDefaultGroup), tree_id_next++});
  // Ids in the order of names make a row of the table one run of its tree.
  std::vector<const NewFamily*> by_name;
  by_name.reserve(table.families.size());
  for (const NewFamily& family : table.families) by_name.push_back(&family);
  for (const NewFamily* family : by_name) RETURN_IF_ERROR(RequireName("family", family->name));
  std::stable_sort(by_name.begin(), by_name.end(),
                   [](const NewFamily* a, const NewFamily* b) { return a->name < b->name; });
  for (const NewFamily* family : by_name) {
    RETURN_IF_ERROR(AddFamilyTo(&schema, *family, &tree_id_next));
  }
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  const uint64_t id = engine_->table_id_next();
  BeginMutation();
  mutation_.CreateTable(keyspace, name, id, bytes);
  AssignNewTable(id, *tablets);
  RETURN_IF_ERROR(CommitSchema(nullptr));
  if (in_transaction_) {
    transaction_tables_.insert(id);
  } else {
    engine_->FindTableById(id)->set_last_lsn(schema_lsn_);
  }
  return Status::Ok();
}

// In a cluster each table has an owner from its first moment on.
void Store::AssignNewTable(uint64_t id, const Tablets& tablets) {
  if (!engine_->cluster().active()) return;
  std::vector<Tablet> own;
  if (!has_other_sets()) {
    own = tablets.list();
  } else {
    std::map<uint64_t, std::vector<Tablet>> dealt;
    const Result<std::vector<uint64_t>> sets = catalog_.keeper->Deal(tablets.list().size());
    CELLAR_ASSERT(sets.ok());  // it has been asked whether they fit
    CELLAR_ASSERT(sets->size() == tablets.list().size());
    for (size_t i = 0; i < sets->size(); ++i) dealt[(*sets)[i]].push_back(tablets.list()[i]);
    own = std::move(dealt[0]);
    dealt.erase(0);
    for (auto& [set, list] : dealt) {
      CatalogChange::Part part{.table_id = id, .set = set, .tablets = {}};
      Tablets::Make(std::move(list))->Encode(&part.tablets);
      catalog_.parts.push_back(std::move(part));
    }
  }
  std::string bytes;
  Tablets::Make(std::move(own))->Encode(&bytes);
  mutation_.AssignTablets(id, bytes);
}

// What each of several sets owned of the source, it owns of the copy: its rows are those.
void Store::AssignCopy(uint64_t id, const Table& source) {
  if (!engine_->cluster().active()) return;
  std::string bytes;
  const bool is_alone = engine_->cluster().set == 0 && !has_other_sets();
  const bool is_one = source.tablets() == nullptr || (is_alone && source.clamp() == nullptr);
  const Tablets::Pointer tablets = is_one ? Tablets::Whole() : source.shared_tablets();
  tablets->Encode(&bytes);
  mutation_.AssignTablets(id, bytes);
}

Status Store::DropTable(Table& table) {
  RETURN_IF_ERROR(CheckLive(table));
  BeginMutation();
  SnapshotIds ids = NextIds();
  RETURN_IF_ERROR(KeepDropped(table, &ids));
  mutation_.DropTable(table.id());
  return CommitSchema(nullptr);
}

// The groups get fresh trees and the old ones go in slices, so the cost does not depend on the
// table's size.
Status Store::TruncateTable(Table& table) {
  RETURN_IF_ERROR(CheckLive(table));
  const uint64_t id = table.id();
  BeginMutation();
  SnapshotIds ids = NextIds();
  RETURN_IF_ERROR(KeepDropped(table, &ids));
  mutation_.TruncateTable(id, ids.tree);
  RETURN_IF_ERROR(CommitSchema(nullptr));
  BeginIndexes(*engine_->FindTableById(id));
  if (in_transaction_) {
    transaction_tables_.insert(id);
  } else {
    engine_->FindTableById(id)->set_last_lsn(schema_lsn_);
  }
  return Status::Ok();
}

// Onto a name that is in use only if that may be overwritten: then the table there is dropped by
// the same record.
Status Store::RenameTable(Table& table, std::string_view keyspace, std::string_view name,
                          Overwrite overwrite) {
  RETURN_IF_ERROR(CheckLive(table));
  RETURN_IF_ERROR(SplitTableName(&keyspace, &name));
  if (engine_->feeds().Find(keyspace, name) != nullptr) return Status::WrongKind();
  Table* target = engine_->FindTable(keyspace, name);
  if (target == &table) {
    if (overwrite == Overwrite::kYes) return Status::Ok();
    return CheckNewTable(keyspace, name);
  }
  if (target == nullptr || overwrite == Overwrite::kNo) {
    RETURN_IF_ERROR(CheckNewTable(keyspace, name));
  }
  BeginMutation();
  SnapshotIds ids = NextIds();
  if (target != nullptr) {
    RETURN_IF_ERROR(CheckLive(*target));
    RETURN_IF_ERROR(KeepDropped(*target, &ids));
    mutation_.DropTable(target->id());
  }
  mutation_.RenameTable(table.id(), keyspace, name);
  return CommitSchema(&table);
}

// --- families

namespace {

// The place of the group of that name, which is made if there is none. A group without families
// gives its place away once there are as many as there may be.
uint32_t GroupOf(TableSchema* schema, const std::string& name, uint64_t* tree_id_next) {
  std::vector<GroupSchema>& groups = schema->groups;
  for (uint32_t at = 0; at < groups.size(); ++at) {
    if (groups[at].name == name) return at;
  }
  if (groups.size() <= kFamiliesMax) {
    groups.push_back({name, (*tree_id_next)++});
    return static_cast<uint32_t>(groups.size() - 1);
  }
  const auto has_family = [&](uint32_t group) {
    return std::any_of(schema->families.begin(), schema->families.end(),
                       [group](const FamilySchema& f) { return f.group == group; });
  };
  uint32_t at = 1;  // the default group stays
  while (at < groups.size() && has_family(at)) ++at;
  CELLAR_ASSERT(at < groups.size());
  groups[at].name = name;
  return at;
}

}  // namespace

// Everything is checked before *schema changes. A family goes into the group of its name, which is
// made if there is none; each group is a tree of its own. Families stand in the order of their
// names, while ids are given in the order of making and never again.
Status Store::AddFamilyTo(TableSchema* schema, const NewFamily& family,
                          uint64_t* tree_id_next) const {
  RETURN_IF_ERROR(RequireName("family", family.name));
  if (schema->FindFamily(family.name) != nullptr) {
    return Status::Error(ErrorCode::kBusyKey, "family " + Quote(family.name) + " exists already");
  }
  if (schema->families.size() >= kFamiliesMax) {
    return Status::Error(ErrorCode::kTooLarge,
                         "a table has at most " + FormatUint64(kFamiliesMax) + " families");
  }
  ASSIGN_OR_RETURN(const std::optional<ValueType> type, TypeOfNewFamily(family));
  RETURN_IF_ERROR(CheckFeatures(family.options));
  const std::string group_name = family.options.group.value_or(std::string(kDefaultGroup));
  RETURN_IF_ERROR(RequireName("group", group_name));
  FamilySchema added;
  added.name = family.name;
  added.id = schema->family_id_next++;
  added.group = GroupOf(schema, group_name, tree_id_next);
  added.type = type;
  added.fold = family.options.fold.value_or(FoldKind::kNone);
  added.bucket_ms = family.options.bucket_ms.value_or(0);
  added.compression = family.options.compression.value_or(Compression::kNever);
  if (family.options.order) added.order = *family.options.order;
  RETURN_IF_ERROR(AlterColumns(family.options.columns, &added));
  RETURN_IF_ERROR(CheckTypedColumnBytes(*schema, added));
  added.policy = AlterRetention(RetentionPolicy(), family.options);
  const auto at = std::lower_bound(
      schema->families.begin(), schema->families.end(), family.name,
      [](const FamilySchema& f, std::string_view wanted) { return f.name < wanted; });
  schema->families.insert(at, std::move(added));
  return Status::Ok();
}

Status Store::CheckFeatures(const FamilyOptions& options) const {
  if (options.compression && Packs(*options.compression))
    RETURN_IF_ERROR(CheckFeature(Feature::kCompression));
  const bool types =
      std::any_of(options.columns.begin(), options.columns.end(),
                  [](const ColumnTypeOption& column) { return column.type.has_value(); });
  const OtherCells others = options.other_cells.value_or(OtherCells::kRefuse);
  const bool rewrites = others == OtherCells::kConvert || others == OtherCells::kSkip;
  return types || rewrites ? CheckFeature(Feature::kColumnTypes) : Status::Ok();
}

Status Store::AddFamily(Table& table, const NewFamily& family) {
  RETURN_IF_ERROR(CheckLive(table));
  TableSchema schema = table.schema();
  uint64_t tree_id_next = engine_->tree_id_next();
  RETURN_IF_ERROR(AddFamilyTo(&schema, family, &tree_id_next));
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  BeginMutation();
  mutation_.SetSchema(table.id(), bytes);
  return CommitSchema(&table);
}

Status Store::DropFamily(Table& table, std::string_view name) {
  RETURN_IF_ERROR(CheckLive(table));
  TableSchema schema = table.schema();
  Result<const FamilySchema*> family = RequireFamily(schema, name);
  if (!family.ok()) return InTable(std::move(family).status(), table);
  for (const IndexSchema& index : schema.indexes) {
    if (!index.NamesFamily((*family)->id)) continue;
    return Status::Error(ErrorCode::kErr,
                         "family " + Quote(name) + " is part of index '" + index.name + "'");
  }
  schema.families.erase(schema.families.begin() + (*family - schema.families.data()));
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  BeginMutation();
  SnapshotIds ids = NextIds();
  RETURN_IF_ERROR(KeepDropped(table, &ids));
  mutation_.SetSchema(table.id(), bytes);
  RETURN_IF_ERROR(CommitSchema(&table));
  BeginIndexes(table);
  return Status::Ok();
}

}  // namespace cellar
