// FAMILY ALTER: a change of a family too large for one turn.
//
//   look      are there live cells of another type than the new one, and which of them CONVERT could
//             not rewrite (type_look.h)? Only where types are said, and not with KEEP or SKIP. What
//             is refused is refused here, before anything has changed
//   reclaim   what the old policy has dropped goes, so that no looser policy brings it back
//   alter     the schema is the new one: one record, in the turn in which the look ended once more.
//             From here on nobody can put a cell of another type
//   rebuild   UNIQUE indexes that read the family, if the policy has changed: until they are whole,
//             what would change their entries is refused
//   convert   CONVERT: cells of another type are rewritten in their place (cell_conversion.h).
//             Readers see a cell as of its old type or of its new one, never neither.
//             Where it ends half way (the client leaves, the process ends) what is there is what
//             KEEP would have left, in part converted
//
// Others may alter the family meanwhile. A look begins anew if other cells are asked for then; a
// conversion ends with an error if what it wants is no longer what the family has.
//
// Where rows lie on other sets of a cluster, those look and convert, too (type_part.h).
#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/text/quote.h"
#include "engine/request/row_update.h"
#include "engine/schema/column_set.h"
#include "engine/schema/type_change.h"
#include "store/cell_conversion.h"
#include "store/policy_changes.h"
#include "store/requests.h"
#include "store/sliced_change.h"
#include "store/store.h"
#include "store/type_look.h"
#include "store/type_part.h"

namespace cellar {

// An index whose ON types come from the family, or from COLUMN, would go on with the old one, and
// miss all that is written from then on.
static Status CheckTypeChange(const TableSchema& schema, const FamilySchema& family,
                              const FamilySchema& after) {
  for (const IndexSchema& index : schema.indexes) {
    for (const IndexColumn& column : index.on) {
      if (!IndexSchema::TakesTypeOf(column, family.id)) continue;
      if (TypeOf(family, column.qualifier) == TypeOf(after, column.qualifier)) continue;
      IndexColumn named = column;
      named.descending = false;
      const bool is_columns = family.FindColumn(column.qualifier) != nullptr ||
                              after.FindColumn(column.qualifier) != nullptr;
      const std::string what = is_columns
                                   ? "type of column " + Quote(IndexColumnText(schema, named))
                                   : "TYPE of family " + Quote(family.name);
      return Status::Error(ErrorCode::kErr, "the " + what + " is that of an ON column of index '" +
                                                index.name + "', which was created without AS");
    }
  }
  return Status::Ok();
}

Status AlterTypes(const TableSchema& schema, const FamilySchema& family,
                  const FamilyOptions& options, FamilySchema* after) {
  *after = family;
  if (options.type) after->type = *options.type;
  RETURN_IF_ERROR(AlterColumns(options.columns, after));
  RETURN_IF_ERROR(CheckTypedColumnBytes(schema, *after));
  return CheckTypeChange(schema, family, *after);
}

class FamilyAlter final : public SlicedChange {
 public:
  // A change is one of all sets, or settles what this one was told.
  enum class Of : uint8_t { kAllSets, kOwnSet };
  FamilyAlter(Store& store, const Table& table, const FamilySchema& family, FamilyOptions options,
              std::unique_ptr<FamilyAccess> rights, Of of = Of::kAllSets)
      : store_(store),
        table_id_(table.id()),
        lineage_(store.engine_->lineage()),
        family_id_(family.id),
        of_(of),
        options_(std::move(options)),
        rights_(std::move(rights)),
        others_(options_.other_cells.value_or(OtherCells::kRefuse)),
        look_(family.id,
              others_ == OtherCells::kConvert ? TypeLook::Asks::kStuck : TypeLook::Asks::kAny,
              store.in_transaction_ ? TypeLook::Others::kWait : TypeLook::Others::kWrite),
        reclaim_walk_(family.id),
        hold_(table.HoldRows()) {}
  ~FamilyAlter() override {
    const Result<Table*> table = store_.FindTableAgain(table_id_, lineage_);
    if (!table.ok()) return;
    look_.EndRecord(**table);
    EndRecord(**table);
  }
  FamilyAlter(const FamilyAlter&) = delete;
  FamilyAlter& operator=(const FamilyAlter&) = delete;

  bool done() const override { return phase_ == Phase::kDone; }
  uint64_t rows() const override { return conversion_ ? conversion_->rows_rewritten() : 0; }
  bool schema_changed() const override { return schema_changed_; }
  size_t memory_bytes() const override {
    return look_.memory_bytes() + (conversion_ ? conversion_->memory_bytes() : 0) +
           written_.size() * kBytesOfWritten;
  }

  Status Step(uint64_t cells_max) override {
    ASSIGN_OR_RETURN(Table* const table, store_.FindTableAgain(table_id_, lineage_));
    if (phase_ == Phase::kRebuild) return Rebuild(*table, cells_max);
    const FamilySchema* family = table->schema().FindFamilyById(family_id_);
    if (family == nullptr) {
      return Status::Error(ErrorCode::kNoFamily, "the family has been dropped");
    }
    if (phase_ == Phase::kConvert) return ConvertOn(table, *family, cells_max);
    // Each time: others may have made an index, or altered the family, since the change began.
    FamilySchema after;
    RETURN_IF_ERROR(AlterTypes(table->schema(), *family, options_, &after));
    RETURN_IF_ERROR(LookOn(*table, after, cells_max));
    if (phase_ == Phase::kLook) return Status::Ok();
    after.policy = AlterRetention(family->policy, options_);
    after.next_policy.reset();
    RETURN_IF_ERROR(ReclaimOn(table, *family, after.policy, cells_max));
    if (phase_ == Phase::kReclaim) return Status::Ok();
    return Alter(table, *family, std::move(after));
  }

 private:
  enum class Phase : uint8_t { kLook, kReclaim, kAlter, kRebuild, kConvert, kDone };

  bool converts() const { return others_ == OtherCells::kConvert || others_ == OtherCells::kSkip; }

  // --- look

  // A further slice of it; behind its end, what others have changed since the last slice.
  Status LookOn(Table& table, const FamilySchema& after, uint64_t cells_max) {
    const TypeChange change(after, options_);
    if (change_ && !change_->SameAs(change)) look_.Restart();
    change_ = change;
    const bool looks = others_ == OtherCells::kRefuse || others_ == OtherCells::kConvert;
    const bool at_end = !looks || !change_->asks() ||
                        look_.Step(table, after, *change_, store_.now_micros_, cells_max);
    if (at_end && looks) RETURN_IF_ERROR(look_.Refusal(after));
    phase_ = at_end ? Phase::kReclaim : Phase::kLook;
    return Status::Ok();
  }

  // --- reclaim, alter

  // A pass takes as many turns as it needs, and more may become due meanwhile, so a pass that took
  // more than one turn and found something is followed by another one, kPassesMax in all. Inside a
  // transaction nothing waits: what stays dropped under the new policy is left to the sweeper.
  // Anything else has to be reclaimed there and then, in one go. Behind the last pass follow the
  // rows that were written meanwhile: a put that is older than what is kept is dropped as it comes,
  // and stays stored. The last of them follow in the turn that alters. What expires by its age
  // behind the last pass is reclaimed by none.
  Status ReclaimOn(Table* table, const FamilySchema& family, const RetentionPolicy& policy,
                   uint64_t cells_max) {
    // Of several sets the others do not either where nothing changes (policy_changes.h).
    const bool is_same = store_.has_other_sets() && family.policy == policy;
    const bool reclaims =
        !is_same && (!store_.in_transaction_ || !StaysDropped(*table, family, policy));
    if (reclaims && !store_.in_transaction_ && !TakeWritten(table)) {
      // Too many, or nobody knows which: from the beginning, as often as a walk may.
      is_walked_ = is_walked_ && ++passes_ >= kPassesMax;
      if (!is_walked_) BeginPass();
    }
    while (reclaims && !is_walked_) {
      store_.BeginMutation();
      const uint64_t found_before = reclaim_walk_.columns_found();
      const bool end = reclaim_walk_.Step(*table, store_.now_micros_, cells_max, &store_.mutation_);
      RETURN_IF_ERROR(CommitReclaimed(table, reclaim_walk_.columns_found() - found_before));
      ++steps_;
      if (!end) return Status::Ok();
      is_walked_ = steps_ == 1 || reclaim_walk_.columns_found() == 0 || ++passes_ >= kPassesMax;
      if (is_walked_) break;
      BeginPass();
      if (cells_max != kUnlimited) return Status::Ok();
    }
    if (!written_.empty()) RETURN_IF_ERROR(ReclaimWritten(table, cells_max));
    if (written_.empty()) phase_ = Phase::kAlter;
    return Status::Ok();
  }

  void BeginPass() {
    reclaim_walk_ = ReclaimWalk(family_id_);
    steps_ = 0;
  }

  // A further slice of the rows that have been written since the walk began.
  Status ReclaimWritten(Table* table, uint64_t rows_max) {
    uint64_t left = written_.size() <= kRowsAtOnce ? kUnlimited : rows_max;
    uint64_t found = 0;
    store_.BeginMutation();
    for (; !written_.empty() && left > 0; --left) {
      ReclaimWalk walk(family_id_, std::move(written_.extract(written_.begin()).value()));
      (void)walk.Step(*table, store_.now_micros_, kUnlimited, &store_.mutation_);
      found += walk.columns_found();
    }
    return CommitReclaimed(table, found);
  }

  Status CommitReclaimed(Table* table, uint64_t found) {
    RETURN_IF_ERROR(store_.CommitMutation(table, found));
    if (found == 0) return Status::Ok();
    store_.TellReclaimed(*table, store_.mutation_.Since(store_.part_begin_));
    // What has changed by this needs no other look.
    if (record_ != 0) (void)table->watches().TakeRecord(record_);
    return Status::Ok();
  }

  // What clients have written since the last slice. False: that is not known of all rows.
  bool TakeWritten(Table* table) {
    TableWatches& watches = table->watches();
    if (record_ == 0) {
      record_ = watches.Record();
      return true;
    }
    std::optional<std::vector<std::string>> rows = watches.TakeRecord(record_);
    const bool is_known = rows && written_.size() + rows->size() <= kWrittenMax;
    if (is_known) {
      written_.insert(std::move_iterator(rows->begin()), std::move_iterator(rows->end()));
    } else {
      EndRecord(*table);
      record_ = watches.Record();
      written_.clear();
    }
    return is_known;
  }

  void EndRecord(Table& table) {
    if (record_ != 0) table.watches().EndRecord(std::exchange(record_, 0));
  }

  Status Alter(Table* table, const FamilySchema& family, FamilySchema after) {
    if (options_.compression)
      after.compression = AlterCompression(after.compression, *options_.compression);
    const bool policy_changes = !(family.policy == after.policy);
    TableSchema schema = table->schema();
    for (IndexSchema& index : schema.indexes) {
      if (policy_changes && index.NamesFamily(family_id_)) index.judged = false;
    }
    *schema.FindFamily(family.name) = std::move(after);
    std::string bytes;
    EncodeTableSchema(schema, &bytes);
    store_.BeginMutation();
    store_.mutation_.SetSchema(table_id_, bytes);
    RETURN_IF_ERROR(of_ == Of::kOwnSet ? store_.CommitLocalSchema(table)
                                       : store_.CommitSchema(table));
    schema_changed_ = true;
    look_.EndRecord(*table);
    EndRecord(*table);
    store_.BeginIndexes(*table);
    const bool finds = others_ == OtherCells::kSkip || look_.has_found();
    if (converts() && change_->asks() && finds)
      conversion_.emplace(store_, family_id_, others_, rights_.get());
    GoOn(*table);
    return Status::Ok();
  }

  // Behind the alteration: what is still to do. Indexes come first, since one that is not whole
  // refuses rows. Those of a transaction have been built, or are large: then they are built behind
  // it, unless it needs them now.
  void GoOn(const Table& table) {
    const bool goes_on = conversion_ && !conversion_->at_end();
    const bool waits = table.has_indexes() && table.indexes()->MustBeWhole() &&
                       (goes_on || !store_.in_transaction_);
    phase_ = waits ? Phase::kRebuild : goes_on ? Phase::kConvert : Phase::kDone;
  }

  // --- rebuild

  // The client waits for that too, since until then changes of their columns are refused.
  Status Rebuild(Table& table, uint64_t rows_max) {
    (void)store_.BuildIndexes(table, rows_max, Store::kIndexMicrosUnlimited);  // by its caller
    GoOn(table);
    return Status::Ok();
  }

  // --- convert

  Status ConvertOn(Table* table, const FamilySchema& family, uint64_t cells_max) {
    const TypeChange change(family, options_);
    if (!change_->GoesOnAs(change))
      return CellConversion::ChangedAgain(family, conversion_->rows_rewritten());
    change_ = change;
    // Others may have changed the policy, too.
    GoOn(*table);
    if (phase_ != Phase::kConvert) return Rebuild(*table, cells_max);
    RETURN_IF_ERROR(conversion_->Step(table, family, change, cells_max));
    GoOn(*table);
    // They were written behind the look, as of their old type: an increment, say.
    const uint64_t stuck = others_ == OtherCells::kSkip ? 0 : conversion_->stuck().cells;
    if (!conversion_->at_end() || stuck == 0) return Status::Ok();
    phase_ = Phase::kDone;
    return CellConversion::Left(conversion_->stuck());
  }

  static constexpr int kPassesMax{4};
  static constexpr size_t kRowsAtOnce{500};
  static constexpr size_t kWrittenMax{100'000};
  static constexpr size_t kBytesOfWritten{128};  // about

  Store& store_;
  const uint64_t table_id_;
  const uint64_t lineage_;
  const uint32_t family_id_;
  const Of of_;
  const FamilyOptions options_;
  const std::unique_ptr<FamilyAccess> rights_;  // of the client; null: all
  const OtherCells others_;
  Phase phase_{Phase::kLook};
  bool schema_changed_{false};
  std::optional<TypeChange> change_;
  TypeLook look_;
  ReclaimWalk reclaim_walk_;
  const std::shared_ptr<void> hold_;
  int steps_{0};  // of the pass at hand
  int passes_{0};
  bool is_walked_{false};          // no further pass follows
  uint64_t record_{0};             // TableWatches::Record; 0: none
  std::set<std::string> written_;  // rows, since the walk began
  std::optional<CellConversion> conversion_;
};

// The option that no family, or not this one, can have changed.
static std::string_view FixedOption(const FamilySchema& family, const FamilyOptions& options) {
  if (options.order) return "ORDER";
  if (options.group) return "GROUP";
  if (options.fold) return "AGGREGATE";
  if (options.bucket_ms) return "BUCKET";
  return options.type && family.fold != FoldKind::kNone ? "TYPE" : "";
}

static std::unique_ptr<FamilyAccess> CopyRights(const TableSchema& schema,
                                                const FamilyAccess* access) {
  if (access == nullptr) return nullptr;
  auto copy = std::make_unique<FamilyAccessCopy>(*access);
  for (const FamilySchema& family : schema.families) copy->Add(*access, family.name);
  return copy;
}

// Of another version they would not know it.
static Status CheckMayKeepOther(const CatalogKeeper& keeper) {
  if (keeper.KnowCuts()) return Status::Ok();
  return Status::Error(ErrorCode::kTryAgain,
                       "not all sets of the cluster have said that they know changes of what a "
                       "family keeps: one is away, or has members of an earlier version");
}

Result<std::unique_ptr<SlicedChange>> Store::AlterFamily(Table& table, const NewFamily& family,
                                                         const FamilyAccess* access) {
  RETURN_IF_ERROR(CheckLive(table));
  const TableSchema& schema = table.schema();
  Result<const FamilySchema*> found = RequireFamily(schema, family.name);
  if (!found.ok()) return InTable(std::move(found).status(), table);
  if (const std::string_view fixed = FixedOption(**found, family.options); !fixed.empty()) {
    return Status::Error(ErrorCode::kErr, std::string(fixed) + " of family " + Quote(family.name) +
                                              " is fixed once created");
  }
  FamilySchema after;
  if (Status altered = AlterTypes(schema, **found, family.options, &after); !altered.ok())
    return InTable(std::move(altered), table);
  RETURN_IF_ERROR(CheckFeatures(family.options));
  // Who has had the other sets look goes on with KEEP.
  if (has_other_sets() && !table.tablets()->owns_all()) {
    const bool keeps = family.options.other_cells == OtherCells::kKeep;
    if (!keeps && TypeChange(after, family.options).asks()) {
      return Status::Error(ErrorCode::kCrossSet,
                           "table " + Quote(table.name()) +
                               " has rows on other sets, which have not looked whether cells of "
                               "family " +
                               Quote(family.name) + " fit; nothing was done");
    }
    const RetentionPolicy policy = AlterRetention((*found)->policy, family.options);
    if (!((*found)->policy == policy)) RETURN_IF_ERROR(CheckMayKeepOther(*catalog_.keeper));
  }
  return std::unique_ptr<SlicedChange>(std::make_unique<FamilyAlter>(
      *this, table, **found, family.options, CopyRights(schema, access)));
}

std::unique_ptr<SlicedChange> SettlePolicy(Store& store, const Table& table,
                                           const FamilySchema& family) {
  FamilyOptions options;
  options.gc = family.next_policy;
  options.other_cells = OtherCells::kKeep;
  return std::make_unique<FamilyAlter>(store, table, family, std::move(options), nullptr,
                                       FamilyAlter::Of::kOwnSet);
}

}  // namespace cellar
