// RowResolver: from what a client asks of one row to the mutation that does it.
//
//   Check      columns, types, values of both branches, left to right, behind the row key: every
//              static error
//   Decide     NX, XX and the conditions
//   Resolve    each op of the branch reads what it must (increments, deletes, what retention has
//              dropped in its column) and adds resolved ops to the mutation
//
// The ops of one command see each other. Where that matters (a delete or an increment among several
// ops) each op is applied as soon as it is resolved, after a checkpoint of the table, and rolled
// back if a later one is refused: `applied` says so. Otherwise the mutation is complete before
// anything changes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.h"
#include "cellar/status.h"
#include "engine/keys/timestamp.h"
#include "engine/request/row_write.h"
#include "engine/rows/arrival_watch.h"
#include "engine/rows/condition.h"
#include "engine/schema/column_set.h"
#include "engine/state/engine.h"
#include "engine/state/pre_images.h"
#include "engine/table/mutation.h"
#include "engine/table/read_view.h"
#include "engine/table/row_puts.h"

namespace cellar {

// What a write needs from outside the engine.
struct WriteContext {
  int64_t now_micros{0};    // the turn's time: retention, expiry
  int64_t stamp_micros{0};  // what a cell written without TS gets
  uint64_t value_bytes_max{64ULL << 20};
};

class RowResolver {
 public:
  // Both outlive it.
  RowResolver(Engine& engine, ArrivalWatch& arrivals) : engine_(engine), arrivals_(arrivals) {
    put_.key = cell_key_.get();
  }

  // How the ops came about.
  struct Outcome {
    bool applied{false};  // the ops are in the trees already; `checkpoint` takes them out again
    bool used_stamp{false};
    // If applied. Behind a pointer, since few writes need one.
    std::unique_ptr<Table::Checkpoint> checkpoint;
  };

  // Whether the request is known: then only the row differs from what was checked last, with
  // nothing between that changes the table's schema, or uses the resolver otherwise.
  enum class Known : uint8_t { kNo, kYes };

  // Every error of the request that does not depend on the row, nor on cells.
  Status CheckRequest(const Table& table, const RowWrite& write, const WriteContext& context);

  // Where Resolve puts what it finds.
  struct Resolution {
    MutationBuilder* mutation;  // ops are added behind what it has
    RowWriteResult* result;     // what the client is told; it keeps its memory
    Outcome* outcome;
  };
  // Nothing is added, and nothing changed, on an error.
  Status Resolve(Table& table, const RowWrite& write, const WriteContext& context, Known known,
                 const Resolution& to);

  // What Resolve does with puts alone, in one pass and without a result: `cells` are columns and
  // values in turn, as a client names them; ERR if a column is none. Nothing is added on an error.
  // REQUIRES: 1 to kCellOpsMax of each; the table's keys are no record numbers.
  Status ResolvePuts(const Table& table, std::string_view row,
                     std::span<const std::string_view> cells, const WriteContext& context,
                     MutationBuilder* mutation);
  // The puts of a write, which may have options. REQUIRES: it IsPlainPut(); likewise.
  Status ResolvePuts(const Table& table, const RowWrite& write, const WriteContext& context,
                     MutationBuilder* mutation);
  // Whether a cell got the context's stamp by the last of these.
  bool stamp_used() const { return stamp_used_; }

  // Carries out what was added to the mutation last, all of one row, which nobody has applied yet.
  // Puts are not read back from there. REQUIRES: the mutation has not changed since.
  void Apply(Table* table) {
    if (is_lone_put()) [[likely]]
      return engine_.ApplyPut(table, put_);
    if (mutation_->size() == row_puts_end_)
      return engine_.ApplyPuts(table, row_puts_, mutation_->payload());
    ApplySince(part_begin_);
  }
  // Before that: if it is one put, takes down what feeds tell of the cell that it replaces. Else
  // false.
  bool TakeOldOfLonePut(PreImages* pre_images);

 private:
  // An op whose names, types and texts are in order.
  struct CheckedOp {
    const CellOp* op{nullptr};
    const FamilySchema* family{nullptr};
    std::string qualifier;  // encoded
    ValueType type{ValueType::kBytes};
    // kPut: the cell. What is folded in otherwise than as a delta: value or state, as it is stored;
    // a view of an hll's input.
    std::string cell_value;
    std::string_view input;
    ColumnSet columns;  // kDelete
    int128_t delta{0};
    double delta_float{0};
    TextNumber delta_kind{TextNumber::kNone};
    bool delta_fits{true};  // into `delta`; else only a float takes it
  };

  void BeginView(const Table& table, const RowWrite& write, const WriteContext& context);
  Status Check(const TableSchema& schema, const RowWrite& write, const WriteContext& context);
  Status CheckOps(const TableSchema& schema, const std::vector<CellOp>& ops,
                  const WriteContext& context, size_t* used);
  Status CheckAccess(const CellOp& op) const;
  Status CheckColumn(const TableSchema& schema, const CellOp& op, CheckedOp* checked);
  Status CheckPut(const CellOp& op, const WriteContext& context, CheckedOp* checked);
  // Type and value of a put into `column`, as a cell. The value borrows from the text, from *buffer
  // or state_.
  struct Column {
    const FamilySchema& family;
    std::string_view qualifier;  // encoded
  };
  Status CheckValue(const CellPut& put, const PutOptions& options, const Column& column,
                    const WriteContext& context, ValueBuffer* buffer, CellValue* cell);
  Status CheckState(const CellPut& put, const PutOptions& options, const FamilySchema& family,
                    CellValue* cell);
  Status CheckDelta(const CellOp& op, CheckedOp* checked);
  // Of an op on a column of an aggregate family, and of a fold elsewhere (fold_resolver.cc).
  Status CheckFold(const CellOp& op, const WriteContext& context, CheckedOp* checked);
  Status CheckSumDelta(const CellOp& op, CheckedOp* checked);
  // Begins the step of a command, or of one of its ops.
  size_t BeginPart() {
    part_begin_ = mutation_->BeginPart();
    lone_put_end_ = kNoPut;
    row_puts_end_ = kNoPut;
    return part_begin_;
  }
  // Both ResolvePuts: `count` puts, of which `resolve` resolves the one of that number.
  template <typename ResolveNth>
  Status ResolveEach(const Table& table, std::string_view row, size_t count,
                     const WriteContext& context, MutationBuilder* mutation, ResolveNth resolve);
  template <typename ResolveNth>
  Status ResolveSeveral(size_t count, ResolveNth resolve);
  // One of them: of a column by its name, or taken apart.
  Status ResolvePlainPut(std::string_view name, std::string_view text);
  Status ResolvePlainPut(const CellPut& put, const PutOptions& options);
  // The put's value, when its column is at hand.
  Status ResolveValue(const CellPut& put, const PutOptions& options);
  // The same of a put without options into a family that takes any bytes as they are, as most do.
  // False, and nothing is added, if it does not, or the text is too long.
  bool PutPlainBytes(std::string_view text);
  // Does the row have nothing in the family of the column at hand? One look for all columns of it.
  bool FamilyIsEmpty();
  // What was added is one put of an existing row key: put_.
  bool is_lone_put() const { return mutation_->size() == lone_put_end_; }

  // The row, whose key stands at the front of cell_key_; empty: one that `*` makes.
  std::string_view row_key() const { return put_.row_key(); }
  Status BeginRow(const Table& table, std::string_view text);
  void ForgetRow() { put_.row_bytes = 0; }
  // The column at hand, whose part of the key stands there too, up to `end`.
  char* column_begin() const { return cell_key_.get() + put_.row_bytes; }
  void SetColumn(const FamilySchema& family, const char* end) {
    put_.family = &family;
    put_.family_bytes = put_.row_bytes + FamilyIdBytes(family.id);
    put_.column_bytes = static_cast<size_t>(end - cell_key_.get());
    CELLAR_ASSERT(put_.column_bytes <= kColumnKeyBytesMax);
  }
  void SetColumn(const CheckedOp& op) {
    char* const end = EncodeFamilyId(column_begin(), op.family->id);
    CopyBytes(end, op.qualifier.data(), op.qualifier.size());
    SetColumn(*op.family, end + op.qualifier.size());
  }
  Status SetColumnOfNow(const CellPut& put, Status refusal);
  std::string_view column() const { return put_.column(); }
  std::string_view qualifier() const { return put_.qualifier(); }
  // The row becomes that of a record number.
  void EncodeRecno(const Order& key, int64_t number);
  Result<bool> Decide(const Table& table, const RowWrite& write, const ReadView& view);

  // Changes the trees by what the mutation has from `mark` on, which has been checked.
  void ApplySince(size_t mark);
  Status ResolveOps(Table* table, size_t first, size_t count, RowWriteResult* result,
                    Outcome* outcome);
  Status ResolveOp(const CheckedOp& op, CellOpResult* result);
  void ResolvePut(const CheckedOp& op);
  void ResolveDelete(const CheckedOp& op, CellOpResult* result);
  void ResolveDeleteRow(const CheckedOp& op, CellOpResult* result);
  Status ResolveIncrement(const CheckedOp& op, CellOpResult* result);
  Status ResolveAppend(const CheckedOp& op, CellOpResult* result);

  // --- folds (fold_resolver.cc)
  Status ResolveFold(const CheckedOp& op, CellOpResult* result);
  Status FoldNumber(const CheckedOp& op, const std::optional<CellValue>& cell, StoredValue* sum);
  void FoldHll(const CheckedOp& op, int64_t timestamp, const std::optional<CellValue>& cell,
               bool is_pending, CellOpResult* result);
  // The live cell of the column at hand, which has been walked: as the command's puts so far leave
  // it, or as it is stored.
  struct FoundCell {
    std::optional<CellValue> cell;  // dies with the next change of the mutation or of pending_
    bool is_pending{false};
  };
  FoundCell FindCell(int64_t timestamp);
  // Notes a put of the column at hand that a fold of this command may meet.
  void NotePending(const CellValue& cell);
  // The timestamp that a write without TS (with it) gets in the family. The server's counts as used
  // if it is part of it.
  int64_t TimestampIn(const FamilySchema& family, const std::optional<int64_t>& said);
  // A version that an increment or append finds.
  struct OldVersion {
    int64_t timestamp_micros{0};
    CellValue value;
  };
  // Columns (family id, qualifier) that an increment or append of this command has written, with
  // the version's timestamp: a second one replaces that version instead of making another.
  struct MadeVersion {
    std::string column;
    int64_t timestamp_micros;
  };
  static constexpr int64_t kNoVersion{-1};
  MadeVersion* FindMadeVersion(const CheckedOp& op);
  // Puts the version that an increment or append makes of `old`.
  Status PutNext(const CheckedOp& op, const std::optional<OldVersion>& old, ValueType type,
                 std::string_view stored);

  // Before a version is put in the column at hand: adds a reclaim op if retention has dropped a
  // version of it, unless the step at hand (one operation, or all the puts of a command that only
  // puts) has added one: what these puts bring must not be reclaimed between them, or it would
  // matter whether the sweeper has been there.
  void ReclaimColumn() {
    column_versions_.walked = false;
    if (table_->family_is_all_live(*put_.family)) return;
    if (looks_at_families_ && FamilyIsEmpty()) return;
    WalkColumn(Newest::kIgnore);
  }
  // The versions that the last walk met.
  struct ColumnVersions {
    bool walked{false};  // else nothing here is of the column at hand
    // It met as many as the policy keeps, all of them live. A newer one takes the place of the
    // oldest, which it drops: nothing is left to be reclaimed.
    bool full{false};
    // It met as many, or more: the policy drops what is older than the oldest.
    bool keeps_no_older{false};
    int64_t newest_micros{kNoVersion};
    int64_t oldest_micros{0};
  };
  // A version with a timestamp of the client's own is about to be put in the column at hand.
  void WatchArrival(const CellPut& put, int64_t timestamp, int64_t expiry_micros);
  // Adds the put of a version to the column at hand, which has been walked, or found to need no
  // walk. The caller writes the cell's value.
  char* BeginVersion(int64_t timestamp, size_t cell_value_bytes);
  // The same with the cell, which is packed if the family asks for that.
  void PutVersion(int64_t timestamp, CellValue cell);
  // Has the family that the cell is of said COMPRESS, and does it pay? Then the cell is packed, and
  // borrows from packer_.
  void Pack(const FamilySchema& family, CellValue* cell) {
    if (Packs(family.compression)) [[unlikely]]
      PackCell(family, cell);
  }
  void PackCell(const FamilySchema& family, CellValue* cell);
  // The same as ReclaimColumn, and the newest live version, in one walk; its value is copied to
  // value_.
  enum class Newest : uint8_t { kIgnore, kRead };
  // kNoVersion or a timestamp, of which the walk reads the version instead, if it is live.
  int64_t wanted_micros_{kNoVersion};
  std::optional<OldVersion> WalkColumn(Newest newest);
  // The one behind the `rank`-th, `version`.
  std::optional<BTree::Match> NextVersion(const BTree::Match& version, uint64_t rank) const;
  // Deletes live cells of one family, in `range` of qualifiers, within `time`. Returns how many.
  uint64_t DeleteCells(const FamilySchema& family, const KeyRange& range, const TimeRange& time);
  KeyRange StoredQualifiers(const FamilySchema& family, size_t family_bytes,
                            const std::string& end_key);

  Engine& engine_;
  ArrivalWatch& arrivals_;

  // The command at hand.
  const Table* table_{nullptr};
  ReadView own_view_;
  const ReadView* view_{nullptr};
  const WriteContext* context_{nullptr};
  MutationBuilder* mutation_{nullptr};
  const FamilyAccess* access_{nullptr};
  bool asks_existence_{false};
  // Row key; then family id and qualifier of the column at hand, of which put_ tells the rest; then
  // the timestamp of its last version. There is room for the longest, so that nobody asks.
  const std::unique_ptr<char[]> cell_key_{
      std::make_unique_for_overwrite<char[]>(kColumnKeyBytesMax + kTimestampBytesMax)};
  std::vector<CheckedOp> checked_;  // of both branches; grows, never shrinks
  size_t ops_checked_{0};
  size_t else_ops_checked_{0};
  std::vector<Condition> conditions_;
  bool stamp_used_{false};
  std::vector<MadeVersion> made_versions_;
  ColumnVersions column_versions_;
  bool several_ops_{false};  // else there is nothing to remember between them
  std::set<std::string, std::less<>> reclaimed_columns_;  // row key, family id, qualifier
  std::string key_;                                       // scratch
  std::string version_key_;                               // likewise, of WalkColumn
  std::optional<BTree::Match> newest_;                    // that WalkColumn met, if a feed asks
  BTreePlace place_;                                      // of the column that was walked last
  std::string value_;                                     // scratch
  std::string state_;                                     // likewise: a canonical state of an hll
  PlainValue plain_;                                      // of the cell read last
  ValuePacker packer_;
  // Cells that a command of folds and puts alone has put, by their keys, as long as nothing of it
  // is applied.
  bool has_pending_{false};
  std::map<std::string, std::string, std::less<>> pending_;
  // The column at hand, and the put of a version that was made of it last.
  ResolvedPut put_;
  // What the step at hand has added to the mutation: where it begins, and where its first op ends
  // if that is a put.
  static constexpr size_t kNoPut{0};
  size_t part_begin_{0};
  size_t lone_put_end_{kNoPut};
  // Likewise where all of it ends if it is puts of a row, which are these.
  size_t row_puts_end_{kNoPut};
  RowPuts row_puts_;
  // While ResolvePuts is at several columns: what FamilyIsEmpty has found of which family.
  bool looks_at_families_{false};
  const FamilySchema* looked_at_{nullptr};
  bool family_is_empty_{false};
};

}  // namespace cellar
