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

#include "cellar/status.h"
#include "engine/keys/timestamp.h"
#include "engine/request/row_write.h"
#include "engine/rows/arrival_watch.h"
#include "engine/rows/condition.h"
#include "engine/schema/column_set.h"
#include "engine/table/engine.h"
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

  // Adds ops behind what `mutation` has; nothing is added, and nothing changed, on an error.
  // *result, which keeps its memory, is what the client is told.
  Status Resolve(Table& table, const RowWrite& write, const WriteContext& context, Known known,
                 MutationBuilder* mutation, RowWriteResult* result, Outcome* outcome);

  // The same for a write that IsPlainPut() on a table whose keys are not record numbers: the usual
  // CPUT, in one pass and without a result. Nothing is added on an error.
  Status ResolvePuts(const Table& table, const RowWrite& write, const WriteContext& context,
                     MutationBuilder* mutation);
  // The same for puts without options.
  Status ResolvePuts(const Table& table, std::string_view row, std::span<const ColumnPut> puts,
                     const WriteContext& context, MutationBuilder* mutation);
  // The same for one put without options.
  Status ResolveOnePut(const Table& table, std::string_view row, const CellPut& put,
                       const WriteContext& context, MutationBuilder* mutation);
  // The same of a column of the table that is known.
  Status ResolveKnownPut(const Table& table, std::string_view row, const KnownColumn& column,
                         std::string_view text, const WriteContext& context,
                         MutationBuilder* mutation);
  // Whether a cell got the context's stamp by the last of these.
  bool stamp_used() const { return stamp_used_; }

  // Where all that was added is one put of an existing row key: that put, for Engine::ApplyPut.
  // Else null. Dies with the next change of the mutation, or of what was resolved.
  const ResolvedPut* lone_put() const {
    return mutation_->size() == lone_put_end_ ? &put_ : nullptr;
  }

  // Where all that was added by ResolvePuts are several puts of an existing row key, and nothing is
  // reclaimed or replaced: these puts, for Engine::ApplyPuts. Else null. Dies likewise.
  const RowPuts* row_puts() const {
    return mutation_->size() == row_puts_end_ ? &row_puts_ : nullptr;
  }

  // The newest version of the lone put's column, live or not, if there is one: for feeds that tell
  // it (Engine::tells_old). REQUIRES: lone_put() is not null; nothing has been applied since.
  std::optional<BTree::Match> NewestOfLonePut();

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
  // Type and value of a put, as a cell. The value borrows from the text, from *buffer or state_.
  // `column` (a CellPut or KnownColumn, here and below) is what an error names.
  template <typename Column>
  Status CheckValue(const Column& column, std::string_view text, const PutOptions& options,
                    const FamilySchema& family, const WriteContext& context, ValueBuffer* buffer,
                    CellValue* cell);
  template <typename Column>
  Status CheckState(const Column& column, std::string_view text, const PutOptions& options,
                    const FamilySchema& family, CellValue* cell);
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
  // The row, and what all its puts need.
  Status BeginPuts(const Table& table, std::string_view row, const WriteContext& context,
                   MutationBuilder* mutation);
  Status ResolvePlainPut(const TableSchema& schema, const CellPut& put, const PutOptions& options);
  // What follows when the column is at hand.
  template <typename Column>
  Status ResolveValue(const Column& column, std::string_view text, const PutOptions& options);
  // The same of a put without options into a family that takes any bytes as they are and keeps all
  // of them, as most do. False, and nothing is added, if it does not, or the text is too long.
  bool PutPlainBytes(std::string_view text);
  // Puts of a row, several at least: `resolve_each` does this for one after the other, and says
  // after each NotePut.
  template <typename ResolveEach>
  Status ResolveSeveral(const Table& table, std::string_view row, const WriteContext& context,
                        MutationBuilder* mutation, ResolveEach resolve_each);
  void NoteRowPut() { row_puts_.Add(put_, mutation_->payload()); }
  // Does the row have nothing in the family of the column at hand? One look for all columns of it.
  bool FamilyIsEmpty();
  // On an error takes back what these puts have added. Returns the status.
  Status EndPuts(Status status);

  // The row, whose key stands at the front of cell_key_; empty: one that `*` makes.
  std::string_view row_key() const { return put_.row_key(); }
  Status BeginRow(const TableSchema& schema, std::string_view text);
  void ForgetRow() { put_.row_bytes = 0; }
  // The column at hand: its key stands there too. Returns the end of what it has before EndColumn.
  char* BeginColumn(const FamilySchema& family) {
    char* const end = EncodeFamilyId(cell_key_.get() + put_.row_bytes, family.id);
    put_.family = &family;
    put_.family_bytes = static_cast<size_t>(end - cell_key_.get());
    return end;
  }
  void EndColumn(const char* end) {
    put_.column_bytes = static_cast<size_t>(end - cell_key_.get());
    CELLAR_ASSERT(put_.column_bytes <= kColumnKeyBytesMax);
  }
  void SetColumn(const CheckedOp& op) {
    char* const end = BeginColumn(*op.family);
    CopyBytes(end, op.qualifier.data(), op.qualifier.size());
    EndColumn(end + op.qualifier.size());
  }
  void SetColumn(const KnownColumn& column) {
    static_assert(KnownColumn::kKeyBytesMax <= kColumnPartBytesMax);
    put_.family = &column.family();
    put_.family_bytes = put_.row_bytes + column.family_id_bytes();
    EndColumn(column.CopyKey(cell_key_.get() + put_.row_bytes));
  }
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
  template <typename Column>
  void WatchArrival(const Column& column, int64_t timestamp, int64_t expiry_micros);
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
