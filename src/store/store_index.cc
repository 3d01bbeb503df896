// Indexes: creating and dropping them, building them in slices, and keeping them at the turn's
// time.
#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/os/log.h"
#include "base/text/number.h"
#include "base/text/quote.h"
#include "engine/scans/index_scan.h"
#include "engine/scans/near_search.h"
#include "engine/scans/table_scan.h"
#include "engine/schema/column_set.h"
#include "store/requests.h"
#include "store/store.h"
#include "store/tablet_changes.h"

namespace cellar {
namespace {

Result<IndexColumn> CheckIndexColumn(const TableSchema& schema, const NewIndexColumn& column) {
  ASSIGN_OR_RETURN(const FamilySchema* const family, RequireFamily(schema, column.family));
  if (family->is_hll()) {
    return Status::Error(ErrorCode::kErr, "family " + Quote(column.family) +
                                              " is an aggregate (hll), which no index can hold");
  }
  IndexColumn checked;
  checked.family_id = family->id;
  checked.whole_family = !column.qualifier.has_value();
  checked.type_is_given = column.type.has_value();
  checked.descending = column.descending;
  if (column.qualifier) {
    RETURN_IF_ERROR(EncodeQualifier(*family, *column.qualifier, &checked.qualifier));
  }
  const std::optional<ValueType> declared = TypeOf(*family, checked.qualifier);
  checked.type = column.type.value_or(declared.value_or(ValueType::kBytes));
  return checked;
}

}  // namespace

// The schema is logged with an index that is being built; it is filled in slices, and its state
// becomes ready by another record (BuildIndexes).
Status Store::CreateIndex(Table& table, const NewIndex& index) {
  RETURN_IF_ERROR(CheckLive(table));
  TableSchema schema = table.schema();
  IndexSchema added;
  added.name = index.name;
  added.unique = index.unique;
  for (const NewIndexColumn& column : index.on) {
    Result<IndexColumn> checked = CheckIndexColumn(schema, column);
    if (!checked.ok()) return InTable(std::move(checked).status(), table);
    added.on.push_back(*std::move(checked));
  }
  for (const NewIndexColumn& column : index.include) {
    Result<IndexColumn> checked = CheckIndexColumn(schema, column);
    if (!checked.ok()) return InTable(std::move(checked).status(), table);
    added.include.push_back(*std::move(checked));
  }
  if (schema.FindIndex(index.name) != nullptr) {
    return Status::Error(
        ErrorCode::kBusyKey,
        "index " + Quote(index.name) + " exists already on table " + Quote(table.name()));
  }
  if (schema.indexes.size() >= kIndexesMax) {
    return Status::Error(ErrorCode::kTooLarge,
                         "a table has at most " + FormatUint64(kIndexesMax) + " indexes");
  }
  const bool made_whole = index.unique && !schema.placement.whole && engine_->cluster().active();
  if (made_whole) {
    RETURN_IF_ERROR(CheckMayBecomeWhole(table, catalog_.keeper));
    RETURN_IF_ERROR(CheckFeature(Feature::kPlacement));
    schema.placement.whole = true;
  }
  added.id = schema.index_id_next++;
  const auto at = std::lower_bound(
      schema.indexes.begin(), schema.indexes.end(), index.name,
      [](const IndexSchema& other, std::string_view name) { return other.name < name; });
  schema.indexes.insert(at, std::move(added));
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  BeginMutation();
  mutation_.SetSchema(table.id(), bytes);
  RETURN_IF_ERROR(CommitSchema(&table));
  if (made_whole) {
    Log(LogSeverity::kNotice, "Table " + Quote(table.name()) + " is WHOLE from now on: its index " +
                                  Quote(index.name) + " is UNIQUE");
  }
  BeginIndexes(table);
  return Status::Ok();
}

Status Store::DropIndex(Table& table, std::string_view name) {
  RETURN_IF_ERROR(CheckLive(table));
  TableSchema schema = table.schema();
  const auto found = std::find_if(schema.indexes.begin(), schema.indexes.end(),
                                  [name](const IndexSchema& index) { return index.name == name; });
  if (found == schema.indexes.end()) {
    return Status::Error(ErrorCode::kNoIndex,
                         "no index " + Quote(name) + " on table " + Quote(table.name()));
  }
  schema.indexes.erase(found);
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  BeginMutation();
  mutation_.SetSchema(table.id(), bytes);
  return CommitSchema(&table);
}

// Why the index cannot hold what it should, if building it has found that. One that is ready is
// built again after a change of retention, which may show old values: those may be equal to those
// of other rows, as the passing of time may make them, but not too large for it. At the start
// sizes are not judged again: a clock that is behind would see what has expired.
static Status BuildFailure(const IndexSchema& schema, const Index& index) {
  if (!schema.judged && !index.too_large_row().ok()) return index.too_large_row();
  return schema.state == IndexState::kBuilding ? index.not_unique_rows() : Status::Ok();
}

// Between two looks at the clock.
constexpr uint64_t kIndexRowsPerPiece{64};

// Two parts. First the building, in pieces, as long as the turn has time for it. Then each index
// that is complete, or cannot become so, gets its final state by a record of its own: a snapshot or
// a follower must not take one for ready that is not.
bool Store::BuildIndexes(Table& table, uint64_t rows_max, int64_t micros_max) {
  IndexSet* indexes = table.indexes();
  if (indexes == nullptr) return true;
  indexes->SetTime(now_micros_);
  bool done = indexes->built();
  int64_t piece_begin = clock_.MonotonicMicros();
  while (!done && rows_max > 0 && index_micros_spent_ < micros_max) {
    const uint64_t rows = std::min(rows_max, kIndexRowsPerPiece);
    done = indexes->Build(rows);
    if (rows_max != kUnlimited) rows_max -= rows;
    const int64_t piece_end = clock_.MonotonicMicros();
    index_micros_spent_ += piece_end - std::exchange(piece_begin, piece_end);
  }
  const auto finished = [indexes](const IndexSchema& index) {
    const Index* built = indexes->Find(index.id);
    if (built == nullptr) return false;
    if (!BuildFailure(index, *built).ok()) return true;
    return !index.judged && built->built();
  };
  const TableSchema& now = table.schema();
  if (std::none_of(now.indexes.begin(), now.indexes.end(), finished)) return done;
  TableSchema schema = now;
  std::string failures;
  for (IndexSchema& index : schema.indexes) {
    if (!finished(index)) continue;
    index.failure = BuildFailure(index, *indexes->Find(index.id));
    index.state = index.failure.ok() ? IndexState::kReady : IndexState::kFailed;
    index.judged = index.failure.ok();
    if (index.failure.ok()) continue;
    failures += "index '" + index.name + "' of table '" + table.keyspace() + "/" + table.name() +
                "' could not be built and holds nothing: " + index.failure.ToString() + "; ";
  }
  std::string bytes;
  EncodeTableSchema(schema, &bytes);
  BeginMutation();
  mutation_.SetSchema(table.id(), bytes);
  // A full disk delays it: the index goes on being built, and the sweeper tries again.
  const bool committed = CommitLocalSchema(&table).ok();
  if (!committed) return false;
  if (!failures.empty()) {
    Log(LogSeverity::kWarning, failures + "INDEX INFO and scans of it say the same");
  }
  return done;
}

uint64_t Store::IndexRowsAtOnce(const Table& table) const {
  // What this transaction has begun is built in one go, since its next commands may need it.
  const bool own = in_transaction_ && transaction_indexed_.contains(table.id());
  return own ? kUnlimited : kIndexRowsAtOnce;
}

void Store::BeginIndexes(Table& table) {
  PrepareIndexes(table);
  if (in_transaction_ && table.has_indexes()) transaction_indexed_.insert(table.id());
}

void Store::PrepareIndexes(Table& table) {
  if (!table.has_indexes()) return;
  if (table.frozen()) {
    if (!table.indexes()->built()) (void)table.indexes()->Build(kIndexRowsAtOnce);
    return;
  }
  table.SetIndexTime(now_micros_);
  const std::vector<IndexSchema>& all = table.schema().indexes;
  const bool complete = std::all_of(all.begin(), all.end(), [&table](const IndexSchema& index) {
    if (index.state != IndexState::kReady) return index.state == IndexState::kFailed;
    return index.judged && table.indexes()->Find(index.id)->built();
  });
  if (complete) [[likely]]
    return;
  (void)BuildIndexes(table, IndexRowsAtOnce(table), kIndexMicrosAtOnce);
}

void Store::PrepareIndexesForWrite(Table& table) {
  if (!table.has_indexes()) return;
  table.SetIndexTime(now_micros_);
  if (!table.indexes()->MustBeWhole()) [[likely]]
    return;
  if (IndexRowsAtOnce(table) == kUnlimited)
    (void)BuildIndexes(table, kUnlimited, kIndexMicrosUnlimited);
  // What the sweeper has changed is no reason to refuse this write.
  table.indexes()->ForgetRefusals();
}

bool Store::SweepIndexes(uint64_t rows_max, int64_t micros_max) {
  bool done = true;
  for (const std::string& keyspace : Keyspaces()) {
    for (Table* table : Tables(keyspace)) {
      if (!table->has_indexes()) continue;
      table->SetIndexTime(now_micros_);
      if (done) done = BuildIndexes(*table, rows_max, micros_max);
    }
  }
  // What a snapshot found not built here is built in it.
  for (Table* table : engine_->snapshots().Tables()) {
    const bool wants = done && table->has_indexes() && !table->indexes()->built();
    if (wants) done = table->indexes()->Build(std::min(rows_max, kIndexRowsAtOnce)) && done;
    if (wants && rows_max == kUnlimited) done = table->indexes()->Build(kUnlimited);
  }
  return done;
}

Status Store::VerifyIndexes() {
  std::vector<Table*> tables = engine_->snapshots().Tables();
  for (const std::string& keyspace : Keyspaces()) {
    for (Table* table : Tables(keyspace)) tables.push_back(table);
  }
  for (Table* table : tables) {
    if (!table->has_indexes()) continue;
    for (const IndexSchema& schema : table->schema().indexes) {
      Index* index = table->indexes()->Find(schema.id);
      if (index == nullptr || !index->built() || index->AgreesWithTable()) continue;
      return Status::Error(ErrorCode::kErr, "index " + Quote(schema.name) +
                                                " disagrees with its table " +
                                                Quote(table->shown_name()));
    }
  }
  return Status::Ok();
}

Result<std::unique_ptr<NearSearch>> Store::NearIndex(const Table& table, std::string_view name,
                                                     const std::vector<std::string_view>& values,
                                                     const FamilyAccess* access) {
  PrepareIndexes(engine_->Mutable(table));
  auto view = std::make_unique<ReadView>(table, now_micros_);
  if (access != nullptr) view->Restrict(*access);
  Result<std::unique_ptr<NearSearch>> search =
      NearEntrySearch::Create(std::move(view), name, values);
  if (!search.ok()) return InTable(std::move(search).status(), table);
  return search;
}

Result<IndexInfo> Store::DescribeIndex(const Table& table, std::string_view name) {
  PrepareIndexes(engine_->Mutable(table));
  const IndexSchema* schema = table.schema().FindIndex(name);
  if (schema == nullptr) {
    return Status::Error(ErrorCode::kNoIndex,
                         "no index " + Quote(name) + " on table " + Quote(table.name()));
  }
  IndexInfo info;
  info.schema = schema;
  const Index* index = table.has_indexes() ? table.indexes()->Find(schema->id) : nullptr;
  if (schema->state == IndexState::kFailed) {
    info.state = "failed";
    info.progress = 1;
    return info;
  }
  CELLAR_ASSERT(index != nullptr);
  info.state = schema->state == IndexState::kReady && index->built() ? "ready" : "building";
  info.progress = info.state == "ready" ? 1 : std::min(0.99, index->progress());
  info.entries = index->entry_count();
  info.rows_left_out = index->rows_left_out();
  info.entries_are_live = info.state != "ready" || index->entries_are_live();
  info.bytes = index->memory_bytes();
  return info;
}

}  // namespace cellar
